"""The host behind OpenSSH's own sshd, as it stands on every GPU host."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters.ssh import SshConnector, SshHost
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.realhost


@contextlib.asynccontextmanager
async def connected(sshd, by=SshConnector, **changes: object) -> AsyncIterator[SshHost]:
    """A connection for the block."""
    host = await by(sshd.target(**changes)).connect()
    try:
        yield host
    finally:
        await host.close()


def printing(shell: str) -> str:
    """A forced command that greets on both outputs, as start-up files do, and goes on to a login shell."""
    return (
        f"ForceCommand=printf 'welcome!\\n\\033[31mthree\\nlines'; echo noise >&2; "
        f'exec {shell} -c "$SSH_ORIGINAL_COMMAND"'
    )


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish", "tcsh"])
async def test_a_printing_login_shell_disturbs_nothing(by, start_sshd, shell: str) -> None:
    """Its greeting is in neither output, and hostile words arrive."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    async with connected(start_sshd(printing(shell)), by) as host:
        done = await host.run(["sh", "-c", 'printf "%s|" "$@"; echo err >&2', "sh", "it's", "a\nb", "!\\$(id)"])
        assert (done.stdout, done.stderr) == ("it's|a\nb|!\\$(id)|", "err\n")
        assert (await host.run(["cat"], stdin=b"fed")).stdout == "fed"
        stream = await host.stream(["printf", "bytes"])
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"bytes"


async def test_a_login_shell_that_prints_a_megabyte_disturbs_nothing(by, start_sshd) -> None:
    """Neither the answer nor the memory: what stands before the frame is thrown away as it comes."""
    flood = "head -c 1000000 /dev/zero | tr '\\\\0' x"
    async with connected(start_sshd(f'ForceCommand={flood}; exec sh -c "$SSH_ORIGINAL_COMMAND"'), by) as host:
        assert (await host.run(["echo", "answer"])).stdout == "answer\n"
        stream = await host.stream(["printf", "bytes"])
        assert b"".join([chunk async for chunk in stream.chunks()]) == b"bytes"


async def test_a_bashrc_that_prints_disturbs_nothing(start_sshd, tmp_path: Path) -> None:
    """bash reads it for every command of an ssh session; here by the variable that names it."""
    rc = tmp_path / "rc"
    rc.write_text("echo welcome!\n")
    async with connected(start_sshd(f'ForceCommand=BASH_ENV={rc} exec bash -c "$SSH_ORIGINAL_COMMAND"')) as host:
        assert (await host.run(["echo", "answer"])).stdout == "answer\n"


async def test_a_bashrc_of_the_users_home_disturbs_nothing(by, start_sshd, keys) -> None:
    """Where the login shell is bash, it reads this one by itself, before any command."""
    (keys.folder / ".bashrc").write_text("echo welcome!\nprintf '\\033[31mred'\necho noise >&2\n")
    async with connected(start_sshd(), by) as host:
        done = await host.run(["cat"], stdin=b"answer")
        assert (done.stdout, done.stderr) == ("answer", "")


async def test_what_has_a_session_of_its_own_survives_a_cut(start_sshd, processes, none_left, tmp_path: Path) -> None:
    """As an engine has to."""
    sshd, word = start_sshd(), f"kept-{tmp_path}"
    async with connected(sshd) as host:
        launch = 'setsid sh -c "sleep 300; :" "$1" </dev/null >/dev/null 2>&1 & echo $!'
        group = (await host.run(["sh", "-c", launch, "sh", word])).stdout.strip()
        sshd.cut()
        with pytest.raises(UnreachableError):
            await host.run(["sleep", "300"])
    assert processes(word)
    async with connected(sshd) as again:
        assert (await again.run(["kill", "-KILL", "--", f"-{int(group)}"])).ok
    await none_left(word)


async def test_streams_free_their_sessions(start_sshd) -> None:
    """Eight streams one after another through two sessions: a slot that stays taken would show."""
    async with connected(start_sshd("MaxSessions=2")) as host:
        for _ in range(8):
            stream = await host.stream(["sleep", "300"])
            await stream.close()
        assert (await host.run(["echo", "free"])).stdout == "free\n"


async def test_a_banner_in_latin_1_is_no_obstacle(start_sshd, tmp_path: Path) -> None:
    """Text before the login is data as well."""
    (tmp_path / "banner").write_bytes(b"Zutritt f\xfcr Befugte \x92\n")
    async with connected(start_sshd(f"Banner={tmp_path}/banner")) as host:
        assert (await host.run(["true"])).ok


def test_a_forced_greeting_is_what_the_tests_say() -> None:
    """The helper's own quoting: three lines on stdout, one on stderr."""
    assert shlex.split(printing("sh").removeprefix("ForceCommand="))[:2] == [
        "printf",
        "welcome!\\n\\033[31mthree\\nlines;",
    ]

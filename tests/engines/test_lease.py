"""The lease on the host: one console at a time, expiring by the host's own uptime, never by its clock."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from ddconsole.adapters.local import LocalHost
from ddconsole.core.errors import HostError, RefusedError, UnwritableLeaseError
from ddconsole.core.ports import Completed
from ddconsole.engines.launch.lease import LIFE_S, HostLease


@pytest.fixture
def host() -> LocalHost:
    return LocalHost()


def leases(folder: Path, life_s: int = 60) -> tuple[HostLease, HostLease]:
    """Two consoles' leases of one host."""
    place = str(folder / "state")
    return HostLease(place, "a" * 32, "ann@laptop", life_s), HostLease(place, "b" * 32, "bob@desk", life_s)


async def test_one_console_holds_it_and_the_other_is_told_who(tmp_path: Path, host: LocalHost) -> None:
    """The holder renews it as often as it likes; the other is refused until it is given back."""
    ann, bob = leases(tmp_path)
    await ann.take(host)
    await ann.take(host)
    with pytest.raises(RefusedError, match="ann@laptop"):
        await bob.take(host)
    await bob.release(host)
    with pytest.raises(RefusedError):
        await bob.take(host)
    await ann.release(host)
    await bob.take(host)
    with pytest.raises(RefusedError, match="bob@desk"):
        await ann.take(host)


async def test_of_many_that_come_at_once_one_gets_it(tmp_path: Path, host: LocalHost) -> None:
    """Taking is atomic."""
    place = str(tmp_path / "state")
    many = [HostLease(place, f"{number:032}", f"console {number}") for number in range(8)]
    ends = await asyncio.gather(*(one.take(host) for one in many), return_exceptions=True)
    assert [type(end) for end in ends].count(RefusedError) == 7


def rewritten(folder: Path, line: int, text: str) -> None:
    path = folder / "state" / "lease"
    lines = path.read_text().splitlines()
    lines[line] = text
    path.write_text("\n".join(lines) + "\n")


async def test_an_expired_one_is_anybodys_and_the_sleeper_is_told(tmp_path: Path, host: LocalHost) -> None:
    """A laptop that slept longer than the lease lives finds the host in other hands."""
    ann, bob = leases(tmp_path)
    await ann.take(host)
    rewritten(tmp_path, 2, "1")
    await bob.take(host)
    with pytest.raises(RefusedError, match="bob@desk"):
        await ann.take(host)


async def test_one_of_an_earlier_boot_is_anybodys(tmp_path: Path, host: LocalHost) -> None:
    """Uptime begins anew at a boot, and whoever held the host then runs nothing now."""
    ann, bob = leases(tmp_path)
    await ann.take(host)
    rewritten(tmp_path, 1, "another-boot")
    await bob.take(host)


@pytest.mark.parametrize("content", ["", "\n\n\n\n", "garbage", "a\nb\nnot a number\nc\n", "\x00\xff" * 50])
async def test_a_damaged_lease_is_no_lease(tmp_path: Path, host: LocalHost, content: str) -> None:
    """Half a file, an empty one, bytes of anything: taken as free."""
    ann, _ = leases(tmp_path)
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lease").write_text(content, encoding="latin-1")
    await ann.take(host)
    await ann.take(host)


async def test_a_name_cannot_add_lines_or_columns(tmp_path: Path, host: LocalHost) -> None:
    """What another console calls itself is one line of text."""
    _, bob = leases(tmp_path)
    await HostLease(str(tmp_path / "state"), "c" * 32, "eve\n9\t$(touch pwned)\r\x1b[2J").take(host)
    with pytest.raises(RefusedError, match="eve 9"):
        await bob.take(host)
    assert not list(Path.cwd().glob("pwned"))


async def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path, host: LocalHost) -> None:
    """Never taken for held, never for ours."""
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError, match="lease"):
        await HostLease(str(tmp_path / "file" / "state"), "a", "ann").take(host)


async def test_it_holds_for_a_minute_by_the_hosts_uptime(tmp_path: Path, host: LocalHost) -> None:
    """What the documents promise, as it stands in the file."""
    await HostLease(str(tmp_path / "state"), "a" * 32, "ann@laptop").take(host)
    uptime = time.clock_gettime(time.CLOCK_BOOTTIME)
    left = int((tmp_path / "state" / "lease").read_text().splitlines()[2]) - uptime
    assert LIFE_S == 60
    assert 50 < left <= 60


class Stranger(LocalHost):
    """This machine, for an account that may not look into the test's folder."""

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        as_nobody = ("setpriv", "--reuid", "65534", "--clear-groups") if os.geteuid() == 0 else ()
        return await super().run([*as_nobody, *argv], stdin=stdin, timeout=timeout)


async def test_one_that_may_not_be_read_is_not_taken_for_free(tmp_path: Path) -> None:
    """Whose it is cannot be told, and then nothing is ended either."""
    folder = tmp_path / "state"
    folder.mkdir()
    (folder / "lease").write_text("x")
    folder.chmod(0)
    stranger = Stranger()
    try:
        with pytest.raises(HostError) as caught:
            await HostLease(str(folder), "a" * 32, "ann").take(stranger)
    finally:
        folder.chmod(0o700)
        await stranger.close()
    assert not isinstance(caught.value, UnwritableLeaseError)

"""The systemd launcher against a real systemd, over a real sshd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from realhost.box import AsNobody, Box
from realhost.conftest import STATE, Launch, system
from realhost.steps import HOSTILE, PYTHON, SERVER, dead, logged, shown, until

from ddconsole.core.errors import HostError
from ddconsole.core.ports import ByteStream, Host, Launched, LaunchPlan
from ddconsole.engines.launch.logs import last_lines, manager_notes
from ddconsole.engines.launch.ports import choose_port, listeners
from ddconsole.engines.launch.process import ProcessLauncher

EVERYTHING_SHOWN = (
    'ps axww; systemctl show "$1"; systemctl cat "$1"; journalctl --no-pager -u "$1"; systemctl show-environment'
)
"""Whatever another user of the host could look at."""


async def test_it_runs_as_a_unit_and_is_known_by_its_start(host: Host, launch: Launch) -> None:
    """One unit of the launch's name; pid, ticks and boot are /proc's; no restart, the cgroup is killed as one."""
    launched = await launch("sleep", "600")
    assert launched.launcher == "systemd"
    assert launched.unit is not None
    assert launched.unit.startswith("ddconsole-test-")
    assert await shown(host, launched.unit, "MainPID") == str(launched.pid)
    assert await shown(host, launched.unit, "Restart") == "no"
    assert await shown(host, launched.unit, "KillMode") == "control-group"
    stat = (await host.run(["cat", f"/proc/{launched.pid}/stat"])).stdout.rpartition(") ")[2].split()
    assert int(stat[19]) == launched.start_ticks
    assert (await system().liveness(host, launched)).alive
    assert Launched.from_json(launched.to_json()) == launched


async def test_words_reach_the_engine_as_they_are(host: Host, launch: Launch) -> None:
    """Neither a shell nor systemd reads anything in them; nor in a variable's value."""
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD']]), flush=True)"
    odd = "two\nlines $HOME %h \"'` \\"
    launched = await launch(PYTHON, "-c", code, *HOSTILE, env={"ODD": odd})
    await until(lambda: dead(host, launched), "its end")
    words, variable = json.loads((await host.run(["cat", launched.log_path])).stdout)
    assert tuple(words) == HOSTILE
    assert variable == odd


async def test_a_launch_is_found_and_adopted_after_the_console_died(box: Box, host: Host, name: str) -> None:
    """Another connection finds it by its name, alive, and ends it."""
    first = await box.connect()
    launched = await system().launch(first, LaunchPlan(("sleep", "600"), port=31234), name)
    await first.close()
    found = await system().find(host, name)
    assert found == launched
    assert (await system().liveness(host, found)).alive
    assert (await system().stop(host, found)).remains == ()
    assert not (await system().liveness(host, found)).alive


async def test_a_stop_ends_stray_children_of_the_cgroup(host: Host, launch: Launch) -> None:
    """A child in a session of its own, without our token, that ignores TERM: the cgroup has it."""
    stray = "setsid env -u DDCONSOLE_ATTEMPT sh -c 'trap \"\" TERM; echo stray $$; while :; do sleep 1; done' &"
    launched = await launch("sh", "-c", f"{stray} exec sleep 600")
    pid = (await logged(host, launched, "stray ")).split()[1]
    proof = await system().stop(host, launched)
    assert proof.remains == ()
    assert proof.forced
    assert "its processes are gone" in proof.proved
    assert not (await host.run(["test", "-d", f"/proc/{pid}"])).ok
    assert await shown(host, launched.unit or "", "LoadState") == "not-found"


async def test_a_willing_engine_ends_without_force_and_its_port_is_free(host: Host, launch: Launch) -> None:
    """TERM is enough."""
    port = await choose_port(host)
    launched = await launch(PYTHON, "-c", SERVER, str(port), port=port)
    await logged(host, launched, "listening")
    assert (await system().owns_port(host, launched))[0]
    proof = await system().stop(host, launched)
    assert proof.remains == ()
    assert not proof.forced
    assert await listeners(host, port) == []


@pytest.mark.parametrize(
    ("script", "status"), [("exit 3", 3), ("exit 0", 0), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
async def test_the_exit_status_is_readable_after_the_end(host: Host, launch: Launch, script: str, status: int) -> None:
    """As a shell tells it; also for a unit that systemd has forgotten already."""
    launched = await launch("sh", "-c", script)
    await until(lambda: dead(host, launched), "its end")
    assert (await system().liveness(host, launched)).exit_status == status


async def test_the_exit_status_is_known_while_children_are_still_being_ended(host: Host, launch: Launch) -> None:
    """A crash is told at once, not after the time-out of a stubborn rank."""
    stray = "sh -c 'trap \"\" TERM; while :; do sleep 1; done' &"
    launched = await launch("sh", "-c", f"{stray} exit 9", by=system(log="file"))
    await until(lambda: dead(host, launched), "its end")
    assert (await system().liveness(host, launched)).exit_status == 9


async def test_secrets_are_nowhere_but_in_the_engine(host: Host, launch: Launch) -> None:
    """Neither in ps, nor in systemctl show, nor in the journal, nor in a file that stays."""
    launched = await launch(
        PYTHON, "-c", SERVER, "0", env={"PLAIN": "pl4in value"}, secret_env={"SECRET": "s3cret value"}
    )
    assert "started pl4in value s3cret value" in await logged(host, launched, "listening")
    places = await host.run(
        ["sh", "-c", EVERYTHING_SHOWN, "sh", str(launched.unit)]
    )  # fmt: skip
    assert str(launched.pid) in places.stdout
    assert "s3cret" not in places.stdout
    assert "pl4in" not in places.stdout
    run = launched.log_path.rpartition("/")[0]
    files = await host.run(["grep", "-rlE", "s3cret|pl4in", run])
    assert files.stdout.split() == [launched.log_path]  # the server of this test prints it
    modes = await host.run(["stat", "-c", "%a %n", run, launched.log_path])
    assert [line.split()[0] for line in modes.stdout.splitlines()] == ["700", "600"]


async def test_the_engine_has_the_logins_environment(host: Host, launch: Launch) -> None:
    """A manager gives its units no HOME and a PATH of its own; an engine starts as it would from a shell."""
    launched = await launch("sh", "-c", 'echo "$HOME|$PWD|$PATH"')
    await until(lambda: dead(host, launched), "its end")
    login = await host.run(["sh", "-c", 'echo "$HOME|$HOME|$PATH"'])
    assert (await host.run(["cat", launched.log_path])).stdout == login.stdout


async def test_the_log_file_is_followed_from_an_offset(host: Host, launch: Launch) -> None:
    """No byte lost, none doubled."""
    launched = await launch(
        "sh", "-c", "printf abcdef; while [ ! -e /tmp/go ]; do sleep 0.05; done; printf ghi; sleep 600"
    )
    await logged(host, launched, "abcdef")
    stream = await system().follow(host, launched, 2)
    seen = b""
    async for data in bytes_of(stream):
        seen += data
        if seen == b"cdef":
            await host.run(["touch", "/tmp/go"])
        if len(seen) >= 7:
            break
    await stream.close()
    assert seen == b"cdefghi"


async def test_the_journal_is_followed_from_an_offset(host: Host, launch: Launch) -> None:
    """With `log: journal` there is no file; offsets count the bytes of the engine's own lines."""
    by = system(log="journal")
    script = "i=0; while [ $i -lt 400 ]; do i=$((i + 1)); echo line $i of many; done; sleep 600"
    launched = await launch("sh", "-c", script, by=by)
    whole = "".join(f"line {i} of many\n" for i in range(1, 401)).encode()
    for offset in (0, 17, 4096, 5001):
        stream = await by.follow(host, launched, offset)
        seen = b""
        async for data in bytes_of(stream):
            seen += data
            if len(seen) >= len(whole) - offset:
                break
        await stream.close()
        assert seen == whole[offset:]
    assert (await last_lines(host, launched, 2)).splitlines() == ["line 399 of many", "line 400 of many"]


async def test_the_journal_has_a_note_where_the_output_is(host: Host, launch: Launch) -> None:
    """Whoever looks with journalctl finds the way."""
    launched = await launch("sleep", "600")
    told = await host.run(["journalctl", "--no-pager", "-u", str(launched.unit)])
    assert f"output goes to {launched.log_path}" in told.stdout


async def test_what_systemd_says_of_an_end_is_read_beside_the_log(host: Host, launch: Launch) -> None:
    """Which signal, and that the OOM killer sent it: the engine's own log has no word of it."""
    launched = await launch("sh", "-c", "echo own words; kill -KILL $$")
    await until(lambda: dead(host, launched), "its end")

    async def told() -> bool:
        return any("status=9/KILL" in line for line in await manager_notes(host, launched, 20))

    await until(told, "the manager's note")
    assert not any("own words" in line for line in await manager_notes(host, launched, 20))
    assert any("status=9/KILL" in line for line in (await system().liveness(host, launched)).notes)


@pytest.mark.usefixtures("user_manager")
async def test_what_a_users_systemd_says_is_read_too(host: Host, launch: Launch) -> None:
    """The journal keeps a user's manager's lines under another field."""
    launched = await launch("sh", "-c", "exit 9", by=system(scope="user"))
    await until(lambda: dead(host, launched), "its end")

    async def told() -> bool:
        return any("status=9/" in line for line in await manager_notes(host, launched, 20))

    await until(told, "the manager's note")


async def test_another_launcher_handles_the_unit_too(host: Host, launch: Launch) -> None:
    """The profile was changed to `process` while an engine was kept: it is still ended whole."""
    stray = "setsid env -u DDCONSOLE_ATTEMPT sleep 700 &"
    launched = await launch("sh", "-c", f"{stray} exec sleep 600")
    proof = await ProcessLauncher(STATE, 1).stop(host, launched)
    assert proof.remains == ()
    assert (await host.run(["sh", "-c", "pgrep -f '^sleep 700$'"])).stdout == ""


async def test_a_unit_that_somebody_restarted_is_not_ours(host: Host, launch: Launch) -> None:
    """The same unit name in another invocation is a stranger's, and is left alone."""
    launched = await launch("sleep", "600")
    run = launched.log_path.rpartition("/")[0]
    await system().stop(host, launched)
    await host.run(["systemd-run", f"--unit={launched.unit}", "sleep", "601"])
    assert not (await system().liveness(host, launched)).alive
    assert (await system().stop(host, launched)).remains == ()
    assert await shown(host, str(launched.unit), "ActiveState") == "active"
    await host.run(["systemctl", "stop", str(launched.unit)])
    assert run


async def test_a_name_that_is_taken_is_refused(host: Host, launch: Launch) -> None:
    """Nothing of the launch that is there is touched."""
    launched = await launch("sleep", "600")
    with pytest.raises(HostError, match="already"):
        await system().launch(host, LaunchPlan(("true",)), launched.log_path.split("/")[-2])
    assert (await system().liveness(host, launched)).alive


async def test_a_login_without_rights_is_told_the_remedy(host: Host) -> None:
    """polkit refuses system units; a login without a manager of its own has no user units."""
    nobody = AsNobody(host)
    by = system(state_dir="/tmp/nobody")
    with pytest.raises(HostError, match="may not manage") as refused:
        await by.launch(nobody, LaunchPlan(("true",)), "E1-1")  # type: ignore[arg-type]
    assert "scope: user" in refused.value.advice
    left = await host.run(["find", "/tmp/nobody", "-name", "env", "-o", "-name", "login"])
    assert left.stdout == ""
    findings = await system(scope="user").review(nobody, 1, ())  # type: ignore[arg-type]
    assert findings[0].level == "block"
    assert "kind: process" in findings[0].advice


@pytest.mark.usefixtures("user_manager")
async def test_the_users_own_manager(host: Host, launch: Launch) -> None:
    """scope: user, the same promises; without lingering it warns that the engine ends with the login."""
    by = system(scope="user")
    (finding,) = await by.review(host, 1, ())
    assert (finding.level, finding.code) == ("warn", "no-linger")
    launched = await launch(
        "sh", "-c", "setsid sleep 702 & echo $SECRET; exec sleep 600", by=by, secret_env={"SECRET": "x"}
    )
    assert launched.scope == "user"
    await logged(host, launched, "x")
    assert await by.find(host, launched.log_path.split("/")[-2]) == launched
    assert (await by.liveness(host, launched)).alive
    told = await host.run(["sh", "-c", "XDG_RUNTIME_DIR=/run/user/0 systemctl --user is-active " + str(launched.unit)])
    assert told.stdout.strip() == "active"
    assert (await by.stop(host, launched)).remains == ()
    assert (await host.run(["sh", "-c", "pgrep -f '^sleep 702$'"])).stdout == ""
    await host.run(["sh", "-c", "mkdir -p /var/lib/systemd/linger && : >/var/lib/systemd/linger/root"])
    assert await by.review(host, 1, ()) == ()


async def bytes_of(stream: ByteStream) -> AsyncIterator[bytes]:
    """A stream's chunks; ten seconds in all."""
    async with asyncio.timeout(10):
        async for data in stream.chunks():
            yield data

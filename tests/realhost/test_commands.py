"""`ddconsole engine` against a real service: who runs it, an experiment promoted in its place, and put back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner
from fakes.scripted import Script, ScriptedEngine
from realhost.box import Box
from realhost.conftest import STATE
from realhost.steps import SERVER, shown, until
from realhost.test_service import PYTHON, Service, put

from ddconsole.adapters.paths import HOME_VARIABLE, Paths
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli import wiring
from ddconsole.cli.main import cli
from ddconsole.core.config import Config
from ddconsole.core.experiment import Outcome
from ddconsole.core.ports import Host, LaunchPlan
from ddconsole.engines.launch.ports import choose_port
from ddconsole.engines.sglang.bootlog import BootLog

T = TypeVar("T")

PROFILE = """
schema: 1
host: box
engine: {{command: [engine], model: M, drafter: D, port: {port}}}
launcher: {{kind: systemd, scope: system, unit: {unit}, state_dir: {state}, stop_grace_s: 1}}
queue: [add b=8 B=12 K=6 W=2048]
"""


SAYS_READY = SERVER.replace("listening", "listening\\nThe server is fired up and ready to roll!")


class OurEngine(ScriptedEngine):
    """A server that only listens; it counts as ready when it does."""

    def __init__(self, port: int) -> None:
        super().__init__(Script())
        self.port = port

    def tracker(self) -> BootLog:  # type: ignore[override]
        return BootLog(("s3cret",))

    async def ready(self, base_url: str) -> bool:
        host, _, port = base_url.removeprefix("http://").partition(":")
        try:
            _, writer = await asyncio.open_connection(host, int(port))
        except OSError:
            return False
        writer.close()
        return True

    def plan(self, config: Config, port: int) -> LaunchPlan:
        argv = (PYTHON, "-c", SAYS_READY, str(port))
        return LaunchPlan(argv, {"PLAIN": "pl4in $x"}, {"SECRET": "s3cret"}, port, "engine --shown")


class Desk:
    """A machine with a service, and the command line of a console that knows it."""

    def __init__(self, box: Box, service: Service) -> None:
        self._box = box
        self.service = service

    def on_host(self, work: Callable[[Host], Awaitable[T]]) -> T:
        """Something on the machine itself, over a connection of its own."""

        async def do() -> T:
            host = await self._box.connect()
            try:
                self.service.host = host
                return await work(host)
            finally:
                await host.close()

        return asyncio.run(do())

    def ddconsole(self, *words: str) -> tuple[int, str]:
        """One command line: its code, and all that it printed."""
        done = CliRunner().invoke(cli, ["engine", "box", *words])
        return done.exit_code, done.output

    def engines(self) -> list[str]:
        """Experiments whose engines are on record."""
        store = SqliteStore(Paths.from_environment().database)
        try:
            return [kept.key.id for kept in store.engines("box")]
        finally:
            store.close()


def measured(store: SqliteStore) -> None:
    """E1 has passed."""
    from ddconsole.adapters.profile_file import load_profile
    from ddconsole.cli.common import starting_edits

    loaded = load_profile("box")
    store.seed("box", starting_edits(loaded, store.queue("box")))
    at = datetime.now(UTC)
    key = store.begin_attempt("box", "E1", {}, at)
    store.finish_attempt(key, Outcome.PASSED, {"id": "E1", "attempt": 1, "outcome": "passed"}, None, at)


@pytest.fixture
def desk(box: Box, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """A service that runs, and E1 measured."""
    made = Desk(box, Service(None, name, 0))  # type: ignore[arg-type]

    async def begin(host: Host) -> None:
        made.service.port = await choose_port(host)
        await made.service.write()
        await made.service.do("start", made.service.unit)

    made.on_host(begin)
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    folder = tmp_path / "home" / "config" / "profiles"
    folder.mkdir(parents=True)
    text = PROFILE.format(port=made.service.port, unit=made.service.unit, state=STATE)
    (folder / "box.yaml").write_text(text)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    class Connector:
        async def connect(self) -> Host:
            return await box.connect()

    monkeypatch.setattr(wiring, "make_connector", lambda *_, **__: Connector())
    monkeypatch.setattr(wiring, "make_engine", lambda *_: OurEngine(made.service.port))
    paths = Paths.from_environment()
    paths.database.parent.mkdir(parents=True, exist_ok=True)
    store = SqliteStore(paths.database)
    measured(store)
    store.close()
    yield made

    async def end(host: Host) -> None:
        await host.run(["systemctl", "stop", made.service.unit])
        await host.run(
            ["rm", "-rf", f"{made.service.place}/{made.service.unit}", f"{made.service.place}/{made.service.unit}.d"]
        )
        await host.run(["systemctl", "daemon-reload"])

    made.on_host(end)


async def image(desk: Desk) -> dict[str, str]:
    """What has to be the same afterwards."""
    return await desk.service.image()


def test_the_service_is_looked_at_promoted_into_and_put_back(desk: Desk) -> None:
    """Without consent nothing is touched; with it E1 serves in its place until `restore`."""
    before = desk.on_host(lambda _: image(desk))
    code, said = desk.ddconsole("status")
    assert code == 0
    assert f"{desk.service.unit}  active (running)  the service's own" in said

    code, said = desk.ddconsole("promote", "E1")
    assert code == 3
    assert "is not ours" in said
    assert "--take-over" in said
    assert desk.on_host(lambda _: image(desk)) == before
    assert desk.engines() == []

    code, said = desk.ddconsole("promote", "E1", "--take-over")
    assert code == 0, said
    assert f"E1 serves on port {desk.service.port} of box" in said
    assert f"/etc/systemd/system/{desk.service.unit}.d/override.conf" in said
    assert f'ExecStart=/usr/bin/env -- "{PYTHON}" "-c"' in said
    assert 'Environment="PLAIN=pl4in $x"' in said
    assert "SECRET is a secret" in said
    assert "s3cret" not in said
    assert desk.engines() == ["E1"]

    code, said = desk.ddconsole("status", "--json")
    service = json.loads(said)["service"]
    assert (service["whose"], service["was"], service["active"]) == ("ours", "active", "active")
    assert service["drop_in"].endswith("50-ddconsole.conf")
    code, said = desk.ddconsole("log")
    assert code == 0
    assert "listening" in said
    assert f"systemd: Started {desk.service.unit}" in said
    assert "s3cret" not in said

    code, said = desk.ddconsole("promote", "E1", "--take-over")
    assert code == 0
    assert "E1 runs already" in said

    code, said = desk.ddconsole("restore")
    assert (code, said.strip()) == (0, f"{desk.service.unit} is put back as it was: active")
    assert desk.on_host(lambda _: image(desk)) == before
    assert desk.engines() == []
    assert "nothing on box has to be put back" in desk.ddconsole("restore")[1]


def test_stop_leaves_the_place_taken_and_says_so(desk: Desk) -> None:
    """`stop` ends our engine with proof; the service comes back by `restore` alone."""
    assert desk.ddconsole("promote", "E1", "--take-over")[0] == 0
    code, said = desk.ddconsole("stop")
    assert code == 0
    assert "its processes are gone" in said
    assert "restore" in said
    code, said = desk.ddconsole("status")
    assert "nobody's" in said
    assert "taken over, was active" in said
    assert desk.ddconsole("restore")[0] == 0


def test_permanent_flags_survive_the_restore(desk: Desk) -> None:
    """What `promote` prints, put where it says, makes the service run the winner."""
    code, said = desk.ddconsole("promote", "E1", "--take-over", "--json")
    assert code == 0, said
    text = json.loads(said.splitlines()[-1])["permanent"]

    async def paste(host: Host) -> str:
        place = f"{desk.service.place}/{desk.service.unit}.d/override.conf"
        await host.run(["sh", "-c", 'mkdir -p "${1%/*}"; cat >"$1"', "sh", place], stdin=text.encode())
        return place

    desk.on_host(paste)
    assert desk.ddconsole("restore")[0] == 0

    async def runs(host: Host) -> Any:
        pid = await desk.service.do("show", desk.service.unit, "--property=MainPID", "--value")
        return (
            await host.run(["sh", "-c", f"tr '\\0' '\\n' </proc/{pid}/environ; tr '\\0' ' ' </proc/{pid}/cmdline"])
        ).stdout

    told = desk.on_host(runs)
    assert "PLAIN=pl4in $x" in told
    assert f"{PYTHON} -c" in told
    assert "DDCONSOLE_ATTEMPT" not in told


def test_a_service_that_systemd_starts_again_and_again_is_told_as_that(desk: Desk) -> None:
    """Restart=always and a command that dies: another pid each time. Nothing is taken over without consent."""
    dying = (
        "[Unit]\nStartLimitIntervalSec=0\n[Service]\nRestart=always\nRestartSec=10ms\nExecStart=/bin/sh -c 'exit 3'\n"
    )

    async def begin(host: Host) -> None:
        await desk.service.do("stop", desk.service.unit)
        await put(host, f"{desk.service.place}/{desk.service.unit}", dying)
        await desk.service.do("daemon-reload")
        await desk.service.do("start", desk.service.unit)

        async def looping() -> bool:
            return int(await shown(host, desk.service.unit, "NRestarts")) >= 3

        await until(looping, "three restarts")

    desk.on_host(begin)
    assert re.search(r"started again by systemd \d+ times", desk.ddconsole("status")[1])
    code, said = desk.ddconsole("promote", "E1")
    assert code == 3
    assert re.search(r"started again by systemd \d+ times", said)

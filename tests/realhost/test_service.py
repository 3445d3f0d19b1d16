"""Taking over a service that is already there, and putting it back, on a real systemd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from realhost.box import AsNobody
from realhost.conftest import STATE
from realhost.steps import HOSTILE, PYTHON, SERVER, dead, logged, shown, until

from ddconsole.core.errors import HostError, RefusedError, UnreachableError
from ddconsole.core.ports import Asked, Finding, Host, Launched, LaunchPlan, NoAsker, Question
from ddconsole.engines.launch.ports import choose_port
from ddconsole.engines.launch.service import NOT_OURS, ServiceLauncher


class Says:
    """An `Asker` with one answer."""

    can_ask = True

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> str | None:
        self.asked.append(question)
        return self.answer

    def settled(self) -> None:
        return


class Service:
    """The engine that ct200 runs when we first come: a unit file, enabled by nobody, serving on a port."""

    def __init__(self, host: Host, name: str, port: int) -> None:
        self.host = host
        self.unit = f"{name}.service"
        self.port = port
        self.place = "/run/systemd/system"
        self.ctl = ("systemctl",)

    async def write(self, *more: str) -> None:
        """Write its unit file, with further lines in [Service]."""
        lines = ["[Service]", f"ExecStart={PYTHON} /run/box/server.py {self.port}", "Environment=PLAIN=own", *more]
        await put(self.host, "/run/box/server.py", SERVER)
        await put(self.host, f"{self.place}/{self.unit}", "\n".join(lines) + "\n")
        await self.do("daemon-reload")

    async def do(self, *verb: str) -> str:
        """systemctl."""
        done = await self.host.run([*self.ctl, *verb])
        assert done.ok or verb[0] in ("is-active", "status"), done.stderr
        return done.stdout.strip()

    async def image(self) -> dict[str, str]:
        """What has to be the same afterwards."""
        names = (
            "ActiveState",
            "UnitFileState",
            "ExecStart",
            "DropInPaths",
            "Restart",
            "Type",
            "ExecStop",
            "Environment",
        )
        told = {one: await self.do("show", self.unit, f"--property={one}", "--value") for one in names}
        told["ExecStart"] = told["ExecStart"].partition("; ignore_errors")[0]
        return told

    def launcher(self, take_over: str = "yes", asker: Any = None, **changes: Any) -> ServiceLauncher:
        options = {"take_over": take_over, "scope": "system"} | changes
        return ServiceLauncher(self.unit, asker or NoAsker(), STATE, 1, **options)

    async def left(self) -> list[str]:
        """What of ours is still on the host."""
        done = await self.host.run(
            [
                "sh",
                "-c",
                'ls -d "$2/$1.d"* /run/ddconsole/"$1"* "$3/services/$1" 2>/dev/null',
                "sh",
                self.unit,
                self.place,
                STATE,
            ]
        )
        return done.stdout.split()


async def put(host: Host, path: str, text: str) -> None:
    """A small file on the host."""
    done = await host.run(["sh", "-c", 'mkdir -p "${1%/*}" && cat >"$1"', "sh", path], stdin=text.encode())
    assert done.ok


@pytest.fixture
async def service(host: Host, name: str) -> AsyncIterator[Service]:
    """A service that runs."""
    made = Service(host, name, await choose_port(host))
    await made.write()
    await made.do("start", made.unit)
    yield made
    await host.run(["systemctl", "stop", made.unit])
    await host.run(["rm", "-rf", f"{made.place}/{made.unit}", f"{made.place}/{made.unit}.d"])
    await host.run(["systemctl", "daemon-reload"])


def plan(service: Service, *, port: int | None = None, **fields: Any) -> LaunchPlan:
    """Our engine on the service's port."""
    return LaunchPlan((PYTHON, "-c", SERVER, str(port or service.port)), port=port or service.port, **fields)


async def test_a_service_is_taken_over_and_put_back_as_it_was(host: Host, service: Service, name: str) -> None:
    """Its unit runs our command, on its port; afterwards it runs its own again, and nothing of ours is left."""
    before = await service.image()
    by = service.launcher()
    launched = await by.launch(host, plan(service, secret_env={"SECRET": "s3cret $HOME \"'\\ %h"}), name)
    assert launched.launcher == "service"
    assert launched.unit == service.unit
    assert "started own s3cret $HOME \"'\\ %h" in await logged(host, launched, "listening")
    assert (await by.liveness(host, launched)).alive
    assert (await by.owns_port(host, launched))[0]
    state = await by.look(host)
    assert (state.whose, state.taken, state.run) == ("ours", "active", name)
    assert await by.find(host, name) == launched
    assert (await by.stop(host, launched)).remains == ()
    assert await by.restore(host) == (f"{service.unit} is put back as it was: active",)
    assert await service.image() == before
    assert await service.left() == []
    assert (await by.look(host)).whose == "the service's own"


async def test_one_experiment_follows_another_in_its_place(host: Host, service: Service, name: str) -> None:
    """The record of what it was is that of the first take-over."""
    before = await service.image()
    by = service.launcher()
    for number in (1, 2):
        launched = await by.launch(host, plan(service), f"{name}-{number}")
        await logged(host, launched, "listening")
        assert (await by.stop(host, launched)).remains == ()
    await by.restore(host)
    assert await service.image() == before


async def test_a_service_that_did_not_run_is_stopped_again(host: Host, service: Service, name: str) -> None:
    """As it was: not running."""
    await service.do("stop", service.unit)
    by = service.launcher()
    await by.launch(host, plan(service), name)
    assert await service.do("is-active", service.unit) == "active"
    assert await by.restore(host) == (f"{service.unit} is put back as it was: inactive",)
    assert await service.left() == []


async def test_restore_has_nothing_to_do_twice(host: Host, service: Service, name: str) -> None:
    """And never touches a service that was not taken over."""
    by = service.launcher()
    pid = (await by.look(host)).pid
    assert await by.restore(host) == ()
    assert (await by.look(host)).pid == pid
    await by.launch(host, plan(service), name)
    assert len(await by.restore(host)) == 1
    pid = (await by.look(host)).pid
    assert await by.restore(host) == ()
    assert (await by.look(host)).pid == pid


async def test_words_and_variables_reach_the_engine_as_they_are(host: Host, service: Service, name: str) -> None:
    """systemd reads $, %, quotes, backslashes and semicolons in a unit file; an engine gets what was meant."""
    code = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['ODD']]), flush=True)"
    odd = "two\nlines $HOME %h \"'` \\ end\\"
    by = service.launcher()
    launched = await by.launch(host, LaunchPlan((PYTHON, "-c", code, *HOSTILE), {"ODD": odd}, port=1), name)
    await until(lambda: dead(host, launched), "its end")
    import json

    words, variable = json.loads((await host.run(["cat", launched.log_path])).stdout)
    assert tuple(words) == HOSTILE
    assert variable == odd
    assert (await by.liveness(host, launched)).exit_status == 0
    await by.restore(host)


async def test_secrets_are_in_a_file_of_mode_600_alone(host: Host, service: Service, name: str) -> None:
    """Neither in the drop-in nor in systemctl show nor in ps; the file is gone after the restore."""
    by = service.launcher()
    launched = await by.launch(host, plan(service, secret_env={"SECRET": "s3cret"}), name)
    await logged(host, launched, "listening")
    told = await host.run(["sh", "-c", 'ps axww; systemctl show "$1"; systemctl cat "$1"', "sh", service.unit])
    assert service.unit in told.stdout
    assert "s3cret" not in told.stdout
    mode = await host.run(["stat", "-c", "%a", f"/run/ddconsole/{service.unit}.env"])
    assert mode.stdout.strip() == "600"
    await by.restore(host)
    assert await service.left() == []


async def test_without_consent_it_says_who_holds_the_port_and_starts_nothing(
    host: Host, service: Service, name: str
) -> None:
    """`no`, or `ask` with nobody to ask: a finding that blocks, with the remedy; a launch is refused all the same."""
    pid = (await service.launcher().look(host)).pid
    held = Finding("block", "port-held", f"port {service.port} is held by pid {pid} (root, python3)")
    for by in (service.launcher("no"), service.launcher("ask")):
        first, *others = await by.review(host, service.port, (held,))
        assert (first.level, first.code) == ("block", NOT_OURS)
        assert f"pid {pid}" in first.text
        assert held.text in first.text
        assert "--take-over" in first.advice
        assert others == [held]
        with pytest.raises(RefusedError):
            await by.launch(host, plan(service), name)
    assert (await service.launcher().look(host)).pid == pid
    assert await service.left() == []


async def test_consent_can_be_given_when_asked(host: Host, service: Service) -> None:
    """Asked once; then what the service itself holds is a note, and what others hold still blocks."""
    pid = (await service.launcher().look(host)).pid
    mine = Finding("block", "port-held", f"port {service.port} is held by pid {pid} (root, python3)")
    theirs = Finding("block", "port-held", "port 1 is held by pid 1 (root, systemd)")
    asker = Says("yes")
    by = service.launcher("ask", asker)
    for _ in range(2):
        findings = await by.review(host, service.port, (mine, theirs))
        assert [one.level for one in findings] == ["note", "block", "note"]
    (question,) = asker.asked
    assert question.kind is Asked.TAKE_OVER
    assert service.unit in question.title
    assert any(f"pid {pid}" in line for line in question.lines)


@pytest.mark.parametrize("answer", ["no", None, "maybe"])
async def test_anything_but_yes_is_no(host: Host, service: Service, answer: str | None) -> None:
    """And it is not asked again in the same run."""
    asker = Says(answer)
    by = service.launcher("ask", asker)
    for _ in range(2):
        assert (await by.review(host, service.port, ()))[0].code == NOT_OURS
    assert len(asker.asked) == 1


class Cut:
    """A host whose line breaks at the n-th command: the command itself is never run, or ran unheard."""

    def __init__(self, host: Host, at: int, *, unheard: bool) -> None:
        self._host, self._left, self._unheard = host, at, unheard
        self.name = host.name

    async def run(self, argv: list[str], **options: Any) -> Any:
        self._left -= 1
        if self._left < 0 or (self._left == 0 and not self._unheard):
            raise UnreachableError("the line was cut")
        done = await self._host.run(argv, **options)
        if self._left == 0:
            raise UnreachableError("the line was cut")
        return done


@pytest.mark.parametrize("unheard", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_it_is_put_back_after_a_console_died_in_taking_it_over(
    host: Host, service: Service, name: str, at: int, unheard: bool
) -> None:
    """Wherever it was cut off, another console's restore finds the record; and the launch, if there was one."""
    before = await service.image()
    by = service.launcher()
    with pytest.raises(UnreachableError):
        await by.launch(Cut(host, at, unheard=unheard), plan(service), name)  # type: ignore[arg-type]
    again = service.launcher("ask")
    found = await again.find(host, name)
    assert (found is not None) == (at == 4 and unheard)
    if found is not None:
        assert (await again.liveness(host, found)).alive
        assert (await again.stop(host, found)).remains == ()
    await again.restore(host)
    assert await service.image() == before
    assert await service.left() == []


@pytest.mark.parametrize("step", ["drop-in gone", "reloaded", "stopped"])
async def test_a_restore_that_was_cut_off_is_finished_by_the_next(
    host: Host, service: Service, name: str, step: str
) -> None:
    """Each of its steps can be the last that was done."""
    before = await service.image()
    by = service.launcher()
    await by.launch(host, plan(service), name)
    await service.do("stop", service.unit)
    if step != "stopped":
        await host.run(["rm", f"{service.place}/{service.unit}.d/50-ddconsole.conf"])
    if step == "reloaded":
        await service.do("daemon-reload")
    await by.restore(host)
    assert await service.image() == before
    assert await service.left() == []


async def test_an_engine_that_dies_at_once_is_a_launch_with_a_status(host: Host, service: Service, name: str) -> None:
    """The runner then names the cause by its log; nothing restarts it."""
    by = service.launcher()
    launched = await by.launch(host, LaunchPlan(("sh", "-c", "echo words; exit 7"), port=1), name)
    await until(lambda: dead(host, launched), "its end")
    assert (await by.liveness(host, launched)).exit_status == 7
    assert "words" in (await host.run(["cat", launched.log_path])).stdout
    await by.restore(host)


async def test_the_services_own_user_stop_and_start_steps(host: Host, service: Service, name: str) -> None:
    """Another user runs it; its ExecStop ends its own engine and not ours; it restarts itself, ours does not."""
    await service.write(
        "User=nobody", "Restart=always", "Type=exec", "ExecStop=+/bin/sh -c 'echo own >>/run/box/stops'",
        "ExecStartPost=+/bin/sh -c 'echo own >>/run/box/posts'",
    )  # fmt: skip
    await service.do("restart", service.unit)
    await host.run(["sh", "-c", ": >/run/box/stops; : >/run/box/posts"])
    before = await service.image()
    by = service.launcher()
    launched = await by.launch(host, plan(service, secret_env={"SECRET": "x"}), name)
    assert "started own x" in await logged(host, launched, "listening")
    assert (await host.run(["cat", "/run/box/stops", "/run/box/posts"])).stdout == "own\n"
    owner = await host.run(["stat", "-c", "%U", f"/proc/{launched.pid}"])
    assert owner.stdout.strip() == "nobody"
    await host.run(["kill", "-KILL", str(launched.pid)])
    await until(lambda: dead(host, launched), "its end")
    assert (await by.liveness(host, launched)).exit_status == 137
    assert await service.do("is-active", service.unit) == "failed"
    await by.stop(host, launched)
    await by.restore(host)
    assert await service.image() == before


async def test_units_that_went_down_with_it_come_up_with_it(host: Host, service: Service, name: str) -> None:
    """A proxy that requires the engine's service is stopped by systemd; the restore starts it again."""
    proxy = f"{name}-proxy.service"
    text = f"[Unit]\nRequires={service.unit}\nAfter={service.unit}\n[Service]\nExecStart=/bin/sleep 800\n"
    await put(host, f"{service.place}/{proxy}", text)
    await service.do("daemon-reload")
    await service.do("start", proxy)
    by = service.launcher()
    await by.launch(host, plan(service), name)
    assert await service.do("is-active", proxy) == "inactive"
    await by.restore(host)

    async def up() -> bool:
        return await shown(host, proxy, "ActiveState") == "active"

    await until(up, "the proxy")
    await service.do("stop", proxy)
    await host.run(["rm", f"{service.place}/{proxy}"])


async def test_a_drop_in_that_comes_after_ours_is_told(host: Host, service: Service, name: str) -> None:
    """Somebody's override would run another command under our name: no number is ever taken from that."""
    await put(
        host,
        f"{service.place}/{service.unit}.d/99-own.conf",
        "[Service]\nEnvironmentFile=\nExecStart=\nExecStart=/bin/sleep 900\n",
    )
    await service.do("daemon-reload")
    by = service.launcher()
    with pytest.raises(HostError, match="could not be started") as refused:
        await by.launch(host, plan(service), name)
    assert any("drop-in" in line for line in refused.value.evidence)
    await by.restore(host)
    assert "sleep" in (await service.image())["ExecStart"]
    assert await service.do("is-active", service.unit) == "active"


async def test_a_unit_that_is_not_there_blocks(host: Host, service: Service) -> None:
    """With the keys of the profile to mend."""
    by = ServiceLauncher("no-such-thing", NoAsker(), STATE, take_over="yes", scope="system")
    (finding,) = await by.review(host, 1, ())
    assert finding.level == "block"
    assert "no-such-thing.service" in finding.text
    assert "launcher.unit" in finding.advice


async def test_a_login_without_rights_cannot_take_it_over(host: Host, service: Service, name: str) -> None:
    """And is told so before anything was done."""
    pid = (await service.launcher().look(host)).pid
    by = ServiceLauncher(service.unit, NoAsker(), "/tmp/nobody", take_over="yes", scope="system")
    with pytest.raises(HostError, match="may not manage"):
        await by.launch(AsNobody(host), plan(service), name)  # type: ignore[arg-type]
    assert (await service.launcher().look(host)).pid == pid


@pytest.mark.usefixtures("user_manager")
async def test_a_users_own_service(host: Host, name: str) -> None:
    """scope: user; the drop-in and the variables are under the user's runtime folder."""
    made = Service(host, name, await choose_port(host))
    made.place = "/run/user/0/systemd/user"
    made.ctl = ("env", "XDG_RUNTIME_DIR=/run/user/0", "systemctl", "--user")
    await made.write()
    await made.do("start", made.unit)
    before = await made.image()
    by = made.launcher(scope="user")
    launched: Launched = await by.launch(host, plan(made, secret_env={"SECRET": "x"}), name)
    assert "started own x" in await logged(host, launched, "listening")
    assert (await by.look(host)).drop_in == f"{made.place}/{made.unit}.d/50-ddconsole.conf"
    assert (await by.stop(host, launched)).remains == ()
    await by.restore(host)
    assert await made.image() == before
    await made.do("stop", made.unit)

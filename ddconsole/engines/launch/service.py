"""An engine in the place of a service that is already there: by consent, and put back at the end.

What is written on the host, in this order: the record of what the service was
(`<state_dir>/services/<unit>/`: active, along, run), the run's folder, the variables
(`/run/ddconsole/<unit>.env`, mode 600) and the drop-in (`/run/systemd/system/<unit>.d/50-ddconsole.conf`); for a user's
service the last two are under `$XDG_RUNTIME_DIR`. `restore` undoes them from wherever they were cut off. The unit file
itself and whether it is enabled are never touched, and a reboot alone brings the service back as it was.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError, RefusedError
from ddconsole.core.ports import Asked, Finding, Question
from ddconsole.engines.launch.base import FoundLauncher
from ddconsole.engines.launch.gpus import read_levels
from ddconsole.engines.launch.manager import MANAGER, refusal
from ddconsole.engines.launch.record import check_name, parse_launched
from ddconsole.engines.launch.scripts import MEMBERS, PLAIN, PRELUDE, TOLD
from ddconsole.engines.launch.systemd_scripts import ENDED, LOOK, PLACES, RESTORE, SERVICE_LAUNCH, TAKE
from ddconsole.engines.launch.unit_text import drop_in, environment_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Asker, Completed, Host, Launched, LaunchPlan

STOP_S: Final = 330.0
"""Seconds that a service may take to stop by its own ExecStop and time-outs."""

NOT_OURS: Final = "service-not-ours"
"""Code of the finding that nobody has consented: nothing may be started, whatever the config."""

_HOLDS = re.compile(r"\bpid (\d+)\b")
_CLEARED: Final = ("port-held", "gpu-busy")
"""Findings of the engine's preflight that stopping the service takes away."""


def service_name(unit: str) -> str:
    """A service's whole name, as its drop-in's folder needs it: `kimi-k2.6` is `kimi-k2.6.service`."""
    return unit if unit.endswith(".service") else f"{unit}.service"


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What systemd says of the service.

    Attributes:
        taken: what it was when it was taken over (`active`, `inactive`); None when it is its own.
        run: the launch that was put into it last.
        ours: what runs in it now is that launch.
        drop_in: path of our drop-in, when it is there.
        restarts: how often systemd has started it again by itself since it was started; many are a loop.
    """

    unit: str
    active: str
    sub: str = ""
    enabled: str = ""
    pid: int = 0
    since: str = ""
    user: str = ""
    command: str = ""
    pids: frozenset[int] = frozenset()
    taken: str | None = None
    run: str | None = None
    ours: bool = False
    drop_in: str | None = None
    restarts: int = 0

    @property
    def whose(self) -> str:
        """`ours`, `the service's own`, or `nobody's` when nothing runs in it."""
        if not self.pid:
            return "nobody's"
        return "ours" if self.ours else "the service's own"

    @property
    def stands(self) -> bool:
        """Whether a take-over still stands; a reboot ends one, though its record stays until `restore`."""
        own = bool(self.pid) and not self.ours and self.drop_in is None
        return self.taken is not None and not own

    def words(self) -> str:
        """What it does, in a few words."""
        again = f", started again by systemd {self.restarts} times" if self.restarts else ""
        if not self.pid:
            return f"{self.unit} is {self.active}{again}"
        about = ", ".join(word for word in (f"pid {self.pid}", self.user, self.command) if word)
        return f"{self.unit} runs ({about}){f' since {self.since}' if self.since else ''}{again}"


def parse_state(unit: str, text: str) -> ServiceState:
    """NAME=VALUE lines as systemd_scripts.LOOK prints them.

    Raises:
        HostError: systemd knows no such unit.
    """
    told = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if told.get("LoadState") != "loaded":
        raise HostError(
            f"the host has no unit {unit}",
            evidence=(f"LoadState is {told.get('LoadState') or 'not told'}",),
            advice="mend launcher.unit and launcher.scope in the profile; `systemctl list-units` shows what there is",
        )
    invocation = told.get("InvocationID", "")
    return ServiceState(
        unit,
        active=told.get("ActiveState", ""),
        sub=told.get("SubState", ""),
        enabled=told.get("UnitFileState", ""),
        pid=_number(told.get("MainPID", "")),
        since=told.get("ActiveEnterTimestamp", ""),
        user=told.get("User", ""),
        command=told.get("Command", "").strip(),
        pids=frozenset(int(word) for word in told.get("Pids", "").split() if word.isdigit()),
        taken=told.get("Taken"),
        run=told.get("Run") or None,
        ours=bool(invocation) and invocation == told.get("RunInvocation"),
        drop_in=told.get("DropIn"),
        restarts=_number(told.get("NRestarts", "")),
    )


def _number(text: str) -> int:
    return int(text) if text.isdigit() else 0


class ServiceLauncher(FoundLauncher):
    """A `Launcher` that runs its engines in a service's place.

    Args:
        unit: the service.
        take_over: `yes` is consent; `ask` asks once by `asker`; `no` never takes it over.
        scope: `user` or `system`: whose manager has the service.
        log: `file` or `journal`.
    """

    def __init__(
        self,
        unit: str,
        asker: Asker,
        state_dir: str = "~/.ddconsole",
        grace_s: float = 30.0,
        *,
        take_over: str = "ask",
        scope: str = "user",
        log: str = "file",
    ) -> None:
        super().__init__(state_dir, grace_s)
        self._unit = service_name(unit)
        self._asker = asker
        self._take_over = take_over
        self._scope = scope
        self._log = log

    async def look(self, host: Host) -> ServiceState:
        """The service as it stands.

        Raises:
            HostError: there is no systemd, or no such unit.
        """
        done = await self._script(host, MEMBERS + LOOK)
        if not done.ok:
            raise refusal(done, f"the host does not tell what {self._unit} does")
        return parse_state(self._unit, done.stdout)

    async def review(self, host: Host, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Asks for consent where it is missing; what the service holds is no hindrance once it may be stopped."""
        try:
            state = await self.look(host)
        except HostError as error:
            return (
                Finding("block", "no-service", " · ".join((error.what, *error.evidence[:1])), error.advice),
                *findings,
            )
        held = [one for one in findings if one.code in _CLEARED and _pids(one.text) & state.pids]
        if not await self._may(host, state, held):
            return (self._refused(state, held), *findings)
        text = f"{self._unit} is taken over, and put back at the end"
        note = Finding("note", "service-taken-over", text)
        return (*(_as_note(one, self._unit) if one in held else one for one in findings), note)

    async def launch(self, host: Host, plan: LaunchPlan, name: str) -> Launched:
        """Stop the service, and start it again with `plan` in its place.

        Raises:
            RefusedError: nobody has consented.
            HostError: it could not be done; `restore` puts the service back.
        """
        check_name(name)
        state = await self.look(host)
        if not await self._may(host, state, ()):
            refused = self._refused(state, ())
            raise RefusedError(refused.text, advice=refused.advice)
        taken = await self._script(host, TAKE, timeout=STOP_S)
        told = dict(line.split("\t", 1) for line in taken.stdout.splitlines() if "\t" in line)
        if not taken.ok or not told.keys() >= {"state", "env"}:
            raise refusal(taken, f"{self._unit} could not be stopped")
        token = secrets.token_hex(16)
        run = f"{told['state']}/runs/{name}"
        text = drop_in(plan.argv, run, told["env"], self._grace_s, to_file=self._log == "file")
        place = (self._state_dir, name, token, str(plan.port), await read_levels(host))
        variables = environment_file({**plan.env, **plan.secret_env, "DDCONSOLE_ATTEMPT": token})
        started = await self._script(host, TOLD + SERVICE_LAUNCH, *place, text, self._log, ENDED, stdin=variables)
        launched = parse_launched(started.stdout)
        if launched is None:
            raise refusal(started, f"{self._unit} could not be started with the experiment's command")
        return launched

    async def restore(self, host: Host) -> tuple[str, ...]:
        """Take the drop-in away and put the service back as it was, running or not.

        Raises:
            HostError: it could not be put back; the record stays, and this can be called again.
        """
        done = await self._script(host, RESTORE, timeout=STOP_S)
        mark, _, state = done.stdout.strip().rpartition("\n")[2].partition("\t")
        if done.ok and mark == "nothing":
            return ()
        if not done.ok or mark != "restored":
            raise refusal(done, f"{self._unit} could not be put back as it was")
        return (f"{self._unit} is put back as it was: {state}",)

    async def _may(self, host: Host, state: ServiceState, held: Sequence[Finding]) -> bool:
        """Consent by the profile or the command line, from an earlier take-over that still stands, or asked for now."""
        if self._take_over == "yes" or state.stands:
            return True
        if self._take_over == "no" or not self._asker.can_ask:
            return False
        lines = (state.words(), *(one.text for one in held), "It is put back as it was at the end.")
        title = f"{host.name}: take over {self._unit}?"
        question = Question(Asked.TAKE_OVER, host.name, title, "Type yes to take it over", lines, secret=False)
        answer = await self._asker.ask(question)
        if answer is not None and answer.strip().lower() in ("y", "yes"):
            self._take_over = "yes"
            return True
        self._take_over = "no"
        return False

    def _refused(self, state: ServiceState, held: Sequence[Finding]) -> Finding:
        said = "; ".join((f"{state.words()} and is not ours", *(one.text for one in held)))
        advice = "`--take-over` on the command line, or `take_over: yes` in the profile, runs experiments in its place"
        return Finding("block", NOT_OURS, said, f"{advice} and puts it back at the end")

    async def _script(
        self, host: Host, script: str, *arguments: str, stdin: bytes = b"", timeout: float = 60.0
    ) -> Completed:
        """Run one of our scripts with the service's place in its variables."""
        place = "scope=$1 unit=$2 state_dir=$3; shift 3\n"
        words = ["sh", "-c", PLAIN + place + PRELUDE + MANAGER + PLACES + script, "sh"]
        return await host.run(
            [*words, self._scope, self._unit, self._state_dir, *arguments], stdin=stdin, timeout=timeout
        )


def _pids(text: str) -> set[int]:
    return {int(pid) for pid in _HOLDS.findall(text)}


def _as_note(finding: Finding, unit: str) -> Finding:
    return replace(finding, level="note", text=f"{finding.text}: it is {unit}, which is stopped first", advice="")

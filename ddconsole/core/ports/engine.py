"""The engine: what is started, how it is followed, identified and ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.config import Config, Effective
    from ddconsole.core.errors import Failure
    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports.host import ByteStream, Host
    from ddconsole.core.ports.measure import RequestDialect
    from ddconsole.core.progress import BootFacts, BootProgress


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """What to start: the argv, the environment beyond the login's, and secrets that go by file, never by `ps`.

    `shown` is the command as a shell would take it, with every secret masked: for the store and the screen.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, str] = field(default_factory=dict)
    port: int = 30000
    shown: str = ""


@dataclass(frozen=True, slots=True)
class Launched:
    """An engine that we started, as recorded on the host: enough to find it again and to end only it.

    Attributes:
        pid, pgid: of the root process; it leads its own session.
        start_ticks: field 22 of /proc/PID/stat, so that a reused pid is never mistaken for it.
        boot_id: /proc/sys/kernel/random/boot_id of the host at launch.
        token: a random word in the process's environment (DDCONSOLE_ATTEMPT), the last proof of identity.
        unit: the systemd unit, or None.
        scope: `user` or `system`, whose manager has the unit.
    """

    launcher: str
    pid: int
    pgid: int
    start_ticks: int
    boot_id: str
    token: str
    log_path: str
    state_dir: str
    port: int
    unit: str | None = None
    scope: str | None = None

    def to_json(self) -> dict[str, Any]:
        """For the store."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Launched:
        """The inverse of `to_json`."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


@dataclass(frozen=True, slots=True)
class Liveness:
    """Whether the root process of a launch lives, and how it ended if it does not (None: not known).

    `notes` are lines of the host's kernel and service manager on its end; () while it lives, or where nothing is told.
    """

    alive: bool
    exit_status: int | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StopProof:
    """What a stop left behind. An empty `remains` proves that nothing is left.

    `forced` says that KILL was needed; `proved` says in words what was looked at and found gone.
    """

    remains: tuple[str, ...] = ()
    forced: bool = False
    seconds: float = 0.0
    proved: tuple[str, ...] = ()


class Launcher(Protocol):
    """How an engine is started so that it outlives us, is found again, and is ended with proof."""

    async def review(self, host: Host, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """What the engine's preflight found, seen by who starts it: nothing is changed on the host.

        Adds what stands against this way of starting (no systemd, no consent), and makes notes of what the launch
        itself will clear away, such as a port held by the service that is taken over.
        """
        ...

    async def restore(self, host: Host) -> tuple[str, ...]:
        """Put back what was there before launches displaced it; what was done, in words. () when there is nothing.

        Raises:
            HostError: it could not be put back; its record stays on the host, and this can be called again.
        """
        ...

    async def launch(self, host: Host, plan: LaunchPlan, name: str) -> Launched:
        """Start `plan` in a session of its own, its output in a log file on the host.

        Raises:
            HostError: it could not be started.
        """
        ...

    async def find(self, host: Host, name: str) -> Launched | None:
        """The launch of that name by the host's own record: what a console that died in launching left behind."""
        ...

    async def liveness(self, host: Host, launched: Launched) -> Liveness:
        """Whether the process we started lives (by pid, start time and boot), not merely its number."""
        ...

    async def owns_port(self, host: Host, launched: Launched) -> tuple[bool, str]:
        """Whether a process of this launch listens on its port; and who does, in words."""
        ...

    async def follow(self, host: Host, launched: Launched, offset: int) -> ByteStream:
        """The log's bytes from `offset` on, as they are written."""
        ...

    async def keep(self, host: Host, launched: Launched) -> None:
        """Mark it, on the host, as left running on purpose: nobody shall take it for a forgotten one."""
        ...

    async def stop(self, host: Host, launched: Launched) -> StopProof:
        """TERM, wait, KILL the group, then prove that processes and port are gone and GPU memory is given back."""
        ...


@dataclass(frozen=True, slots=True)
class Finding:
    """What preflight found. level: block, warn, note."""

    level: str
    code: str
    text: str
    advice: str = ""

    def to_json(self) -> dict[str, Any]:
        """The items of `findings` in `--json` answers."""
        return {"level": self.level, "code": self.code, "text": self.text}


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that preflight looked at, in words. `topic` groups it with the findings of that topic."""

    topic: str
    name: str
    text: str

    def to_json(self) -> dict[str, Any]:
        """The items of `checked` in `doctor --json`."""
        return {"topic": self.topic, "name": self.name, "text": self.text}


@dataclass(frozen=True, slots=True)
class Preflight:
    """What could be known before paying for a launch.

    Attributes:
        findings: what blocks first.
        facts: JSON values that say what a result was measured on; kept with it.
        checked: the same in words, for people.
    """

    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    checked: tuple[Checked, ...] = ()

    @property
    def blocking(self) -> tuple[Finding, ...]:
        """The findings that forbid a launch."""
        return tuple(finding for finding in self.findings if finding.level == "block")


class BootTracker(Protocol):
    """Reads an engine's log as it grows, and tells how far it has come."""

    def feed(self, data: bytes, at: float) -> list[str]:
        """Take bytes cut anywhere; `at` is monotonic seconds. Returns the finished lines, progress bars thinned."""
        ...

    @property
    def spoke_at(self) -> float | None:
        """When the log last said something of itself; None before that.

        Lines that only echo requests, our own probes above all, are no word of the engine's, and no sign of life.
        """
        ...

    @property
    def progress(self) -> BootProgress:
        """Phases and bars so far."""
        ...

    @property
    def facts(self) -> BootFacts:
        """What the log says the engine runs."""
        ...

    def failure(self, exit_status: int | None, notes: tuple[str, ...] = ()) -> Failure:
        """Why it died, by what the log shows: the first root cause among all ranks' noise.

        `notes` of the host on its end (`Liveness`) count where the log has no cause.
        """
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """What of contract 2 is proved. A mismatch is a Failure."""

    proved: tuple[str, ...]
    unproved: tuple[str, ...]
    version: str | None = None
    server_info: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """An inference server as the profile describes it."""

    @property
    def port(self) -> int | None:
        """Where it listens on the host's loopback; None lets the runner choose a free one for each launch."""
        ...

    @property
    def dialect(self) -> RequestDialect:
        """How it is asked, and how its answers are read."""
        ...

    def effective(self, config: Config) -> Effective:
        """What it would really run."""
        ...

    def plan(self, config: Config, port: int) -> LaunchPlan:
        """The command for `config` on `port`, by the profile's spelling of the knobs."""
        ...

    def tracker(self) -> BootTracker:
        """A fresh reader of its log."""
        ...

    async def preflight(self, host: Host, config: Config, port: int) -> Preflight:
        """What can be known before paying for a launch; seconds, no GPU work."""
        ...

    async def ready(self, base_url: str) -> bool:
        """Whether it says that it is ready. Refused and dropped connections are "not yet", never errors."""
        ...

    async def identify(
        self, base_url: str, host: Host, launched: Launched, config: Config, facts: BootFacts
    ) -> Identity | Failure:
        """Prove that what answers is what was asked for: server_info, log facts, environment."""
        ...

    async def speculates(self, base_url: str, config: Config) -> RequestRecord | Failure:
        """A request of at least 2b tokens came back with verify steps counted, where a drafter is configured."""
        ...

    async def flush(self, base_url: str) -> bool:
        """Empty the prefix cache; False when the engine refused."""
        ...

    async def abort(self, base_url: str) -> None:
        """Abort all requests, before a stop. Never raises."""
        ...

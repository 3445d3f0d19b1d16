"""A scripted host, launcher and engine: the runner is driven through every turn without a process or a socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ddconsole.adapters.store import SqliteStore
from ddconsole.core.config import Config, Effective, effective_config
from ddconsole.core.errors import Failure, HostError, RefusedError, UnreachableError
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import (
    Completed,
    Finding,
    Identity,
    Launched,
    LaunchPlan,
    Liveness,
    Preflight,
    StopProof,
)
from ddconsole.core.profile import Profile
from ddconsole.core.progress import BootFacts, BootProgress, Phase, ShardBar
from ddconsole.passes.base import PassContext, PassResult
from ddconsole.runner.bench import Bench

from .clock import VirtualClock


@dataclass
class Script:
    """What happens to each launch, in order; the last entry repeats.

    boots: `ready`, `dies`, `hangs`, `wrong`, `silent-drafter`.
    findings: what preflight finds.
    remains: what a stop leaves behind.
    boot_id: of the host; another one means that it was booted anew, and every engine of the old boot is dead.
    unit: what engines are started as; `unit_gone` says that systemd knows nothing of it any more.
    """

    boots: list[str] = field(default_factory=lambda: ["ready"])
    findings: tuple[Finding, ...] = ()
    remains: tuple[str, ...] = ()
    dies_in_pass: bool = False
    port_owner: str | None = None
    boot_id: str = "boot"
    unit: str | None = None
    unit_gone: bool = False

    launches: list[Launched] = field(default_factory=list)
    living: set[int] = field(default_factory=set)
    stops: list[int] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)
    restored: tuple[str, ...] = ()
    restores: int = 0

    def boot(self, number: int) -> str:
        return self.boots[min(number, len(self.boots) - 1)]


class NoStream:
    """A stream without a byte that stays open until it is closed."""

    def __init__(self) -> None:
        self._closed = asyncio.Event()

    async def chunks(self) -> AsyncIterator[bytes]:
        await self._closed.wait()
        return
        yield b""

    async def close(self) -> None:
        self._closed.set()


class OneChunk(NoStream):
    """A log with one chunk of bytes, then silence."""

    async def chunks(self) -> AsyncIterator[bytes]:
        yield b"x"
        await self._closed.wait()


class ScriptedForward:
    local_port = 1

    async def close(self) -> None:
        return


class ScriptedHost:
    """A host whose line can be cut."""

    name = "scripted"

    def __init__(self, script: Script | None = None) -> None:
        self.script = script or Script()
        self.cut = False

    def _line(self) -> None:
        if self.cut:
            raise UnreachableError("the line was cut")

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        self._line()
        unit = "gone\n" if self.script.unit_gone and "boot_id" in argv[2] else ""
        return Completed(0, f"boot\t{self.script.boot_id}\n{unit}")

    async def stream(self, argv: Sequence[str]) -> NoStream:
        raise HostError("no nvidia-smi here")

    async def forward(self, port: int) -> ScriptedForward:
        self._line()
        return ScriptedForward()

    async def ping(self) -> float:
        self._line()
        return 0.01

    async def close(self) -> None:
        return


class ScriptedConnector:
    def __init__(self, script: Script | None = None) -> None:
        self.script = script
        self.hosts: list[ScriptedHost] = []
        self.refuse = False

    async def connect(self) -> ScriptedHost:
        if self.refuse:
            raise UnreachableError("connection refused", advice="Is sshd running?")
        self.hosts.append(ScriptedHost(self.script))
        return self.hosts[-1]


class ScriptedLauncher:
    def __init__(self, script: Script) -> None:
        self.script = script

    async def review(self, host: Any, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        return findings

    async def restore(self, host: Any) -> tuple[str, ...]:
        self.script.restores += 1
        return self.script.restored

    async def launch(self, host: Any, plan: LaunchPlan, name: str) -> Launched:
        pid = 100 + len(self.script.launches)
        launched = Launched(
            "process", pid, pid, 1, self.script.boot_id, f"token{pid}", f"/runs/{name}/engine.log", "/runs", plan.port,
            self.script.unit, "user" if self.script.unit else None,
        )  # fmt: skip
        self.script.launches.append(launched)
        if self.script.boot(pid - 100) != "dies":
            self.script.living.add(pid)
        return launched

    async def find(self, host: Any, name: str) -> Launched | None:
        return next((one for one in self.script.launches if f"/{name}/" in one.log_path), None)

    async def liveness(self, host: Any, launched: Launched) -> Liveness:
        alive = launched.pid in self.script.living and launched.boot_id == self.script.boot_id
        return Liveness(alive, None if alive else 137)

    async def owns_port(self, host: Any, launched: Launched) -> tuple[bool, str]:
        owner = self.script.port_owner
        return owner is None, owner or "it"

    async def follow(self, host: Any, launched: Launched, offset: int) -> NoStream:
        return OneChunk() if offset == 0 else NoStream()

    async def keep(self, host: Any, launched: Launched) -> None:
        self.script.kept.append(launched.pid)

    async def stop(self, host: Any, launched: Launched) -> StopProof:
        self.script.stops.append(launched.pid)
        self.script.living.discard(launched.pid)
        return StopProof(self.script.remains)


class ScriptedTracker:
    """Jumps through the phases, two looks each, unless the script says that the boot hangs."""

    def __init__(self, fate: str) -> None:
        self._fate = fate
        self._looks = 0
        self.facts = BootFacts(block_size=8)
        self.spoke_at: float | None = None

    def feed(self, data: bytes, at: float) -> list[str]:
        self.spoke_at = at
        return ["[2026-12-02 14:00:00 TP0] Load weight begin."]

    @property
    def progress(self) -> BootProgress:
        self._looks += 1
        if self._fate == "hangs" or self._looks < 6:
            return BootProgress(Phase.LOAD_TARGET, target=ShardBar(min(self._looks, 64), 64))
        return BootProgress(Phase.READY, {Phase.LOAD_TARGET: 361.0}, ShardBar(64, 64), fired_up=True)

    def failure(self, exit_status: int | None, notes: tuple[str, ...] = ()) -> Failure:
        return Failure("gpu-oom", "out of GPU memory while loading", ("CUDA out of memory",), "Lower the fraction.")


class ScriptedEngine:
    port = 30000
    dialect = None

    def __init__(self, script: Script) -> None:
        self.script = script
        self.trackers = 0
        self.facts: dict[str, Any] = {"machine": {"kernel": "scripted"}}

    def effective(self, config: Config) -> Effective:
        return effective_config(config)

    def plan(self, config: Config, port: int) -> LaunchPlan:
        return LaunchPlan(("engine", config.label()), port=port)

    def tracker(self) -> ScriptedTracker:
        self.trackers += 1
        return ScriptedTracker(self.script.boot(self.trackers - 1))

    async def preflight(self, host: Any, config: Config, port: int) -> Preflight:
        return Preflight(self.script.findings, self.facts)

    async def ready(self, base_url: str) -> bool:
        return self.script.boot(self.trackers - 1) != "hangs"

    async def identify(self, *_: Any) -> Identity | Failure:
        if self.script.boot(self.trackers - 1) == "wrong":
            return Failure("identity-mismatch", "asked for block size 8, /server_info says 16")
        return Identity(("port", "block size 8"), (), "0.5.23")

    async def speculates(self, base_url: str, config: Config) -> RequestRecord | Failure:
        if self.script.boot(self.trackers - 1) == "silent-drafter":
            return Failure("drafter-never-engaged", "no verify step was counted")
        return RequestRecord("probe", completion_tokens=32, verify_steps=8)

    async def flush(self, base_url: str) -> bool:
        return True

    async def abort(self, base_url: str) -> None:
        return


RECORD = RequestRecord(
    "p1", chunks=((0.2, 1), (3.2, 480)), end_s=3.21, prompt_tokens=20, completion_tokens=481, verify_steps=100,
    accepted_drafts=380, finish_reason="stop", text="def add(a, b):\n    return a + b",
)  # fmt: skip


class ScriptedPass:
    """One request; `gate` holds it until the test opens it."""

    total = 1

    def __init__(self, name: str = "throughput", gate: asyncio.Event | None = None) -> None:
        self.name = name
        self.gate = gate
        self.runs = 0
        self.entered = asyncio.Event()

    def refusal(self) -> str | None:
        return None

    async def run(self, context: PassContext) -> PassResult:
        self.runs += 1
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        context.on_request(RECORD, 1, 1)
        return PassResult(self.name, {"requests": 1, "failed": 0, "passed": 1, "total": 1}, (RECORD,))


class FreeLease:
    """A lease that another console may hold; `takes` counts how often it was asked for."""

    def __init__(self) -> None:
        self.held_by: str | None = None
        self.takes = 0
        self.released = False

    async def take(self, host: Any) -> None:
        self.takes += 1
        if self.held_by:
            raise RefusedError(f"scripted is run by {self.held_by}")

    async def release(self, host: Any) -> None:
        self.released = True


class FreeLock:
    """A lock that another process may hold."""

    def __init__(self) -> None:
        self.held_by: str | None = None
        self.held = False

    def acquire(self) -> None:
        if self.held_by is not None:
            raise RefusedError(f"scripted is run by {self.held_by}")
        self.held = True

    def release(self) -> None:
        self.held = False


PROFILE = Profile.model_validate(
    {
        "schema": "1",
        "host": "scripted",
        "engine": {"command": ["engine"], "model": "m", "drafter": "d"},
        "stalls": {"load_target": "30"},
    }
)


class TimedStore:
    """A real store whose work takes no virtual time, however slow this machine's disk is."""

    def __init__(self, store: SqliteStore, clock: VirtualClock) -> None:
        self._store = store
        self._clock = clock

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            self._clock.busy += 1
            try:
                return method(*args, **kwargs)
            finally:
                self._clock.busy -= 1

        return timed


async def no_sandbox() -> Any:
    """Scripted passes run no code."""
    return None


def make_bench(folder: Path, script: Script) -> Bench:
    """A bench of scripted parts over a real store."""
    clock = VirtualClock()
    return Bench(
        name="scripted",
        profile=PROFILE,
        engine=ScriptedEngine(script),  # type: ignore[arg-type]
        launcher=ScriptedLauncher(script),
        connector=ScriptedConnector(script),
        open_sandbox=no_sandbox,
        clock=clock,
        open_store=lambda: TimedStore(SqliteStore(folder / "ddconsole.db"), clock),  # type: ignore[arg-type,return-value]
        lock=FreeLock(),
        lease=FreeLease(),
    )

"""What happens, as values that can be written down: the recording, the feed and `--json` are the same events.

An event is one JSON object a line: `{"v":1,"seq":n,"t":"2026-12-02T14:02:11.120Z","kind":…,"id":"E1","attempt":1,…}`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, ClassVar

from ddconsole.core.json_line import json_line

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class Body:
    """What one kind of event says. Fields are JSON values: numbers, text, lists, dicts, None."""

    kind: ClassVar[str]


@dataclass(frozen=True, slots=True)
class RunStarted(Body):
    """The queue is being worked on by a process."""

    kind: ClassVar[str] = "run_started"
    host: str
    pid: int
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Connection(Body):
    """The line to the host. state: connecting, waiting (for an answer), connected, lost, closed;
    unreachable when it never stood.

    `detail` says why, `advice` what to do.
    """

    kind: ClassVar[str] = "connection"
    state: str
    rtt_ms: float | None = None
    detail: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True)
class ExperimentStarted(Body):
    """An attempt begins. `estimate_s` is the expected time, from this host's history or the profile."""

    kind: ClassVar[str] = "experiment_started"
    label: str
    config: dict[str, Any]
    effective: dict[str, Any]
    passes: list[str]
    estimate_s: float | None = None


@dataclass(frozen=True, slots=True)
class FindingSeen(Body):
    """Preflight or the log found something. level: block, warn, note.

    `evidence` holds the log lines that show it, `advice` what to do.
    """

    kind: ClassVar[str] = "finding"
    level: str
    code: str
    text: str
    advice: str = ""
    evidence: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class PhaseChanged(Body):
    """A phase started, ended (`seconds` measured) or failed. phase: a `Phase`, or `pass:<name>`."""

    kind: ClassVar[str] = "phase"
    phase: str
    state: str
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class BootProgressed(Body):
    """The bars, at most twice a second. `target`, `draft`, `graphs`: {done, total, eta_s} or None.

    `download` is {bytes, bytes_total, files, files_total} or None, as `core.progress.Download`.

    Attributes:
        elapsed_s: since the launch.
        eta_s: to ready, from this host's earlier boots and the bar.
        silent_s: age of the last word in the log; lines that only echo our own probes are none.
        stall_s: silence after which the phase counts as hung.
        bytes_read: by the engine's processes since they began; None where the host does not tell.
        read_per_s: the same, lately.
        gpu_mib: memory in use on all cards; `gpu_grown_mib` is how much of it came since the launch.
        phase_s: how long this phase has lasted; `phase_estimate_s` is what it took in earlier boots here.
        waits_for: ranks that hold the phase back.
        limit_s: elapsed_s after which the boot is given up, whatever the log says.
        doing: `downloading`, or `downloading?, no progress reported` where the log is silent and files grow; else None.
    """

    kind: ClassVar[str] = "boot_progress"
    phase: str
    target: dict[str, Any] | None = None
    draft: dict[str, Any] | None = None
    graphs: dict[str, Any] | None = None
    elapsed_s: float = 0.0
    eta_s: float | None = None
    silent_s: float = 0.0
    bytes_read: int | None = None
    stall_s: float | None = None
    read_per_s: float | None = None
    gpu_mib: int | None = None
    gpu_grown_mib: int | None = None
    phase_s: float = 0.0
    phase_estimate_s: float | None = None
    waits_for: list[str] = field(default_factory=list)
    download: dict[str, int | None] | None = None
    limit_s: float | None = None
    doing: str | None = None


@dataclass(frozen=True, slots=True)
class Ready(Body):
    """The engine speculated and is the one asked for. `proved` and `unproved` name what stands on which ground."""

    kind: ClassVar[str] = "ready"
    seconds: float
    proved: list[str]
    unproved: list[str]
    engine_version: str | None = None
    kept: bool = False


@dataclass(frozen=True, slots=True)
class PassStarted(Body):
    """A pass begins; `total` requests are planned."""

    kind: ClassVar[str] = "pass_started"
    name: str
    total: int
    repeat: int = 1


@dataclass(frozen=True, slots=True)
class RequestDone(Body):
    """One request ended; `record` is the RequestRecord's JSON without its text."""

    kind: ClassVar[str] = "request"
    name: str
    done: int
    total: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PassFinished(Body):
    """A pass ended with its summary."""

    kind: ClassVar[str] = "pass_finished"
    name: str
    seconds: float
    summary: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Warned(Body):
    """Something that the user should know and that stops nothing."""

    kind: ClassVar[str] = "warning"
    text: str


@dataclass(frozen=True, slots=True)
class ExperimentFinished(Body):
    """An attempt ended. `result` is the item of `results list --json`."""

    kind: ClassVar[str] = "experiment_finished"
    outcome: str
    verdict: str
    failure: dict[str, Any] | None = None
    result: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QueueChanged(Body):
    """The queue has a new revision; `queue` is the document of `queue list --json`."""

    kind: ClassVar[str] = "queue_changed"
    revision: int
    queue: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunFinished(Body):
    """The process stopped working on the queue. reason: drained, max, paused, cancelled, error."""

    kind: ClassVar[str] = "run_finished"
    reason: str
    passed: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class GpuSampled(Body):
    """One tick of all cards: `gpus` holds `GpuSample.to_json()` each. `problem` says why there are none."""

    kind: ClassVar[str] = "gpu"
    gpus: list[dict[str, Any]] = field(default_factory=list)
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class LogLines(Body):
    """Lines of the engine's log, cleaned of escape sequences and with secrets masked."""

    kind: ClassVar[str] = "log"
    lines: list[str]
    offset: int = 0


BODIES: dict[str, type[Body]] = {
    body.kind: body
    for body in (
        RunStarted, Connection, ExperimentStarted, FindingSeen, PhaseChanged, BootProgressed, Ready, PassStarted,
        RequestDone, PassFinished, Warned, ExperimentFinished, QueueChanged, RunFinished, GpuSampled, LogLines,
    )
}  # fmt: skip

TRANSIENT = frozenset({BootProgressed.kind, GpuSampled.kind, LogLines.kind})
"""Kinds of which only the latest matters; they are not kept in the store's list of events."""


@dataclass(frozen=True, slots=True)
class Event:
    """A body with its place and time.

    Attributes:
        seq: number in the profile's list of events, from 1; 0 for transient ones.
        t: UTC.
        id: the experiment, or None.
        attempt: number of the attempt, or None.
    """

    seq: int
    t: datetime
    body: Body
    id: str | None = None
    attempt: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The event as one flat JSON object."""
        head: dict[str, Any] = {"v": SCHEMA_VERSION, "seq": self.seq, "t": utc_text(self.t), "kind": self.body.kind}
        if self.id is not None:
            head |= {"id": self.id, "attempt": self.attempt}
        return head | {f.name: getattr(self.body, f.name) for f in fields(self.body)}

    def to_line(self) -> str:
        """The event as one line of JSON without a newline."""
        return json_line(self.to_json())

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Event:
        """The inverse of `to_json`. Unknown fields are passed over, so that an older reader survives a newer writer.

        Raises:
            ValueError: no object, an unknown kind, or a field without a default that is missing or no such value.
        """
        body_type = BODIES.get(str(data.get("kind"))) if isinstance(data, dict) else None
        if body_type is None:
            raise ValueError(f"unknown event kind {data.get('kind') if isinstance(data, dict) else data!r}")
        known = {f.name for f in fields(body_type)}
        try:
            return cls(
                seq=int(data["seq"]),
                t=parse_utc(data["t"]),
                body=body_type(**{key: value for key, value in data.items() if key in known}),
                id=data.get("id"),
                attempt=data.get("attempt"),
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(f"event {data.get('kind')}: {error!r}") from None


def utc_text(t: datetime) -> str:
    """A time as `2026-12-02T14:02:11.120Z`."""
    return t.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_utc(text: str) -> datetime:
    """The inverse of `utc_text`."""
    return datetime.fromisoformat(text)

"""GPU state from `nvidia-smi`'s query loop: rows cut anywhere become ticks of samples. Unknown is None, never 0.

Columns are read by their place in the query that we sent, not by the names that are echoed. A row with another number
of cells is refused, not shifted. Text where rows should be is a `GpuProblem`, never a card.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

QUERY_FIELDS: Final = (
    "index",
    "uuid",
    "name",
    "utilization.gpu",
    "memory.used",
    "memory.total",
    "temperature.gpu",
    "power.draw",
    "power.limit",
    "clocks.current.sm",
    "pcie.link.gen.current",
    "pcie.link.width.current",
)
"""What is asked of `nvidia-smi --query-gpu`, in this order."""

LINE_LIMIT: Final = 4096
"""Bytes of a line that are kept; what is longer is no row."""

CARD_LIMIT: Final = 1024
"""Cards of one host that are believed."""


def query_command(interval_ms: int = 1000, fields: Sequence[str] = QUERY_FIELDS) -> tuple[str, ...]:
    """The argv of one long-running query, a row for each card every `interval_ms`."""
    query = f"--query-gpu={','.join(fields)}"
    return ("env", "LC_ALL=C", "nvidia-smi", query, "--format=csv,noheader,nounits", "-lms", str(interval_ms))


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One card at one moment. None is "not reported": shown as a dash, left out of averages.

    `lost` says why a card that was there answers no more.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    utilization_pct: float | None = None
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    sm_clock_mhz: int | None = None
    pcie_gen: int | None = None
    pcie_width: int | None = None
    lost: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The items of a `gpu` event's `gpus`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GpuSample:
        """The inverse of `to_json`."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


@dataclass(frozen=True, slots=True)
class GpuProblem:
    """Why there are no rows, or why one was refused. `code` is a stable word, `text` is nvidia-smi's own."""

    code: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}" if self.advice else self.text


@dataclass(frozen=True, slots=True)
class GpuTick:
    """All cards at one moment, in the order of their index, and what went wrong beside them."""

    samples: tuple[GpuSample, ...] = ()
    problem: GpuProblem | None = None

    def to_json(self) -> dict[str, Any]:
        """The fields of a `gpu` event."""
        return {
            "gpus": [sample.to_json() for sample in self.samples],
            "problem": None if self.problem is None else str(self.problem),
        }


@dataclass(frozen=True, slots=True)
class _Column:
    """Where a queried field goes and what it may be; outside `low` to `high` it is unknown."""

    attribute: str
    low: float = 0.0
    high: float = 0.0
    whole: bool = True


COLUMNS: Final = {
    "utilization.gpu": _Column("utilization_pct", 0, 100, whole=False),
    "memory.used": _Column("memory_used_mib", 0, 1e8),
    "memory.total": _Column("memory_total_mib", 1, 1e8),
    "temperature.gpu": _Column("temperature_c", -40, 200, whole=False),
    "power.draw": _Column("power_w", 0, 1e5, whole=False),
    "power.limit": _Column("power_limit_w", 1, 1e5, whole=False),
    "clocks.current.sm": _Column("sm_clock_mhz", 0, 1e5),
    "pcie.link.gen.current": _Column("pcie_gen", 1, 16),
    "pcie.link.width.current": _Column("pcie_width", 1, 64),
}
"""Numeric fields by the name in the query."""

STEADY: Final = ("uuid", "name", "memory_total_mib", "power_limit_w")
"""What does not change while a card is there: a value once read is not overwritten by an unreadable one."""

_NUMBER = re.compile(r"([+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?)(?: ?(?:%|W|MiB|MHz|C))?")
_LOST = re.compile(r"Unable to determine the device handle for GPU ?(\d{1,4}): [0-9A-Fa-f]{4,8}:")

PROBLEMS: Final = (
    ("driver-mismatch", r"Driver/library version mismatch", "reload the driver or reboot the host"),
    ("driver-down", r"couldn't communicate with the NVIDIA driver", "is the driver loaded? see dmesg on the host"),
    ("no-gpu", r"No devices were found|No supported GPUs were found", "no card is visible to this login"),
    ("device-lost", r"Unable to determine the device handle", "a card is lost: see dmesg for Xid errors"),
    ("nvml", r"Failed to initialize NVML", "the container may have lost its devices; it can come back"),
    ("bad-field", r"is not a valid field to query", "this driver does not know one of the queried fields"),
    ("no-nvidia-smi", r"nvidia-smi.*not found|No such file or directory", "no nvidia-smi on this host's PATH"),
)
"""Error text in place of rows: code, pattern, advice."""


def problem_of(text: str) -> GpuProblem:
    """Name a line that is not a row."""
    shown = "".join(c for c in text if c.isprintable()).strip()[:200]
    for code, pattern, advice in PROBLEMS:
        if re.search(pattern, text):
            return GpuProblem(code, shown, advice)
    return GpuProblem("unreadable", shown or "unreadable output", "this is no row of nvidia-smi")


def parse_number(cell: str, low: float, high: float) -> float | None:
    """A number with or without its unit; None for every spelling of "no value" and outside `low` to `high`."""
    match = _NUMBER.fullmatch(cell)
    if match is None:
        return None
    value = float(match[1])
    return value if low <= value <= high else None


def parse_row(cells: Sequence[str], fields: Sequence[str] = QUERY_FIELDS) -> GpuSample | None:
    """A sample of cells in the order of `fields`; None when it does not even name its card."""
    values: dict[str, Any] = {}
    for name, cell in zip(fields, cells, strict=True):
        if name == "index":
            values["index"] = int(cell) if re.fullmatch(r"[0-9]{1,4}", cell) else None
        elif name in ("uuid", "name"):
            values[name] = _text(cell)
        elif name in COLUMNS:
            column = COLUMNS[name]
            number = parse_number(cell, column.low, column.high)
            values[column.attribute] = round(number) if number is not None and column.whole else number
    if values.get("index") is None or values["index"] >= CARD_LIMIT:
        return None
    return GpuSample(**values)


def _text(cell: str) -> str | None:
    """A cell of words; bracketed ones say that there is none."""
    shown = "".join(c for c in cell if c.isprintable())[:120]
    return None if not shown or shown.startswith("[") or shown == "N/A" else shown


@dataclass(slots=True)
class GpuParser:
    """Turns the query loop's bytes into ticks.

    A tick is complete when as many cards have answered as in the tick before, or when one answers again; so the first
    tick waits for the second unless `expected` cards are known.
    """

    fields: Sequence[str] = QUERY_FIELDS
    expected: int | None = None
    _tail: bytes = b""
    _overlong: bool = False
    _cards: dict[int, GpuSample] = field(default_factory=dict)
    _problem: GpuProblem | None = None
    _told: bool = False
    _known: dict[int, GpuSample] = field(default_factory=dict)

    def feed(self, data: bytes) -> list[GpuTick]:
        """Take bytes cut anywhere; returns the ticks that they complete, oldest first. Never raises."""
        ticks: list[GpuTick] = []
        *lines, rest = (self._tail + data).split(b"\n")
        for line in lines:
            if not self._overlong and len(line) <= LINE_LIMIT:
                self._line(line.decode("utf-8", "replace").strip(), ticks)
            self._overlong = False
        self._overlong = self._overlong or len(rest) > LINE_LIMIT
        self._tail = b"" if self._overlong else rest
        return ticks

    def finish(self) -> list[GpuTick]:
        """The stream ended: what stands is the last tick."""
        ticks = self.feed(b"\n") if self._tail else []
        if self._cards and not self._told:
            ticks.append(self._tick())
        self._cards = {}
        return ticks

    def _line(self, line: str, ticks: list[GpuTick]) -> None:
        if not line:
            return
        cells = [cell.strip() for cell in line.split(",")]
        lost = _LOST.match(line)
        if lost is not None and int(lost[1]) < CARD_LIMIT:
            self._card(GpuSample(int(lost[1]), lost=line[:200]), ticks)
        elif cells[0] == "index":
            return  # a header that was not asked for
        elif len(cells) == len(self.fields) and (sample := parse_row(cells, self.fields)) is not None:
            self._card(sample, ticks)
        else:
            self._trouble(line, len(cells), ticks)

    def _card(self, sample: GpuSample, ticks: list[GpuTick]) -> None:
        if sample.index in self._cards:
            if not self._told:
                ticks.append(self._tick())
            self.expected = len(self._cards)
            self._cards, self._problem, self._told = {}, None, False
        self._cards[sample.index] = self._completed(sample)
        if self.expected is not None and len(self._cards) >= self.expected:
            self._told = True
            ticks.append(self._tick())

    def _trouble(self, line: str, cells: int, ticks: list[GpuTick]) -> None:
        problem = problem_of(line)
        if problem.code == "unreadable" and cells >= len(self.fields) // 2:
            what = f"row with {cells} cells where {len(self.fields)} were asked for: {problem.text}"
            problem = GpuProblem("bad-row", what[:250], "the row was left out, not shifted")
        self._problem = problem
        if not self._cards:
            ticks.append(GpuTick(problem=problem))

    def _completed(self, sample: GpuSample) -> GpuSample:
        """`sample` with what is already known of the same card where it can't change."""
        before = self._known.get(sample.index)
        if before is not None and sample.uuid in (None, before.uuid):
            known = {name: getattr(before, name) for name in STEADY if getattr(sample, name) is None}
            sample = replace(sample, **known)
        self._known[sample.index] = sample
        return sample

    def _tick(self) -> GpuTick:
        return GpuTick(tuple(self._cards[index] for index in sorted(self._cards)), self._problem)

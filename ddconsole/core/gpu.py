"""GPU state from `nvidia-smi`'s query loop: rows cut anywhere become ticks of samples. Unknown is None, never 0.

Columns are read by their place in the query that we sent, not by the names that are echoed. A row with another number
of cells is refused, not shifted. Text where rows should be is a `GpuProblem`, never a card.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.gpu_problem import GpuProblem, problem_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
    "pci.bus_id",
    "mig.mode.current",
)
"""What is asked of `nvidia-smi --query-gpu`, in this order."""

LINE_LIMIT: Final = 4096
"""Bytes of a line that are kept; what is longer is no row."""

CARD_LIMIT: Final = 1024
"""Cards of one host that are believed."""


def query_command(
    interval_ms: int = 1000, fields: Sequence[str] = QUERY_FIELDS, only: Sequence[int] = ()
) -> tuple[str, ...]:
    """The argv of one long-running query, a row for each card every `interval_ms`; `only` leaves out all others."""
    query = f"--query-gpu={','.join(fields)}"
    chosen = ("-i", ",".join(map(str, only))) if only else ()
    return ("env", "LC_ALL=C", "nvidia-smi", *chosen, query, "--format=csv,noheader,nounits", "-lms", str(interval_ms))


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One card at one moment. None is "not reported": shown as a dash, left out of averages.

    `lost` says why a card that was there answers no more. With `mig` the card is split: its utilization is not told.
    `memory_source` says whose memory it is where the card has none of its own (`core.gpu_unified`).
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
    bus_id: str | None = None
    mig: bool | None = None
    memory_source: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The items of a `gpu` event's `gpus`."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> GpuSample:
        """The inverse of `to_json`."""
        return cls(**{name: data[name] for name in cls.__dataclass_fields__ if name in data})


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

WORDS: Final = {"uuid": "uuid", "name": "name", "pci.bus_id": "bus_id"}
"""Fields of words by the name in the query."""

STEADY: Final = ("uuid", "name", "memory_total_mib", "power_limit_w", "bus_id")
"""What does not change while a card is there: a value once read is not overwritten by an unreadable one."""

_UNIT = r"(?: ?(?:%|W|MiB|MHz|C))?"
_NUMBER = re.compile(r"([+-]?[0-9]{1,18}(?:\.[0-9]{1,18})?)" + _UNIT)
_ANY_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?" + _UNIT)
_BUS = r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])"
_HANDLE = r"Unable to determine the device handle for GPU ?"
_LOST = re.compile(_HANDLE + r"(\d{1,4}): " + _BUS, re.ASCII)
_LOST_BUS = re.compile(_HANDLE + _BUS)
GPU_IS_LOST: Final = "[GPU is lost]"
"""What stands in the cells of a card that has fallen off the bus."""


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
        elif name in WORDS:
            values[WORDS[name]] = _text(cell)
        elif name == "mig.mode.current":
            values["mig"] = {"Enabled": True, "Disabled": False}.get(cell)
        elif name in COLUMNS:
            column = COLUMNS[name]
            number = parse_number(cell, column.low, column.high)
            values[column.attribute] = round(number) if number is not None and column.whole else number
    if values.get("index") is None or values["index"] >= CARD_LIMIT:
        return None
    return GpuSample(**values, lost="GPU is lost" if GPU_IS_LOST in cells else None)


def out_of_range(cells: Sequence[str], fields: Sequence[str] = QUERY_FIELDS) -> Iterator[tuple[str, str]]:
    """Field, and why in words, of each cell that is a number and no sane one: it is unknown, and worth a word."""
    for name, cell in zip(fields, cells, strict=True):
        column = COLUMNS.get(name)
        if column is None or parse_number(cell, column.low, column.high) is not None:
            continue
        if _ANY_NUMBER.fullmatch(cell):
            yield name, f"{name} {shown(cell, 40)} is outside {column.low:g} to {column.high:g}"


def _text(cell: str) -> str | None:
    """A cell of words; bracketed ones say that there is none."""
    words = shown(cell, 120)
    return None if not words or words.startswith("[") or words == "N/A" else words


@dataclass(slots=True)
class GpuParser:
    """Turns the query loop's bytes into ticks.

    A tick is complete when as many cards have answered as in the tick before, or when one answers again; so the first
    tick waits for the second unless `expected` cards are known. `lost` are cards that are not asked any more; they
    stand in every tick. Carried from one run to the next are `known`, the latest of each card ever seen, and `odd`, the
    cards and fields whose numbers were not sane; what is new in that is added to `remarks`, once for each.
    """

    fields: Sequence[str] = QUERY_FIELDS
    expected: int | None = None
    lost: Sequence[GpuSample] = ()
    known: dict[int, GpuSample] = field(default_factory=dict)
    odd: set[tuple[int, str]] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    _tail: bytes = b""
    _overlong: bool = False
    _cards: dict[int, GpuSample] = field(default_factory=dict)
    _problem: GpuProblem | None = None
    _told: bool = False

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
        lost = self._lost_index(line)
        if lost is not None:
            self._card(GpuSample(lost, lost=shown(line)), ticks)
        elif cells[0] == "index":
            return  # a header that was not asked for
        elif len(cells) == len(self.fields) and (sample := parse_row(cells, self.fields)) is not None:
            self._remark(sample.index, cells)
            self._card(sample, ticks)
        else:
            self._trouble(line, len(cells), ticks)

    def _remark(self, index: int, cells: Sequence[str]) -> None:
        for name, why in out_of_range(cells, self.fields):
            if (index, name) not in self.odd:
                self.odd.add((index, name))
                self.remarks.append(f"GPU {index}: nvidia-smi's {why}; such values are shown as unknown")

    def _lost_index(self, line: str) -> int | None:
        """The card that a line says is lost: by its number, or by the bus id that it had while it answered."""
        if numbered := _LOST.match(line):
            return int(numbered[1]) if int(numbered[1]) < CARD_LIMIT else None
        by_bus = _LOST_BUS.match(line)
        if by_bus is None:
            return None
        wanted = _bus_key(by_bus[0])
        return next((card.index for card in self.known.values() if wanted == _bus_key(card.bus_id or "")), None)

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
        before = self.known.get(sample.index)
        if before is not None and sample.uuid in (None, before.uuid):
            known = {name: getattr(before, name) for name in STEADY if getattr(sample, name) is None}
            sample = replace(sample, **known)
        self.known[sample.index] = sample
        return sample

    def _tick(self) -> GpuTick:
        cards = {card.index: card for card in self.lost} | self._cards
        return GpuTick(tuple(cards[index] for index in sorted(cards)), self._problem)


def _bus_key(text: str) -> tuple[int, str] | None:
    """A bus id as numbers: drivers write its domain with four or with eight digits."""
    match = re.search(_BUS, text)
    return (int(match[1], 16), match[2].lower()) if match else None

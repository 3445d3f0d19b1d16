"""Follows SGLang's log as it grows: phases, bars, facts, decode lines, and in the end why it died."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ddconsole.core.progress import BootFacts, BootProgress, Phase, ShardBar
from ddconsole.engines.sglang.bootlines import Decode, Kind, Mark, read, split_glued, split_stamp
from ddconsole.engines.sglang.evidence import Evidence
from ddconsole.engines.sglang.faults import diagnose
from ddconsole.engines.sglang.linecut import LineCutter
from ddconsole.engines.sglang.masking import Masker
from ddconsole.engines.sglang.phases import PhaseClock
from ddconsole.engines.sglang.shardbar import Bar, Pace, find_bar

if TYPE_CHECKING:
    from ddconsole.core.errors import Failure

LINE_SHOWN: Final = 4096
"""Characters of a line that are passed on."""

WARNING_LIMIT: Final = 20
"""Different warnings that are kept."""

_HARMLESS: Final = frozenset(Kind) - {Kind.BIND_FAILED, Kind.WARNING}
"""Lines that are understood and no sign of trouble."""

TARGET, DRAFT, GRAPHS = "target", "draft", "graphs"


class BootLog:
    """A `BootTracker` for SGLang. The same bytes give the same state, however they are cut."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._cutter = LineCutter()
        self._mask = Masker(secrets)
        self._phases = PhaseClock()
        self._evidence = Evidence()
        self._loads: dict[str, int] = {}
        self._bars: dict[str, ShardBar] = {}
        self._paces: dict[str, Pace] = {}
        self._facts = BootFacts()
        self._fired_up = False
        self._decode: Decode | None = None

    @property
    def progress(self) -> BootProgress:
        """Phases and bars so far."""
        return BootProgress(
            phase=self._phases.phase,
            finished=dict(self._phases.finished),
            target=self._bars.get(TARGET),
            draft=self._bars.get(DRAFT),
            graphs=self._bars.get(GRAPHS),
            fired_up=self._fired_up,
        )

    @property
    def facts(self) -> BootFacts:
        """What the log says the engine runs."""
        return self._facts

    @property
    def decode(self) -> Decode | None:
        """The last `Decode batch` line."""
        return self._decode

    def failure(self, exit_status: int | None) -> Failure:
        """Why it died: the first root cause among all ranks' noise."""
        return diagnose(self._evidence, exit_status, self._phases.phase)

    def feed(self, data: bytes, at: float) -> list[str]:
        """Take bytes cut anywhere; `at` is monotonic seconds. Returns finished lines, bars only in their last state."""
        self._phases.start(at)
        lines: list[str] = []
        for piece in self._cutter.feed(data):
            self._piece(piece.text, piece.kept, at, lines)
        bar = find_bar(self._cutter.peek())
        if bar is not None:
            self._bar(bar, at)
        return lines

    def _piece(self, text: str, kept: bool, at: float, lines: list[str]) -> None:
        """A bar, a line, or several of them glued together."""
        while text:
            bar = find_bar(text)
            if bar is None:
                self._lines(text, at, lines)
                return
            if bar.before:
                self._lines(bar.before, at, lines)
            self._bar(bar, at)
            if kept and not bar.after:
                lines.append(text.strip()[:LINE_SHOWN])
            text = bar.after

    def _lines(self, text: str, at: float, lines: list[str]) -> None:
        lines.extend(self._line(line, at) for line in split_glued(text) if line.strip())

    def _line(self, line: str, at: float) -> str:
        rank, message = split_stamp(line)
        mark = read(message)
        shown = self._mask.text(line)[:LINE_SHOWN]
        if mark is not None:
            self._apply(mark, rank or "", shown, at)
        self._evidence.add(rank, message, shown, harmless=mark is not None and mark.kind in _HARMLESS)
        return shown

    # --- bars

    def _bar(self, bar: Bar, at: float) -> None:
        if bar.kind not in ("weights", "graphs"):
            return
        slot = GRAPHS if bar.kind == "graphs" else self._model(self._leader())
        pace = self._paces.setdefault(slot, Pace())
        pace.see(bar.done, at)
        self._bars[slot] = ShardBar(bar.done, bar.total, pace.eta_s(bar.total))

    def _leader(self) -> str:
        """The rank that draws the bars: the first by name of those that load."""
        return min(self._loads, default="")

    def _model(self, rank: str) -> str:
        """What a rank is loading: the target first, the draft second."""
        return DRAFT if self._loads.get(rank, 0) >= 2 else TARGET

    # --- lines that mean something

    def _apply(self, mark: Mark, rank: str, shown: str, at: float) -> None:
        if mark.facts:
            self._facts = replace(self._facts, **mark.facts)  # type: ignore[arg-type]  # the facts that are numbers
        match mark.kind:
            case Kind.INIT:
                self._phases.join(rank)
            case Kind.LOAD_BEGIN:
                self._loads[rank] = self._loads.get(rank, 0) + 1
                phase = Phase.LOAD_DRAFT if self._model(rank) == DRAFT else Phase.LOAD_TARGET
                self._phases.enter(rank, phase, at)
            case Kind.KV:
                self._phases.enter(rank, Phase.KV, at)
            case Kind.GRAPHS:
                self._phases.enter(rank, Phase.GRAPHS, at)
            case Kind.SERVER:
                self._phases.enter_all(Phase.WARMUP, at)
            case Kind.FIRED_UP:
                self._fired_up = True
                self._phases.enter_all(Phase.READY, at)
            case Kind.BIND_FAILED:
                self._facts = replace(self._facts, bind_failed=shown)
            case Kind.DECODE:
                self._decoded(mark.decode)
            case Kind.WARNING:
                self._warn(split_stamp(shown)[1])
            case _:
                pass

    def _decoded(self, decode: Decode | None) -> None:
        self._decode = decode
        if decode is not None and decode.graph is False:
            self._warn("decoding without a CUDA graph: the batch is larger than the captured sizes, or capture is off")

    def _warn(self, text: str) -> None:
        """Keep a warning once, though eight ranks print it."""
        if text not in self._facts.warnings and len(self._facts.warnings) < WARNING_LIMIT:
            self._facts = replace(self._facts, warnings=(*self._facts.warnings, text))

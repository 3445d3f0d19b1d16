"""Follows SGLang's log as it grows: phases, bars, facts, decode lines, and in the end why it died."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from ddconsole.core.masking import Masker
from ddconsole.core.progress import BootFacts, BootProgress, LogWarning, Phase
from ddconsole.engines.sglang.blocks import SEVERAL, may_be_odd, told
from ddconsole.engines.sglang.bootlines import (
    OLD_DIALECT,
    Decode,
    Kind,
    Mark,
    is_decode,
    is_echo,
    is_routine,
    means_nothing,
    read,
    read_decode,
    split_glued,
    split_stamp,
)
from ddconsole.engines.sglang.decodes import DecodeWatch
from ddconsole.engines.sglang.evidence import TAIL_LINES, Evidence
from ddconsole.engines.sglang.faults import diagnose
from ddconsole.engines.sglang.linecut import LineCutter, Redrawn
from ddconsole.engines.sglang.loads import Loads
from ddconsole.engines.sglang.phases import PhaseClock
from ddconsole.engines.sglang.shardbar import end_of_run, find_bar

if TYPE_CHECKING:
    from ddconsole.core.errors import Failure
    from ddconsole.engines.sglang.shardbar import Bar

LINE_SHOWN: Final = 4096
"""Characters of a line that are passed on."""

WARNING_LIMIT: Final = 20
"""Different warnings that are kept."""

_HARMLESS: Final = frozenset(Kind) - {Kind.BIND_FAILED, Kind.WARNING}
"""Lines that are understood and no sign of trouble."""


class BootLog:
    """A `BootTracker` for SGLang. The same bytes give the same state, however they are cut.

    Blocks of ordinary lines are looked at as a whole (`blocks.py`); what is odd goes line by line. Both give the same.
    """

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._cutter = LineCutter()
        self._mask = Masker(secrets)
        self._phases = PhaseClock()
        self._evidence = Evidence()
        self._loads = Loads()
        self._decodes = DecodeWatch()
        self._facts = BootFacts()
        self._fired_up = False
        self._place = 0
        self._spoke_at: float | None = None
        self._drawn: Bar | None = None

    @property
    def progress(self) -> BootProgress:
        """Phases and bars so far."""
        return BootProgress(
            phase=self._phases.phase,
            finished=dict(self._phases.finished),
            target=self._loads.bar("target"),
            draft=self._loads.bar("draft"),
            graphs=self._loads.bar("graphs"),
            fired_up=self._fired_up,
            waits_for=self._phases.behind,
            loads={model: dict(ranks) for model, ranks in self._loads.seconds.items()},
            download=self._loads.downloads.now,
        )

    @property
    def facts(self) -> BootFacts:
        """What the log says the engine runs."""
        return self._facts

    @property
    def spoke_at(self) -> float | None:
        """When a line came that is not routine, or a bar moved; monotonic seconds, None before the first."""
        return self._spoke_at

    @property
    def decode(self) -> Decode | None:
        """The last `Decode batch` line."""
        last = self._decodes.last
        return None if last is None else read_decode(last)

    def failure(self, exit_status: int | None, notes: tuple[str, ...] = ()) -> Failure:
        """Why it died: the first root cause among all ranks' noise, else what the host notes of its end."""
        return diagnose(self._evidence, exit_status, self._phases.phase, notes)

    def feed(self, data: bytes, at: float) -> list[str]:
        """Take bytes cut anywhere; `at` is monotonic seconds. Returns finished lines, bars only in their last state."""
        self._phases.start(at)
        lines: list[str] = []
        for item in self._cutter.cut(data):
            if isinstance(item, str):
                self._block(item, at, lines)
            elif isinstance(item, Redrawn):
                self._redrawn(item.text, at, lines)
            else:
                self._piece(item.text, item.kept, at, lines)
                self._place += len(item.text) + 1
        self._see(find_bar(self._cutter.peek()), at)
        return lines

    # --- blocks of plain lines

    def _block(self, block: str, at: float, lines: list[str]) -> None:
        if self._decodes.is_quiet(block) and not self._mask.knows_any(block):
            self._quiet_block(block, at, lines)
            return
        self._pieces(block, at, lines)

    def _pieces(self, text: str, at: float, lines: list[str]) -> int:
        """Lines one by one; how many characters they are, the last one's end included."""
        text = text.removesuffix("\n")
        for line in text.split("\n"):
            self._piece(line, True, at, lines)
            self._place += len(line) + 1
        return len(text) + 1

    def _quiet_block(self, block: str, at: float, lines: list[str]) -> None:
        """Routine is skipped, ordinary lines are told as they are, odd ones go the long way."""
        found = list(told(block))
        watchful = self._is_odd("\n".join([each[0] for each in found]))
        begin, shown = self._place, 0
        for line, rank, message, after, start in found:
            if after is not None:
                self._evidence.routine(after)
            if watchful and self._is_odd(line):
                self._show(block[shown:start], lines)
                self._place = begin + start
                shown = start + self._pieces(line, at, lines)
            elif message is SEVERAL:
                self._several(line.split("\n"), at, begin + start)
            elif line:
                self._told(rank, message, line, at, begin + start)
        self._show(block[shown:], lines)
        self._decodes.take_block(block)
        self._place = begin + len(block)

    def _is_odd(self, text: str) -> bool:
        """Whether a line, or one of several, cannot be shown as it is."""
        return may_be_odd(text, LINE_SHOWN) or self._mask.may_hold_secrets(text)

    def _show(self, text: str, lines: list[str]) -> None:
        """Whole lines as they are, but for empty ones."""
        shown = [line for line in text.split("\n") if line and not line.isspace()]
        self._evidence.tail.extend(shown[-TAIL_LINES:])
        lines += shown

    # --- line by line

    def _piece(self, text: str, kept: bool, at: float, lines: list[str]) -> None:
        """A bar, a line, or several of them glued together."""
        while text:
            bar = find_bar(text)
            if bar is None:
                self._lines(text, at, lines)
                return
            if bar.before:
                self._lines(bar.before, at, lines)
            self._see(bar, at)
            if kept and not bar.after:
                lines.append(text.strip()[:LINE_SHOWN])
            text = bar.after

    def _redrawn(self, text: str, at: float, lines: list[str]) -> None:
        """States of a bar, of which the last one counts, or whatever else a program draws over."""
        start = 0
        while start < len(text):
            end = end_of_run(text, start)
            if end is None:
                end = text.index("\r", start) + 1
                self._piece(text[start : end - 1], False, at, lines)
            else:
                self._see(find_bar(text[max(text.rfind("\r", start, end - 1) + 1, start) : end - 1]), at)
            self._place += end - start
            start = end

    def _see(self, bar: Bar | None, at: float) -> None:
        """A state of a bar; one that stands still while other lines are glued to it is no sign of life."""
        if bar is None:
            return
        state = bar._replace(before="", after="")
        if state != self._drawn:
            self._drawn, self._spoke_at = state, at
        self._loads.see(bar, at)

    def _lines(self, text: str, at: float, lines: list[str]) -> None:
        lines.extend(self._line(line, at) for line in split_glued(text) if line.strip())

    def _line(self, line: str, at: float) -> str:
        rank, message = split_stamp(line)
        routine = rank is not None and is_routine(message)
        shown = self._mask.text(line, routine=routine)[:LINE_SHOWN]
        self._evidence.tail.append(shown)
        if is_decode(message):
            self._decoded(message)
        if routine:
            self._evidence.routine(rank or "")
        else:
            self._told(rank, message, shown, at, self._place)
        return shown

    # --- lines that mean something

    def _told(self, rank: str | None, message: str, shown: str, at: float, place: int) -> None:
        if not is_echo(message):
            self._spoke_at = at
        mark = read(message)
        if rank is not None and (mark is not None or not self._phases.has_stamp):
            self._phases.stamped(shown)
        if mark is not None:
            self._apply(mark, rank or "", shown, at)
        self._evidence.add(rank, message, shown, place, harmless=mark is not None and mark.kind in _HARMLESS)

    def _several(self, texts: list[str], at: float, place: int) -> None:
        """Lines without a prefix. Within an error all of them belong to it, unless one of them means something."""
        if self._evidence.is_open and means_nothing(texts):
            if any(text and not text.isspace() and not is_echo(text) for text in texts):
                self._spoke_at = at
            self._evidence.add_all(texts, place)
            return
        for text in texts:
            if text and not text.isspace():
                self._told(None, text, text, at, place)
            place += len(text) + 1

    def _apply(self, mark: Mark, rank: str, shown: str, at: float) -> None:
        if mark.facts and any(getattr(self._facts, name) != value for name, value in mark.facts.items()):
            self._facts = replace(self._facts, **mark.facts)  # type: ignore[arg-type]  # only facts of their type
        if mark.warning is not None:
            self._warn(replace(mark.warning, evidence=shown))
        match mark.kind:
            case Kind.KV:
                self._phases.enter(rank, Phase.KV, at)
            case Kind.GRAPHS:
                self._phases.enter(rank, Phase.GRAPHS, at)
            case Kind.INIT:
                self._phases.join(rank)
            case Kind.LOAD_BEGIN:
                phase = Phase.LOAD_DRAFT if self._loads.begin(rank) == "draft" else Phase.LOAD_TARGET
                self._phases.enter(rank, phase, at)
            case Kind.ONE_MODEL:
                self._loads.one_model = True
            case Kind.LOAD_END:
                self._loads.end(rank, mark.seconds)
                if self._loads.is_whole(rank) or self._facts.dialect == OLD_DIALECT["dialect"]:
                    self._phases.enter(rank, Phase.KV, at)  # what comes next, though its first line may never come
            case Kind.SERVER:
                self._phases.enter_all(Phase.WARMUP, at)
            case Kind.FIRED_UP:
                self._fired_up = True
                self._phases.enter_all(Phase.READY, at)
            case Kind.BIND_FAILED:
                self._facts = replace(self._facts, bind_failed=shown)
            case _:
                pass

    def _decoded(self, message: str) -> None:
        for warning in self._decodes.take(message):
            self._warn(warning)

    def _warn(self, warning: LogWarning) -> None:
        """Keep a warning once, though eight ranks print it."""
        known = self._facts.warnings
        if len(known) < WARNING_LIMIT and all((one.code, one.what) != (warning.code, warning.what) for one in known):
            self._facts = replace(self._facts, warnings=(*known, warning))

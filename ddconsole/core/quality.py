"""Cheap alarms for what speed hides: answers that loop, are empty or garbage, and a drafter that does nothing.

A config that is fast and wrong is wrong. These rules look at the records of any pass, so they hold even when the
quality pass itself is not in the suite.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from ddconsole.core import metrics
from ddconsole.core.stats import fisher_more, percentile

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.levels import Sums
    from ddconsole.core.metrics import RequestRecord

MIN_TAU = 1.2
"""Below this, drafting costs more than it brings on any engine that we know of."""

WRONG_SHARE = 0.2
"""Share of answers with the same fault from which the config, and not the prompt, is to blame."""

LOOP_CHARS = 240
"""A text has to repeat itself over at least this many characters …"""

LOOP_TURNS = 6
"""… and at least this many times, to count as an endless loop."""

TAIL_CHARS = 4000
"""How much of an answer's end is searched for a loop."""

GARBAGE_SHARE = 0.05
"""Share of replacement and control characters above which a text is garbage."""

VARIETY_WORDS = 100
LOW_VARIETY = 0.06
"""In a hundred words or more, fewer distinct ones than this share is no language."""


CHANCE = 0.05
"""A difference that chance alone brings more often than this is not held against a config."""


DIVERGED = "diverged"
"""Code of the finding that answers leave the control's."""


class Level(StrEnum):
    """What a finding means for the attempt."""

    FAILED = "failed"
    """The config was not measured: what ran was not what was asked for."""
    WRONG = "wrong"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class QualityFinding:
    """An alarm, with the prompts that raised it."""

    level: Level
    code: str
    text: str
    prompts: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """An item of a summary's `findings`."""
        return {"level": self.level.value, "code": self.code, "text": self.text, "prompts": list(self.prompts)}


def inspect_records(records: Sequence[RequestRecord]) -> tuple[QualityFinding, ...]:
    """Every alarm that the answers of these requests raise. Failed requests are passed over; `judge` counts them."""
    counted = [record for record in records if record.ok]
    if not counted:
        return ()
    return (*_faulty_answers(counted), *_truncated(counted), *_buffered(counted))


def inspect_drafter(sums: Sums, min_tau: float = MIN_TAU) -> tuple[QualityFinding, ...]:
    """What the counts say of a drafter that is configured. One that never engaged is a failure, never a low score.

    Where the engine does not count accepted drafts they are what C holds beyond one token a step and the first.
    """
    if not sums.requests:
        return ()
    if not sums.steps:
        text = f"a drafter is configured, but none of {sums.requests} answers counted a verify step"
        return (QualityFinding(Level.FAILED, "no-speculation", text),)
    accepted = sums.spec_tokens - sums.steps - sums.speculated if sums.accepted is None else sums.accepted
    if accepted <= 0:
        text = f"the drafter ran, and none of its drafts was accepted in {sums.steps} verify steps"
        return (QualityFinding(Level.FAILED, "zero-accepted", text),)
    tau = sums.tau
    if tau is not None and tau < min_tau:
        return (QualityFinding(Level.WARN, "low-tau", f"τ {tau:.2f} is below {min_tau:g}: the drafter is not helping"),)
    return ()


def fault_of(record: RequestRecord) -> str | None:
    """`empty`, `loop` or `garbage`; None for an answer that looks like one."""
    text = record.text if record.text.strip() else record.reasoning
    if not text.strip():
        return "empty"
    if record.finish_reason == "length" and loop_chars(text):
        return "loop"
    return "garbage" if is_garbage(text) else None


def loop_chars(text: str) -> int:
    """Over how many characters the end of `text` repeats one cycle; 0 where it does not loop.

    The longest suffix that has a period of at most its LOOP_TURNS-th part, found with the prefix function of the
    reversed tail (Knuth, Morris, Pratt): linear in its length.
    """
    tail = text.rstrip()[-TAIL_CHARS:][::-1]
    borders = [0] * len(tail)
    longest = 0
    for index in range(1, len(tail)):
        length = borders[index - 1]
        while length and tail[index] != tail[length]:
            length = borders[length - 1]
        borders[index] = length + (tail[index] == tail[length])
        size = index + 1
        if size >= LOOP_CHARS and (size - borders[index]) * LOOP_TURNS <= size:
            longest = size
    return longest


def is_garbage(text: str) -> bool:
    """Broken characters, or hardly any variety over a hundred words."""
    odd = sum(char == "\ufffd" or not (char.isprintable() or char.isspace()) for char in text)
    if odd > GARBAGE_SHARE * len(text):
        return True
    words = text.split()
    return len(words) >= VARIETY_WORDS and len(set(words)) < LOW_VARIETY * len(words)


def _faulty_answers(counted: Sequence[RequestRecord]) -> list[QualityFinding]:
    """A finding for each kind of fault, wrong where it is not one prompt's bad luck."""
    words = {
        "loop": "repeat themselves until they are cut",
        "empty": "are empty",
        "garbage": "are not language",
    }
    faults = {id(record): fault_of(record) for record in counted}
    findings = []
    for fault, how in words.items():
        prompts = [record.prompt_id for record in counted if faults[id(record)] == fault]
        if prompts:
            level = Level.WRONG if len(prompts) >= WRONG_SHARE * len(counted) else Level.WARN
            text = f"{len(prompts)} of {len(counted)} answers {how}"
            findings.append(QualityFinding(level, fault, text, tuple(dict.fromkeys(prompts))))
    return findings


def _truncated(counted: Sequence[RequestRecord]) -> list[QualityFinding]:
    cut = [record.prompt_id for record in counted if record.finish_reason == "length"]
    if not cut:
        return []
    text = f"{len(cut)} of {len(counted)} answers were cut by max_tokens"
    return [QualityFinding(Level.NOTE, "truncated", text, tuple(dict.fromkeys(cut)))]


def _buffered(counted: Sequence[RequestRecord]) -> list[QualityFinding]:
    """A stream that came all at once has no TTFT: something on the way held it back."""
    shares = [
        (metrics.ttft(record) or 0.0) / record.end_s
        for record in counted
        if record.end_s > 0 and (record.completion_tokens or 0) >= 32
    ]
    middle = percentile(shares, 0.5)
    if middle is None or middle < 0.9:
        return []
    text = (
        f"the first token came after {middle:.0%} of the answer's time: the stream was buffered, TTFT and TPOT are void"
    )
    return [QualityFinding(Level.WARN, "buffered", text)]


@dataclass(frozen=True, slots=True)
class Control:
    """What the chain that a config is compared with answered to the same prompts.

    Attributes:
        id: its result.
        texts: its first answer by prompt.
        differing, repeated: of the prompts that it was asked more than once, how many did not get one text each time.
    """

    id: str
    texts: Mapping[str, str]
    differing: int = 0
    repeated: int = 0

    @classmethod
    def of(cls, id_: str, records: Sequence[RequestRecord]) -> Control:
        """From the records of its quality pass."""
        return cls(id_, first_texts(records), *self_divergence(records))


def first_texts(records: Sequence[RequestRecord]) -> dict[str, str]:
    """The first answer that counts, by prompt."""
    return {record.prompt_id: record.text for record in reversed(records) if record.ok}


def self_divergence(records: Sequence[RequestRecord]) -> tuple[int, int]:
    """(differing, repeated): of the prompts that were asked more than once, how many got more than one text.

    At temperature 0 that is not always none: near-ties flip with batch and verify width. It is the floor below which
    a difference between two configs says nothing.
    """
    texts: dict[str, list[str]] = {}
    for record in records:
        if record.ok:
            texts.setdefault(record.prompt_id, []).append(record.text)
    repeated = [answers for answers in texts.values() if len(answers) > 1]
    return sum(len(set(answers)) > 1 for answers in repeated), len(repeated)


def compare_texts(records: Sequence[RequestRecord], control: Control) -> tuple[QualityFinding, ...]:
    """What it means that answers leave the control's: wrong when they do so more often than the control leaves
    itself, by Fisher's exact test at 5 %; a note when that may be chance, or the control's floor is not measured."""
    texts = first_texts(records)
    shared = texts.keys() & control.texts.keys()
    differing = tuple(sorted(prompt for prompt in shared if texts[prompt] != control.texts[prompt]))
    if not differing:
        return ()
    text = f"{len(differing)} of {len(shared)} answers differ from those of {control.id}"
    if not control.repeated:
        return (QualityFinding(Level.NOTE, DIVERGED, f"{text}; its own floor is not measured", differing),)
    chance = fisher_more(len(differing), len(shared), control.differing, control.repeated)
    floor = f"it differs from itself in {control.differing} of {control.repeated}"
    level = Level.WRONG if chance < CHANCE else Level.NOTE
    said = "more than chance" if level is Level.WRONG else "which may be chance"
    return (QualityFinding(level, DIVERGED, f"{text}, {floor}: {said} (p {chance:.2g})", differing),)

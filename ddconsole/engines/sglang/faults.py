"""Why an engine died: the first root cause among all ranks' noise, or the honest little that is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import Failure
from ddconsole.core.progress import Phase
from ddconsole.engines.sglang.bootlines import split_stamp
from ddconsole.engines.sglang.evidence import Line
from ddconsole.engines.sglang.signatures import SIGNATURES, Signature, Strength

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ddconsole.engines.sglang.evidence import Evidence

EVIDENCE_LINES: Final = 8
"""Lines shown as evidence."""

STOPPED: Final = "stopped"
"""The cause of an end that somebody asked for."""

LINE_SHOWN: Final = 400
"""Characters of an evidence line."""

PHASE_WORDS: Final = {
    Phase.LAUNCH: "while being started",
    Phase.INIT: "while initialising",
    Phase.LOAD_TARGET: "while loading the target",
    Phase.LOAD_DRAFT: "while loading the drafter",
    Phase.KV: "while allocating the KV cache",
    Phase.GRAPHS: "while capturing graphs",
    Phase.WARMUP: "in its warm-up",
    Phase.READY: "after it was ready",
}

_EXCEPTION = re.compile(r"(?:[A-Za-z_][\w.]*\.)?[A-Z]\w*(?:Error|Exception|Interrupt|Exit)\b")
_AT_EXIT = re.compile(
    r"nanobind: |\s*- (?:leaked |\.\.\. skipped )|See https://nanobind|.*resource_tracker: There appear to be|"
    r"\s*warnings\.warn\("
)
"""What libraries print of themselves when a process ends, dozens of lines: no word on why."""

_PARENT = ("Received sigquit", "SIGQUIT received", "kill_process_tree called")
_ROOT_CUES = ("Scheduler hit an exception", "Traceback (most recent call last)")


def diagnose(evidence: Evidence, exit_status: int | None, phase: Phase, notes: Sequence[str] = ()) -> Failure:
    """The failure that the log shows; `phase` is where the boot was, `notes` what the host says of the end."""
    found = first_cause(evidence.errors())
    unnamed = _unnamed_exception(evidence)
    if not unnamed and (found is None or found[0].strength is not Strength.ROOT):
        found = first_cause(Line(0, "", note) for note in notes) or found
    if found is None or (unnamed and _explains_less(found[0], found[2], unnamed)):
        return _unknown(evidence, unnamed, exit_status, phase, notes)
    signature, groups, line = found
    groups |= {"when": PHASE_WORDS.get(phase, "at work")}
    return Failure(
        cause=signature.cause,
        what=_fill(signature.what, groups),
        evidence=_around(line, groups, evidence),
        advice=_fill(signature.advice, groups),
        phase=phase.value,
    )


def _explains_less(signature: Signature, line: Line, unnamed: list[Line]) -> bool:
    """Whether an exception without a name explains more: than all but causes, and a stop that came before it."""
    if signature.strength is Strength.ROOT:
        return False
    return signature.cause != STOPPED or unnamed[0].number < line.number


def first_cause(lines: Iterable[Line]) -> tuple[Signature, dict[str, str], Line] | None:
    """The strongest, then earliest line that a signature explains, with the signature and what its pattern found."""
    best: tuple[Signature, dict[str, str], Line] | None = None
    for line in lines:
        for signature in SIGNATURES:
            if best is not None and signature.strength >= best[0].strength:
                continue
            match = signature.pattern.search(line.text)
            if match is not None:
                best = signature, {name: (text or "").strip() for name, text in match.groupdict().items()}, line
                break
    return best


def _fill(template: str, groups: dict[str, str]) -> str:
    return template.format(**{name: text[:240] for name, text in groups.items()})


def _around(line: Line, groups: dict[str, str], evidence: Evidence) -> tuple[str, ...]:
    """The line itself, with what opened that rank's error, or with the last lines of the rank that it names."""
    named = groups.get("rank", "")
    if named:
        last = [text for text in evidence.tail if (rank := split_stamp(text)[0]) and f"TP{named}" in rank.split()]
        return _shown([*last[-EVIDENCE_LINES + 1 :], line.text])
    block = evidence.blocks.get(line.rank)
    opened = [
        other.text for other in (block.lines() if block else ()) if other.number < line.number and _opens(other.text)
    ]
    return _shown([*opened[-1:], line.text])


def _opens(text: str) -> bool:
    return any(cue in text for cue in _ROOT_CUES)


def _shown(texts: Iterable[str]) -> tuple[str, ...]:
    """Distinct lines, the last of them, each bounded."""
    distinct = dict.fromkeys(text.strip()[:LINE_SHOWN] for text in texts if text.strip())
    return tuple(distinct)[-EVIDENCE_LINES:]


# --- nothing in the log has a name


def _unknown(
    evidence: Evidence, dead: list[Line], exit_status: int | None, phase: Phase, notes: Sequence[str]
) -> Failure:
    """The exception of the rank that died first; without one, how the process ended."""
    lines = [line.text for line in dead] or [text for text in evidence.tail if not _AT_EXIT.match(text)] + [*notes]
    exception = next((line for line in reversed(dead) if _EXCEPTION.match(line.text)), None)
    cause, ended, advice = describe_exit(exit_status)
    if exception is None:
        what = f"the engine died {PHASE_WORDS.get(phase, 'at work')}: {ended}"
        return Failure(cause, what, _shown(lines), advice, phase.value)
    who = f"rank {exception.rank}" if exception.rank else "the engine"
    what = f"{who} died {PHASE_WORDS.get(phase, 'at work')}: {exception.text[:240]}"
    advice = "read the traceback in the full log; the last lines of the rank that died first are shown"
    return Failure("exception", what, _shown(lines), advice, phase.value)


def _unnamed_exception(evidence: Evidence) -> list[Line]:
    """The error lines of the first rank that raised something no signature knows; none when all are known."""
    errors = evidence.errors()
    ranks = dict.fromkeys(line.rank for line in errors if _opens(line.text))
    for rank in ranks:
        lines = _until_noise([line for line in errors if line.rank == rank])
        if first_cause(lines) is None:
            return lines
    return []


def _until_noise(lines: list[Line]) -> list[Line]:
    """Without what the parent says once a child has died, and libraries at their exit: it is no part of the error."""
    return [
        line for line in lines if not any(noise in line.text for noise in _PARENT) and not _AT_EXIT.match(line.text)
    ]


def describe_exit(status: int | None) -> tuple[str, str, str]:
    """(cause, words, advice) for an exit status as a shell (128 + signal) or Python (-signal) gives it."""
    if status is None:
        return "unknown-end", "how it ended is not known", "the status was not recorded; see the end of the full log"
    signal = status - 128 if 128 < status < 192 else -status if -64 <= status < 0 else 0
    if signal == 9:
        words = (
            "killed by SIGKILL: by the kernel's OOM killer, by somebody, or by itself, as SGLang does when a child dies"
        )
        return "killed", words, "look at dmesg on the host for the OOM killer, and at the end of the full log"
    if signal == 15:
        return "stopped", "ended by SIGTERM: somebody stopped it", "look for who did; a stop is not a crash"
    if signal:
        name = {1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 6: "SIGABRT", 7: "SIGBUS", 11: "SIGSEGV"}.get(
            signal, str(signal)
        )
        return "crashed", f"ended by signal {name}", "see the end of the full log, and dmesg on the host"
    if status == 0:
        return (
            "ended",
            "it ended by itself with status 0",
            "an engine should go on serving; see the end of the full log",
        )
    if status == 127:
        return "no-command", "its command was not found on the host", "mend engine.command in the profile"
    return "unknown", f"it ended with status {status}", "see the end of the full log"

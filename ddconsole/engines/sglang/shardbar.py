"""Progress bars as tqdm draws them, in all their number forms, and our own estimate of what is left."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

BarKind = Literal["weights", "graphs", "download", "other"]

_DESC = (
    r"Multi-thread loading(?: [\w.]+ checkpoint)? shards"
    r"|Loading (?:[\w.]{1,40} ){0,3}shards"
    r"|Loading safetensors using [\w ]{1,60}"
    r"|Capturing [\w ]{1,60}(?:\([^)]{0,80}\))?"
)
_COUNT = r"[0-9]+(?:\.[0-9]+)?[kMGTP]?"
_TIMES = r"\[(?P<elapsed>[0-9:]+)<(?P<left>[0-9:?]+), *(?P<rate>[^\],]+)(?:,[^\]]*)?\]"
_BODY = rf":? *[0-9]+% *(?:Completed \||\|[^|]*\|)? *(?P<done>{_COUNT})/(?P<total>{_COUNT}|\?) {_TIMES}"
_KNOWN = re.compile(rf"(?P<desc>{_DESC}){_BODY}")
_ANY = re.compile(rf"^(?P<desc>[^|\[\]%]*?){_BODY}")
_ENDLESS = re.compile(rf"(?P<desc>{_DESC}): (?P<done>{_COUNT})it \[(?P<elapsed>[0-9:]+), *(?P<rate>[^\],]+)\]")
_WEIGHTS = re.compile(_DESC)
_CLOCKS = re.compile(r"[0-9:]<[0-9:?]")
"""Between elapsed and remaining time; no bar is without, but for the endless one."""
_RATE = re.compile(r"(?P<number>[0-9.]+) ?(?:(?P<per_item>s/[a-z]+)|[a-z]+/s)")

_FETCHING: Final = ("Fetching ", "Downloading ")
"""How bars begin that count whole files of a download."""

_UNITS: Final = "kMGTP"

_STATE = r"[0-9]{1,9}/[0-9]{1,9} \[[0-9:]{4,12}<[0-9:?]{1,12}, *[0-9?.]{1,20} ?(?:it/s|s/it)\]\r"
_RUNS = (
    re.compile(
        rf"(?:(?:Multi-thread loading|Loading safetensors checkpoint) shards: *[0-9]{{1,3}}% Completed \| {_STATE})+"
    ),
    re.compile(rf"(?:Capturing [\w ]{{1,60}}(?:\([^)\r]{{0,80}}\))?: *[0-9]{{1,3}}%\|[^|\r]{{0,60}}\| {_STATE})+"),
)
"""States of one bar drawn over each other, in its commonest forms, with nothing glued to any of them."""

BAR_LIMIT: Final = 2_000
"""Characters within which a bar is looked for."""

MIN_SHARDS: Final = 3
"""Shards loaded before an estimate means anything; after the first, tqdm's own is wild (sglang#18124)."""

WINDOW: Final = 16
"""Observations over which the speed is taken: long enough to be calm, short enough to follow a change."""


class Bar(NamedTuple):
    """One state of a bar.

    Attributes:
        done, total: items, or bytes for a bar that counts them. A total of None: it does not know its end.
        elapsed, rate: as the bar prints them.
        before, after: text glued to the bar, which may hold an error.
    """

    kind: BarKind
    desc: str
    done: int
    total: int | None
    elapsed: str
    rate: str
    before: str = ""
    after: str = ""

    @property
    def elapsed_s(self) -> int:
        """As the bar says; whole seconds."""
        return seconds(self.elapsed)

    @property
    def item_s(self) -> float | None:
        """Seconds for each item by the bar's own rate, whichever way round it is printed; None if unknown."""
        return item_seconds(self.rate)


def may_hold_bar(text: str) -> bool:
    """False only when `find_bar` finds none in `text` nor in any of its lines; much quicker."""
    return "it [" in text or ("<" in text and _CLOCKS.search(text) is not None)


def find_bar(text: str) -> Bar | None:
    """The first bar in `text`; None where there is none, or none that is understood."""
    if not may_hold_bar(text):
        return None
    match = _KNOWN.search(text, 0, BAR_LIMIT) or _ANY.search(text, 0, BAR_LIMIT) or _ENDLESS.search(text, 0, BAR_LIMIT)
    if match is None:
        return None
    desc, done, elapsed, rate = match.group("desc", "done", "elapsed", "rate")
    total = match["total"] if match.re is not _ENDLESS else None
    desc = desc.strip()
    start, end = match.span()
    return Bar(
        _kind(desc, done, total, rate),
        desc,
        _whole(done),
        None if total is None or total == "?" else _whole(total),
        elapsed,
        rate,
        text[:start].strip() if start else "",
        text[end:].strip() if end < len(text) else "",
    )


def end_of_run(text: str, start: int) -> int | None:
    """Where a run of states of one bar ends that begins at `start`; None where none is told so easily.

    Of such a run only the last state says anything: `Pace` takes what was seen at one moment as one observation.
    """
    for run in _RUNS:
        match = run.match(text, start)
        if match is not None:
            return match.end()
    return None


def _kind(desc: str, done: str, total: str | None, rate: str) -> BarKind:
    """Byte counts (k, M, G, or B/s) are never shards, whatever the bar is called."""
    if done[-1].isalpha() or (total is not None and total[-1].isalpha()) or rate.endswith("B/s"):
        return "download"
    if desc.startswith(_FETCHING):
        return "download"
    if desc.startswith("Capturing"):
        return "graphs"
    return "weights" if _WEIGHTS.fullmatch(desc) else "other"


def _whole(count: str) -> int:
    """A count of at most 15 digits, and `1.15G` as the 1,150,000,000 that it stands for."""
    if len(count) < 16 and count.isdecimal():
        return int(count)
    digits = count.rstrip(_UNITS)[:15]
    return round(float(digits) * 1000 ** (_UNITS.index(count[-1]) + 1)) if count[-1] in _UNITS else int(float(digits))


def seconds(clock: str) -> int:
    """`05:46`, `1:06:40` and `30:00:00` in seconds; 0 for what is no clock."""
    total = 0
    for part in clock.split(":"):
        if not part.isdecimal() or len(part) > 9:
            return 0
        total = total * 60 + int(part)
    return total


def item_seconds(rate: str) -> float | None:
    """Seconds for each item of `5.64s/it` or `1.98it/s`; None for `?it/s` and bytes."""
    match = _RATE.fullmatch(rate.strip())
    if match is None:
        return None
    try:
        number = float(match["number"])
    except ValueError:
        return None
    if match["per_item"]:
        return number
    return 1.0 / number if number > 0 else None


@dataclass(slots=True)
class Pace:
    """Our own estimate from when we saw each item arrive. Items that came at one moment count as one observation."""

    _seen: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=WINDOW))

    def see(self, done: int, at: float) -> None:
        """`done` items at `at` (monotonic seconds). A count that falls back begins anew."""
        if self._seen and self._seen[-1][0] == at:
            self._seen.pop()
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
        if not self._seen or self._seen[-1][1] != done:
            self._seen.append((at, done))

    def eta_s(self, total: int | None) -> float | None:
        """Seconds left as of the last observation; None before it means anything."""
        if total is None or len(self._seen) < 2:
            return None
        (start, low), (end, high) = self._seen[0], self._seen[-1]
        if high < MIN_SHARDS or high <= low or end <= start:
            return None
        return max(total - high, 0) * (end - start) / (high - low)

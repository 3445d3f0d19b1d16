"""Progress bars as tqdm draws them, in all their number forms, and our own estimate of what is left."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final, Literal

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
_RATE = re.compile(r"(?P<number>[0-9.]+) ?(?:(?P<per_item>s/[a-z]+)|[a-z]+/s)")

BAR_LIMIT: Final = 2_000
"""Characters within which a bar is looked for."""

MIN_SHARDS: Final = 3
"""Shards seen loading before an estimate means anything; after the first, tqdm's own is wild (sglang#18124)."""

WINDOW: Final = 16
"""Observations over which the speed is taken: long enough to be calm, short enough to follow a change."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One state of a bar.

    Attributes:
        total: None for a bar that does not know its end.
        elapsed_s: as the bar says; whole seconds.
        item_s: seconds for each item by the bar's own rate, whichever way round it is printed; None if unknown.
        before, after: text glued to the bar, which may hold an error.
    """

    kind: BarKind
    desc: str
    done: int
    total: int | None
    elapsed_s: int
    item_s: float | None
    before: str = ""
    after: str = ""


def find_bar(text: str) -> Bar | None:
    """The first bar in `text`; None where there is none, or none that is understood."""
    if "[" not in text or ("%" not in text and "it [" not in text):
        return None
    forms = (form.search(text, 0, BAR_LIMIT) for form in (_KNOWN, _ANY, _ENDLESS))
    match = next((match for match in forms if match is not None), None)
    if match is None:
        return None
    groups = match.groupdict()
    done, total = groups["done"], groups.get("total")
    desc = groups["desc"].strip()
    return Bar(
        kind=_kind(desc, done, total),
        desc=desc,
        done=_whole(done),
        total=None if total in (None, "?") else _whole(str(total)),
        elapsed_s=seconds(groups["elapsed"]),
        item_s=item_seconds(groups["rate"]),
        before=text[: match.start()].strip(),
        after=text[match.end() :].strip(),
    )


def _kind(desc: str, done: str, total: str | None) -> BarKind:
    """Byte counts (k, M, G) are never shards, whatever the bar is called."""
    if done[-1].isalpha() or (total is not None and total[-1].isalpha()):
        return "download"
    if desc.startswith("Capturing"):
        return "graphs"
    return "weights" if re.fullmatch(_DESC, desc) else "other"


def _whole(count: str) -> int:
    """A count of at most 15 digits; the unit of a byte count does not matter here."""
    return int(float(count.rstrip("kMGTP")[:15]))


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
    _first: int | None = None

    def see(self, done: int, at: float) -> None:
        """`done` items at `at` (monotonic seconds). A count that falls back begins anew."""
        if self._seen and done < self._seen[-1][1]:
            self._seen.clear()
            self._first = None
        if self._first is None:
            self._first = done
        if self._seen and self._seen[-1][0] == at:
            self._seen.pop()
        elif self._seen and self._seen[-1][1] == done:
            return
        self._seen.append((at, done))

    def eta_s(self, total: int | None) -> float | None:
        """Seconds left as of the last observation; None before it means anything."""
        if total is None or len(self._seen) < 2 or self._first is None:
            return None
        (start, low), (end, high) = self._seen[0], self._seen[-1]
        if high - self._first < MIN_SHARDS or high <= low or end <= start:
            return None
        return max(total - high, 0) * (end - start) / (high - low)

"""What became of the points, and what of it counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from .kinds import KINDS
from .plan import DRAWS, Point


@dataclass(slots=True)
class Outcome:
    """What became of one draw of a point.

    Attributes:
        moment: the milestone in words.
        hits: what its faults hit.
        whole: every fault of it hit something, the second one included.
        lost: promises that were broken.
    """

    point: Point
    moment: str
    hits: tuple[str, ...] = ()
    whole: bool = False
    seconds: float = 0.0
    lost: list[str] = field(default_factory=list)

    @property
    def word(self) -> str:
        """`lost` whatever was hit; `survived` only what was hit whole."""
        if self.lost:
            return "lost"
        return "survived" if self.whole else "missed"


def until_hit(draw: Callable[[int], Point], attempt: Callable[[Point], Outcome]) -> list[Outcome]:
    """Draw a point until it hits, a bounded number of times; every draw's outcome, the last of which counts."""
    outcomes: list[Outcome] = []
    for number in range(DRAWS):
        outcomes.append(attempt(draw(number)))
        if outcomes[-1].word != "missed":
            break
    return outcomes


def exit_code(outcomes: Sequence[Outcome], asked: int) -> int:
    """1 when something was lost, or when fewer points hit than were asked for."""
    survived = sum(one.word == "survived" for one in outcomes)
    return int(survived < asked or any(one.lost for one in outcomes))


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Faults tried, those that hit, survived and lost, by kind. Draws that missed are tried and nothing else."""
    yield f"{'fault':<20}{'tried':>7}{'hit':>6}{'survived':>10}{'lost':>6}{'median s':>10}"
    for kind in KINDS:
        of_kind = [one for one in outcomes if one.point.kind == kind]
        if of_kind:
            yield _row(kind, of_kind)
    yield _row("in all", outcomes)


def _row(name: str, outcomes: Sequence[Outcome]) -> str:
    hit = sum(one.whole for one in outcomes)
    survived, lost = (sum(one.word == word for one in outcomes) for word in ("survived", "lost"))
    seconds = sorted(one.seconds for one in outcomes if one.word != "missed")
    median = f"{seconds[len(seconds) // 2]:.0f}" if seconds else "-"
    return f"{name:<20}{len(outcomes):>7}{hit:>6}{survived:>10}{lost:>6}{median:>10}"

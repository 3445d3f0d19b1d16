"""When a pass asks no further request: its time box is used up, or the config is hopeless against the best so far.

Neither cuts a request in its middle, and both leave enough requests for an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, TAU, added, prompt_sums
from ddconsole.core.stats import t_95

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.boots import Figure, Measurement
    from ddconsole.core.metrics import RequestRecord

MIN_ASKED = 3
"""Requests that a level gets whatever the clock says, once it is begun: fewer have no interval."""

HOPELESS = 0.85
"""A config whose τ and tok/s are both surely below this share of the best one's is not measured to its end."""


HOPELESS_CODE = "hopeless"


@dataclass(frozen=True, slots=True)
class Stop:
    """Why no further request was asked. `code`: time-box, hopeless."""

    code: str
    text: str

    def to_json(self) -> dict[str, str]:
        """A summary's `ended_early`."""
        return {"code": self.code, "text": self.text}


@dataclass(frozen=True, slots=True)
class Best:
    """What the best result so far did in one pass, to measure others against.

    Attributes:
        id: whose it is.
        by_prompt: its totals by prompt, as `boots.PROMPT_SUMS`.
    """

    id: str
    by_prompt: Measurement


def out_of_time(asked: int, elapsed_s: float, box_s: float | None, total: int) -> Stop | None:
    """The time box is used up, and the level has its least number of requests.

    Args:
        asked: requests of the level that have ended.
        elapsed_s: since the passes began.
        total: requests that the level would have.
    """
    if box_s is None or elapsed_s < box_s or asked < MIN_ASKED or asked >= total:
        return None
    return Stop("time-box", f"the time box of {box_s:.0f} s was used up after {asked} of {total} requests")


def hopeless(records: Sequence[RequestRecord], best: Best | None) -> Stop | None:
    """τ and tok/s end to end are both surely below `HOPELESS` of the best result's, paired by prompt.

    Surely: the upper bound of the one-sided 97.5 % interval of the mean log ratio, by Student's t over the prompts
    that both answered, at least three of them. Looked at after each request, which makes the error somewhat more
    frequent than 2.5 %; both figures have to agree, and the margin is wide.
    """
    if best is None:
        return None
    mine = prompt_sums(records)
    shared = [prompt for prompt in mine if prompt in best.by_prompt]
    bounds = [_upper(mine, best.by_prompt, shared, figure) for figure in (TAU, E2E)]
    if any(bound is None or bound >= HOPELESS for bound in bounds):
        return None
    here, there = (TAU.of(added(side[prompt] for prompt in shared)) or 0.0 for side in (mine, best.by_prompt))
    share = f"at most {(bounds[0] or 0.0) * 100:.0f} % of it by the upper 97.5 % bound, tok/s too"
    text = f"τ {here:.2f} after {len(shared)} prompts is hopeless against {best.id}'s {there:.2f} ({share})"
    return Stop(HOPELESS_CODE, text)


def _upper(
    mine: Mapping[str, Sequence[float]], theirs: Mapping[str, Any], shared: Sequence[str], figure: Figure
) -> float | None:
    """Upper bound of the figure's ratio over shared prompts; None where there are fewer than three."""
    logs = []
    for prompt in shared:
        a, b = figure.of(mine[prompt]), figure.of(theirs[prompt])
        if a is not None and b is not None:
            logs.append(math.log(a / b))
    if len(logs) < MIN_ASKED:
        return None
    mean = math.fsum(logs) / len(logs)
    variance = math.fsum((value - mean) ** 2 for value in logs) / (len(logs) - 1)
    return math.exp(mean + t_95(len(logs) - 1) * math.sqrt(variance / len(logs)))

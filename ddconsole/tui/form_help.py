"""What each field of the form means and what it costs, for a line below the fields: pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.tui import theme
from ddconsole.tui.text import styled, wrap_words

if TYPE_CHECKING:
    from textual.content import Content

    from ddconsole.core.profile import Knobs

LINES = 3
"""Lines that the explanation of a field may take."""

MEANS = {
    "algorithm": "tree verifies many drafted lines at once, chain the best one, off drafts nothing",
    "block_size": "positions of one draft pass, the anchor included; the draft is b−1 deep",
    "budget": "most tree nodes verified a step; b−1 is about a chain, 2b to 3b is a tree",
    "topk": "candidates that a position may offer under each parent",
    "window": "tokens of context that the drafter keeps, at least b",
    "passes": "what is measured: coding is graded, throughput is timed, quality compares the answers",
    "repeats": "how often each pass is measured, for narrower intervals",
    "note": "for people; it stands in the queue and beside the result",
}

COSTS = {
    "algorithm": "another one starts the engine anew",
    "block_size": "another one starts the engine anew; a deeper draft takes longer",
    "budget": "starts anew; a step verifies B + 1 positions, so it takes longer as τ rises",
    "topk": "starts anew; a wider tree is a shallower one at the same budget",
    "window": "starts anew; a longer one costs memory and draft time",
    "passes": "each takes its time, as the price below says",
    "repeats": "the time of the passes so many times, the start of the engine once",
    "note": "",
}


def about_field(name: str, knobs: Knobs, trained: int | None, width: int) -> list[Content]:
    """What the focused field means and costs, at most `LINES` lines of `width` cells."""
    words = MEANS[name]
    if name == "block_size" and trained is not None:
        words += f"; the drafter was trained at {trained}"
    if name == "topk" and knobs.topk.derived:
        words += "; here a cap, the engine derives K from B and b"
    if name in ("topk", "window"):
        words += "; empty leaves it to the engine"
    cost = f". Cost: {COSTS[name]}" if COSTS[name] else ""
    return [styled(line, theme.MUTED) for line in wrap_words(words + cost, width, LINES)]

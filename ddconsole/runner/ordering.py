"""Another order for a queue, and what it saves: the same for the command line and the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.anchor import EVERY, propose_anchors
from ddconsole.core.order import propose
from ddconsole.runner.best import best_of

if TYPE_CHECKING:
    from ddconsole.core.order import By, Proposal
    from ddconsole.core.ports import Store
    from ddconsole.core.queue import Queue
    from ddconsole.runner.outlook import Outlook


def proposal_for(
    name: str, store: Store, queue: Queue, by: By, outlook: Outlook, *, every: int = EVERY, author: str = ""
) -> Proposal:
    """The order for `by`; results are only looked up for `drift`, whose anchor may be the best of them."""
    if by != "drift":
        return propose(queue, by, outlook.effective)
    best = best_of(store.results(name))
    return propose_anchors(
        queue,
        outlook.effective,
        best=None if best is None else str(best["id"]),
        trained_block_size=outlook.trained_block_size,
        every=every,
        author=author,
    )


def saved_s(proposal: Proposal, outlook: Outlook) -> float:
    """Seconds that it saves: starts of an engine less what is added to measure; below zero where it costs time."""
    boot_s = outlook.boot_s()
    return proposal.saved_boots * boot_s - sum(outlook.price_of(draft) - boot_s for draft in proposal.drafts)

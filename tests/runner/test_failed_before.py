"""What failed before is told in the preflight of the next attempt at the same engine."""

from __future__ import annotations

from fakes.scripted import Script
from runner.world import Opened, tree

from ddconsole.core import events


async def test_the_next_attempt_at_the_same_engine_says_that_it_failed_before(world: Opened) -> None:
    """Not the first, and not one of another config."""
    async with world(Script(boots=["dies", "ready"])) as w:
        await w.add(tree(12), tree(16), tree(12))
        await w.drain()
        told = [(event.id, event.body.text) for event in w.seen  # type: ignore[attr-defined]
                if isinstance(event.body, events.FindingSeen) and event.body.code == "failed-before"]  # fmt: skip
        ((id_, text),) = told
        assert id_ == "E3"
        assert "E1 gpu-oom, 2026-12-02 14:" in text

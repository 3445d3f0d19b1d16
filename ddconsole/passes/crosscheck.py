"""The engine's own figures beside ours: read before the first measured request and after the last one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.crosscheck import compare_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.metrics import RequestRecord
    from ddconsole.core.ports import ServerCounts
    from ddconsole.core.quality import QualityFinding
    from ddconsole.passes.base import PassContext


@dataclass(slots=True)
class CrossCheck:
    """One pass's look at the engine's counters. Without counters it says nothing."""

    context: PassContext
    before: ServerCounts | None
    findings: tuple[QualityFinding, ...] = field(default=())

    @classmethod
    async def begin(cls, context: PassContext) -> CrossCheck:
        """Read the counters; the warm-up is over, and no measured request was sent."""
        return cls(context, await context.counts() if context.counts else None)

    async def end(self, records: Sequence[RequestRecord]) -> list[dict[str, Any]] | None:
        """Read them again: a summary's `cross_check`, and `findings` where ours and theirs disagree beyond noise."""
        after = await self.context.counts() if self.context.counts else None
        if self.before is None or after is None:
            return None
        compared = compare_counts(records, self.before, after)
        self.findings = tuple(one.finding for one in compared if one.finding is not None)
        return [one.to_json() for one in compared]

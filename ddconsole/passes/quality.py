"""The quality pass: a few prompts, each asked twice, for the alarms that speed hides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.core.quality import compare_texts, self_divergence
from ddconsole.passes.base import PassResult, Progress, check_prompts, pass_summary
from ddconsole.passes.crosscheck import CrossCheck
from ddconsole.passes.level import ONE, clock_findings, flushed, measure_level
from ddconsole.passes.load import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Prompt
    from ddconsole.core.profile import QualityPass
    from ddconsole.core.quality import Control
    from ddconsole.passes.base import PassContext

ASKED = 2
"""Times that each is asked: the second time shows how far the engine leaves itself."""

MAX_TOKENS = 512
"""Long enough for a loop to show."""


class QualityMeasure:
    """Looks at what is answered, not at how fast.

    Args:
        control: answers of the chain to the same prompts, when there are any, to compare with at temperature 0.
    """

    name = "quality"

    def __init__(self, plan: QualityPass, prompts: Sequence[Prompt], control: Control | None = None) -> None:
        self._plan = plan
        self._prompts = tuple(prompts[: plan.prompts])
        self._control = control

    @property
    def total(self) -> int:
        """Every prompt as often as it is asked."""
        return len(self._prompts) * ASKED

    def refusal(self) -> str | None:
        """It can be measured anywhere."""
        return None

    async def run(self, context: PassContext) -> PassResult:
        """Warm up, ask all prompts, then all of them again.

        Raises:
            UsageError: the prompts are chats, and this engine takes plain text alone.
        """
        check_prompts(context.dialect, self._prompts, context.workload)
        progress = Progress(context, self.total)
        warm_error = await warm_up(context, self._prompts[:1], 1)
        emptied = await flushed(context)
        check = await CrossCheck.begin(context)
        level = await measure_level(context, ONE, self._prompts * ASKED, progress, emptied=emptied)
        records = level.records
        summary = pass_summary(records, [level])
        summary |= {"warmup_error": warm_error, "cache_flushed": emptied, "dialect": context.dialect.name}
        summary["cross_check"] = await check.end(records)
        summary["findings"] += [finding.to_json() for finding in (*check.findings, *clock_findings([level]))]
        greedy = context.workload.temperature == 0
        if greedy and self._control is not None:
            summary["findings"] += [finding.to_json() for finding in compare_texts(records, self._control)]
        differing, repeated = self_divergence(records)
        summary["self_divergence"] = {"differing": differing, "of": repeated} if greedy else None
        summary["control"] = self._control.id if greedy and self._control is not None else None
        summary["min_tau"] = self._plan.min_tau
        summary["max_tokens"] = MAX_TOKENS
        return PassResult(self.name, summary, records)

"""What a profile makes of its queue: the same document for the command line, the events and the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Config, effective_config
from ddconsole.core.config_findings import config_findings
from ddconsole.core.documents import experiment_item, queue_document
from ddconsole.core.order import engine_kept
from ddconsole.core.queue import ranks
from ddconsole.passes.workload import workload_of
from ddconsole.runner.estimates import Estimates

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from ddconsole.core.config import Effective
    from ddconsole.core.documents import EstimateOf
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.ports import Finding
    from ddconsole.core.profile import Profile
    from ddconsole.core.queue import Draft, Queue


class Outlook:
    """What a profile makes of a queue: effective configs, estimates, the workload."""

    def __init__(self, name: str, profile: Profile, history: Sequence[dict[str, float]]) -> None:
        self._name = name
        self._rule = profile.knobs.topk.rule
        self._estimates = Estimates(profile, history)
        self.trained_block_size = profile.engine.known_block_size
        self.workload = workload_of(profile)

    def effective(self, config: Config) -> Effective:
        """What the profile's engine makes of a config."""
        return effective_config(config, self._rule)

    def findings(self, config: Config) -> tuple[Finding, ...]:
        """What can be said of a config without a host."""
        return config_findings(config, self.effective(config), self.trained_block_size)

    def boot_s(self) -> float:
        """Seconds that one start of an engine is expected to take."""
        return self._estimates.boot_s()[0]

    def prices(self, queue: Queue) -> EstimateOf:
        """What each experiment of this queue will take: one that finds its engine running pays no boot."""
        kept = engine_kept(queue, self.effective)
        return lambda item: self._estimates.experiment_s(item, engine_kept=item.id in kept)

    def price_of(self, draft: Draft) -> float:
        """Seconds that a draft will take by itself, its boot included."""
        return self._estimates.seconds(draft.passes, draft.repeats)

    def document(self, queue: Queue, now: datetime, *, with_removed: bool = False) -> dict[str, Any]:
        """The document of `queue P list --json`."""
        return queue_document(
            self._name,
            queue,
            self.effective,
            self.prices(queue),
            now,
            workload=self.workload.to_json(),
            findings=self.findings,
            keeping=engine_kept(queue, self.effective),
            with_removed=with_removed,
        )

    def items(self, queue: Queue, chosen: Iterable[Experiment]) -> list[dict[str, Any]]:
        """Items of that document."""
        rank_of, price, keeping = ranks(queue), self.prices(queue), engine_kept(queue, self.effective)
        return [
            experiment_item(
                item,
                rank_of.get(item.id),
                effective=self.effective,
                estimate=price,
                workload=self.workload.to_json(),
                findings=self.findings,
                keeping=keeping,
            )
            for item in chosen
        ]

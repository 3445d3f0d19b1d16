"""`base=best`: an experiment takes its unset knobs, when it starts, from the best that was measured until then."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Config
from ddconsole.core.experiment import Outcome
from ddconsole.core.queue import Refusal
from ddconsole.core.spec import bind_best

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.experiment import Experiment
    from ddconsole.core.spec import SpecContext


def best_of(results: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The passed result with the highest e2e rate at concurrency 1; None where nothing has passed."""
    passed = [item for item in results if item["outcome"] == Outcome.PASSED.value and item.get("tok_s_e2e")]
    return max(passed, key=lambda item: float(item["tok_s_e2e"]), default=None)


def bind_to_best(experiment: Experiment, results: Sequence[dict[str, Any]], context: SpecContext) -> Experiment | str:
    """The experiment with its config bound to that of `best_of`, or why that cannot be."""
    best = best_of(results)
    if best is None:
        return "base=best, and nothing has passed yet"
    config = bind_best(experiment, Config.from_json(best["config"]), context)
    if isinstance(config, Refusal):
        return config.reason
    return replace(experiment, config=config)

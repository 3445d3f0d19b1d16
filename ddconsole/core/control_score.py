"""Coding beside the control's coding: whether a config solves fewer of the same tasks than chance would have it.

Speculative decoding must not change what is answered, so a config that solves fewer tasks than the chain is either
unlucky (near-ties flip) or wrong. Two exact one-sided tests of "it is no worse than its control" are made:

- **Pairs.** Of the tasks on which the two differ, each is as likely to favour either: McNemar's test in its exact form,
  which is a sign test: P(X ≥ lost), X ~ Binomial(lost + won, 1/2) (McNemar 1947; Agresti, *Categorical Data Analysis*,
  section 11.1). Strong with many tasks; with five it needs all five lost.
- **Totals.** Fisher's exact test of the solved ones of each. It ignores the pairing, which makes it cautious where
  tasks are hard or easy for both (Agresti, section 11.1). It tells 1 of 5 from 5 of 5, where pairs cannot.

With both, the smaller p counts twice (Bonferroni): 1/5 beside 5/5 is p 0.048, 2/5 is 0.17, 4/5 is 1. A task that was
answered several times counts once, as solved when at least half of its answers pass: repeats of a greedy answer are no
evidence of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.quality import CHANCE
from ddconsole.core.stats import fisher_more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NOT_SCORED = "not-scored"
"""Verdict of an answer that says nothing of the config: its tests are broken, or nothing was answered."""


@dataclass(frozen=True, slots=True)
class CodingScore:
    """What a config made of a suite's tasks.

    Attributes:
        id: its result; empty for the one that is looked at.
        work: suite and max_tokens: only equal ones are compared.
        tasks: whether each task is solved; empty where only the totals are known.
        passed, total: the solved tasks, or the answers that passed where the tasks are not known.
    """

    id: str
    work: tuple[Any, Any]
    passed: int
    total: int
    tasks: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, id_: str, rounds: Sequence[Mapping[str, Any]]) -> CodingScore | None:
        """From the summaries of the coding pass, all its repeats; None where nothing was scored."""
        graded = [one for one in rounds if one.get("total")]
        if not graded:
            return None
        answers: dict[str, list[bool]] = {}
        for one in graded:
            for task in one.get("tasks") or ():
                if task["verdict"] != NOT_SCORED:
                    answers.setdefault(str(task["id"]), []).append(task["verdict"] == "passed")
        tasks = {name: sum(passed) * 2 >= len(passed) for name, passed in answers.items()}
        work = (graded[0].get("suite"), graded[0].get("max_tokens"))
        if tasks:
            return cls(id_, work, sum(tasks.values()), len(tasks), tasks)
        return cls(id_, work, int(graded[0]["passed"] or 0), int(graded[0]["total"]))


@dataclass(frozen=True, slots=True)
class Behind:
    """A config that solved fewer tasks than its control. `chance` is the p of it if the config were as good."""

    text: str
    chance: float
    lost: tuple[str, ...]

    @property
    def is_wrong(self) -> bool:
        """Chance alone hardly brings it."""
        return self.chance < CHANCE


def behind(score: CodingScore | None, control: CodingScore | None) -> Behind | None:
    """How a config stands behind its control, or None: it does not, or there is nothing to compare it with."""
    if score is None or control is None or score.work != control.work:
        return None
    shared = sorted(score.tasks.keys() & control.tasks.keys())
    if shared:
        mine, theirs = sum(score.tasks[name] for name in shared), sum(control.tasks[name] for name in shared)
        totals = (mine, len(shared), theirs, len(shared))
    else:
        totals = (score.passed, score.total, control.passed, control.total)
    passed, total, others, of = totals
    if passed * of >= others * total:
        return None
    lost = tuple(name for name in shared if control.tasks[name] and not score.tasks[name])
    won = sum(score.tasks[name] and not control.tasks[name] for name in shared)
    chance = fisher_more(total - passed, total, of - others, of)
    if shared:
        chance = min(1.0, 2 * min(chance, sign_more(len(lost), won)))
    said = "more than chance" if chance < CHANCE else "which may be chance"
    text = f"coding {passed}/{total} where its control {control.id} has {others}/{of}: {said} (p {chance:.2g})"
    return Behind(text, chance, lost)


def sign_more(lost: int, won: int) -> float:
    """P that a fair coin thrown `lost + won` times shows at least `lost` heads; 1.0 without a throw."""
    throws = lost + won
    ways = sum(math.comb(throws, heads) for heads in range(lost, throws + 1))
    return float(ways / 2**throws)

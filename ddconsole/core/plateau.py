"""Which configs are the fastest, when the fastest cannot be told from the next ones.

A flat optimum is normal. Of many configs that are equally fast one always measures best, by luck; naming it the winner
would send the next sweep after noise. So the fastest is named together with every config that the paired comparison
cannot tell from it, and only a fastest one that is told from all others stands alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, Known, is_ranked, same_engine, same_work, suite_of
from ddconsole.core.compare import Comparison, compare, name_of, reference_of
from ddconsole.core.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONFIRMED = 3
"""How many of the best are worth the longer suite, their control aside."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The configs that did the same work, the fastest first, each by its newest result.

    Attributes:
        order: the newest passed result of each config, by its rate.
        against_best: the comparison of each of the others with the best, in the same order.
    """

    order: tuple[Mapping[str, Any], ...]
    against_best: tuple[Comparison, ...]

    @property
    def best(self) -> Mapping[str, Any]:
        """The one that measured fastest; a winner only when the plateau has no other."""
        return self.order[0]

    @property
    def plateau(self) -> tuple[Mapping[str, Any], ...]:
        """The best and all that are not told from it."""
        told = zip(self.order[1:], self.against_best, strict=True)
        return (self.best, *(item for item, found in told if found.word == "not distinguishable"))

    @property
    def boots(self) -> int:
        """Boots behind the best."""
        return self.against_best[0].boots[1] if self.against_best else 1

    @property
    def text(self) -> str:
        """The finding in one sentence."""
        label, rate = config_label(self.best), float(self.best[E2E.name])
        boots = f"{self.boots} boot" + ("" if self.boots == 1 else "s")
        if len(self.order) == 1:
            return f"{name_of(self.best)} ({label}) is the only config measured: {rate:.1f} tok/s, {boots}"
        plateau = self.plateau
        if len(plateau) == 1:
            nearest = min(self.against_best, key=lambda found: abs(found.delta_pct))
            interval = "" if nearest.ci_pct is None else f" ± {nearest.ci_pct:.1f}"
            behind = f"{nearest.a} is {abs(nearest.delta_pct):.1f} %{interval} behind"
            return f"fastest: {name_of(self.best)} ({label}), {rate:.1f} tok/s, {boots}; {behind}"
        names = ", ".join(map(name_of, plateau))
        return (
            f"plateau, no winner: {names} are not distinguishable"
            f" (best measured {name_of(self.best)}, {label}, {rate:.1f} tok/s, {boots})"
        )

    def to_json(self) -> dict[str, Any]:
        """An item of `standings` in `results list --json`."""
        return {
            "workload": self.best.get("workload"),
            "suite": suite_of(self.best),
            "measured_on": self.best.get("measured_on"),
            "best": name_of(self.best),
            "plateau": [name_of(item) for item in self.plateau],
            "behind": [found.to_json() | {"id": found.a, "of": found.b} for found in self.against_best],
            "text": self.text,
        }


def standings(items: Iterable[Mapping[str, Any]] | Known) -> tuple[Standing, ...]:
    """One for each kind of work (workload, suite, host) that something passed, the newest work last."""
    known = items if isinstance(items, Known) else Known(items)
    works: dict[str, dict[str, Mapping[str, Any]]] = {}
    for item in known.items:
        if is_ranked(item):
            newest = works.setdefault(same_work(item), {})
            newest[same_engine(item)] = item
    return tuple(_standing(tuple(newest.values()), known) for newest in works.values())


@dataclass(frozen=True, slots=True)
class Candidates:
    """What the longer suite should measure: the best three, best first, and the chain they are compared with."""

    best: tuple[Mapping[str, Any], ...] = ()
    control: Mapping[str, Any] | None = None


def confirm_candidates(
    standing: Standing, items: Sequence[Mapping[str, Any]], trained_block_size: int | None = None
) -> Candidates:
    """Those of a quick standing, without what the longer suite has measured already among `items`.

    `items` are all results of the profile: the control may stand outside of the sweep that is looked at.
    """
    if suite_of(standing.best) != "quick":
        return Candidates()
    control = reference_of(standing.best, items, trained_block_size)
    best = [item for item in standing.order if control is None or same_engine(item) != same_engine(control)]
    done = {_engine(item) for item in items if is_ranked(item) and suite_of(item) == "confirm"}
    return Candidates(
        tuple(item for item in best[:CONFIRMED] if _engine(item) not in done),
        control if control is not None and _engine(control) not in done else None,
    )


def config_label(item: Mapping[str, Any]) -> str:
    """The config of a result in one line; a dash where it has none."""
    return Config.from_json(item["config"]).label() if item.get("config") else "—"


def _engine(item: Mapping[str, Any]) -> str:
    return same_engine(dict(item) | {"suite": "any", "work": None})


def _standing(newest: Sequence[Mapping[str, Any]], known: Known) -> Standing:
    order = tuple(sorted(newest, key=lambda item: -float(item[E2E.name])))
    found = [compare(item, order[0], known) for item in order[1:]]
    return Standing(order, tuple(one for one in found if one is not None))

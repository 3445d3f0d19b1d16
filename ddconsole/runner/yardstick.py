"""What a new attempt is measured against: the best result so far, and the texts of its control."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.boots import E2E, added, is_ranked, same_work
from ddconsole.core.compare import name_of, reference_of
from ddconsole.core.control_score import CodingScore
from ddconsole.core.early import Best
from ddconsole.core.ports import AttemptKey
from ddconsole.core.quality import Control

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.core.ports import Store


@dataclass(frozen=True, slots=True)
class Yardstick:
    """`best` by pass; `control` is None where the chain's answers were never looked at under this workload, `coding`
    where its score was not."""

    best: dict[str, Best] = field(default_factory=dict)
    control: Control | None = None
    coding: CodingScore | None = None


def find_yardstick(store: Store, profile: str, item: Mapping[str, Any], trained_block_size: int | None) -> Yardstick:
    """Look it up among the profile's results.

    Args:
        item: effective config, workload, suite and host of the attempt, as a result has them.
    """
    results = store.results(profile)
    alike = [other for other in results if is_ranked(other) and same_work(other) == same_work(item)]
    best = max(alike, key=lambda other: float(other[E2E.name]), default=None)
    reference = reference_of(item, results, trained_block_size)
    return Yardstick(
        {} if best is None else _best(store, profile, best),
        None if reference is None else _control(store, profile, reference),
        None if reference is None else _coding(store, profile, reference),
    )


def _best(store: Store, profile: str, item: Mapping[str, Any]) -> dict[str, Best]:
    """What it did in each pass, all repeats together."""
    found: dict[str, Best] = {}
    for name, repeats in store.finished_passes(_key(profile, item)).items():
        rows: dict[str, list[Sequence[float]]] = {}
        for one in repeats:
            for prompt, totals in one.get("by_prompt", {}).items():
                rows.setdefault(prompt, []).append(totals)
        found[name] = Best(name_of(item), {prompt: added(several) for prompt, several in rows.items()})
    return found


def _coding(store: Store, profile: str, item: Mapping[str, Any]) -> CodingScore | None:
    """What it made of the coding tasks; None without such a pass."""
    return CodingScore.of(name_of(item), store.finished_passes(_key(profile, item)).get("coding") or ())


def _control(store: Store, profile: str, item: Mapping[str, Any]) -> Control | None:
    """Its quality pass's texts, and how often it left them itself; None without such a pass."""
    records = [record for record in store.records(_key(profile, item), "quality") if record.ok]
    return Control.of(name_of(item), records) if records else None


def _key(profile: str, item: Mapping[str, Any]) -> AttemptKey:
    return AttemptKey(profile, str(item["id"]), int(item.get("attempt") or 1))

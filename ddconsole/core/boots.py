"""What a result says prompt by prompt, and which results are boots of one and the same engine.

A *measurement* is what one boot of an engine did with each prompt at concurrency 1. The same config measured again
after a restart is another boot: differences between boots (memory layout, clocks, autotuning) are a level of their own.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ddconsole.core.levels import sums_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ddconsole.core.metrics import RequestRecord

    Measurement = Mapping[str, tuple[float, ...]]
    """Totals of one boot by prompt, each as long as `PROMPT_SUMS`."""

T = TypeVar("T")

PROMPT_SUMS = ("tokens", "e2e_s", "decoded", "decode_s", "spec_tokens", "steps", "step_s")
"""What `by_prompt` of a result holds for each prompt, in this order; named as in `core/levels.py`'s Sums. Results of
older versions hold the first two alone."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure that is a ratio of two totals, so that prompts add up before they are divided.

    Attributes:
        name: its key in a result.
        top, bottom: places of the totals in `PROMPT_SUMS`.
        scale: from the totals' unit to that of the name.
        better: +1 where more is better, −1 where less is, 0 where neither is.
    """

    name: str
    title: str
    top: int
    bottom: int
    unit: str
    scale: float = 1.0
    better: int = 1

    def of(self, totals: Sequence[float]) -> float | None:
        """top / bottom · scale; None where one of them is missing or not above zero."""
        if len(totals) <= max(self.top, self.bottom) or totals[self.bottom] <= 0 or totals[self.top] <= 0:
            return None
        return totals[self.top] / totals[self.bottom] * self.scale

    def parts(self, totals: Sequence[float]) -> tuple[float, float]:
        """(top, bottom); zeros where an older result lacks them."""
        if len(totals) <= max(self.top, self.bottom):
            return 0.0, 0.0
        return totals[self.top], totals[self.bottom]


E2E = Figure("tok_s_e2e", "tok/s e2e", 0, 1, "tok/s")
DECODE = Figure("tok_s_decode", "tok/s decode", 2, 3, "tok/s")
TAU = Figure("tau", "τ (ΣC/ΣV)", 4, 5, "tokens/step")
STEP = Figure("step_ms", "step time", 6, 5, "ms", 1000.0, better=-1)
FIGURES = (E2E, DECODE, TAU, STEP)
"""The figures at concurrency 1 that have an interval."""


def prompt_sums(records: Iterable[RequestRecord]) -> dict[str, list[float]]:
    """`by_prompt` of a pass: the totals of each prompt over its requests at concurrency 1 that count."""
    asked: dict[str, list[RequestRecord]] = {}
    for record in records:
        if record.ok and record.concurrency == 1:
            asked.setdefault(record.prompt_id, []).append(record)
    totals = {prompt: sums_of(group) for prompt, group in asked.items()}
    return {prompt: [getattr(sums, name) for name in PROMPT_SUMS] for prompt, sums in totals.items()}


def added(rows: Iterable[Sequence[float]]) -> tuple[float, ...]:
    """The totals of several rows, as long as the shortest of them."""
    return tuple(math.fsum(column) for column in zip(*rows, strict=False))


def measurement_of(item: Mapping[str, Any]) -> Measurement:
    """What one result did with each prompt."""
    return _measurement(item.get("by_prompt"))


def measurements_of(item: Mapping[str, Any]) -> dict[str, Measurement]:
    """The same by the boot it was measured on: several where an interruption lay between two repeats of a pass."""
    parts = item.get("by_boot") or {}
    return {boot: _measurement(part) for boot, part in parts.items()} or {boot_of(item): measurement_of(item)}


def _measurement(rows: Mapping[str, Sequence[float]] | None) -> Measurement:
    return {prompt: tuple(map(float, values)) for prompt, values in (rows or {}).items()}


def same_work(item: Mapping[str, Any]) -> str:
    """What two results must share to be ranked together: workload, suite, host, and which requests give the figures."""
    key = [item.get("workload"), suite_of(item), item.get("measured_on"), item.get("work")]
    return json.dumps(key, sort_keys=True)


def asks_alike(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """The figures of both come from requests of one kind: the same pass, tasks and length. Else a prompt of one is no
    pair of the other's, though it has its name."""
    return a.get("work") == b.get("work")


def suite_of(item: Mapping[str, Any]) -> str:
    """`quick` or `confirm`; results that say neither are of a version that only knew quick."""
    return str(item.get("suite") or "quick")


def same_engine(item: Mapping[str, Any]) -> str:
    """What two results must share to be boots of one config: effective config, engine version and the work."""
    effective = item.get("effective") or item.get("config")
    return json.dumps([effective, item.get("engine_version"), same_work(item)], sort_keys=True)


def boot_of(item: Mapping[str, Any]) -> str:
    """Which start of an engine a result was measured on. An older result names none and counts as one of its own."""
    return str(item.get("boot") or f"{item.get('id')}/{item.get('attempt', 1)}")


def is_ranked(item: Mapping[str, Any]) -> bool:
    """It passed and has a speed: what is not measured whole, or wrong, enters no comparison but by name."""
    return item.get("outcome") == "passed" and bool(item.get(E2E.name))


class Known:
    """A profile's results, sorted by the engine they were measured on. Made once, asked often."""

    def __init__(self, items: Iterable[Mapping[str, Any]] = ()) -> None:
        self.items = tuple(items)
        self._alike: dict[str, list[Mapping[str, Any]]] = {}
        for item in self.items:
            if is_ranked(item):
                self._alike.setdefault(same_engine(item), []).append(item)
        self._spreads: dict[tuple[str, Figure], BootSpread] = {}
        self._told: dict[Callable[..., Any], Any] = {}

    def once(self, ask: Callable[[tuple[Mapping[str, Any], ...]], T]) -> T:
        """What `ask` makes of all the results, computed at its first call."""
        if ask not in self._told:
            self._told[ask] = ask(self.items)
        answer: T = self._told[ask]
        return answer

    def boots(self, item: Mapping[str, Any]) -> tuple[Measurement, ...]:
        """The boots of a result's config, its own among them; several results on one boot are one.

        Only those that passed count, and the item itself whatever became of it.
        """
        alike = self._alike.get(same_engine(item), [])
        mine = _key(item)
        return _boots(alike if any(_key(other) == mine for other in alike) else [*alike, item])

    def spread(self, item: Mapping[str, Any], figure: Figure) -> BootSpread:
        """How far boots of one config lie apart, over all configs that did the same work as `item` more than once."""
        work = same_work(item)
        if (work, figure) not in self._spreads:
            groups = [_boots(alike) for alike in self._alike.values() if same_work(alike[0]) == work]
            self._spreads[work, figure] = BootSpread.of(groups, figure)
        return self._spreads[work, figure]


@dataclass(frozen=True, slots=True)
class BootSpread:
    """Deviations of boots from their config's mean, on the logarithm of a figure.

    Attributes:
        deviations: one for each boot of a config that was booted more than once.
        freedom: degrees of freedom: boots less configs. 0 where nothing was booted twice: the spread is not known.
    """

    deviations: tuple[float, ...] = ()
    freedom: int = 0

    @classmethod
    def of(cls, groups: Iterable[Sequence[Measurement]], figure: Figure) -> BootSpread:
        """The spread of several configs' boots, each over the prompts that all boots of its config have."""
        deviations: list[float] = []
        freedom = 0
        for boots in groups:
            shared = set.intersection(*map(set, boots))
            found = [figure.of(added(boot[prompt] for prompt in sorted(shared))) for boot in boots] if shared else []
            logs = [math.log(value) for value in found if value is not None]
            if len(logs) > 1:
                mean = math.fsum(logs) / len(logs)
                deviations += [value - mean for value in logs]
                freedom += len(logs) - 1
        return cls(tuple(deviations), freedom)

    @property
    def percent(self) -> float | None:
        """One standard deviation between boots, in percent; None where it is not known."""
        if not self.freedom:
            return None
        return math.sqrt(math.fsum(value * value for value in self.deviations) / self.freedom) * 100


def _boots(items: Iterable[Mapping[str, Any]]) -> tuple[Measurement, ...]:
    boots: dict[str, dict[str, tuple[float, ...]]] = {}
    for item in items:
        for boot, measurement in measurements_of(item).items():
            known = boots.setdefault(boot, {})
            for prompt, totals in measurement.items():
                known[prompt] = added([known[prompt], totals]) if prompt in known else totals
    return tuple(boots.values())


def _key(item: Mapping[str, Any]) -> tuple[Any, Any]:
    return item.get("id"), item.get("attempt")

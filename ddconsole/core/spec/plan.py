"""The experiments that a spec makes: every source with every combination of the typed values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING

from ddconsole.core.queue.values import Draft
from ddconsole.core.spec.context import SHORT_NAMES, SpecContext
from ddconsole.core.spec.derive import DEFAULT_NAME, Chosen, Source, derive, effective_of
from ddconsole.core.spec.types import MAX_CONFIGS, Planned, RefusedSpec, Spot

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ddconsole.core.config import Config
    from ddconsole.core.experiment import Experiment
    from ddconsole.core.spec.keys import Axis, Typed


@dataclass(frozen=True, slots=True)
class Origins:
    """Whom a spec starts from.

    Attributes:
        experiments: the named or followed ones, in order; None stands for the profile's default.
        match_defaults: `match` may match the profile's default, as a sweep around it does.
        condition: `after!`: start only if the source passed.
        condition_id: what to name when an experiment has several sources, such as `S3`.
    """

    experiments: tuple[Experiment | None, ...] = (None,)
    match_defaults: bool = False
    condition: bool = False
    condition_id: str = ""


def plan(said: Typed, origins: Origins, context: SpecContext) -> tuple[tuple[Planned, ...], int]:
    """The experiments in order, equal ones once, and how many equal ones were dropped.

    Raises:
        RefusedSpec: more than MAX_CONFIGS, or a value that cannot be had.
    """
    _check_count(said, len(origins.experiments))
    found: dict[object, Planned] = {}
    count = 0
    for experiment in origins.experiments:
        for planned in _of_source(said, experiment, origins, context):
            count += 1
            key = replace(planned.draft, requires=None)
            before = found.get(key)
            found[key] = planned if before is None else _merged(before, planned, origins)
    return tuple(found.values()), count - len(found)


def grid_text(said: Typed) -> str:
    """The axes as typed, `b 16,24 × B match,2b`; empty for a single config."""
    if said.several is None:
        return ""
    axes = (
        f"{SHORT_NAMES.get(axis.key, axis.key)} {','.join(value.text or 'none' for value in axis.values)}"
        for axis in said.axes
    )
    return " × ".join(axes)


def _check_count(said: Typed, sources: int) -> None:
    count = sources * prod(len(axis.values) for axis in said.axes)
    if count > MAX_CONFIGS:
        axis = said.several
        spot = axis.word.spot() if axis is not None else Spot(1, 1)
        raise RefusedSpec(spot, f"this makes {count:,} experiments; {MAX_CONFIGS} is the most", "split it")


def _of_source(said: Typed, experiment: Experiment | None, origins: Origins, context: SpecContext) -> Iterator[Planned]:
    """The experiments of one source, the first key changing slowest."""
    if experiment is not None and experiment.config is None and not said.axes and not said.base_best:
        yield Planned(_draft(None, said, experiment, origins, context), source=experiment.id)
        return
    source = _source(said, experiment, origins, context)
    words = {axis.key: axis.word for axis in said.axes}
    before = effective_of(source.base, context) if experiment is not None and experiment.config is not None else None
    for values in product(*(axis.values for axis in said.axes)):
        chosen = Chosen({axis.key: value for axis, value in zip(said.axes, values, strict=True)}, words)
        derived = derive(source, chosen, context)
        yield Planned(
            draft=_draft(derived.config, said, experiment, origins, context),
            source=None if experiment is None else experiment.id,
            notes=derived.notes,
            effective=effective_of(derived.config, context),
            before=before,
        )


def _source(said: Typed, experiment: Experiment | None, origins: Origins, context: SpecContext) -> Source:
    late = bool(said.base_best) or (said.base_best is None and experiment is not None and experiment.base_best)
    if experiment is None or experiment.config is None:
        name = DEFAULT_NAME if experiment is None else experiment.id
        reference = context.defaults if experiment is None and origins.match_defaults else None
        return Source(context.defaults, name, reference, None, late)
    return Source(experiment.config, experiment.id, experiment.config, experiment.id, late)


def _draft(
    config: Config | None, said: Typed, source: Experiment | None, origins: Origins, context: SpecContext
) -> Draft:
    """What was said, else what the source has, else the profile's."""
    own = source if source is not None and source.config is not None else None
    suite = said.suite or (own.suite if own else context.default_suite)
    inherited = own.passes if own and said.suite is None else None
    late = said.base_best if said.base_best is not None else bool(own and own.base_best)
    words = source.note if source is not None and source.config is None else ""
    return Draft(
        config=config,
        suite=suite,
        passes=said.passes or inherited or context.suites[suite],
        repeats=said.repeats or _repeats(own, suite, context),
        note=said.note if said.note is not None else words,
        requires=source.id if source is not None and origins.condition else None,
        base_best=late,
        pinned=pinned(said.axes, own.pinned if own else ()) if late else (),
    )


def _repeats(own: Experiment | None, suite: str, context: SpecContext) -> int:
    """What the source has; the suite's where there is none, or where it only had its own suite's."""
    if own is None or (suite != own.suite and own.repeats == context.repeats_of(own.suite)):
        return context.repeats_of(suite)
    return own.repeats


def pinned(axes: Sequence[Axis], already: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The keys that were typed, which `base=best` leaves alone."""
    return tuple(sorted({*already, *(axis.key for axis in axes)}))


def _merged(first: Planned, second: Planned, origins: Origins) -> Planned:
    """One experiment for two equal ones; with different sources the condition is the whole sweep's."""
    if first.draft.requires == second.draft.requires:
        return first
    return replace(first, draft=replace(first.draft, requires=origins.condition_id))

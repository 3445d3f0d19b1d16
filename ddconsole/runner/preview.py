"""What a line of the queue's language would do, before it is taken: its grid, price, doubles and missing control.

The command line and the screen show the same. Nothing here changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ddconsole.core.experiment import Workload
from ddconsole.core.order import engine_kept
from ddconsole.core.queue import Add, Batch, Change, Extend, Refusal, apply
from ddconsole.core.spec import SpecContext, duplicates, missing_control, print_spec, standing_work
from ddconsole.runner.outlook import Outlook

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from ddconsole.core.experiment import Experiment
    from ddconsole.core.ports import Store
    from ddconsole.core.profile import Profile
    from ddconsole.core.queue import Draft, Edit, Queue
    from ddconsole.core.spec import Command, Duplicate, WorkKey


@dataclass(frozen=True, slots=True)
class Known:
    """What has to be looked up for a preview besides the queue itself.

    Attributes:
        elsewhere: work of other profiles with this host and this engine.
        measured_under: workloads of this profile's measured experiments, by id.
    """

    elsewhere: Mapping[WorkKey, Duplicate] = field(default_factory=dict)
    measured_under: Mapping[str, Workload] = field(default_factory=dict)

    @classmethod
    def of(cls, store: Store, name: str, siblings: Iterable[tuple[str, Profile]] = ()) -> Known:
        """Read from the store. `siblings` are the other profiles of this host and this engine, by name."""
        elsewhere: dict[WorkKey, Duplicate] = {}
        for other, profile in siblings:
            view = Outlook(other, profile, ())
            under = _workloads(store, other)
            elsewhere |= standing_work(store.queue(other), view.effective, view.workload, under, other)
        return cls(elsewhere, _workloads(store, name))


@dataclass(frozen=True, slots=True)
class Control:
    """The chain that a tree has to beat, which nobody has measured yet.

    Attributes:
        spec: what queues it in front of all: `next algorithm=chain b=8 W=2048`.
        seconds: what it will take.
        assumed: the profile does not say at which block size the drafter was trained, so its default is taken.
    """

    draft: Draft
    spec: str
    seconds: float
    assumed: bool = False

    def to_json(self, profile: str) -> dict[str, Any]:
        """The `control_missing` object of `--json` answers."""
        assert self.draft.config is not None
        return {
            "spec": self.spec,
            "command": f"ddconsole queue {profile} {self.spec}",
            "config": self.draft.config.to_json(),
            "estimate_s": round(self.seconds, 1),
            "block_size_assumed": self.assumed,
        }


@dataclass(frozen=True, slots=True)
class Preview:
    """A command with what it would come to.

    Attributes:
        after: the queue as it would be.
        items: the experiments that it adds or changes, as they would stand there.
        seconds: what each of `items` will take; an engine that is kept costs no boot.
        boots: how many of them start an engine.
        more_s: seconds by which those of `items` that were there already become longer, or shorter when negative.
        doubles: for each config of the command, in its order, the same work that is there already, or None.
        control: the control that is missing, to be offered; None when there is one, or no tree.
    """

    command: Command
    after: Queue
    items: tuple[Experiment, ...]
    seconds: tuple[float, ...]
    boots: int
    doubles: tuple[Duplicate | None, ...]
    control: Control | None
    more_s: float = 0.0

    @property
    def total_s(self) -> float:
        """What all of it will take, in seconds."""
        return sum(self.seconds)

    @property
    def changes_price(self) -> bool:
        """Whether values of experiments that were there already change what they take, by a second at least."""
        edits = self.command.edit.edits if isinstance(self.command.edit, Batch) else (self.command.edit,)
        return any(isinstance(each, Change | Extend) for each in edits) and abs(self.more_s) >= 1

    @property
    def new(self) -> tuple[Draft, ...]:
        """What is not there already."""
        return tuple(draft for draft, double in zip(self.command.drafts, self.doubles, strict=False) if double is None)

    def without_doubles(self) -> Command | None:
        """The same command for what is not there already; None when all of it is."""
        edit, kept = self.command.edit, self.new
        if not isinstance(edit, Add) or not kept:
            return None
        preview = tuple(planned for planned in self.command.preview if planned.draft in kept)
        return replace(self.command, edit=replace(edit, drafts=kept), preview=preview)


def preview(
    command: Command, queue: Queue, profile: Profile, view: Outlook, known: Known, now: datetime
) -> Preview | Refusal:
    """What `command` would do to `queue`, or why the rules refuse it."""
    after = apply(queue, command.edit, now=now)
    if isinstance(after, Refusal):
        return after
    edited = _edited(command.edit)
    others = replace(queue, items=tuple(item for item in queue.items if item.id not in edited))
    standing = dict(known.elsewhere)
    standing |= standing_work(others, view.effective, view.workload, known.measured_under)
    drafts = tuple(planned.draft for planned in command.preview)
    items = tuple(item for item in after.items if item.revision == after.revision)
    kept, price = engine_kept(after, view.effective), view.prices(after)
    there = {item.id: item for item in queue.items}
    was = view.prices(queue)
    return Preview(
        command,
        after,
        items,
        tuple(price(item)[0] if item.config is not None else 0.0 for item in items),
        sum(item.id not in kept for item in items if item.config is not None),
        duplicates(
            tuple(zip(_ids(command, queue, after), drafts, strict=True)), standing, view.effective, view.workload
        ),
        _control(drafts, standing, SpecContext.of(profile, queue), profile, view),
        sum(
            price(item)[0] - was(there[item.id])[0]
            for item in items
            if item.id in there and item.config is not None and there[item.id].config is not None
        ),
    )


def _ids(command: Command, queue: Queue, after: Queue) -> tuple[str, ...]:
    """The ids that the experiments of a command have, or are going to have, in its order."""
    there, added = {item.id for item in queue.items}, {id(draft) for draft in command.drafts}
    new = iter(sorted((item.id for item in after.items if item.id not in there), key=lambda id_: int(id_[1:])))
    return tuple(next(new) if id(one.draft) in added else one.source or "" for one in command.preview)


def _control(
    drafts: tuple[Draft, ...], standing: Iterable[WorkKey], context: SpecContext, profile: Profile, view: Outlook
) -> Control | None:
    trained = profile.engine.known_block_size
    block_size = trained or context.knobs["block_size"].default
    if block_size is None:
        return None
    draft = missing_control(drafts, standing, context, block_size, view.workload)
    if draft is None:
        return None
    return Control(draft, f"next {print_spec(draft, context)}", view.price_of(draft), assumed=trained is None)


def _edited(edit: Edit) -> frozenset[str]:
    """Ids of the experiments that an edit gives other values."""
    edits = edit.edits if isinstance(edit, Batch) else (edit,)
    return frozenset(each.id for each in edits if isinstance(each, Change))


def _workloads(store: Store, name: str) -> dict[str, Workload]:
    """Under which workload each experiment was measured last."""
    return {item["id"]: Workload(**item["workload"]) for item in store.results(name) if item.get("workload")}

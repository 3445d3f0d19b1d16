"""What a screen knows of the profile and of the moment: plain values; nothing here reads files or asks hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.profile import Knobs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.profile import Profile
    from ddconsole.runner.feed import View

ENGINE_NAMES = {"sglang": "SGLang"}
"""How an engine's kind is written."""

PASSES = ("coding", "throughput", "quality")
"""Every pass there is."""

DEMO_REMARK = "demo: acceptance is computed, speed is simulated"
DEMO_REMARK_SHORT = "demo: speed is simulated"


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """What the screen needs of a profile.

    Attributes:
        engine: the engine's name as people write it.
        knobs: ranges, defaults and the rule for K, for the form.
        passes: names of the passes that the quick suite has, in order.
        repeats: of a new experiment.
        trained: the block size that the drafter was trained at, where the profile says it.
        remark, short_remark: what must not be forgotten beside the results, such as that the demo's speed is
            simulated; the short one where there is little room.
    """

    engine: str = "SGLang"
    knobs: Knobs = field(default_factory=Knobs)
    passes: tuple[str, ...] = ("coding", "throughput")
    repeats: int = 1
    trained: int | None = None
    remark: str = ""
    short_remark: str = ""

    @classmethod
    def of(cls, profile: Profile) -> ProfileFacts:
        """The facts of `profile`."""
        demo = profile.host == "demo"
        return cls(
            engine=ENGINE_NAMES.get(profile.engine.kind, profile.engine.kind),
            knobs=profile.knobs,
            passes=profile.passes.quick.names(),
            repeats=profile.passes.quick.repeats,
            trained=profile.engine.known_block_size,
            remark=DEMO_REMARK if demo else "",
            short_remark=DEMO_REMARK_SHORT if demo else "",
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """What decides whether an action can be done now.

    Attributes:
        focus: the panel that has the focus: queue, results, log or gpus.
        selected_id, selected_state: the row that keys act on, or None: the one under the queue's cursor, or under that
            of the results while these have the focus.
        marked: how many rows are marked; keys act on all of them.
        revision: the queue's revision that the user looks at.
        queued: experiments that wait to be run.
        running_id: the experiment that runs, or None.
        passes_left: passes that the running one could still be given.
        owns_run: this process works on the queue.
        other_pid: the process that works on the queue, if it is another one.
        paused: nothing new is started.
        connected: the line to the host stands.
        undo, redo: in words what would be taken back or done again; None when nothing.
        engine: an engine of ours may be running.
    """

    focus: str = "queue"
    selected_id: str | None = None
    selected_state: str | None = None
    marked: int = 0
    revision: int | None = None
    queued: int = 0
    running_id: str | None = None
    passes_left: tuple[str, ...] = ()
    owns_run: bool = False
    other_pid: int | None = None
    paused: bool = False
    connected: bool = False
    undo: str | None = None
    redo: str | None = None
    engine: bool = False


def moment(
    view: View,
    *,
    owns_run: bool,
    selected: Mapping[str, Any] | None,
    marked: int = 0,
    focus: str = "queue",
) -> Moment:
    """The moment that a view shows."""
    items = view.queue.get("items") or []
    running_id = view.id if runs(view) else None
    running = next((item for item in items if item.get("id") == running_id), None)
    return Moment(
        focus=focus,
        selected_id=selected.get("id") if selected else None,
        selected_state=selected.get("state") if selected else None,
        marked=marked,
        revision=view.queue.get("revision"),
        queued=sum(item.get("state") == "queued" for item in items),
        running_id=running_id,
        passes_left=tuple(name for name in PASSES if running and name not in running.get("passes", ())),
        owns_run=owns_run,
        other_pid=view.running.pid if view.running is not None and not owns_run else None,
        paused=bool(view.queue.get("paused")),
        connected=view.connection is not None and view.connection.state == "connected",
        undo=view.queue.get("undo"),
        redo=view.queue.get("redo"),
        engine=running_id is not None or (view.ready is not None and was_reached(view)),
    )


def runs(view: View) -> bool:
    """An experiment is being attempted."""
    return view.experiment is not None and view.finished is None and view.running is not None


def was_reached(view: View) -> bool:
    """Nothing says that the host could not be reached yet: what is promised of it can be believed."""
    return view.connection is None or view.connection.state not in NEVER_REACHED


NEVER_REACHED = ("connecting", "unreachable", "waiting")
"""States of a line that has not stood yet, or that nobody tries to mend."""

"""What a screen knows of the profile and of the moment: plain values; nothing here reads files or asks hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.core.profile import Knobs

if TYPE_CHECKING:
    from ddconsole.core.profile import Profile
    from ddconsole.runner.feed import View

ENGINE_NAMES = {"sglang": "SGLang"}
"""How an engine's kind is written."""

DEMO_REMARK = "demo: acceptance is computed, speed is simulated"
DEMO_REMARK_SHORT = "demo: speed is simulated"


@dataclass(frozen=True, slots=True)
class ProfileFacts:
    """What the screen needs of a profile.

    Attributes:
        engine: the engine's name as people write it.
        knobs: ranges, defaults and the rule for K, for the form.
        passes: names of the passes that the quick suite has, in order.
        remark, short_remark: what must not be forgotten beside the results, such as that the demo's speed is
            simulated; the short one where there is little room.
    """

    engine: str = "SGLang"
    knobs: Knobs = field(default_factory=Knobs)
    passes: tuple[str, ...] = ("coding", "throughput")
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
            remark=DEMO_REMARK if demo else "",
            short_remark=DEMO_REMARK_SHORT if demo else "",
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """What decides whether an action can be done now.

    Attributes:
        selected_id, selected_state: the queue's row under the cursor, or None.
        marked: how many rows are marked; keys act on all of them.
        revision: the queue's revision that the user looks at.
        queued: experiments that wait to be run.
        running_id: the experiment that runs, or None.
        owns_run: this process works on the queue.
        other_pid: the process that works on the queue, if it is another one.
        paused: nothing new is started.
        connected: the line to the host stands.
    """

    selected_id: str | None = None
    selected_state: str | None = None
    marked: int = 0
    revision: int | None = None
    queued: int = 0
    running_id: str | None = None
    owns_run: bool = False
    other_pid: int | None = None
    paused: bool = False
    connected: bool = False


def moment(view: View, *, owns_run: bool, selected: dict[str, Any] | None, marked: int = 0) -> Moment:
    """The moment that a view shows."""
    items = view.queue.get("items") or []
    runs = view.experiment is not None and view.finished is None and view.running is not None
    return Moment(
        selected_id=selected.get("id") if selected else None,
        selected_state=selected.get("state") if selected else None,
        marked=marked,
        revision=view.queue.get("revision"),
        queued=sum(item.get("state") == "queued" for item in items),
        running_id=view.id if runs else None,
        owns_run=owns_run,
        other_pid=view.running.pid if view.running is not None and not owns_run else None,
        paused=bool(view.queue.get("paused")),
        connected=view.connection is not None and view.connection.state == "connected",
    )

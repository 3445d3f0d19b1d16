"""Any sequence of edits keeps the queue's promises."""

from __future__ import annotations

from dataclasses import replace

from fakes.queues import CHAIN, NOW, TREE, bare
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ddconsole.core.codec import queue_from_json, queue_to_json
from ddconsole.core.experiment import WAITING, Origin, Outcome, Running
from ddconsole.core.queue import (
    Add,
    Arrange,
    Batch,
    Begin,
    Change,
    Draft,
    Edit,
    End,
    Extend,
    Hold,
    Move,
    Place,
    Queue,
    Redo,
    Refusal,
    Release,
    Remove,
    Retry,
    SetPaused,
    Undo,
    apply,
    next_to_run,
    ranks,
    running,
    stale,
)

IDS = st.integers(1, 12).map(lambda number: f"E{number}")
NAMES = st.one_of(IDS, st.integers(1, 3).map(lambda number: f"S{number}"))
SOME = st.lists(NAMES, min_size=1, max_size=3).map(tuple)
DRAFTS = st.lists(
    st.sampled_from([Draft(TREE), Draft(CHAIN, held=True), Draft(None, note="an idea")]), min_size=1, max_size=3
).map(tuple)
PLACES = st.one_of(
    st.sampled_from([Place(), Place("front")]), st.builds(Place, st.sampled_from(["after", "behind"]), NAMES)
)
TARGETS = st.one_of(st.sampled_from(["top", "up", "down", "bottom"]), st.integers(1, 12))
USER_EDITS: st.SearchStrategy[Edit] = st.one_of(
    st.builds(Add, DRAFTS, st.builds(Origin, after=NAMES), PLACES, as_sweep=st.booleans()),
    st.builds(Change, IDS, config=st.sampled_from([None, TREE, CHAIN]), repeats=st.integers(1, 3)),
    st.builds(Move, SOME, TARGETS),
    st.builds(Arrange, st.lists(IDS, min_size=1, max_size=4, unique=True).map(tuple)),
    st.builds(Remove, SOME),
    st.builds(Hold, SOME),
    st.builds(Release, SOME),
    st.builds(Retry, NAMES),
    st.builds(Extend, IDS, st.just(("quality",))),
)


class QueueMachine(RuleBasedStateMachine):
    """Users, a runner and undo take turns on one queue."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue()
        self.given: set[str] = set()
        self.started: set[str] = set()
        self.attempt = 0

    def take(self, edit: Edit) -> Queue | None:
        """Apply an edit; the new queue, or None when it was refused."""
        before = self.queue
        result = apply(before, edit, now=NOW)
        if isinstance(result, Refusal):
            assert result.reason
            assert result.code
            return None
        assert result.revision == before.revision + 1
        self.queue = result
        self.check_new_ids(before, edit)
        return result

    def check_new_ids(self, before: Queue, edit: Edit) -> None:
        """Ids never come back as another experiment, and only undoing an add takes one out."""
        old, new = {item.id for item in before.items}, {item.id for item in self.queue.items}
        appeared, gone = new - old, old - new
        assert isinstance(edit, Add | Batch | Redo) or not appeared
        assert isinstance(edit, Undo | Redo) or not gone
        if isinstance(edit, Add | Batch):
            assert not appeared & self.given
        assert not gone & self.started
        undone = {placed.experiment.id for step in self.queue.history.redo for placed in step.after}
        assert gone <= undone
        self.given |= appeared

    def check_running(self, before: Queue) -> None:
        """What runs is what ran, but for further passes."""
        was, now = running(before), running(self.queue)
        if was is not None:
            assert now is not None
            assert replace(now, passes=was.passes, revision=0) == replace(was, revision=0)
            assert now.passes[: len(was.passes)] == was.passes

    @rule(edit=USER_EDITS)
    def edit(self, edit: Edit) -> None:
        """A user edits; undo gives what was, redo what was done."""
        before = self.queue
        after = self.take(edit)
        if after is None:
            return
        self.check_running(before)
        assert stale(after, edit, after.revision) is None
        if after.history == before.history:
            return  # further passes for the one that runs are no step
        back = apply(after, Undo(), now=NOW)
        assert isinstance(back, Queue)
        ran = running(before)
        if ran is None or ran == running(after):
            assert bare(back) == bare(before)
        again = apply(back, Redo(), now=NOW)
        assert isinstance(again, Queue)
        assert bare(again) == bare(after)

    @rule(edits=st.lists(USER_EDITS, min_size=1, max_size=3).map(tuple))
    def batch(self, edits: tuple[Edit, ...]) -> None:
        """Several edits at once."""
        before = self.queue
        if self.take(Batch(edits)) is not None:
            self.check_running(before)

    @rule(edit=st.sampled_from([Undo(), Redo(), Undo()]))
    def history(self, edit: Edit) -> None:
        """Back and forth."""
        before = self.queue
        if self.take(edit) is not None:
            self.check_running(before)
            assert self.queue.notice

    @rule(paused=st.booleans())
    def pause(self, paused: bool) -> None:
        """Pause or start."""
        self.take(SetPaused(paused))

    @rule()
    def begin(self) -> None:
        """The runner takes the next."""
        item = next_to_run(self.queue)
        if item is None or running(self.queue) is not None:
            return
        self.attempt += 1
        assert self.take(Begin(item.id, self.attempt, NOW)) is not None
        self.started.add(item.id)

    @rule(outcome=st.sampled_from(list(Outcome)))
    def end(self, outcome: Outcome) -> None:
        """The runner's attempt ends."""
        item = running(self.queue)
        if item is None:
            return
        assert self.take(End(item.id, self.attempt, outcome)) is not None
        if outcome is Outcome.INTERRUPTED:
            assert ranks(self.queue)[item.id] == 1

    @invariant()
    def ids_are_unique(self) -> None:
        """No id stands twice, and counters are above all of them."""
        ids = [item.id for item in self.queue.items]
        assert len(ids) == len(set(ids))
        assert all(int(id_[1:]) < self.queue.next_experiment for id_ in ids)

    @invariant()
    def ranks_are_dense(self) -> None:
        """Those that wait come last, ranked 1, 2, 3 …"""
        waits = [isinstance(item.state, WAITING) for item in self.queue.items]
        assert waits == sorted(waits)
        assert list(ranks(self.queue).values()) == list(range(1, sum(waits) + 1))

    @invariant()
    def one_runs(self) -> None:
        """At most one is running, and no step of the history holds what has started and not been retried."""
        assert sum(isinstance(item.state, Running) for item in self.queue.items) <= 1
        now = running(self.queue)
        steps = self.queue.history.undo + self.queue.history.redo
        assert now is None or all(now.id not in step.ids for step in steps)

    @invariant()
    def it_can_be_written_down(self) -> None:
        """What the store keeps is the queue."""
        assert queue_from_json(queue_to_json(self.queue)) == self.queue


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

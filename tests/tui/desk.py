"""A controller in memory: the real rules of the queue, and nothing behind them. For tests that press keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from textual.pilot import Pilot
from tui.story import chain, tree

from ddconsole.adapters import queue_file
from ddconsole.core import events
from ddconsole.core.config import Config, effective_config
from ddconsole.core.errors import RefusedError
from ddconsole.core.experiment import Origin
from ddconsole.core.profile import Profile
from ddconsole.core.queue import Add, Begin, Draft, Edit, Queue, Refusal, SetPaused, apply, by_id, stale
from ddconsole.core.spec import SpecContext, SpecRefusal, parse
from ddconsole.runner.console import allowed
from ddconsole.runner.feed import Feed
from ddconsole.runner.foresight import foresee, look_through, orders, written_out
from ddconsole.runner.intents import OrderPlan, Plan, SheetPlan
from ddconsole.runner.outlook import Outlook
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import ProfileFacts
from ddconsole.tui.widgets.tables import QueueTable

NOW = datetime(2026, 12, 2, 14, 0, tzinfo=UTC)
DEADLINE_S = 20.0

PROFILE = Profile.model_validate(
    {
        "schema": "1",
        "host": "desk",
        "engine": {"command": ["engine"], "model": "m", "drafter": "d", "trained_block_size": "8"},
        "expect": {"boot_s": "420", "pass_s": "60"},
        "knobs": {"topk": {"cap_env": "CAP", "derived": "ddtree-pr29907", "default": "6"}},
    }
)


class Desk:
    """Fulfils `intents.Controller`. `calls` records what was asked; `gate` holds edits back while it is cleared."""

    def __init__(self, *, name: str = "desk", autostart: bool = False) -> None:
        self._feed = Feed()
        self._name = name
        self._autostart = autostart
        self._owns = False
        self.queue = Queue()
        self.calls: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failing: Exception | None = None

    @property
    def feed(self) -> Feed:
        """What happens."""
        return self._feed

    @property
    def profile_name(self) -> str:
        """The name in the header."""
        return self._name

    @property
    def owns_run(self) -> bool:
        """This desk runs the queue."""
        return self._owns

    @property
    def autostart(self) -> bool:
        """Start when the screen opens."""
        return self._autostart

    async def parse(self, text: str) -> Edit:
        """The real language, against this queue."""
        command = parse(text, SpecContext.of(PROFILE, self.queue))
        if isinstance(command, SpecRefusal):
            raise command.to_error(text)
        return command.edit

    async def plan(self, text: str) -> Plan | SpecRefusal | Refusal:
        """The real preview, of a store that holds this queue and no history."""
        return foresee(self._bench, self._store, text, lambda _: ())

    async def write_sheet(self, ids: tuple[str, ...]) -> str:
        """The real text."""
        return allowed(written_out(self._bench, self._store, queue_file, ids))

    async def plan_sheet(self, raw: bytes, without: frozenset[str] = frozenset()) -> SheetPlan:
        """The real reader."""
        return allowed(look_through(self._bench, self._store, queue_file, raw, without, lambda _: ()))

    async def plan_orders(self) -> tuple[OrderPlan, ...]:
        """The real proposals."""
        return orders(self._bench, self._store)

    @property
    def _bench(self) -> Any:
        return SimpleNamespace(name=self._name, profile=PROFILE, clock=SimpleNamespace(now=lambda: NOW))

    @property
    def _store(self) -> Any:
        return SimpleNamespace(queue=lambda _: self.queue, phase_history=lambda _: [], results=lambda _: [])

    async def edit(self, edit: Edit, *, seen: int | None = None) -> Queue:
        """The real rules."""
        self.calls.append((edit, seen))
        await self.gate.wait()
        if self.failing is not None:
            raise self.failing
        return self.edit_now(edit, seen)

    def edit_now(self, edit: Edit, seen: int | None = None, *, unseen: bool = False) -> Queue:
        """The same at once, as another process would do it; `unseen` before the screen has heard of it."""
        refusal = stale(self.queue, edit, seen) if seen is not None else None
        after = refusal or apply(self.queue, edit, now=NOW)
        if isinstance(after, Refusal):
            raise RefusedError(after.reason, code=after.code)
        self.queue = after
        if not unseen:
            self.publish_queue()
        return after

    async def start(self) -> None:
        """Take the queue."""
        self.calls.append("start")
        if self.failing is not None:
            raise self.failing
        self._owns = True
        self.tell(events.RunStarted("desk", 4242))
        self.edit_now(SetPaused(False))

    async def pause(self) -> None:
        """Start nothing new."""
        self.calls.append("pause")
        self.edit_now(SetPaused(True))

    async def cancel(self) -> None:
        """Stop the running one."""
        self.calls.append("cancel")

    async def close(self, *, keep_engine: bool) -> None:
        """Remember how."""
        self.calls.append(("close", keep_engine))

    # --- for the tests

    def tell(self, body: events.Body, id_: str | None = None) -> None:
        """Something happens."""
        self._feed.publish(events.Event(0, NOW, body, id=id_, attempt=1 if id_ else None))

    def publish_queue(self) -> None:
        """The queue's document, as the store's watcher sends it."""
        document = Outlook(self._name, PROFILE, ()).document(self.queue, NOW)
        self.tell(events.QueueChanged(self.queue.revision, document))

    def add(self, *configs: Config) -> None:
        """Queue configs, as if they had been there before."""
        drafts = tuple(Draft(config) for config in configs)
        self.edit_now(Add(drafts, Origin()))

    def run_line(self, text: str) -> None:
        """Queue what a line says, as if it had been there before."""
        command = parse(text, SpecContext.of(PROFILE, self.queue))
        assert not isinstance(command, SpecRefusal), command
        self.edit_now(command.edit)

    def begin(self, id_: str) -> None:
        """The runner starts an experiment."""
        self._owns = True
        self.tell(events.RunStarted("desk", 4242))
        self.edit_now(Begin(id_, 1, NOW))
        item = by_id(self.queue, id_)
        assert item is not None
        assert item.config is not None
        effective = effective_config(item.config).to_json()
        body = events.ExperimentStarted(item.label, item.config.to_json(), dict(effective), ["coding"], 540.0)
        self.tell(body, id_)

    def states(self) -> dict[str, str]:
        """State by id, in the queue's order."""
        return {item.id: item.state.name for item in self.queue.items}

    def edits(self) -> list[Edit]:
        """The edits that were asked for."""
        return [call[0] for call in self.calls if isinstance(call, tuple) and not isinstance(call[0], str)]


def full_desk() -> Desk:
    """Three queued experiments, of which the first runs."""
    desk = Desk()
    desk.add(tree(8, 12), chain(8), tree(16, 26))
    desk.begin("E1")
    return desk


def console(desk: Desk) -> ConsoleApp:
    """The app on a desk, with a clock that stands still."""
    return ConsoleApp(desk, ProfileFacts(knobs=PROFILE.knobs), now=lambda: NOW, zone=UTC, guarded=False)


@asynccontextmanager
async def opened(desk: Desk) -> AsyncIterator[tuple[ConsoleApp, Pilot[Any]]]:
    """The console on a desk, its first picture drawn."""
    app = console(desk)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: app.screen.query_one(QueueTable).selected is not None, "the first picture")
        yield app, pilot


async def until(pilot: Pilot[Any], reached: Callable[[], bool], what: str = "the condition") -> None:
    """Wait for a condition, looking at the feed meanwhile; fails at the deadline."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    deadline = asyncio.get_running_loop().time() + DEADLINE_S
    while not reached():
        if asyncio.get_running_loop().time() > deadline:
            raise AssertionError(f"{what} was not reached in {DEADLINE_S} s")
        app.bridge.tick()
        await pilot.pause()


def screen_text(app: ConsoleApp) -> str:
    """What is on the screen, as plain text."""
    height = app.size.height
    strips = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip) for strip in strips[:height])

"""Carries intents to the controller, edits in the order in which they were made, and brings the answers back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.errors import DdconsoleError, RefusedError
from ddconsole.core.queue import Add, Batch, Refusal
from ddconsole.core.spec import SpecRefusal
from ddconsole.tui.messages import (
    Accepted,
    CancelRunning,
    Doubled,
    EditQueue,
    Foreseen,
    Intent,
    LeaveConsole,
    PauseQueue,
    PlanCommand,
    Refused,
    RunCommand,
    StartQueue,
)

if TYPE_CHECKING:
    from ddconsole.core.queue import Edit
    from ddconsole.runner.intents import Controller, Plan
    from ddconsole.tui.messages import Answer

LOOKS = 20
"""How often new work is looked for again when others edit at the same moment."""


class Door:
    """One screen's way to the work. Never blocks: every call is awaited in a worker of the app."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._edits = asyncio.Lock()
        self._own: dict[int, int] = {}

    async def fulfil(self, intent: Intent) -> Answer:
        """Do what was asked; an expected refusal is a value, a bug is raised."""
        try:
            return await self._do(intent)
        except DdconsoleError as error:
            return Refused(intent, error.what, error.advice)

    async def _do(self, intent: Intent) -> Answer:
        match intent:
            case EditQueue(edit=edit, seen=seen):
                async with self._edits:
                    return Accepted(intent, await self._edit(edit, seen))
            case PlanCommand(text=text):
                return Foreseen(intent, await self._controller.plan(text))
            case RunCommand():
                async with self._edits:
                    return await self._command(intent)
            case StartQueue():
                await self._controller.start()
            case PauseQueue():
                await self._controller.pause()
            case CancelRunning():
                await self._controller.cancel()
            case LeaveConsole(keep_engine=keep_engine):
                await self._controller.close(keep_engine=keep_engine)
        return Accepted(intent)

    async def _edit(self, edit: Edit, seen: int | None) -> str:
        """One edit after the other. What our own edits changed since `seen` does not make the next one stale."""
        while seen is not None and seen in self._own:
            seen = self._own[seen]
        queue = await self._controller.edit(edit, seen=seen)
        if seen is not None and queue.revision == seen + 1:
            self._own = {seen: queue.revision} | dict(list(self._own.items())[-50:])
        return str(getattr(queue, "notice", "") or "")

    async def _command(self, intent: RunCommand) -> Answer:
        """New work is taken at the revision in which it was looked for; when that has passed, look again."""
        for looks_left in range(LOOKS, -1, -1):
            plan = await self._controller.plan(intent.text)
            if isinstance(plan, SpecRefusal):
                return Refused(intent, plan.reason, plan.advice, plan.cursor, plan.idea)
            if isinstance(plan, Refusal):
                return Refused(intent, plan.reason)
            if intent.wish in ("ask", "control") and adds_doubles(plan):
                return Doubled(intent, plan)
            edit = await self._wanted(plan, intent)
            if edit is None:
                return Refused(intent, "all of it is there already: nothing was added")
            try:
                return Accepted(intent, await self._edit(edit, intent.seen))
            except RefusedError:
                if not looks_left or not await self._passed(plan, intent.text):
                    raise
        raise AssertionError("the last look returns or raises")

    async def _passed(self, plan: Plan, text: str) -> bool:
        """New work was refused, and somebody has edited the queue since the plan."""
        now = await self._controller.plan(text)
        return bool(plan.preview.command.drafts) and isinstance(now, type(plan)) and now.revision != plan.revision

    async def _wanted(self, plan: Plan, intent: RunCommand) -> Edit | None:
        """The edit that takes a plan as it was wished; None when nothing of it is new."""
        command = plan.preview.command
        if intent.wish == "new":
            fewer = plan.preview.without_doubles()
            if fewer is None:
                return None
            command = fewer
        edit = command.signed(intent=intent.token).edit
        if isinstance(edit, Add):
            edit = replace(edit, at=plan.revision if intent.wish != "again" else None)
        control = plan.preview.control
        if intent.wish == "control" and control is not None:
            found = await self._controller.plan(control.spec)
            assert not isinstance(found, SpecRefusal | Refusal), found
            front = found.preview.command.signed(intent=f"{intent.token}#control" if intent.token else "").edit
            edit = Batch((replace(edit, at=None) if isinstance(edit, Add) else edit, front))
        return edit


def adds_doubles(plan: Plan) -> bool:
    """It would add work that is there already."""
    return bool(plan.preview.command.drafts) and any(double is not None for double in plan.preview.doubles)

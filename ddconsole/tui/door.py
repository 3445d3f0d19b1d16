"""Carries intents to the controller, edits in the order in which they were made, and brings the answers back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ddconsole.core.errors import DdconsoleError, RefusedError
from ddconsole.core.experiment import WAITING
from ddconsole.core.queue import Add, Batch, Change, Refusal
from ddconsole.core.spec import SpecRefusal
from ddconsole.runner.intents import Plan
from ddconsole.tui.messages import (
    Accepted,
    CancelRunning,
    Doubled,
    EditQueue,
    Foreseen,
    Intent,
    LeaveConsole,
    OrdersFound,
    PauseQueue,
    PlanCommand,
    PlanOrders,
    Refused,
    RunCommand,
    SheetOvertaken,
    SheetWritten,
    StartQueue,
    TakeForm,
    TakeSheet,
    WriteSheet,
)

if TYPE_CHECKING:
    from ddconsole.core.queue import Edit
    from ddconsole.runner.intents import Controller
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
            return Refused(intent, error.what, error.advice, code=getattr(error, "code", ""))

    async def _do(self, intent: Intent) -> Answer:
        if isinstance(intent, EditQueue | RunCommand | TakeForm | TakeSheet):
            async with self._edits:
                return await self._change(intent)
        match intent:
            case PlanCommand(text=text):
                return Foreseen(intent, await self._controller.plan(text))
            case WriteSheet(ids=ids):
                return SheetWritten(intent, await self._controller.write_sheet(ids))
            case PlanOrders():
                return OrdersFound(intent, await self._controller.plan_orders())
            case StartQueue():
                await self._controller.start()
            case PauseQueue():
                await self._controller.pause()
            case CancelRunning():
                await self._controller.cancel()
            case LeaveConsole(keep_engine=keep_engine):
                await self._controller.close(keep_engine=keep_engine)
        return Accepted(intent)

    async def _change(self, intent: EditQueue | RunCommand | TakeForm | TakeSheet) -> Answer:
        match intent:
            case RunCommand():
                return await self._command(intent)
            case TakeForm():
                return await self._form(intent)
            case TakeSheet():
                return await self._sheet(intent)
            case EditQueue(edit=edit, seen=seen):
                return await self._edit(intent, edit, seen)

    async def _edit(self, intent: Intent, edit: Edit, seen: int | None) -> Accepted:
        """One edit after the other. What our own edits changed since `seen` does not make the next one stale."""
        while seen is not None and seen in self._own:
            seen = self._own[seen]
        queue = await self._controller.edit(edit, seen=seen)
        if seen is not None and queue.revision == seen + 1:
            self._own = {seen: queue.revision} | dict(list(self._own.items())[-50:])
        touched = (item for item in queue.items if item.revision == queue.revision and isinstance(item.state, WAITING))
        return Accepted(intent, queue.notice, tuple(item.id for item in touched), queue.revision)

    async def _command(self, intent: RunCommand) -> Answer:
        """New work is taken at the revision in which it was looked for; when that has passed, look again."""
        for looks_left in range(LOOKS, -1, -1):
            plan = await self._controller.plan(intent.text)
            if isinstance(plan, SpecRefusal):
                return Refused(intent, plan.reason, plan.advice, plan.cursor, plan.idea)
            if isinstance(plan, Refusal):
                return Refused(intent, plan.reason, code=plan.code)
            if intent.wish in ("ask", "control") and makes_doubles(plan):
                return Doubled(intent, plan)
            edit = await self._wanted(plan, intent)
            if edit is None:
                return Refused(intent, "all of it is there already: nothing was added")
            try:
                return await self._edit(intent, edit, intent.seen)
            except RefusedError:
                if not looks_left or not await self._passed(plan, intent.text):
                    raise
        raise AssertionError("the last look returns or raises")

    async def _form(self, intent: TakeForm) -> Answer:
        """As a command; what its line cannot say, such as another note alone, has no doubles."""
        for looks_left in range(LOOKS, -1, -1):
            plan = await self._controller.plan(intent.line)
            found = plan if isinstance(plan, Plan) else None
            if found is not None and intent.wish == "ask" and makes_doubles(found):
                return Doubled(intent, found)
            edit = intent.edit
            if isinstance(edit, Add) and found is not None and intent.wish == "ask":
                edit = replace(edit, at=found.revision)
            try:
                return await self._edit(intent, edit, intent.seen)
            except RefusedError:
                if not looks_left or found is None or not await self._passed(found, intent.line):
                    raise
        raise AssertionError("the last look returns or raises")

    async def _sheet(self, intent: TakeSheet) -> Answer:
        """All of a text, or nothing; of what was overtaken the screen asks first."""
        found = await self._controller.plan_sheet(intent.raw, intent.without)
        if found.overtaken:
            return SheetOvertaken(intent, found)
        if found.plan is None:
            return Accepted(intent, "the text says what stands already: nothing was changed")
        if intent.wish == "ask" and makes_doubles(found.plan):
            return Doubled(intent, found.plan)
        answer = await self._edit(intent, found.plan.preview.command.edit, found.seen)
        answer.notice = answer.notice or f"taken: {found.plan.preview.after.history.undo[-1].text}"
        return answer

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


def makes_doubles(plan: Plan) -> bool:
    """It would add work that is there already, or turn something into it."""
    edit = plan.preview.command.edit
    edits = edit.edits if isinstance(edit, Batch) else (edit,)
    new_work = any(isinstance(one, Add) or (isinstance(one, Change) and _other_work(one)) for one in edits)
    return new_work and any(double is not None for double in plan.preview.doubles)


def _other_work(change: Change) -> bool:
    """More than another note."""
    return any(value is not None for value in (change.config, change.suite, change.passes, change.repeats))

"""Carries intents to the controller, edits in the order in which they were made, and brings the answers back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ddconsole.core.errors import DdconsoleError, SpecError
from ddconsole.tui.messages import (
    Accepted,
    CancelRunning,
    EditQueue,
    Intent,
    LeaveConsole,
    PauseQueue,
    Refused,
    RunCommand,
    StartQueue,
)

if TYPE_CHECKING:
    from ddconsole.core.queue import Edit
    from ddconsole.runner.intents import Controller


class Door:
    """One screen's way to the work. Never blocks: every call is awaited in a worker of the app."""

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self._edits = asyncio.Lock()
        self._own: dict[int, int] = {}

    async def fulfil(self, intent: Intent) -> Accepted | Refused:
        """Do what was asked; an expected refusal is a value, a bug is raised."""
        try:
            return Accepted(intent, await self._do(intent))
        except SpecError as error:
            return Refused(intent, error.what, error.advice, getattr(error, "cursor", None) or error.column)
        except DdconsoleError as error:
            return Refused(intent, error.what, error.advice)

    async def _do(self, intent: Intent) -> str:
        match intent:
            case EditQueue(edit=edit, seen=seen):
                return await self._edit(edit, seen)
            case RunCommand(text=text, seen=seen):
                return await self._edit(await self._controller.parse(text), seen)
            case StartQueue():
                await self._controller.start()
            case PauseQueue():
                await self._controller.pause()
            case CancelRunning():
                await self._controller.cancel()
            case LeaveConsole(keep_engine=keep_engine):
                await self._controller.close(keep_engine=keep_engine)
        return ""

    async def _edit(self, edit: Edit, seen: int | None) -> str:
        """One edit after the other. What our own edits changed since `seen` does not make the next one stale."""
        async with self._edits:
            while seen is not None and seen in self._own:
                seen = self._own[seen]
            queue = await self._controller.edit(edit, seen=seen)
            if seen is not None and queue.revision == seen + 1:
                self._own = {seen: queue.revision} | dict(list(self._own.items())[-50:])
            return str(getattr(queue, "notice", "") or "")

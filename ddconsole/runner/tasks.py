"""Small rules for tasks: what must be finished is finished, and what is ended is awaited."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

T = TypeVar("T")


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even when the caller is cancelled meanwhile; the cancellation comes after it.

    For what must not be torn in half: a launch that is not on record yet, a result that is not on disk yet.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except Exception:
            break
    if cancelled is not None and task.exception() is None:
        raise cancelled
    return task.result()


async def end_task(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait until it has ended; its error, if it has one, was told by others already."""
    if task is None:
        return
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()

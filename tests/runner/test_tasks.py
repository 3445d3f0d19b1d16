"""What must be finished is finished, and what is ended is awaited."""

from __future__ import annotations

import asyncio

import pytest

from ddconsole.runner.tasks import end_task, to_the_end


async def test_work_is_finished_before_the_cancellation_comes_through() -> None:
    """A launch that is cancelled half-way is still on record."""
    go_on, finished = asyncio.Event(), []

    async def work() -> None:
        await go_on.wait()
        finished.append(True)

    task = asyncio.create_task(to_the_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert finished == [True]


async def test_a_result_passes_through() -> None:
    """Without a cancellation it is the plain await."""

    async def work() -> int:
        return 7

    assert await to_the_end(work()) == 7


async def test_an_error_passes_through() -> None:
    """The work's own error is what the caller sees."""

    async def work() -> None:
        raise ValueError("torn")

    with pytest.raises(ValueError, match="torn"):
        await to_the_end(work())


async def test_ending_a_task_waits_for_its_cleanup() -> None:
    """The task has run its last line when end_task returns, and its error is nobody's surprise."""
    steps: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            steps.append("cleaned")
            raise ValueError("late")

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    await end_task(task)
    assert steps == ["cleaned"]
    await end_task(None)

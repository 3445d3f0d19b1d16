"""A bad line: a TCP proxy with a delay each way, and now and then the wait that a lost packet costs."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

RETRANSMISSION_S = 0.25
"""What TCP waits, at the least, before it sends a lost segment again; what comes behind waits too."""


@dataclass
class SlowLine:
    """Forwards to `target`. `open` is False while nothing passes and nobody is told; a new target takes effect at the
    next connection."""

    target: int
    delay_s: float = 0.1
    loss: float = 0.02
    port: int = 0
    open: asyncio.Event = field(default_factory=asyncio.Event)
    lost: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(7))
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        far_writer = None
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, far_writer))
                group.create_task(self._pump(far_reader, writer))
        except* (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for each in (writer, far_writer):
                if each is not None:
                    each.close()
                    with contextlib.suppress(ConnectionError):
                        await each.wait_closed()
            self._tasks.discard(task)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Each segment arrives its delay later; segments are under way side by side, as on a wire."""
        loop, wire = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

        async def take() -> None:
            due = 0.0
            while data := await reader.read(1_400):
                late = 0.0
                if self._random.random() < self.loss:
                    self.lost += 1
                    late = RETRANSMISSION_S
                due = max(due, loop.time() + self.delay_s + late)
                wire.put_nowait((due, data))
            wire.put_nowait((due, b""))

        taking = asyncio.create_task(take())
        try:
            while True:
                due, data = await wire.get()
                await asyncio.sleep(max(0.0, due - loop.time()))
                await self.open.wait()
                if not data:
                    writer.close()
                    return
                writer.write(data)
                await writer.drain()
        finally:
            taking.cancel()

    async def end(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


@asynccontextmanager
async def slow_line(target: int, *, delay_s: float = 0.1, loss: float = 0.02) -> AsyncIterator[SlowLine]:
    """A line to a port of this machine, 2 × `delay_s` there and back."""
    line = SlowLine(target, delay_s, loss)
    line.open.set()
    server = await asyncio.start_server(line.serve, "127.0.0.1", 0)
    line.port = server.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        server.close()
        await line.end()

"""The store on one thread of its own: SQLite may wait for the disk, the screen may not."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.ports import Store

T = TypeVar("T")


class Database:
    """Runs work on the store in the order in which it was asked for."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ddconsole-store")

    def submit(self, work: Callable[[Store], T]) -> asyncio.Future[T]:
        """Queue `work`; its place in the order is taken now, whenever it is awaited."""
        return asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._opened()))

    async def do(self, work: Callable[[Store], T]) -> T:
        """Run `work` and wait until its effect is on disk. A cancelled caller does not tear it in half."""
        return await asyncio.shield(self.submit(work))

    async def close(self) -> None:
        """Finish what was asked for, and close the file."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._close)
        self._thread.shutdown(wait=True)

    def _opened(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

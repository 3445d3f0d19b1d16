"""Looking at the store again and again, from the command line."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ddconsole.core.ports import Store

LOOK_EVERY_S = 0.25
"""A look is one PRAGMA while nothing has changed."""


def changes(
    store: Store,
    deadline: float | None = None,
    is_run: Callable[[], bool] = bool,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bool]:
    """Yields at once, then whenever another process has written, until `deadline` (monotonic seconds; None: for ever).

    What it yields is `is_run()`, whether a process runs the queue; that changing is a change as well, for a process
    that is killed writes nothing. Both are read before the caller looks, so that a write in between is seen at the
    next look.
    """
    seen: tuple[int, bool] | None = None
    while True:
        now = store.data_version(), is_run()
        if now != seen:
            seen = now
            yield now[1]
        left = LOOK_EVERY_S if deadline is None else deadline - time.monotonic()
        if left <= 0:
            return
        sleep(min(LOOK_EVERY_S, left))

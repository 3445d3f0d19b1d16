"""A terminal that went away must not leave a console that spins: SIGHUP, SIGTERM, and a look at the tty each second."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SIGNALS = (signal.SIGHUP, signal.SIGTERM)


class TerminalGuard:
    """Calls `on_lost` once, with a sentence, when the terminal is gone or the process is asked to end."""

    def __init__(self, on_lost: Callable[[str], None], descriptor: int = 0) -> None:
        self._on_lost = on_lost
        self._descriptor = descriptor
        self._told = False

    def watch_signals(self) -> None:
        """Take SIGHUP and SIGTERM; only in the main thread of a process that has the terminal."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._lost, f"got {number.name}")

        self._heed_continue_only_after_a_stop()

    def _heed_continue_only_after_a_stop(self) -> None:
        """A terminal that closes sends SIGHUP and SIGCONT; Textual would start its input threads a second time.

        Those wait for each other at the end, or spin on a terminal that is gone. Coming back is for who was suspended.
        """
        stop, go_on = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
        suspended = False

        def stopped(number: int, frame: FrameType | None) -> None:
            nonlocal suspended
            suspended = True
            if callable(stop):
                stop(number, frame)

        def continued(number: int, frame: FrameType | None) -> None:
            nonlocal suspended
            if suspended and callable(go_on):
                suspended = False
                go_on(number, frame)

        signal.signal(signal.SIGTSTP, stopped)
        signal.signal(signal.SIGCONT, continued)

    def unwatch_signals(self) -> None:
        """Give the signals back."""
        loop = asyncio.get_running_loop()
        for number in SIGNALS:
            loop.remove_signal_handler(number)

    def look(self) -> None:
        """Ask the system whether the terminal is still one."""
        if not os.isatty(self._descriptor):
            self._lost("the terminal went away")

    def _lost(self, why: str) -> None:
        if not self._told:
            self._told = True
            self._on_lost(why)

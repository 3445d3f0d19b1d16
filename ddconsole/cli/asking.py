"""Questions of a connection on the command line: a hidden prompt on the terminal, which Ctrl-C ends at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import termios
from typing import TYPE_CHECKING

import click

from ddconsole.cli.report import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ddconsole.core.ports import Question

TERMINAL = "/dev/tty"
LINE_BYTES = 4096
"""The longest line that a terminal gives."""


def accept_new_option() -> Callable[[Callable[..., object]], Callable[..., object]]:
    """The `--accept-new` flag, as the argument `accept_new`."""
    return click.option(
        "--accept-new", is_flag=True, help="Record the host key of a host that is not known yet, unseen; for scripts."
    )


class TerminalAsker:
    """Asks on the terminal until a first connection stands, or a question was cancelled; never afterwards.

    `aside` is entered around each question, for whoever draws on the same terminal.
    """

    def __init__(self, terminal: str = TERMINAL, *, present: bool | None = None) -> None:
        self._terminal = terminal
        self._present = sys.stdin.isatty() and sys.stderr.isatty() if present is None else present
        self._over = False
        self._turn = asyncio.Lock()
        self.aside: Callable[[], AbstractContextManager[object]] = contextlib.nullcontext

    @property
    def can_ask(self) -> bool:
        """There is a terminal, and it may still be used."""
        return self._present and not self._over

    def settled(self) -> None:
        """A run that goes through the night has nobody to ask."""
        self._over = True

    async def ask(self, question: Question) -> str | None:
        """The answer; None for an empty line, the end of input, or where nobody can be asked."""
        async with self._turn:
            if not self.can_ask:
                return None
            with self.aside():
                answer = await self._prompt(question)
            self._over = answer is None
            return answer

    async def _prompt(self, question: Question) -> str | None:
        try:
            handle = os.open(self._terminal, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            lines = (question.title, *question.lines)
            os.write(handle, "".join(f"{clean(line)}\n" for line in lines).encode())
            with _silent(handle) if question.secret else contextlib.nullcontext():
                os.write(handle, f"{clean(question.prompt)}: ".encode())
                line = await _line(handle)
            if question.secret:
                os.write(handle, b"\n")
        finally:
            os.close(handle)
        answer = line.decode("utf-8", "replace").rstrip("\r\n")
        return None if answer.strip() in ("", "\x1b") else answer


@contextlib.contextmanager
def _silent(handle: int) -> Iterator[None]:
    """The terminal does not echo within; what was typed before the question is not taken for its answer."""
    before = termios.tcgetattr(handle)
    quiet = list(before)
    quiet[3] = quiet[3] & ~termios.ECHO
    termios.tcsetattr(handle, termios.TCSAFLUSH, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(handle, termios.TCSADRAIN, before)


async def _line(handle: int) -> bytes:
    """One line; empty at the end of input. Waits without a thread, so that a signal can end it."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(handle, ready.set)
    try:
        await ready.wait()
        return os.read(handle, LINE_BYTES)
    finally:
        loop.remove_reader(handle)

"""Lends the terminal to the user's editor, and takes it back. The run behind the screen goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from textual.app import SuspendNotSupported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App

FILE = "queue.yaml"
FALLBACKS = ("sensible-editor", "editor", "nano", "vim", "vi")
JUMPING = frozenset({"vi", "vim", "nvim", "view", "nano", "pico", "emacs", "emacsclient", "joe", "micro", "mg", "ne"})
"""Editors that open a file at a line with `+LINE`."""


class EditorFailedError(Exception):
    """There is no editor, or it ended badly. `raw` is the text that it left, None when it never ran."""

    def __init__(self, what: str, raw: bytes | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.raw = raw


def editor_command(environment: dict[str, str] | None = None) -> list[str]:
    """The words of $VISUAL or $EDITOR, else an editor that is there.

    Raises:
        EditorFailedError: there is none, or its words cannot be read.
    """
    wishes = os.environ if environment is None else environment
    wish = wishes.get("VISUAL") or wishes.get("EDITOR") or ""
    try:
        words = shlex.split(wish)
    except ValueError as error:
        raise EditorFailedError(f"$EDITOR cannot be read ({error}): {wish}") from None
    found = words or [name for name in FALLBACKS if shutil.which(name)][:1]
    if not found:
        raise EditorFailedError("there is no editor: set $VISUAL or $EDITOR")
    return found


async def edited(app: App[int], raw: bytes, line: int = 1) -> bytes:
    """What the user makes of a text. `line` is where to begin, where the editor can.

    Raises:
        EditorFailedError: no editor, no terminal to lend, or it did not end well.
    """
    command = editor_command()
    folder = Path(tempfile.mkdtemp(prefix="ddconsole-"))  # mode 700
    try:
        path = folder / FILE
        path.write_bytes(raw)
        at = [f"+{line}"] if line > 1 and Path(command[0]).name in JUMPING else []
        code = await _run(app, [*command, *at, str(path)])
        left = path.read_bytes() if path.exists() else b""
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if code != 0:
        raise EditorFailedError(f"{command[0]} ended with {code}: nothing was taken", left)
    return left


async def _run(app: App[int], command: list[str]) -> int:
    """Run it in the foreground, without making the work behind the screen wait."""
    code, failure = 0, None
    try:
        with _lent_terminal(app), _interrupts_ignored():
            try:
                code = await _ended(command)
            except (OSError, asyncio.CancelledError) as error:
                failure = error  # raised below: Textual takes the terminal back only where nothing was raised
    except SuspendNotSupported:
        advice = "`ddconsole queue PROFILE export` writes the same document to a file"
        raise EditorFailedError(f"there is no terminal to lend to an editor here: {advice}") from None
    if isinstance(failure, OSError):
        raise EditorFailedError(f"{command[0]} cannot be run: {failure.strerror or failure}")
    if failure is not None:
        raise failure
    return code


async def _ended(command: list[str]) -> int:
    process = await asyncio.create_subprocess_exec(*command)
    try:
        return await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()


@contextlib.contextmanager
def _lent_terminal(app: App[int]) -> Iterator[None]:
    """Nothing is read from the terminal or painted on it; the feed and the run go on."""
    if app.is_headless:
        yield
        return
    with app.batch_update(), app.suspend():
        yield
    app.refresh(layout=True)


@contextlib.contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """ctrl+c belongs to the editor. It is caught here, not ignored: what is ignored would be so in the editor too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

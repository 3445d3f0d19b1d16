"""One command or login on the demo host: a real process, with pipes or with a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from typing import TYPE_CHECKING

import asyncssh

from ddconsole.demo.home import command_environment
from ddconsole.demo.host_state import is_setting

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Session = asyncssh.SSHServerProcess[bytes]

CHUNK = 65_536

ACCEPTED_ENV = frozenset({"LANG", "LC_ALL"})
"""Variables that a client may set, as AcceptEnv of sshd_config; and the demo's own, but for its home."""

SHELL = "/bin/sh"


class Sessions:
    """Runs what clients ask for in one home folder."""

    def __init__(self, home: Path) -> None:
        self._home = home

    async def serve(self, session: Session) -> None:
        """Run the session's command, or a login shell, and report how it ended. asyncssh calls it per session."""
        argv = [SHELL, "-c", session.command] if session.command else [SHELL]
        terminal = session.term_type is not None
        try:
            status = await (_run_on_terminal if terminal else _run_on_pipes)(
                session, argv, self._home, self._environment(session.env)
            )
        except OSError as exc:
            session.stderr.write(f"demo host: {exc}\n".encode())
            status = 126
        if status < 0:
            session.exit_with_signal(signal.Signals(-status).name.removeprefix("SIG"))
        else:
            session.exit(status)

    def _environment(self, asked: Mapping[str, str] | None) -> dict[str, str]:
        sent = {str(name): str(value) for name, value in (asked or {}).items()}
        accepted = {name: value for name, value in sent.items() if name in ACCEPTED_ENV or is_setting(name)}
        return command_environment(self._home) | accepted


async def _run_on_pipes(session: Session, argv: list[str], home: Path, env: dict[str, str]) -> int:
    """As sshd does it: when the channel goes, only the command's pipes close; the command itself lives on."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=home,
        env=env,
        start_new_session=True,
    )
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise TypeError("all three of the process's ends have to be pipes")
    feeding = asyncio.create_task(_feed(session, process.stdin, process.pid), name="stdin of a session")
    try:
        await asyncio.gather(
            _copy(process.stdout, session.stdout, session), _copy(process.stderr, session.stderr, session)
        )
        return await process.wait()
    finally:
        feeding.cancel()


async def _copy(source: asyncio.StreamReader, to: asyncssh.SSHWriter[bytes], session: Session) -> None:
    """Pass bytes on as they come; when the client is gone, read on, so that the command sees its pipe drained."""
    while data := await source.read(CHUNK):
        if not session.is_closing():
            with contextlib.suppress(asyncssh.Error, OSError):
                to.write(data)
                await to.drain()


async def _feed(session: Session, to: asyncio.StreamWriter, pid: int) -> None:
    """Pass the client's input on, and its end, which is also how a lost connection looks from here."""
    with contextlib.suppress(asyncssh.Error, OSError):
        while True:
            try:
                data = await session.stdin.read(CHUNK)
            except asyncssh.SignalReceived as received:
                _signal_group(pid, received.signal)
                continue
            except (asyncssh.BreakReceived, asyncssh.TerminalSizeChanged):
                continue
            if not data:
                break
            to.write(data)
            await to.drain()
    to.close()


def _signal_group(pid: int, name: str) -> None:
    number = getattr(signal, f"SIG{name}", None)
    if number is not None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)


async def _run_on_terminal(session: Session, argv: list[str], home: Path, env: dict[str, str]) -> int:
    """With a terminal, the kernel hangs the command up when the terminal is closed."""
    master, slave = pty.openpty()
    try:
        _resize(master, session.term_size)
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=home,
            env=env | {"TERM": str(session.term_type), "PS1": "demo$ "},
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        os.close(slave)
    try:
        typing = asyncio.create_task(_type(session, master, process.pid), name="keys of a session")
        await _show(session, master)
        typing.cancel()
    finally:
        os.close(master)
    return await process.wait()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _resize(master: int, size: tuple[int, int, int, int]) -> None:
    columns, rows, width, height = size
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", rows or 24, columns or 80, width, height))


async def _show(session: Session, master: int) -> None:
    """What the terminal prints, until the command has closed it or the client is gone."""
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_reader(master, ready.set)
    gone = asyncio.create_task(session.wait_closed(), name="the end of a session")
    gone.add_done_callback(lambda _: ready.set())
    try:
        while not gone.done():
            await ready.wait()
            ready.clear()
            if gone.done():
                return
            try:
                data = os.read(master, CHUNK)
            except OSError:
                return  # EIO: the last process on the terminal has ended
            if not data:
                return
            session.stdout.write(data)
            await session.stdout.drain()
    except (asyncssh.Error, BrokenPipeError):
        return
    finally:
        loop.remove_reader(master)
        gone.cancel()


async def _type(session: Session, master: int, pid: int) -> None:
    """Keys, new sizes and signals from the client."""
    with contextlib.suppress(asyncssh.Error, OSError):
        while True:
            try:
                data = await session.stdin.read(1024)
            except asyncssh.TerminalSizeChanged as changed:
                _resize(master, changed.term_size)
                continue
            except asyncssh.SignalReceived as received:
                _signal_group(pid, received.signal)
                continue
            except asyncssh.BreakReceived:
                data = b"\x03"
            if not data:
                return
            os.write(master, data)

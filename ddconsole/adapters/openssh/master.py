"""The master connection: an `ssh` process that listens on a socket in a folder of its own, and is ended with us.

It runs under the same guard as every command: when this process dies, however it dies, the guard's input ends, and with
it the master. The folder has mode 700 and a short name: a socket's path may have 104 bytes, and ssh appends 17 to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.adapters.local import LocalProcess, spawn
from ddconsole.adapters.openssh.askpass import AnswerSocket
from ddconsole.adapters.openssh.errors import explain_output, no_ssh
from ddconsole.adapters.openssh.folder import make_folder
from ddconsole.adapters.shell import Mode, StartFilter, guarded_argv, new_marker
from ddconsole.adapters.shell.process import put_down
from ddconsole.adapters.ssh.errors import printable
from ddconsole.adapters.ssh.login import Asking
from ddconsole.adapters.ssh.settings import read_settings, ssh_program
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from ddconsole.adapters.ssh.link import Times
    from ddconsole.adapters.ssh.settings import Settings
    from ddconsole.adapters.ssh.target import SshTarget
    from ddconsole.core.ports import Asker

LOOK_S = 0.02
"""Seconds between two looks whether the master's socket is there."""

KEPT_CHARACTERS = 8_000
CONTROL_S = 10.0
"""Seconds for a word with the master, which is on this machine."""


def quiet_client(path: str, *more: str) -> list[str | bytes]:
    """A client that can only go through the master: without one it fails instead of connecting by itself."""
    program = ssh_program() or "ssh"
    fixed = ("BatchMode=yes", "ProxyCommand=false", "LogLevel=ERROR")
    return [program, "-F", "none", "-S", path, "-T", "-x", "-a", *(w for one in fixed for w in ("-o", one)), *more]


@dataclass(slots=True)
class Master:
    """A running master. `heard` counts the characters that it has said so far."""

    host: str
    folder: Path
    process: LocalProcess
    marker: str
    notes: tuple[str, ...] = ()
    said: str = ""
    heard: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _tasks: tuple[asyncio.Task[None], ...] = ()

    def watch(self) -> None:
        """Begin to listen to what it says, and for its end."""
        self._tasks = (
            asyncio.create_task(self._listen(), name=f"stderr of ssh {self.host}"),
            asyncio.create_task(self._await_end(), name=f"end of ssh {self.host}"),
        )

    async def _listen(self) -> None:
        own = StartFilter(self.marker)
        while data := await self.process.read_stderr():
            text = own.feed(data).decode("utf-8", "replace")
            self.heard += len(text)
            self.said = (self.said + text)[-KEPT_CHARACTERS:]
            self._news.set()

    async def _await_end(self) -> None:
        while await self.process.read_stdout():
            pass
        await self.process.wait()
        self.ended.set()
        self._news.set()

    @property
    def words(self) -> str:
        """What it said, without the guard's last line."""
        return self.said.partition(f"\n{self.marker} ")[0]

    @property
    def path(self) -> str:
        """Its socket."""
        return str(self.folder / "m")

    def listens(self) -> bool:
        """Its socket is there, which is when it has logged in."""
        return Path(self.path).exists()

    @property
    def alive(self) -> bool:
        """It has not ended."""
        return not self.ended.is_set()

    async def survives(self) -> bool:
        """Whether it lives on after a client of it has failed; both may have ended at the same moment."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self.ended.wait()
        return self.alive

    async def says_since(self, mark: int, word: str, seconds: float = 1.0) -> str:
        """What it said since `mark`, waited for until `word` is in it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while word not in self._since(mark) and self.alive:
                    self._news.clear()
                    await self._news.wait()
        return self._since(mark)

    def _since(self, mark: int) -> str:
        return self.said[len(self.said) - (self.heard - mark) :] if self.heard > mark else ""

    async def control(self, word: str, *options: str) -> tuple[int, str]:
        """Have the master do something (`ssh -O`); its status and words.

        Raises:
            UnreachableError: it does not answer.
        """
        process = await asyncio.create_subprocess_exec(
            *quiet_client(self.path, "-O", word, *options), "--", "ddconsole",
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        try:
            async with asyncio.timeout(CONTROL_S):
                out, _ = await process.communicate()
        except TimeoutError:
            raise UnreachableError(f"the ssh master for {self.host} does not answer") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return process.returncode or 0, printable(out.decode("utf-8", "replace"))

    async def close(self) -> None:
        """End it and remove its folder."""
        try:
            self.process.end_input()
            await asyncio.shield(self._end())
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    async def _end(self) -> None:
        await put_down(self.process)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.ended.set()


@dataclass(slots=True)
class MasterMaker:
    """Opens master connections to one target."""

    target: SshTarget
    asker: Asker
    accept_new: bool
    times: Times

    async def open(self) -> Master:
        """A master that has logged in.

        Raises:
            AnswerNeededError: a person has to answer first.
            UnreachableError: with what failed, ssh's own words, and the remedy.
        """
        program = ssh_program()
        if program is None:
            raise no_ssh(self.target.host)
        settings = await read_settings(self.target)
        ask = Asking(self.asker, self.target.host)
        folder = make_folder()
        answers = await AnswerSocket.open(folder, ask) if self.asker.can_ask else None
        try:
            master = await self._start(program, folder, settings, answers.environment if answers else {})
            await self._stand(master, settings, ask)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            ask.withdraw()
            if answers is not None:
                await answers.close()
        self.asker.settled()
        return master

    async def _start(self, program: str, folder: Path, settings: Settings, more: dict[str, str]) -> Master:
        marker = new_marker()
        words = guarded_argv([program, *self._options(folder, settings), "--", self.target.host], marker, Mode.STREAM)
        master = Master(self.target.host, folder, await spawn(words, env=os.environ | more, umask=0o077), marker)
        master.watch()
        return master

    def _options(self, folder: Path, settings: Settings) -> list[str]:
        target, times = self.target, self.times
        options = {
            "ControlMaster": "yes", "ControlPath": _quoted(str(folder / "m")), "ControlPersist": "no",
            "ClearAllForwardings": "yes", "PermitLocalCommand": "no", "RemoteCommand": "none", "RequestTTY": "no",
            "ForkAfterAuthentication": "no", "LogLevel": "INFO",
            "ServerAliveInterval": str(round(times.keepalive) or 1), "ServerAliveCountMax": str(times.missed),
            "BatchMode": "no" if self.asker.can_ask else "yes",
        }  # fmt: skip
        if not settings.first("connecttimeout"):
            options["ConnectTimeout"] = str(round(times.connect) or 1)
        if self.accept_new:
            options["StrictHostKeyChecking"] = "accept-new"
        if target.known_hosts is not None:
            options["UserKnownHostsFile"] = " ".join(map(_quoted, target.known_hosts)) or "none"
        if target.client_keys is not None:
            options |= {"IdentitiesOnly": "yes", "IdentityAgent": "none"}
        words = [
            "-N",
            "-T",
            "-x",
            "-a",
            *(word for name, value in options.items() for word in ("-o", f"{name}={value}")),
        ]
        words += [word for key in target.client_keys or () for word in ("-i", key)]
        words += ["-F", target.config[0] if target.config else "none"] if target.config is not None else []
        words += ["-p", str(target.port)] if target.port else []
        words += ["-l", target.username] if target.username else []
        for name, value in target.send_env.items():
            words += ["-o", f"SetEnv={name}={_quoted(value)}"]
        return words

    async def _stand(self, master: Master, settings: Settings, ask: Asking) -> None:
        """Wait until its socket is there; ssh itself gives up in its ConnectTimeout, and we somewhat later.

        Raises:
            AnswerNeededError, UnreachableError: it ended, or took too long.
        """
        seconds = 2 * float(settings.first("connecttimeout") or self.times.connect)
        try:
            async with ask.within(seconds):
                while not master.listens():
                    if not master.alive:
                        raise ask.refusal or explain_output(master.words, self.target.host, settings)
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(master.ended.wait(), LOOK_S)
        except TimeoutError:
            await master.close()
            raise explain_output("Connection timed out", self.target.host, settings) from None
        except BaseException:
            await master.close()
            raise


def _quoted(path: str) -> str:
    """A word of ssh_config; quotes and backslashes in it are escaped, `%` is no token."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'

"""How ssh's questions reach the console: ssh runs a small program for each, which asks us through a socket.

The socket lies in the master's folder (mode 700) and is gone when the connection stands. Answers cross it once; they
are written nowhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shlex
import sys
from typing import TYPE_CHECKING

from ddconsole.adapters.ssh.errors import printable
from ddconsole.core.errors import AnswerNeededError
from ddconsole.core.ports import Asked, Question

if TYPE_CHECKING:
    from pathlib import Path

    from ddconsole.adapters.ssh.login import Asking

_HELPER = """#!/bin/sh
exec {python} -I -S -c '
import json, os, socket, sys
asked = {{"prompt": " ".join(sys.argv[1:]), "kind": os.environ.get("SSH_ASKPASS_PROMPT", "")}}
line = socket.socket(socket.AF_UNIX)
line.connect(os.environ["DDCONSOLE_ASK"])
line.sendall(json.dumps(asked).encode() + b"\\n")
answer = json.loads(line.makefile().readline() or "null")
if answer is None:
    sys.exit(1)
sys.stdout.buffer.write(answer.encode() + b"\\n")
' "$@"
"""

_PASSPHRASE = re.compile(r"(passphrase|PIN) for (key )?'?(?P<what>[^']+?)'?: ?$", re.IGNORECASE)
_PASSWORD = re.compile(r"^[^()]*'s password: ?$")
_HOST_KEY = re.compile(r"continue connecting \(yes/no")


class AnswerSocket:
    """Listens for ssh's questions while a connection is made."""

    def __init__(self, folder: Path, ask: Asking) -> None:
        self._folder = folder
        self._ask = ask
        self._server: asyncio.AbstractServer | None = None

    @classmethod
    async def open(cls, folder: Path, ask: Asking) -> AnswerSocket:
        """Write the helper and listen."""
        self = cls(folder, ask)
        self._helper.write_text(_HELPER.format(python=shlex.quote(sys.executable)))
        self._helper.chmod(0o700)
        self._server = await asyncio.start_unix_server(self._answer, str(folder / "a"))
        return self

    @property
    def _helper(self) -> Path:
        return self._folder / "ask"

    @property
    def environment(self) -> dict[str, str]:
        """For ssh: it asks through the helper, also where there is a terminal; DISPLAY is for versions before 8.4."""
        return {
            "SSH_ASKPASS": str(self._helper),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": "ddconsole",
            "DDCONSOLE_ASK": str(self._folder / "a"),
        }

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = json.loads(await reader.readline())
            answer = await self._to(str(asked["prompt"]), str(asked["kind"]))
            writer.write(json.dumps(answer).encode() + b"\n")
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        finally:
            writer.close()

    async def _to(self, prompt: str, kind: str) -> str | None:
        """None is a refusal. A mere notice (touch the key) wants no answer."""
        if kind == "none":
            return ""
        if self._ask.refusal is not None:
            return None
        try:
            return await self._ask(question(prompt, self._ask.host))
        except AnswerNeededError:
            return None

    async def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
        for name in ("a", "ask"):
            (self._folder / name).unlink(missing_ok=True)


def question(prompt: str, host: str) -> Question:
    """What ssh asks, told apart by its words."""
    lines = [printable(line) for line in prompt.splitlines() if line.strip()]
    last = (lines[-1] if lines else "Answer").rstrip(" :")
    if _HOST_KEY.search(prompt):
        return Question(
            Asked.HOST_KEY, host, f"{host} is not known yet", "Is this its key (yes/no)?", tuple(lines[:-1]), False
        )
    if found := _PASSPHRASE.search(prompt):
        return Question(Asked.PASSPHRASE, host, "Passphrase", f"Passphrase of {printable(found['what'])}")
    if _PASSWORD.match(prompt):
        return Question(Asked.PASSWORD, host, "Password", last)
    return Question(Asked.CODE, host, f"{host} asks", last, tuple(lines[:-1]))

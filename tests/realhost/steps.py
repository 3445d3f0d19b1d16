"""Small steps of the tests on the systemd machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ddconsole.core.ports import Host, Launched
from ddconsole.engines.launch.base import FoundLauncher

SERVER = """
import os, socket, sys, time
print("started", os.environ.get("PLAIN"), os.environ.get("SECRET"), flush=True)
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", int(sys.argv[1])))
listener.listen()
print("listening", flush=True)
time.sleep(600)
"""

PYTHON = "/usr/bin/python3"

HOSTILE = (
    "a b", "it's", '"quoted"', "$HOME", "${PATH}", "$$", "%n %% %h", "`id`", "back\\slash\\n", ";", "", "x=1", "ü…",
)  # fmt: skip
"""Words that a shell, a unit file or systemd-run would read as something else."""


async def until(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    """Wait for a condition, at most ten seconds."""
    deadline = asyncio.get_running_loop().time() + 10
    while not await condition():
        assert asyncio.get_running_loop().time() < deadline, f"not within ten seconds: {what}"
        await asyncio.sleep(0.05)


async def dead(host: Host, launched: Launched) -> bool:
    """The engine has ended."""
    return not (await FoundLauncher().liveness(host, launched)).alive


async def logged(host: Host, launched: Launched, text: str) -> str:
    """The log, once it holds `text`."""

    async def there() -> bool:
        return text in (await host.run(["cat", launched.log_path])).stdout

    await until(there, text)
    return (await host.run(["cat", launched.log_path])).stdout


async def shown(host: Host, unit: str, name: str) -> str:
    """One property of a unit."""
    return (await host.run(["systemctl", "show", unit, f"--property={name}", "--value"])).stdout.strip()

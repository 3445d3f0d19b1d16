"""A port of the host under a local address, for as long as it is needed."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ddconsole.core.ports import Host


@contextlib.asynccontextmanager
async def forwarded(host: Host, port: int) -> AsyncIterator[str]:
    """The base URL of a port on the host, through a local one.

    Raises:
        UnreachableError: the connection was lost, or forwarding is not allowed.
    """
    forward = await host.forward(port)
    try:
        yield f"http://127.0.0.1:{forward.local_port}"
    finally:
        with contextlib.suppress(UnreachableError):
            await forward.close()

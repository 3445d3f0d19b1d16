"""An engine of ours ended outside a run: its requests are dropped first, so that TERM need not wait for them."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError
from ddconsole.runner.tunnel import forwarded

if TYPE_CHECKING:
    from ddconsole.core.ports import Host, Launched, StopProof
    from ddconsole.runner.bench import Bench


async def end_engine(bench: Bench, host: Host, launched: Launched) -> StopProof:
    """Abort its requests, then end it with proof.

    Raises:
        HostError: the host does not tell how it ended.
        UnreachableError: the connection is lost.
    """
    owned, _ = await bench.launcher.owns_port(host, launched)
    if owned:  # whoever else serves there keeps its requests
        with contextlib.suppress(HostError):
            async with forwarded(host, launched.port) as base_url:
                await bench.engine.abort(base_url)
    return await bench.launcher.stop(host, launched)

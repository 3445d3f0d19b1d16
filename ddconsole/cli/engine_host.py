"""The profile's host as the `engine` commands use it: looked at, or taken for a change, alone."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from ddconsole.core.errors import HostError, UnreachableError, UnwritableLeaseError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Host, KeptEngine, Launched
    from ddconsole.runner.bench import Bench

T = TypeVar("T")
Work: TypeAlias = "Callable[[Bench, Host, KeptEngine, Launched], Awaitable[T]]"
"""What is done for one engine."""


def refuse_read_only() -> None:
    """Before anything on the host is changed.

    Raises:
        RefusedError: this ddconsole is read-only.
    """
    from ddconsole.adapters.paths import is_read_only, refuse_change

    if is_read_only():
        raise refuse_change()


@contextlib.asynccontextmanager
async def on_host(
    loaded: LoadedProfile, *, alone: bool = False, take_over: bool = False
) -> AsyncIterator[tuple[Bench, Host]]:
    """A connection to the host; `alone` takes the host first, on this machine and against those elsewhere.

    Raises:
        RefusedError: `alone`, and somebody else works on the host, or this ddconsole is read-only.
        UnreachableError: the host cannot be reached.
    """
    from ddconsole.cli.asking import TerminalAsker
    from ddconsole.cli.wiring import make_bench

    if alone:
        refuse_read_only()
    bench = make_bench(loaded, TerminalAsker(), consent=TerminalAsker(), take_over=take_over)
    if alone:
        bench.lock.acquire()
    try:
        host = await bench.connector.connect()
        try:
            if alone:
                with contextlib.suppress(UnwritableLeaseError):  # what is ours is ended on a full disk too
                    await bench.lease.take(host)
            yield bench, host
        finally:
            if alone:
                with contextlib.suppress(HostError, UnreachableError):  # it expires by itself
                    await bench.lease.release(host)
            await host.close()
    finally:
        if alone:
            bench.lock.release()


async def each_engine(loaded: LoadedProfile, work: Work[T], *, alone: bool = False) -> list[T]:
    """Do `work` for each engine on record. A profile without any is not connected to.

    Raises:
        RefusedError, UnreachableError: as `on_host`.
    """
    from ddconsole.cli.common import open_store

    if alone:
        refuse_read_only()
    store = open_store()
    engines = store.engines(loaded.name)
    store.close()
    if not engines:
        return []
    async with on_host(loaded, alone=alone) as (bench, host):
        found = [(kept, kept.launched or await bench.launcher.find(host, kept.name)) for kept in engines]
        return [await work(bench, host, kept, launched) for kept, launched in found if launched is not None]

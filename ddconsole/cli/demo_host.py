"""`ddconsole demo-host`: the demo GPU host in the foreground, for any ssh client."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ddconsole.cli.common import Seconds
from ddconsole.cli.report import tell
from ddconsole.core.errors import HostError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.demo.host_state import DemoHostInfo, StateDir


@click.command("demo-host")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Where it listens on 127.0.0.1; 0 takes any.")
@click.option("--linger", type=Seconds(), help="End so many seconds after the last connection.")
@click.option("--state-dir", type=click.Path(path_type=Path), hidden=True)
def demo_host(port: int, linger: float | None, state_dir: Path | None) -> int:
    """Run the demo GPU host in the foreground: eight simulated cards behind a real ssh server.

    Ends with Ctrl-C, and takes the engines that run on it along.
    """
    from ddconsole.adapters.paths import Paths
    from ddconsole.demo.host_state import StateDir

    state = StateDir((state_dir or Paths.from_environment().state / "demo").absolute())
    try:
        with _alone(state):
            _serve(state, port, linger)
    except (RefusedError, HostError) as error:
        return tell(error, as_json=False)
    return 0


@contextmanager
def _alone(state: StateDir) -> Iterator[None]:
    with ExitStack() as held:
        with state.starting():
            mine = held.enter_context(state.serving())
        if not mine:
            from ddconsole.demo.host_state import login_command

            info = state.read_info()
            raise RefusedError(
                "a demo host runs already" + (f" on port {info.port}, process {info.pid}" if info else ""),
                evidence=(f"log in: {shlex.join(login_command(info))}",) if info else (str(state.path),),
                advice="Use it, or end that process; a detached one ends by itself when nobody is connected.",
            )
        yield


def _serve(state: StateDir, port: int, linger: float | None) -> None:
    from ddconsole.demo.host import serve

    try:
        asyncio.run(serve(state, port=port, linger_s=linger, on_ready=_show_login))
    except OSError as exc:
        raise HostError(
            f"the demo host cannot listen on 127.0.0.1:{port}", evidence=(str(exc),), advice="Give another --port."
        ) from exc


def _show_login(info: DemoHostInfo) -> None:
    from ddconsole.demo.host_state import login_command

    click.echo(f"demo host: listening on 127.0.0.1:{info.port}")
    click.echo(f"log in:    {shlex.join(login_command(info))}")
    click.echo("end:       Ctrl-C")

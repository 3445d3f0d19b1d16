"""A whole run over a bad line: 200 ms there and back, 2 % of the segments lost. It takes longer and says the same."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fakes.command import Cli, end_demo, wait_for
from fakes.slow_line import slow_line

pytestmark = pytest.mark.xdist_group("lines")

QUEUE = (
    "add b=8 B=12 K=6 W=2048 passes=throughput",
    "add b=8 B=12 K=6 W=2048 passes=coding",  # the same engine: it is kept
    "add algorithm=chain b=8 W=2048 passes=throughput",
)

SAME = ("outcome", "coding", "tau", "completion_tokens", "verify_steps", "text_sha256", "config", "effective")
"""What a line may not change in a result; speeds are measured through it, and change."""


@contextmanager
def home(folder: Path) -> Iterator[Cli]:
    """A home with a demo host that serves; nothing of it is left afterwards."""
    folder.mkdir()
    cli = Cli(folder)
    cli.env["DDCONSOLE_DEMO_SPEED"] = "200"
    cli.profile(*QUEUE, scale=0.02)
    with cli.start("demo-host") as server:
        try:
            wait_for(cli.demo_host, what="the demo host listens")
            yield cli
        finally:
            server.terminate()
            server.communicate(timeout=30)
            end_demo(cli)


def lead_over(cli: Cli, port: int) -> None:
    """Whoever looks for the demo host of this home finds another way to it."""
    state = cli.home / "dd" / "state" / "demo"
    known = state / "known_hosts"
    key = known.read_text().split(" ", 1)[1]
    known.write_text(known.read_text() + f"[127.0.0.1]:{port} {key}")
    told = cli.demo_host()
    assert told is not None
    (state / "demo-host.json").write_text(json.dumps(told | {"port": port}))


def measured(cli: Cli) -> dict[str, dict[str, Any]]:
    """A run to its end, and what it has measured."""
    done = cli.run("run", "e2e", timeout=240)
    assert done.returncode == 0, done.stderr
    items = cli.json("results", "e2e", "list")["items"]
    return {item["id"]: {name: item[name] for name in SAME} for item in items}


async def test_a_bad_line_changes_no_verdict_and_no_text(tmp_path: Path) -> None:
    """Three experiments beside the same three on a good line; the engines are launched, kept and ended through it."""
    with home(tmp_path / "near") as near, home(tmp_path / "far") as far:
        told = far.demo_host()
        assert told is not None
        async with slow_line(told["port"]) as line:
            lead_over(far, line.port)
            good, bad = await asyncio.gather(asyncio.to_thread(measured, near), asyncio.to_thread(measured, far))
        assert line.lost > 0, "the line did lose something"
        assert [item["outcome"] for item in bad.values()] == ["passed"] * 3
        assert bad == good
        assert far.engine_pids() == []

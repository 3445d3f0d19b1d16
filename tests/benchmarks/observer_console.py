"""The console as it measures: its screen on this terminal, an ssh connection, and the throughput pass through it.

    python -m benchmarks.observer_console PROFILE PORT REQUESTS FILE

Started by `bench_observer` on a terminal of its own. It draws the real screen on the real runner's feed, fed as a run
feeds it (eight cards once a second, each request as it ends), and writes to FILE what the server said of its own decode
rate in each measured request.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.observed_server import TOKENS, TimingsDialect
from tui.story import Story, tree

from ddconsole.cli.common import load_profile
from ddconsole.cli.wiring import make_bench, parse_edit
from ddconsole.core import events
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.profile import ThroughputPass
from ddconsole.passes.base import PassContext
from ddconsole.passes.prompts import load_prompts
from ddconsole.passes.throughput import ThroughputMeasure
from ddconsole.runner.console import Console
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.facts import ProfileFacts

if TYPE_CHECKING:
    from typing import Any

    from ddconsole.core.metrics import RequestRecord

EXPERIMENT = "E1"


class Observer:
    """One measured pass behind the screen."""

    def __init__(self, profile: str, port: int, requests: int, file: Path) -> None:
        loaded = load_profile(profile)
        self._bench = make_bench(loaded, accept_new=True)
        self._console = Console(self._bench, parse_edit(loaded))
        self._port, self._requests, self._file = port, requests, file
        self.app = ConsoleApp(
            self._console, ProfileFacts.of(loaded.profile), opening=self._measure_and_leave, guarded=False
        )

    async def _measure_and_leave(self) -> None:
        await self._console.open()
        cards = asyncio.create_task(self._cards())
        try:
            self._file.write_text(json.dumps(await self._measured()))
        finally:
            cards.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await cards
            await self._console.close(keep_engine=True)
            self.app.exit(0)

    async def _measured(self) -> dict[str, Any]:
        config, dialect = tree(8, 12), TimingsDialect()
        plan = ThroughputPass(concurrency=[1], requests=self._requests, max_tokens=TOKENS, warmup=1)
        pass_ = ThroughputMeasure(plan, load_prompts("mixed", TOKENS), Objectives())
        self._tell(events.ExperimentStarted(config.label(), config.to_json(), config.to_json(), ["throughput"], 60.0))
        self._tell(events.PassStarted("throughput", pass_.total))
        async with self._console._session.forwarded(self._port) as url:
            context = PassContext(url, dialect, Workload(), self._bench.clock, self._heard)
            result = await pass_.run(context)
        level = result.summary["levels"][0]
        return {
            "rates": dialect.rates[-self._requests :],
            "failed": result.summary["failed"],
            "errors": result.summary["errors"],
            "ours": level["tok_s_decode"],
            "cpu_share": level["client_cpu_share"],
            "lag_p99_ms": level["client_lag_p99_ms"],
        }

    def _heard(self, record: RequestRecord, done: int, total: int) -> None:
        self._tell(events.RequestDone("throughput", done, total, record.to_json(with_text=False)))

    async def _cards(self) -> None:
        """Eight cards once a second, as telemetry tells them."""
        story = Story()
        while True:
            story.cards(92, 0.88, 412)
            self._tell(story.told.pop().body, None)
            await asyncio.sleep(1.0)

    def _tell(self, body: events.Body, id_: str | None = EXPERIMENT) -> None:
        attempt = None if id_ is None else 1
        self._console.feed.publish(events.Event(0, self._bench.clock.now(), body, id=id_, attempt=attempt))


def main() -> int:
    """Draw until the pass is measured."""
    profile, port, requests, file = sys.argv[1:]
    return Observer(profile, int(port), int(requests), Path(file)).app.run() or 0


if __name__ == "__main__":
    sys.exit(main())

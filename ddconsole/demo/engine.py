"""The toy DDTree engine: `python -m ddconsole.demo.engine FLAGS`, started, probed, measured and ended like SGLang.

Real are the processes, the log, the HTTP server and the decoding; simulated are the loading and the time of a step.
Environment: DDCONSOLE_DEMO_SPEED divides the loading's time, DDCONSOLE_DEMO_HOME is the demo host's home folder,
DDCONSOLE_DEMO_FAIL a failure as `--fail` takes it, DDCONSOLE_DEMO_STEP_LOG a file for the truth of each step.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client
import json
import os
import signal
import sys
from typing import TYPE_CHECKING

from ddconsole.demo.cost import CostModel
from ddconsole.demo.engine_api import Api, State
from ddconsole.demo.engine_boot import Boot
from ddconsole.demo.engine_flags import parse
from ddconsole.demo.engine_gpu import CardState
from ddconsole.demo.engine_http import HttpServer
from ddconsole.demo.engine_log import EngineLog
from ddconsole.demo.engine_model import ToyModel
from ddconsole.demo.engine_ranks import Ranks, crash
from ddconsole.demo.engine_scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.demo.engine_flags import EngineArgs

READY_LINE = "The server is fired up and ready to roll!"
REFUSAL = """\
Traceback (most recent call last):
  File "/opt/sglang/python/sglang/launch_server.py", line 31, in <module>
    server_args = prepare_server_args(sys.argv[1:])
ValueError: {}
"""
"""How SGLang ends when flags do not go together."""
TICK_S = 0.25
"""Between two looks at the schedulers and the cards."""
DRAIN_LOG_S = 5.0
"""Between two lines about requests that a shutdown waits for."""


class Engine:
    """One engine after its start: serves until it is told to end."""

    def __init__(self, args: EngineArgs, log: EngineLog, ranks: Ranks, cards: CardState, boot: Boot) -> None:
        self._args = args
        self._log = log
        self._ranks = ranks
        self._cards = cards
        model = ToyModel(args)
        self._scheduler = Scheduler(
            CostModel(scale=args.flat["step_scale"]),
            log,
            cards.computed,
            max_running=args.flat["max_running_requests"],
            log_interval=args.flat["decode_log_interval"],
            cache_prompts=not args.flat["disable_radix_cache"],
            step_log=os.environ.get("DDCONSOLE_DEMO_STEP_LOG"),
        )
        self._api = Api(args, model, self._scheduler, boot)
        self._server = HttpServer(self._api, log)
        self._stop = asyncio.Event()
        self._drain_task: asyncio.Task[None] | None = None

    async def serve(self) -> int:
        """Bind, warm up, serve, drain. Gives the exit code."""
        self._log.uvicorn(f"Started server process [{os.getpid()}]")
        self._log.uvicorn("Waiting for application startup.")
        self._log.uvicorn("Application startup complete.")
        try:
            await self._bind()
        except OSError as error:
            await self._bind_failed(error)
            return 1
        host, port = self._args.host, self._args.port
        self._log.uvicorn(f"Uvicorn running on http://{host}:{port} (Press CTRL+C to quit)")
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._terminate)
        loop.add_signal_handler(signal.SIGINT, self._stop.set)
        tasks = [asyncio.create_task(work) for work in (self._scheduler.run(), self._watch(), self._warm_up())]
        stop = asyncio.create_task(self._stop.wait())
        try:
            await self._until_stopped(stop, tasks)
        finally:
            for task in (stop, *tasks):
                task.cancel()
            await asyncio.gather(stop, *tasks, return_exceptions=True)
            await self._server.close()
        return 0

    async def _until_stopped(self, stop: asyncio.Task[bool], tasks: list[asyncio.Task[None]]) -> None:
        """Wait for the signal to stop; an exception in a task (a bug of ours) ends the engine loudly."""
        pending: set[asyncio.Task[None]] = set(tasks)
        while not stop.done():
            done, _ = await asyncio.wait({stop, *pending}, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {stop}:
                task.result()
                pending.discard(task)

    async def _bind(self) -> None:
        if self._args.fail == "port-taken":
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        await self._server.bind(self._args.host, self._args.port)

    async def _bind_failed(self, error: OSError) -> None:
        """As SGLang: everything is loaded, the port is not ours, and the warm-up takes whoever holds it for us."""
        host, port = self._args.host, self._args.port
        why = os.strerror(error.errno or errno.EADDRINUSE).lower()
        self._log.uvicorn(
            f"[Errno {error.errno}] error while attempting to bind on address ('{host}', {port}): {why}", level="ERROR"
        )
        self._log.uvicorn("Waiting for application shutdown.")
        self._log.uvicorn("Application shutdown complete.")
        if await asyncio.to_thread(_someone_answers, host, port):
            self._log.main(READY_LINE)

    async def _warm_up(self) -> None:
        """A real request through the open port; only then is the engine ready."""
        host, port, key = self._args.host, self._args.port, self._args.flat["api_key"]
        await _ask(host, port, "GET", "/model_info", key)
        body = {"model": self._args.model_name, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 8}
        status = await _ask(host, port, "POST", "/v1/chat/completions", key, body | {"temperature": 0})
        if status != 200:
            crash(self._log, self._ranks, f"Initialization failed. warmup error: status {status}")
        if self._api.state is State.WARMING:
            self._api.state = State.READY
        self._log.main(READY_LINE)

    async def _watch(self) -> None:
        """Look after schedulers and cards."""
        while True:
            await asyncio.sleep(TICK_S)
            self._cards.tick()
            if died := self._ranks.died():
                rank, code = died
                self._log.main(
                    f"Subprocess scheduler_{rank} (pid={self._ranks.pids[rank]}) crashed with exit code {code}. "
                    "Triggering SIGQUIT for cleanup..."
                )
                self._cards.remove()
                crash(
                    self._log, self._ranks, "SIGQUIT received. signum=3, frame=None. It usually means one child failed."
                )

    def _terminate(self) -> None:
        """SIGTERM: say so, finish what runs, then stop."""
        if self._drain_task:
            return
        self._api.state = State.DRAINING
        self._log.main("SIGTERM received. signum=15 frame=None. Draining requests and shutting down...")
        self._drain_task = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        log_at = loop.time()
        while not self._scheduler.idle:
            if loop.time() >= log_at:
                rids = [job.rid for job in [*self._scheduler.running, *self._scheduler.waiting]]
                self._log.main(
                    f"Gracefully exiting... Remaining number of requests {len(rids)}. "
                    f"Remaining requests remaining_rids={rids}."
                )
                log_at += DRAIN_LOG_S
            await asyncio.sleep(TICK_S / 5)
        self._stop.set()


async def _ask(
    host: str, port: int, method: str, path: str, key: str | None, body: dict[str, object] | None = None
) -> int:
    """One request to ourselves; gives its status."""
    reader, writer = await asyncio.open_connection(host, port)
    payload = json.dumps(body).encode() if body else b""
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{auth}Content-Length: {len(payload)}\r\n\r\n"
    )
    writer.write(head.encode() + payload)
    answer = await reader.read()
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
    return int(answer.split(maxsplit=2)[1])


def _someone_answers(host: str, port: int) -> bool:
    """Whether another server on our port answers as an engine would."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request("GET", "/model_info")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _speed() -> float:
    """DDCONSOLE_DEMO_SPEED, 1 where it is not set.

    Raises:
        ValueError: it is not a positive number.
    """
    text = os.environ.get("DDCONSOLE_DEMO_SPEED", "1")
    speed = float(text)
    if not speed > 0:
        raise ValueError(f"DDCONSOLE_DEMO_SPEED must be a positive number, got {text!r}.")
    return speed


def main(argv: Sequence[str] | None = None) -> int:
    """Run an engine; gives its exit code. A crash of the played kind ends the process by SIGKILL instead."""
    try:
        args = parse(sys.argv[1:] if argv is None else argv, os.environ.get("DDCONSOLE_DEMO_FAIL"))
        speed = _speed()
    except ValueError as error:
        sys.stderr.write(REFUSAL.format(error))
        return 1
    log = EngineLog(args.ranks, milliseconds=bool(os.environ.get("SGLANG_LOG_MS")))
    ranks = Ranks.start(args.ranks)
    cards = CardState(ranks.pids, os.environ.get("DDCONSOLE_DEMO_HOME"))
    try:
        boot = Boot(args, log, ranks, cards, speed)
        boot.run()
        return asyncio.run(_serve(args, log, ranks, cards, boot))
    finally:
        ranks.kill()
        cards.remove()


async def _serve(args: EngineArgs, log: EngineLog, ranks: Ranks, cards: CardState, boot: Boot) -> int:
    return await Engine(args, log, ranks, cards, boot).serve()


if __name__ == "__main__":
    sys.exit(main())

"""The throughput pass beyond its levels: rates, exact lengths, the engine's own counters, the clock."""

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fakes.clock import VirtualClock
from fakes.sse_server import HEAD, PlainDialect, Request, Server, answering, events, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.ports import Prompt, ServerCounts
from ddconsole.core.profile import InvalidProfileError, ThroughputPass, parse_profile
from ddconsole.passes.base import PassContext
from ddconsole.passes.roundtrip import round_trip
from ddconsole.passes.throughput import ThroughputMeasure

Send = Callable[[bytes], Awaitable[None]]
PROMPTS = tuple(Prompt(f"p{index}", f"question {index}", 8) for index in range(3))


def eight_words(request: Request) -> str:
    return f"the answer to {request.body['id']} is a green tree"


def context(server: Server, **changes: Any) -> PassContext:
    fields: dict[str, Any] = {
        "base_url": server.url,
        "dialect": PlainDialect(),
        "workload": Workload(),
        "clock": SystemClock(),
        "on_request": lambda *_: None,
    }
    return PassContext(**fields | changes)


def measure(**plan: Any) -> ThroughputMeasure:
    return ThroughputMeasure(ThroughputPass.model_validate(plan), PROMPTS, Objectives())


async def test_rates_come_after_the_levels() -> None:
    """Each is a level of its own, with its load; no figure at concurrency 1 comes from it."""
    plan = measure(concurrency=[1], rate=[0.01, 0.02], requests=3, arrivals="constant", warmup=0, max_in_flight=5)
    async with serving(answering(eight_words)) as server:
        result = await plan.run(context(server, clock=VirtualClock()))
    levels = result.summary["levels"]
    assert [level["label"] for level in levels] == ["c=1", "0.01/s constant", "0.02/s constant"]
    assert [level["concurrency"] for level in levels] == [1, 0, 0]
    assert levels[1]["load"] == {"kind": "open", "rate": 0.01, "arrivals": "constant", "cap": 5, "seed": 1}
    assert (levels[1]["tau"], levels[1]["completion_tokens"], levels[1]["held"]) == (4.0, 24, 0)
    assert levels[2]["sent_per_s"] == pytest.approx(0.02, rel=0.05)
    assert (plan.total, len(result.records)) == (9, 9)
    assert (result.summary["dialect"], result.summary["workload"]["prompts"]) == ("plain", "code")
    assert {sums[0] for sums in result.summary["by_prompt"].values()} == {8}
    json.dumps(result.summary, allow_nan=False)


async def test_levels_that_are_not_worth_their_time_are_left_out() -> None:
    """The first is measured whatever becomes of the others; those that were not begun are named."""
    looks = iter([True, False])
    plan = measure(concurrency=[1, 2], rate=[0.01], requests=3, warmup=0)
    async with serving(answering(eight_words)) as server:
        result = await plan.run(context(server, another=lambda: next(looks)))
    assert [level["label"] for level in result.summary["levels"]] == ["c=1", "c=2"]
    assert (result.summary["left_out"], result.summary["cut"]) == (["0.01/s poisson"], [])


async def test_a_level_that_was_cut_short_is_named() -> None:
    """Here by its time box, which is over before its fourth request."""
    clock = VirtualClock()
    ends = clock.monotonic() + 250
    plan = measure(concurrency=[], rate=[0.01], arrivals="constant", requests=5, warmup=0)
    async with serving(answering(eight_words)) as server:
        result = await plan.run(context(server, clock=clock, time_left=lambda: ends - clock.monotonic()))
    assert (result.summary["cut"], result.summary["left_out"]) == (["0.01/s constant"], [])
    assert result.summary["levels"][0]["requests"] == 3


async def test_rates_alone() -> None:
    """A pass need not hold a concurrency; the warm-up then is a burst, of what could be in flight."""
    plan = measure(concurrency=[], rate=[0.01], requests=2, warmup=1)
    async with serving(answering(eight_words)) as server:
        result = await plan.run(context(server, clock=VirtualClock()))
    asked = [request.body["id"] for request in server.requests]
    assert (sorted(asked[:2]), asked[2:]) == (["warm-up:p0", "warm-up:p1"], ["p0", "p1"])
    assert result.summary["failed"] == 0


@pytest.mark.parametrize(
    ("plan", "widths"),
    [
        ({"concurrency": [1, 3]}, [1, 3]),
        ({"concurrency": [], "rate": [2.0], "requests": 40}, [16]),
        ({"concurrency": [], "rate": [2.0], "requests": 40, "max_in_flight": 5}, [5]),
        ({"concurrency": [1], "rate": [1.0, 2.0], "requests": 4}, [1, 4]),
    ],
)
async def test_the_warm_up_has_the_shape_of_what_is_measured(plan: dict[str, Any], widths: list[int]) -> None:
    """As many streams as each level has, a burst for rates, and answers as long as the measured ones."""
    bounds = list(itertools.accumulate(widths))
    gates = [asyncio.Event() for _ in widths]
    seen: list[int] = []

    async def reply(request: Request, send: Send) -> None:
        number = len(server.requests)
        group = next((index for index, bound in enumerate(bounds) if number <= bound), None)
        if group is not None:
            if number == bounds[group]:
                seen.append(server.open_now)
                gates[group].set()
            async with asyncio.timeout(5):
                await gates[group].wait()
        await answering(eight_words)(request, send)

    async with serving(reply) as server:
        await measure(**{"warmup": 1, "requests": 4} | plan).run(context(server, clock=VirtualClock()))
    warm = [request.body for request in server.requests if request.body["id"].startswith("warm-up:")]
    assert seen == widths
    assert [body["max"] for body in warm] == [8] * sum(widths)


async def test_exact_lengths() -> None:
    """Every request ignores the end mark, the warm-up too, and one of another length is a failed request."""

    async def reply(request: Request, send: Send) -> None:
        made = 7 if request.body["id"] == "p1" else request.body["max"]
        await send(HEAD + events({"t": "x", "n": 1}, {"t": "y", "n": made, "finish": "length"}, "[DONE]"))

    async with serving(reply) as server:
        result = await measure(requests=3, exact_tokens=True).run(context(server))
    assert all(request.body["ignore_eos"] for request in server.requests)
    assert (result.summary["failed"], result.summary["exact_tokens"], result.summary["warmup_error"]) == (1, True, None)
    assert result.summary["errors"][0]["text"].startswith("wrong-length: exactly 8 tokens were asked for")


def counted(*readings: ServerCounts) -> Callable[[], Awaitable[ServerCounts | None]]:
    """An engine that tells these, one after the other."""
    left = iter(readings)

    async def counts() -> ServerCounts | None:
        return next(left)

    return counts


@pytest.mark.parametrize(("tokens", "warned"), [(124.0, False), (150.0, True)])
async def test_the_engines_counters_stand_beside_ours(tokens: float, warned: bool) -> None:
    """They are read around the measured requests, and a disagreement is a finding of the pass."""
    counts = counted(ServerCounts(tokens=100.0), ServerCounts(tokens=tokens))
    async with serving(answering(eight_words)) as server:
        result = await measure(requests=3).run(context(server, counts=counts))
    (check,) = result.summary["cross_check"]
    assert (check["ours"], check["theirs"], check["agrees"]) == (24, tokens - 100, not warned)
    assert any(finding["code"] == "cross-check" for finding in result.summary["findings"]) is warned


async def test_an_engine_without_counters_is_measured_all_the_same() -> None:
    """There is nothing to stand beside."""
    async with serving(answering(eight_words)) as server:
        result = await measure(requests=3).run(context(server))
    assert result.summary["cross_check"] is None


class JumpingClock(SystemClock):
    """Its wall clock moves an hour forward at each look; durations do not."""

    def __init__(self) -> None:
        self._hours = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 12, 2, tzinfo=UTC) + timedelta(hours=next(self._hours))


async def test_a_clock_that_was_set_marks_the_level_and_moves_no_figure() -> None:
    """Durations are monotonic; a suspend is told."""
    async with serving(answering(eight_words)) as server:
        result = await measure(requests=3).run(context(server, clock=JumpingClock()))
    level = result.summary["levels"][0]
    assert level["clock_jump_s"] == pytest.approx(3600, abs=5)
    assert 0 <= level["wall_s"] < 5
    assert [finding["code"] for finding in result.summary["findings"]] == ["clock-jump"]


async def test_round_trip() -> None:
    """Any answer has gone there and back; without one there is no figure."""

    async def reply(request: Request, send: Send) -> None:
        await send(b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")

    async with serving(reply) as server:
        trip = await round_trip(server.url, SystemClock())
    assert trip is not None
    assert 0 < trip < 1
    assert [request.path for request in server.requests] == ["/ping"] * 6
    assert await round_trip(server.url, SystemClock()) is None


def profile_with(**throughput: Any) -> Any:
    engine = {"command": ["x"], "model": "m"}
    passes = {"quick": {"throughput": throughput}}
    knobs = {"algorithm": {"default": "off"}}
    return {"schema": "1", "host": "h", "engine": engine, "passes": passes, "knobs": knobs}


@pytest.mark.parametrize(
    ("throughput", "where", "words"),
    [
        ({"rate": ["0"]}, "passes.quick.throughput.rate[0]", "expected more than 0"),
        ({"rate": ["fast"]}, "passes.quick.throughput.rate[0]", "expected a number"),
        ({"arrivals": "bursty"}, "passes.quick.throughput.arrivals", "poisson"),
        ({"concurrency": []}, "passes.quick.throughput.concurrency", "expected a level here or under rate"),
        ({"max_in_flight": "0"}, "passes.quick.throughput.max_in_flight", "1"),
        ({"rates": ["1"]}, "passes.quick.throughput.rates", "unknown key"),
    ],
)
def test_the_profile_is_read_strictly(throughput: dict[str, Any], where: str, words: str) -> None:
    """Each mistake is named with its key."""
    with pytest.raises(InvalidProfileError) as caught:
        parse_profile(profile_with(**throughput))
    (problem,) = caught.value.problems
    assert problem.dotted() == where
    assert words in problem.message

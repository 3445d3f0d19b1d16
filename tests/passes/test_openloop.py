"""The open loop in virtual time: due times are kept, the cap holds and never drops, and both are told."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from fakes.clock import VirtualClock
from fakes.sse_server import HEAD, PlainDialect, Request, Server, answering, events, serving

from ddconsole.core.arrivals import due_times
from ddconsole.core.experiment import Workload
from ddconsole.core.loads import OpenLoop, most_in_flight
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import HttpRequest, Prompt
from ddconsole.passes.base import PassContext
from ddconsole.passes.openloop import open_loop

Send = Callable[[bytes], Awaitable[None]]
LATE_S = 1.0
"""Virtual seconds by which the machine's own slowness may move a moment."""


def context(server: Server, clock: VirtualClock, **changes: object) -> PassContext:
    dialect = changes.pop("dialect", PlainDialect())
    return PassContext(server.url, dialect, Workload(), clock, lambda *_: None, **changes)  # type: ignore[arg-type]


def prompts(count: int) -> list[Prompt]:
    return [Prompt(f"p{number}", f"question {number}", 16) for number in range(count)]


def heard() -> tuple[list[RequestRecord], Callable[[RequestRecord], None]]:
    records: list[RequestRecord] = []
    return records, records.append


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
async def test_requests_go_out_when_they_are_due(arrivals: str) -> None:
    """Whether or not earlier ones were answered; none is held, and the records say their rate."""
    load = OpenLoop(0.01, arrivals, cap=50, seed=5)  # type: ignore[arg-type]
    clock = VirtualClock()
    records, on_record = heard()
    async with serving(answering(lambda request: str(request.body["id"]))) as server:
        found, _ = await open_loop(context(server, clock), prompts(6), load, on_record)
    assert found == records
    assert sorted(record.prompt_id for record in found) == [f"p{number}" for number in range(6)]
    starts = sorted(record.started_s for record in found)
    assert starts == pytest.approx(due_times(load.arrivals, 0.01, 6, 5), abs=LATE_S)
    assert {(record.rate, record.concurrency, record.held_s, record.error) for record in found} == {
        (0.01, 0, 0.0, None)
    }


class Held(PlainDialect):
    """No virtual time passes between the sending of a request and its arrival."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    def request(self, prompt: Prompt, workload: Workload, *, ignore_eos: bool = False) -> HttpRequest:
        self._clock.busy += 1
        return super().request(prompt, workload, ignore_eos=ignore_eos)


async def test_the_cap_holds_and_does_not_drop() -> None:
    """Two in flight, each 1,000 s long, four due 50 s apart: the last two wait for a place, and say how long."""
    clock = VirtualClock()

    async def reply(request: Request, send: Send) -> None:
        clock.busy -= 1
        await clock.sleep(1000)
        clock.busy += 1
        await send(HEAD + events({"t": "a", "n": 1}, {"t": "b", "n": 2, "v": 1, "finish": "stop"}, "[DONE]"))

    def go_on() -> None:
        clock.busy -= 1

    def on_record(_: RequestRecord) -> None:
        soon = asyncio.get_running_loop().call_soon
        soon(soon, soon, go_on)  # once whoever waited for the place has had its turns of the loop

    load = OpenLoop(0.02, "constant", cap=2, seed=1)
    async with serving(reply) as server:
        found, _ = await open_loop(context(server, clock, dialect=Held(clock)), prompts(4), load, on_record)
    by_prompt = {record.prompt_id: record for record in found}
    assert [by_prompt[f"p{number}"].held_s for number in range(4)] == pytest.approx([0, 0, 900, 900])
    assert [by_prompt[f"p{number}"].started_s for number in range(4)] == pytest.approx([0, 50, 1000, 1050])
    assert server.most_open == 2
    assert most_in_flight(found) == 2
    assert all(record.ok for record in found)


async def test_enough_sends_no_more() -> None:
    """The time box and the early end hold at a rate too; what is on its way is awaited."""
    clock = VirtualClock()
    asked: list[int] = []

    def enough(records: object, total: int) -> bool:
        asked.append(total)
        return len(asked) > 2

    async with serving(answering(lambda _: "a b")) as server:
        load = OpenLoop(0.01, "constant", cap=9, seed=1)
        found, _ = await open_loop(context(server, clock, enough=enough), prompts(9), load, lambda _: None)
    assert len(found) == len(server.requests) == 2
    assert asked == [9, 9, 9]


@pytest.mark.parametrize(("box_s", "sent"), [(450.0, 5), (50.0, 3), (-1.0, 3), (None, 9)])
async def test_the_time_box_holds_at_a_rate(box_s: float | None, sent: int) -> None:
    """One due every 100 s: none that would be due behind the end is waited for, and three are sent whatever it says."""
    clock = VirtualClock()
    began = clock.monotonic()

    def left() -> float | None:
        return None if box_s is None else box_s - (clock.monotonic() - began)

    async with serving(answering(lambda _: "a b")) as server:
        load = OpenLoop(0.01, "constant", cap=9, seed=1)
        found, _ = await open_loop(context(server, clock, time_left=left), prompts(9), load, lambda _: None)
    assert len(found) == sent
    assert clock.monotonic() - began < (sent - 1) * 100 + 50


async def test_the_time_box_holds_with_an_engine_that_is_slower_than_it() -> None:
    """Nothing has ended when it is used up: what is on its way is awaited, and no more is sent."""
    clock = VirtualClock()
    began = clock.monotonic()

    async def reply(request: Request, send: Send) -> None:
        clock.busy -= 1
        await clock.sleep(1000)
        await send(HEAD + events({"t": "a", "n": 1}, {"t": "b", "n": 2, "v": 1, "finish": "stop"}, "[DONE]"))

    async with serving(reply) as server:
        load = OpenLoop(0.1, "constant", cap=3, seed=1)
        told = context(server, clock, dialect=Held(clock), time_left=lambda: 100 - (clock.monotonic() - began))
        found, _ = await open_loop(told, prompts(50), load, lambda _: None)
    assert len(found) == len(server.requests) == 3
    assert all(record.ok for record in found)


async def test_a_fault_takes_its_place_back() -> None:
    """A failed request is a record, and the next one gets its place."""

    async def reply(request: Request, send: Send) -> None:
        await send(HEAD + events({"error": "boom"}))

    async with serving(reply) as server:
        load = OpenLoop(0.01, "constant", cap=1, seed=1)
        found, _ = await open_loop(context(server, VirtualClock()), prompts(3), load, lambda _: None)
    assert [record.error for record in found] == ["stream-error: boom"] * 3


async def test_cancelling_ends_all_that_is_in_flight() -> None:
    """A cancelled pass leaves no request behind."""
    forever, two = asyncio.Event(), asyncio.Event()

    async def reply(request: Request, send: Send) -> None:
        if server.open_now == 2:
            two.set()
        await forever.wait()

    async with serving(reply) as server:
        load = OpenLoop(0.01, "constant", cap=2, seed=1)
        task = asyncio.create_task(open_loop(context(server, VirtualClock()), prompts(4), load, lambda _: None))
        await asyncio.wait_for(two.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

"""Cold and warm prompts are told apart in every pass, and never mixed in one average."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fakes.clock import VirtualClock
from fakes.records import record
from fakes.sse_server import HEAD, PlainDialect, Request, Server, answering, events, serving

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Prompt
from ddconsole.core.profile import CodingPass, QualityPass, ThroughputPass
from ddconsole.passes.base import MeasuringPass, PassContext, PassResult
from ddconsole.passes.coding import CodingMeasure
from ddconsole.passes.prompts import Task
from ddconsole.passes.quality import QualityMeasure
from ddconsole.passes.throughput import ThroughputMeasure

Send = Callable[[bytes], Awaitable[None]]
PROMPTS = tuple(Prompt(f"p{index}", f"question {index}", 32) for index in range(3))
TASKS = (Task("a", "Write a.", "a", "assert a"), Task("b", "Write b.", "b", "assert b"))


async def asked(measure: MeasuringPass, flush: Callable[[], Awaitable[bool]] | None = None, **told: Any) -> PassResult:
    """The pass against a server that answers anything."""

    def context(server: Server) -> PassContext:
        fields: dict[str, Any] = {
            "base_url": server.url,
            "dialect": PlainDialect(),
            "workload": Workload(),
            "clock": SystemClock(),
            "on_request": lambda *_: None,
            "flush": flush,
        }
        return PassContext(**fields | told)

    async with serving(answering(lambda request: f"the answer to {request.body['id']} is four")) as server:
        return await measure.run(context(server))


async def empties() -> bool:
    return True


async def refuses() -> bool:
    return False


def throughput(**plan: Any) -> ThroughputMeasure:
    return ThroughputMeasure(ThroughputPass.model_validate({"warmup": 0} | plan), PROMPTS, Objectives())


async def test_the_first_use_after_a_flush_is_cold_and_every_other_one_is_warm() -> None:
    """Level by level, for the cache is emptied before each; of a rate too."""
    plan = throughput(concurrency=[1], rate=[0.01], arrivals="constant", requests=7)
    result = await asked(plan, empties, clock=VirtualClock())
    labels = [one.prefix for one in result.records]
    assert labels == (["cold"] * 3 + ["warm"] * 4) * 2
    for level in result.summary["levels"]:
        assert (level["prefix"], level["cold"], level["warm"]) == ("cold", 3, 4)
        assert (level["ttft_ms"]["n"], level["ttft_cold_ms"]["n"], level["ttft_warm_ms"]["n"]) == (3, 3, 4)
        assert (level["e2e_ms"]["n"], level["ttfo_ms"]["n"], level["e2e_warm_ms"]["n"]) == (3, 3, 4)
        assert level["tpot_ms"]["n"] == level["tau_n"] == 7
    assert result.summary["levels"][1]["ttft_from_due_ms"]["n"] == 3
    assert json.loads(json.dumps(result.records[5].to_json()))["prefix"] == "warm"


def twice(name: str) -> MeasuringPass:
    """A pass that asks each thing two times."""
    if name == "coding":
        return CodingMeasure(CodingPass(samples=2), TASKS, sandbox=None)
    return QualityMeasure(QualityPass(), PROMPTS)


@pytest.mark.parametrize("name", ["coding", "quality"])
async def test_samples_and_second_askings_are_warm(name: str) -> None:
    """The cache is emptied behind the warm-up, which the summary says."""
    result = await asked(twice(name), empties)
    half = len(result.records) // 2
    assert [one.prefix for one in result.records] == ["cold"] * half + ["warm"] * half
    (level,) = result.summary["levels"]
    assert (level["cold"], level["warm"], level["ttft_ms"]["n"]) == (half, half, half)
    assert result.summary["cache_flushed"] is True


@pytest.mark.parametrize(("flush", "said"), [(refuses, False), (None, None)])
@pytest.mark.parametrize("name", ["coding", "quality"])
async def test_the_state_of_the_cache_stands_with_each_result(name: str, flush: Any, said: bool | None) -> None:
    """A cache that was not emptied may have held the first ones already: they are neither cold nor warm."""
    result = await asked(twice(name), flush)
    assert result.summary["cache_flushed"] is said
    assert {one.prefix for one in result.records} == {None, "warm"}
    assert result.summary["levels"][0]["prefix"] == "unknown"


class Tells(PlainDialect):
    """A dialect in which the engine says what it found in its cache."""

    def read(self, answer: Any, data: str) -> None:
        super().read(answer, data)
        if data != "[DONE]":
            told = json.loads(data)
            answer.cached_tokens, answer.prompt_tokens = told.get("cached", answer.cached_tokens), 100


async def test_the_engines_own_word_goes_before_our_count() -> None:
    """A prefix that it dropped is cold again, one that two prompts share is warm in its first use, a chat template's
    head is neither."""
    found = iter([0, 20, 90, 0, 99, 99])

    async def reply(request: Request, send: Send) -> None:
        await send(
            HEAD + events({"t": "x", "n": 1}, {"t": "y", "n": 2, "cached": next(found), "finish": "stop"}, "[DONE]")
        )

    async with serving(reply) as server:
        context = PassContext(server.url, Tells(), Workload(), SystemClock(), lambda *_: None, empties)
        result = await throughput(requests=6).run(context)
    assert [one.prefix for one in result.records] == ["cold", "cold", "warm", "cold", "warm", "warm"]
    assert [one.asked_before for one in result.records] == [0, 0, 0, 1, 1, 1]


def test_old_records_have_no_label() -> None:
    """Those of an older version did not count the uses of their prompt."""
    data = record("a").to_json()
    del data["asked_before"], data["prefix"]
    assert RequestRecord.from_json(data).prefix is None
    assert RequestRecord.from_json(record("a", asked_before=2).to_json()) == record("a", asked_before=2)

"""Numbers on the toy engine equal what it did: its own step log is the truth, to the last digit."""

from collections.abc import Iterator
from typing import Any

import pytest
from fakes.toy_engine import TREE, Running, engine

from ddconsole.adapters.clock import SystemClock
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import Objectives
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import RequestDialect
from ddconsole.core.profile import Profile, ThroughputPass
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect
from ddconsole.engines.sglang.engine import SglangEngine
from ddconsole.passes.base import PassContext, PassResult
from ddconsole.passes.prompts import load_prompts
from ddconsole.passes.throughput import ThroughputMeasure

REQUESTS = 6
PROFILE = Profile.model_validate({"schema": 1, "host": "h", "engine": {"command": ["x"], "model": "Toy"}})


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A ready engine with a tree."""
    with engine(tmp_path_factory.mktemp("truth"), *TREE, "--enable-metrics", "--decode-log-interval", "10") as running:
        running.wait_ready()
        yield running


async def measured(running: Running, dialect: RequestDialect, **plan: Any) -> tuple[PassResult, list[dict[str, Any]]]:
    """A pass without warm-up, and the engine's log of the very same requests."""
    url = f"http://127.0.0.1:{running.port}"
    sglang = SglangEngine(PROFILE, {})
    before = len(running.steps())
    context = PassContext(url, dialect, Workload(), SystemClock(), lambda *_: None, counts=lambda: sglang.counts(url))
    plan = {"requests": REQUESTS, "max_tokens": 96, "warmup": 0} | plan
    pass_ = ThroughputMeasure(ThroughputPass.model_validate(plan), load_prompts("code", 96), Objectives())
    result = await pass_.run(context)
    return result, running.steps()[before:]


def said(record: RequestRecord) -> tuple[object, ...]:
    """What a record says of its steps."""
    return record.completion_tokens, record.verify_steps, record.accepted_drafts, record.histogram


def did(truth: dict[str, Any]) -> tuple[object, ...]:
    """What the engine's log says of them."""
    accepted = [step[1] for step in truth["steps"]]
    histogram = tuple(accepted.count(depth) for depth in range(8))
    return truth["completion_tokens"], len(accepted), sum(accepted), histogram


@pytest.mark.parametrize("dialect", [ChatDialect(model="Toy"), NativeDialect()], ids=["chat", "generate"])
async def test_every_request_at_concurrency_1(tree: Running, dialect: RequestDialect) -> None:
    """Tokens, verify steps, accepted drafts and histogram of each, and the tokens of each chunk."""
    result, truth = await measured(tree, dialect, concurrency=[1])
    assert [said(record) for record in result.records] == [did(one) for one in truth]
    for record, one in zip(result.records, truth, strict=True):
        assert [tokens for _, tokens in record.chunks if tokens] == [1, *(step[2] for step in one["steps"] if step[2])]
    level = result.summary["levels"][0]
    tokens, steps = sum(one["completion_tokens"] for one in truth), sum(len(one["steps"]) for one in truth)
    assert (level["completion_tokens"], level["verify_steps"]) == (tokens, steps)
    assert level["sums"]["spec_tokens"] / level["sums"]["steps"] == tokens / steps
    assert level["tau"] == round(tokens / steps, 4)
    assert level["tau"] > 2


async def test_together_and_at_a_rate(tree: Running) -> None:
    """Four streams, and an open loop: the same requests, in whatever order they end."""
    result, truth = await measured(tree, ChatDialect(model="Toy"), concurrency=[4], rate=[20], max_in_flight=3)
    assert sorted(map(said, result.records)) == sorted(map(did, truth))  # type: ignore[type-var]
    assert len(truth) == 2 * REQUESTS
    assert result.summary["failed"] == 0


async def test_the_engines_own_counters_agree(tree: Running) -> None:
    """/metrics over the pass is the same run."""
    result, _ = await measured(tree, ChatDialect(model="Toy"), concurrency=[1])
    checks = {(one["name"], one["source"]): one for one in result.summary["cross_check"]}
    tokens, tau = checks["completion tokens", "/metrics"], checks["τ (ΔC/ΔV)", "/metrics"]
    assert (tokens["off_pct"], tau["off_pct"]) == (0.0, 0.0)
    assert checks["τ", "/server_info"]["agrees"] is None


async def test_exact_lengths_on_a_real_engine(tree: Running) -> None:
    """Every answer has the length that was asked for, whatever the model wanted to say."""
    result, truth = await measured(tree, ChatDialect(model="Toy"), concurrency=[2], exact_tokens=True, max_tokens=64)
    assert {one["completion_tokens"] for one in truth} == {96}
    assert {record.completion_tokens for record in result.records} == {96}
    assert {record.finish_reason for record in result.records} == {"length"}

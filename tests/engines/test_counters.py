"""What SGLang counts of itself, as its endpoints and its log really say it."""

import httpx
import pytest

from ddconsole.core.ports import DecodeTick, SelfReporting
from ddconsole.core.profile import Profile
from ddconsole.engines.sglang.counters import counter, decode_tick, lifetime_tau
from ddconsole.engines.sglang.engine import SglangEngine

METRICS = """# HELP sglang:generation_tokens_total Number of generation tokens processed.
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{engine_type="unified",is_streaming="false",model_name="m"} 14.0
sglang:generation_tokens_total{engine_type="unified",is_streaming="true",model_name="a \\" } 9"} 424.0
sglang:generation_tokens_histogram_sum{engine_type="unified",model_name="m"} 438.0
sglang:spec_verify_calls_total{model_name="m",tp_rank="0"} 91.0
sglang:spec_verify_calls_total{model_name="m",tp_rank="1"} 91.0
"""


def test_counters_are_summed_over_labels_but_not_over_ranks() -> None:
    """Streamed and unstreamed add up; eight ranks count the same step eight times."""
    assert counter(METRICS, "sglang:generation_tokens_total") == 438.0
    assert counter(METRICS, "sglang:spec_verify_calls_total") == 91.0
    assert counter(METRICS, "sglang:num_requests_total") is None


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([{"avg_spec_accept_length": 2.9}], 2.9),
        ([{}, {"avg_spec_accept_length": None}, {"avg_spec_accept_length": 3.67}], 3.67),
        ([{"avg_spec_accept_length": True}], None),
        ([], None),
        (None, None),
        ("what", None),
    ],
)
def test_lifetime_tau(states: object, expected: float | None) -> None:
    """The first scheduler that has one; idle ones have null."""
    assert lifetime_tau({"internal_states": states}) == expected


def test_decode_lines() -> None:
    """With and without speculation, and nothing else."""
    line = (
        "[2026-12-02 14:02:11 TP0] Decode batch, #running-req: 1, #token: 900, token usage: 0.01, accept len: 4.81, "
        "accept rate: 0.54, cuda graph: True, gen throughput (token/s): 149.02, #queue-req: 0"
    )
    assert decode_tick(line) == DecodeTick(1, 149.02, 4.81)
    plain = line.replace("accept len: 4.81, accept rate: 0.54, ", "")
    assert decode_tick(plain) == DecodeTick(1, 149.02, None)
    assert decode_tick("[2026-12-02 14:02:11 TP0] Prefill batch, #new-seq: 1") is None


def engine(answer: httpx.Response | None) -> SglangEngine:
    """An engine whose every endpoint gives this answer; None refuses the connection."""

    def handle(request: httpx.Request) -> httpx.Response:
        if answer is None:
            raise httpx.ConnectError("refused", request=request)
        if request.url.path == "/metrics":
            return answer
        return httpx.Response(200, json={"internal_states": [{"avg_spec_accept_length": 4.4}]})

    profile = Profile.model_validate({"schema": 1, "host": "h", "engine": {"command": ["x"], "model": "m"}})
    return SglangEngine(profile, {}, transport=httpx.MockTransport(handle))


async def test_counts_over_http() -> None:
    """Both endpoints, and an engine without /metrics."""
    whole = await engine(httpx.Response(200, text=METRICS)).counts("http://127.0.0.1:1")
    assert whole is not None
    assert (whole.tokens, whole.steps, whole.lifetime_tau) == (438.0, 91.0, 4.4)
    half = await engine(httpx.Response(404)).counts("http://127.0.0.1:1")
    assert half is not None
    assert (half.tokens, half.steps, half.lifetime_tau) == (None, None, 4.4)


async def test_an_engine_that_cannot_be_asked_has_no_counts() -> None:
    """A look that fails is no failure of the pass."""
    assert await engine(None).counts("http://127.0.0.1:1") is None
    assert isinstance(engine(None), SelfReporting)

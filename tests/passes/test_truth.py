"""A server whose every chunk time and count is scripted, in virtual time: what the client tells is exactly that."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from fakes.clock import VirtualClock
from fakes.records import fixture_record
from fakes.sse_server import HEAD, PlainDialect, Request, events, serving

from ddconsole.core import metrics, peers
from ddconsole.core.experiment import Workload
from ddconsole.core.levels import summarise_level
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Prompt
from ddconsole.passes.client import ask, open_client

Send = Callable[[bytes], Awaitable[None]]


class Stamping(VirtualClock):
    """Lets the server know that bytes were stamped, so that no virtual time passes while they are on their way."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = asyncio.Event()

    def monotonic(self) -> float:
        self.looked.set()
        return super().monotonic()


async def played(script: Sequence[tuple[float, bytes]]) -> RequestRecord:
    """The record of a request whose answer is (seconds after the request, events), each sent at exactly that time."""
    clock = Stamping()

    async def reply(_request: Request, send: Send) -> None:
        began = clock.monotonic()
        await send(HEAD)
        for at, data in script:
            if at > clock.monotonic() - began:
                await clock.sleep(began + at - clock.monotonic())
            clock.looked.clear()
            await send(data)
            await clock.looked.wait()

    async with serving(reply) as server, open_client(server.url, clock=clock) as client:
        return await ask(client, PlainDialect(), Prompt("fixture", "hello", 500), Workload(), clock=clock)


def fixture_script() -> list[tuple[float, bytes]]:
    """The fixture of the metrics as a stream: role first, 1 + 100 chunks, the counts, and the end mark 5 ms later."""
    script, tokens = [(0.1, events({"role": "assistant", "t": ""}))], 0
    for at, brought in fixture_record().chunks:
        tokens += brought
        script.append((at, b": keep-alive\n\n" + events({"t": "x", "n": tokens})))
    script.append((3.2, events({"n": tokens, "v": 100, "a": 380, "finish": "stop"})))
    return [*script, (3.205, events("[DONE]"))]


async def test_the_fixture_over_the_wire() -> None:
    """Every stamp and count of the record, and every tool's column, to 0.1 %."""
    record = await played(fixture_script())
    assert record.error is None
    assert [tokens for _, tokens in record.chunks] == [tokens for _, tokens in fixture_record().chunks]
    assert [at for at, _ in record.chunks] == pytest.approx([at for at, _ in fixture_record().chunks])
    assert (record.completion_tokens, record.verify_steps, record.accepted_drafts) == (481, 100, 380)
    assert record.end_s == pytest.approx(3.205)
    columns = {
        "TTFT": (metrics.ttft(record), 0.2),
        "TTFO": (metrics.ttfo(record), 0.2),
        "TPOT (vLLM), ITL (AIPerf, GuideLLM, genai-perf)": (metrics.tpot(record), 0.00625),
        "TPOT (SGLang)": (peers.sglang_tpot(record), 0.0062604),
        "TPOT (GuideLLM), ITL (llmperf)": (peers.guidellm_tpot(record), 0.0066528),
        "decode (AIPerf TPS/user)": (metrics.decode_rate(record), 160.0),
        "e2e (AIPerf)": (peers.aiperf_e2e_rate(record), 150.3125),
        "e2e (GuideLLM)": (metrics.e2e_rate(record), 150.078),
        "chunks/s (vLLM peak)": (peers.chunk_rate(record), 33.333),
        "acceptance C/V": (metrics.tau(record), 4.81),
        "acceptance 1 + a/V": (peers.accepted_per_step(record), 4.80),
        "bench ΣC/D": (summarise_level([record], 3.210, 1).output_rate, 149.844),
    }
    for name, (value, expected) in columns.items():
        assert value == pytest.approx(expected, rel=1e-3), name
    itl = summarise_level([record], 3.210, 1).to_json()["itl_ms"]
    assert (itl["mean"], itl["p50"]) == (pytest.approx(6.25, rel=1e-3), pytest.approx(6.0, rel=1e-3))


async def test_reasoning_first() -> None:
    """TTFT at the first reasoning token, TTFO at the first of the answer; both are tokens."""
    script = [
        (0.5, events({"role": "assistant", "t": ""})),
        (1.0, events({"r": "hm", "n": 3})),
        (2.0, events({"r": "so", "n": 7})),
        (4.0, events({"t": "yes", "n": 9})),
        (4.5, events({"n": 9, "v": 3, "finish": "stop"})),
        (4.5, events("[DONE]")),
    ]
    record = await played(script)
    assert (metrics.ttft(record), metrics.ttfo(record)) == (pytest.approx(1.0), pytest.approx(4.0))
    assert metrics.tpot(record) == pytest.approx(3.0 / 8)
    assert metrics.itl(record) == pytest.approx((0.25,) * 4 + (1.0,) * 2)


async def test_a_record_keeps_everything() -> None:
    """Timings, counts, histogram, finish reason, texts: through JSON and back."""
    script = [
        (1.0, events({"r": "hm", "n": 3})),
        (2.0, events({"t": "yes", "n": 9, "v": 3, "a": 5, "h": [0, 1, 2], "finish": "length"})),
        (2.0, events("[DONE]")),
    ]
    record = await played(script)
    again = RequestRecord.from_json(record.to_json())
    assert again == record
    assert (record.histogram, record.finish_reason, record.text, record.reasoning) == ((0, 1, 2), "length", "yes", "hm")
    assert metrics.tau(record) == 3.0
    assert metrics.acceptance_by_position(record.histogram or ()) == (1.0, 2 / 3)


@pytest.mark.parametrize(("asked", "made", "ok"), [(9, 9, True), (9, 8, False), (9, 10, False)])
async def test_exact_length_is_checked_in_the_answers_count(asked: int, made: int, ok: bool) -> None:
    """ignore_eos with max_new_tokens: an answer of another length is a failed request that says both numbers."""

    async def reply(request: Request, send: Send) -> None:
        assert (request.body["ignore_eos"], request.body["max"]) == (True, asked)
        await send(HEAD + events({"t": "x", "n": 1}, {"t": "y", "n": made, "finish": "length"}, "[DONE]"))

    clock = VirtualClock()
    async with serving(reply) as server, open_client(server.url, clock=clock) as client:
        prompt = Prompt("p", "hello", asked)
        record = await ask(client, PlainDialect(), prompt, Workload(), clock=clock, ignore_eos=True)
    assert record.ok is ok
    if not ok:
        assert record.error == f"wrong-length: exactly {asked} tokens were asked for, the engine made {made}"

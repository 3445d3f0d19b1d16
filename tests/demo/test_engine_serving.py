"""A ready toy engine: its log, its endpoints with SGLang's keys, and counts that are true."""

from __future__ import annotations

import concurrent.futures
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from fakes.toy_engine import ANSWERS, TREE, Running, engine

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A ready engine with a tree, for tests that do not end it."""
    with engine(tmp_path_factory.mktemp("tree"), *TREE, "--enable-metrics", "--decode-log-interval", "10") as running:
        running.wait_ready()
        yield running


def events(running: Running, path: str, body: dict[str, Any]) -> list[Any]:
    """The data of a stream's events; the last one has to be [DONE]."""
    with running.client.stream("POST", path, json=body) as response:
        assert response.headers["content-type"] == "text/event-stream"
        lines = [line.removeprefix("data: ") for line in response.iter_lines() if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


def test_the_log_tells_the_phases_in_order(tree: Running) -> None:
    """SGLang's lines, each phase after the one before, ranks and bars included."""
    log = tree.log().replace("\r", "\n")
    marks = [
        r"server_args=\{'model_path': 'Toy'", r"Init parallel begin\.", r"Load weight begin\. avail mem=94\.30 GB",
        r"shards:   0% Completed \| 0/64 \[00:00<\?, \?it/s\]", r"shards: 100% Completed \| 64/64",
        r"Load weight end\. .*type=KimiK25ForConditionalGeneration, quant=compressed-tensors, avail mem=19\.60 GB",
        r"shards: 100% Completed \| 3/3", r"type=DFlashDraftModel",
        r"TP0\] Initialized DFLASH draft runner\. .*block_size=8, draft_window_size=2048, compact_cache=True",
        r"TP0\] Initialized DDTree worker\. block_size=8, tree_budget=12, max_tree_nodes=13",
        r"KV Cache is allocated\.", r"Capture target verify CUDA graph begin\. .*num_tokens_per_req=13",
        r"Capture draft verify CUDA graph begin\. .*num_tokens_per_req=8", r"max_total_num_tokens=131072",
        r"Engine startup timings \(s\): load_weight=", r"INFO:     Started server process",
        r"Uvicorn running on http://127\.0\.0\.1", r'"GET /model_info HTTP/1\.1" 200 OK', r"Prefill batch, #new-seq: 1",
        r'"POST /v1/chat/completions HTTP/1\.1" 200 OK', r"The server is fired up and ready to roll!",
    ]  # fmt: skip
    position = 0
    for mark in marks:
        match = re.compile(mark).search(log, position)
        assert match, f"{mark} is missing after:\n{log[max(position - 300, 0) : position + 300]}"
        position = match.end()
    for rank in range(8):
        assert len(re.findall(rf" TP{rank}\] Load weight (?:begin|end)", log)) == 4
    assert "block size mismatch" not in log


def test_an_answer_is_exact_and_its_counts_are_true(tree: Running) -> None:
    """Text, C, V, accepted drafts and histogram equal the engine's own record of each step."""
    answer = tree.generate("small-lru-hits")
    meta = answer["meta_info"]
    assert answer["text"] == ANSWERS["small-lru-hits"].answer
    assert meta["finish_reason"] == {"type": "stop", "matched": 0}
    (record,) = [record for record in tree.steps() if record["rid"] == meta["id"]]
    rest = record["steps"]
    assert meta["completion_tokens"] == 1 + sum(added for _, _, added in rest) == len(answer["output_ids"])
    assert meta["spec_verify_ct"] == len(rest) == sum(meta["spec_correct_drafts_histogram"])
    assert meta["spec_num_correct_drafts"] == sum(accepted for _, accepted, _ in rest)
    assert meta["spec_num_proposed_drafts"] == 7 * len(rest)
    assert meta["spec_accept_length"] == pytest.approx(meta["completion_tokens"] / len(rest))
    assert {width for width, _, _ in rest} == {13}
    assert meta["spec_accept_length"] > 3


def test_generate_streams_cumulative_text(tree: Running) -> None:
    """Each chunk holds all text so far; only the last one has the counts."""
    body = {"text": ANSWERS["code-sieve"].prompt, "stream": True, "sampling_params": {"max_new_tokens": 60}}
    chunks = events(tree, "/generate", body)
    texts = [chunk["text"] for chunk in chunks]
    counts = [chunk["meta_info"]["completion_tokens"] for chunk in chunks]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(texts))
    assert counts[0] == 1
    assert counts == sorted(set(counts))
    assert max(later - earlier for earlier, later in itertools.pairwise(counts)) > 1
    assert counts[-1] == 60
    assert ANSWERS["code-sieve"].answer.startswith(texts[-1])
    assert all("spec_verify_ct" not in chunk["meta_info"] for chunk in chunks[:-1])
    assert chunks[-1]["meta_info"]["spec_verify_ct"] == len(chunks) - 1
    assert chunks[-1]["meta_info"]["finish_reason"] == {"type": "length", "length": 60}


def test_chat_streams_deltas_counts_and_usage(tree: Running) -> None:
    """Role, deltas, reason, speculative counts in a chunk of their own, usage in the last one."""
    doc = ANSWERS["prose-budget"]
    body = {
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": doc.prompt}],
        "stream": True,
        "temperature": 0,
        "stream_options": {"include_usage": True},
        "return_spec_tokens_details": True,
    }
    opening, *middle, ending, spec, usage = events(tree, "/v1/chat/completions", body)
    assert opening["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(chunk["choices"][0]["delta"]["content"] for chunk in middle) == doc.answer
    assert ending["choices"][0]["finish_reason"] == "stop"
    details = spec["sglext"]["spec_tokens_details"]
    tokens = usage["usage"]["completion_tokens"]
    assert usage["choices"] == spec["choices"] == []
    assert details["spec_accept_length"] == pytest.approx(tokens / details["spec_verify_ct"])
    assert usage["usage"]["total_tokens"] == tokens + usage["usage"]["prompt_tokens"]


def test_chat_in_one_piece(tree: Running) -> None:
    """Content may come as parts; parts that are no text do not matter."""
    doc = ANSWERS["reason-logic"]
    content = [{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": doc.prompt}]
    body = {"messages": [{"role": "user", "content": content}], "return_spec_tokens_details": True}
    answer = tree.client.post("/v1/chat/completions", json=body).json()
    assert answer["choices"][0]["message"]["content"] == doc.answer
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["sglext"]["spec_tokens_details"]["spec_verify_ct"] > 0


def test_ignoring_the_end_mark_fills_the_limit(tree: Running) -> None:
    """The answer starts again until the limit is reached."""
    answer = tree.generate("fallback", limit=150, ignore_eos=True)
    assert answer["meta_info"]["completion_tokens"] == 150
    assert answer["text"].startswith(ANSWERS["fallback"].answer * 2)


def test_requests_decode_together(tree: Running) -> None:
    """Eight at once are all exact, and some of them shared their steps."""
    docs = [doc for doc in ANSWERS if doc.startswith("code-")][:8]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda doc: tree.generate(doc)["text"], docs))
    assert texts == [ANSWERS[doc].answer for doc in docs]
    running = [int(count) for count in re.findall(r"Decode batch, #running-req: (\d+)", tree.log())]
    assert max(running) > 1


def test_server_info_proves_the_config(tree: Running) -> None:
    """Arguments flat, command as typed, version, scale, and the lifetime figure since the last flush."""
    tree.generate("code-flatten")
    info = tree.client.get("/server_info").json()
    assert info["speculative_algorithm"] == "DDTREE"
    assert (info["speculative_num_draft_tokens"], info["speculative_ddtree_budget"]) == (8, 12)
    assert (info["speculative_ddtree_topk"], info["speculative_draft_window_size"]) == (6, 2048)
    assert (info["tp_size"], info["port"], info["status"]) == (8, tree.port, "ready")
    assert (info["version"], info["demo_step_scale"]) == ("0.5.23+ddtree", 0.02)
    assert info["launch_command"].startswith("ddconsole-toy-engine --model-path Toy --port ")
    assert info["internal_states"][0]["avg_spec_accept_length"] > 3
    assert tree.client.post("/flush_cache").status_code == 200
    assert "avg_spec_accept_length" not in tree.client.get("/get_server_info").json()["internal_states"][0]


def test_a_prompt_is_cached_until_the_flush(tree: Running) -> None:
    """The second time all but one token of it are cached."""
    tree.client.post("/flush_cache")
    first, second = (tree.generate("code-retry", limit=4)["meta_info"] for _ in range(2))
    assert (first["cached_tokens"], second["cached_tokens"]) == (0, second["prompt_tokens"] - 1)
    tree.client.post("/flush_cache")
    assert tree.generate("code-retry", limit=4)["meta_info"]["cached_tokens"] == 0


def test_metrics_count_tokens_and_verifies(tree: Running) -> None:
    """The run's acceptance length is Δ tokens / Δ verify calls, but for the token of prefill."""

    def read() -> dict[str, float]:
        lines = tree.client.get("/metrics").text.splitlines()
        samples = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name.partition("{")[0]: float(value) for name, value in samples}

    before = read()
    meta = tree.generate("small-task-order")["meta_info"]
    after = read()
    spent = {name: after[name] - before[name] for name in before}
    assert spent["sglang:generation_tokens_total"] == meta["completion_tokens"]
    assert spent["sglang:spec_verify_calls_total"] == meta["spec_verify_ct"]
    assert spent["sglang:prompt_tokens_total"] == meta["prompt_tokens"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/generate", {"text": "a", "sampling_params": {"temperature": 0.7}}, "temperature must be 0"),
        ("/generate", {"text": ["a", "b"]}, "text must be one string"),
        ("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 0}}, "max_new_tokens must be at least 1"),
        ("/generate", {"text": "a", "sampling_params": {"max_new_tokens": 10**6}}, "maximum context length"),
        ("/generate", [1], "must be a JSON object"),
        ("/v1/chat/completions", {"messages": []}, "at least one user message"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "n": 2}, "n must be 1"),
    ],
)
def test_what_it_does_not_do_is_refused(tree: Running, path: str, body: object, words: str) -> None:
    """400 and the reason; a request is never answered differently from what it asked."""
    response = tree.client.post(path, json=body)
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]


def test_unknown_paths_and_methods(tree: Running) -> None:
    """As the real server answers them."""
    assert [tree.status(path) for path in ("/get_load", "/generate", "/health", "/v1/models")] == [404, 405, 200, 200]
    assert tree.client.get("/v1/models").json()["data"][0]["id"] == "Toy"
    assert tree.client.get("/model_info").json()["is_generation"] is True

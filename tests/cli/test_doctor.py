"""`ddconsole doctor` for a ct200 that answers by recorded text, in its good state and in bad ones, as whole text.

The wanted texts stand in data/doctor/*.txt. After a wanted change of wording:

    DDCONSOLE_UPDATE_GOLDEN=1 .venv/bin/python -m pytest tests/cli/test_doctor.py

and look at the difference before it is committed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fakes.recorded_host import RecordedConnector, RecordedHost, recorded

from ddconsole.adapters.paths import Paths
from ddconsole.adapters.profile_file import load_profile, shipped_text
from ddconsole.adapters.store import SqliteStore
from ddconsole.cli import wiring
from ddconsole.core.config import effective_config
from ddconsole.core.errors import Failure, HostError
from ddconsole.core.events import utc_text
from ddconsole.core.experiment import Outcome
from ddconsole.engines.sglang.preflight.card_scripts import CARD_FIELDS

GOLDEN = Path(__file__).parent / "data" / "doctor"
UPDATE = "DDCONSOLE_UPDATE_GOLDEN"

Answers = dict[str, Any]
HELD = (
    "= port\n listener\t48211\t48190\tno\tjonas\tpython3 -m sglang.launch_server --model-path moonshotai/Kimi-K2.6 \n"
    " started\t48211\t1796203920\n"
)
BUSY = "".join(
    f" app\t52{card}00\t GPU-0000000{card}-1a2b-3c4d-5e6f-0123456789ab\t 61204\tines\t52000\tno\tpython train.py \n"
    for card in (3, 4)
)


@dataclass(frozen=True)
class Case:
    """A state of the host: what it answers otherwise, the spec that is asked, and the exit code."""

    change: Callable[[Answers], None] = lambda answers: None
    spec: tuple[str, ...] = ()
    code: int = 0


def put(name: str, old: str, new: str) -> Callable[[Answers], None]:
    """Replace a piece of one recorded answer, which has to be in it."""

    def change(answers: Answers) -> None:
        assert old in answers[name]
        answers[name] = answers[name].replace(old, new)

    return change


def both(*changes: Callable[[Answers], None]) -> Callable[[Answers], None]:
    """One after the other."""

    def change(answers: Answers) -> None:
        for each in changes:
            each(answers)

    return change


def say(**texts: str | Exception) -> Callable[[Answers], None]:
    """Other answers as a whole."""
    return lambda answers: answers.update(texts)


def without_tree(answers: Answers) -> None:
    """Stock SGLang: no flag of the fork."""
    answers["engine"] = re.sub(r"(?m)^ +(--speculative-ddtree.*|Nodes of the draft tree.*)\n", "", answers["engine"])
    answers["engine"] = answers["engine"].replace("0.5.23+ddtree", "0.5.23")


def cold(answers: Answers) -> None:
    """One file of eight is in memory; no kernels were compiled."""
    head, files, tail = re.split(r"(?s)(?<== page-cache\n)(.*?)(?=^= jit)", answers["host"], maxsplit=1, flags=re.M)
    rows = files.splitlines()
    files = "".join(re.sub(r"\t\d+\t", "\t0\t", row) + "\n" for row in rows[1:])
    answers["host"] = head + rows[0] + "\n" + files + tail.replace("triton\tfilled", "triton\tempty")


def unified(answers: Answers) -> None:
    """A DGX Spark: one GB10, which has no memory of its own to tell of."""
    told = {"index": "0", "name": "NVIDIA GB10", "compute_cap": "12.1", "driver_version": "580.95.05"}
    row = ", ".join(told.get(field, "[N/A]") for field in CARD_FIELDS)
    answers["cards"] = f"= cards\n {row}\n= apps\n= end\n"
    answers["links"] = "= list\n= matrix\n= peers\n= end\n"
    put("host", "1056700000 kB", "127600748 kB")(answers)
    put("host", "1001234567 kB", "118566368 kB")(answers)


MISMATCH = "Failed to initialize NVML: Driver/library version mismatch\n NVML library version: 580.95"
CASES: dict[str, Case] = {
    "good": Case(),
    "port-held-by-an-old-engine": Case(put("host", "= port\n", HELD), code=1),
    "port-held-by-a-foreign-process": Case(put("host", "= port\n", "= port\n listener\t0\t0\tno\troot\t\n"), code=1),
    "port-held-by-our-engine": Case(put("host", "= port\n", HELD + " ours\t48211\n"), code=1),
    "foreign-process-on-a-card": Case(put("cards", "= apps\n", "= apps\n" + BUSY)),
    "memory-held-by-nobody": Case(put("cards", "97887, 2, 1", "97887, 40960, 1")),
    "missing-shard": Case(put("host", "9957000000\tmodel-00017", "-\tmodel-00017"), code=1),
    "empty-drafter-shard": Case(put("host", "2319500000\tmodel-00002", "0\tmodel-00002"), code=1),
    "trained-at-8-asked-for-16": Case(spec=("b=16", "B=26")),
    "window-below-block": Case(spec=("W=4",), code=1),
    "budget-below-depth": Case(spec=("B=5",)),
    "budget-is-the-spine": Case(spec=("B=7",)),
    "unknown-flag": Case(spec=("arg.attention-backnd=triton",), code=1),
    "flag-renamed": Case(put("engine", "--speculative-draft-window-size S", "--speculative-dflash-draft-window-size S"),
                         code=1),
    "no-ddtree": Case(without_tree, code=1),
    "chain-on-stock-sglang": Case(without_tree, spec=("algorithm=chain", "b=8", "W=2048")),
    "page-size-64-with-a-tree": Case(spec=("arg.page-size=64",), code=1),
    "backend-that-sm120-cannot-run": Case(spec=("arg.attention-backend=trtllm_mla",), code=1),
    "no-such-choice": Case(spec=("arg.kv-cache-dtype=fp8",), code=1),
    "driver-mismatch": Case(say(cards=f"= cards\n {MISMATCH}\n= apps\n text\tFailed to initialize NVML\n= end\n",
                                links=f"= list\n {MISMATCH}\n= matrix\n {MISMATCH}\n= peers\n {MISMATCH}\n= end\n"),
                            code=1),
    "disk-full": Case(put("host", "state\t812000000", "state\t20000"), code=1),
    "container-without-room": Case(both(put("host", "shm\t528000000\t528350000", "shm\t65536\t65536"),
                                        put("host", "tmp\t96000000", "tmp\t400000"),
                                        put("host", "MemAvailable:   1001234567", "MemAvailable:   9000000"))),
    "cold-page-cache": Case(cold),
    "without-nvidia-smi": Case(say(cards="= missing\n= end\n", links="= missing\n= end\n")),
    "lost-card": Case(put("cards", " 5, GPU-00000005-1a2b-3c4d-5e6f-0123456789ab, NVIDIA RTX PRO 6000 Blackwell Server "
                          "Edition, 12.0, 580.95.05, 97887, 2, 1, 5, 16, 16, Disabled, Enabled, 600.00, 180, 405, 2430",
                          " Unable to determine the device handle for GPU5: 0000:C1:00.0: Unknown Error"), code=1),
    "unified-memory": Case(unified, spec=("arg.tp-size=1",)),
    "slow-links": Case(both(put("cards", "16, 16, Disabled", "8, 16, Disabled"), put("links", "OK\tOK", "NS\tNS"),
                            put("host", "performance\t256", "powersave\t256"))),
    "xid-errors": Case(put("host", "= kernel-log\n", "= kernel-log\n" + "".join(
        f" 2026-12-02T0{hour}:12:44,113 NVRM: Xid (PCI:0000:c1:00): {xid}, pid=4821, GPU has fallen off the bus.\n"
        for hour, xid in ((3, 79), (4, 79), (5, 45))))),
    "no-command": Case(say(engine="= missing\n= end\n"), code=1),
    "no-package": Case(say(engine="= identity\n python\t/usr/bin/python3\t3.12\n no-package\tsglang\n= end\n"), code=1),
    "broken-engine": Case(say(engine="= identity\n program\t/usr/bin/python3\t/usr/bin/python3\n= read\n now\t1\t4\n"
                              "= help\n Traceback (most recent call last):\n ImportError: libcudart.so.13\n= end\n"),
                          code=1),
    "nvidia-smi-hangs": Case(say(cards=HostError("`nvidia-smi` did not end within 62 s"))),
    "version-skew": Case(put("engine", "needs\tsglang-kernel\t0.4.10\t0.4.10", "needs\tsglang-kernel\t0.4.10\t0.4.7")),
}  # fmt: skip


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, home: Path) -> RecordedHost:
    """The profile ct200, spelled flag by flag as its fork is, on a host that answers by recorded text."""
    monkeypatch.setenv("COLUMNS", "100")
    text = shipped_text("ct200")
    (home / "config" / "profiles" / "ct200.yaml").write_text(text)
    host = RecordedHost(recorded())
    monkeypatch.setattr(wiring, "make_connector", lambda *args, **kwargs: RecordedConnector(host))
    return host


@pytest.mark.parametrize("name", CASES)
def test_doctor_says_all_of_it(name: str, host: RecordedHost, ddconsole: Callable[..., Any]) -> None:
    """The whole text, and the exit code that goes with it."""
    case = CASES[name]
    answers = recorded()
    case.change(answers)
    host.answers = answers
    answer = ddconsole("doctor", "ct200", *case.spec)
    path = GOLDEN / f"{name}.txt"
    if os.environ.get(UPDATE):
        path.write_text(answer.out + answer.err)
    assert answer.out + answer.err == path.read_text()
    assert answer.code == case.code


def test_what_doctor_explains_the_queue_refuses(host: RecordedHost, ddconsole: Callable[..., Any]) -> None:
    """A window below the block is never queued; asked of doctor, it is told beside everything else of the host."""
    found = ddconsole("doctor", "ct200", "W=4", "--json").json["findings"]
    assert next((one["level"], one["code"]) for one in found) == ("block", "window-below-block")
    assert len(host.asked) == 4, "the host is asked all the same"
    refused = ddconsole("queue", "ct200", "add", "W=4")
    assert refused.code == 2
    assert "window 4 is less than the block size 8" in refused.err


def test_no_golden_text_is_left_without_its_case() -> None:
    """A case that was renamed takes its text along."""
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(CASES)


def test_json_has_findings_with_advice_and_topic_and_the_facts(
    host: RecordedHost, ddconsole: Callable[..., Any]
) -> None:
    """One document; what was measured on stands in host_facts."""
    answer = ddconsole("doctor", "ct200", "arg.page-size=64", "--json")
    document = answer.json
    assert answer.code == 1
    assert document["blocked"] is True
    first = document["findings"][0]
    assert (first["level"], first["code"], first["topic"]) == ("block", "page-size", "config")
    assert first["advice"]
    facts = document["host_facts"]
    assert facts["engine"]["version"] == "0.5.23+ddtree"
    assert facts["cuda"] == {"driver": ["580.95.05"], "compute_capability": ["12.0"], "nvcc": "13.0"}
    assert facts["peer_to_peer"] is True
    assert len(facts["cards"]) == 8
    assert facts["target"]["shards"] == 64


def test_a_config_that_failed_here_before_is_told(host: RecordedHost, ddconsole: Callable[..., Any]) -> None:
    """By id, cause and when; another spelling of the same engine is the same config."""
    ddconsole("queue", "ct200", "list")
    store, at = SqliteStore(Paths.from_environment().database), datetime(2026, 12, 1, 14, 2, tzinfo=UTC)
    first = store.queue("ct200").items[0]
    assert first.config is not None
    effective = effective_config(first.config, load_profile("ct200").profile.knobs.topk.rule)
    failure = Failure("gpu-oom", "GPU 5 is out of memory", ("…",), "free the card")
    failed = {"id": first.id, "outcome": "failed", "effective": effective.to_json(), "measured_on": "ct200",
              "failure": failure.to_json(), "finished_at": utc_text(at)}  # fmt: skip
    key = store.begin_attempt("ct200", first.id, {}, at)
    store.finish_attempt(key, Outcome.FAILED, failed | {"attempt": 1}, failure, at)
    store.close()
    spec = [f"b={first.config.block_size}", f"B={first.config.budget}", f"K={first.config.topk}"]
    found = {one["code"]: one for one in ddconsole("doctor", "ct200", *spec, "--json").json["findings"]}
    assert f"{first.id} gpu-oom, 2026-12-01 14:02 UTC" in found["failed-before"]["text"]
    assert "free the card" in found["failed-before"]["advice"]
    other = ddconsole("doctor", "ct200", "b=8", "B=99", "--json").json["findings"]
    assert "failed-before" not in [one["code"] for one in other]


def test_text_of_the_host_reaches_the_terminal_as_text(host: RecordedHost, ddconsole: Callable[..., Any]) -> None:
    """An escape sequence in a command line of a stranger is shown, not obeyed."""
    answers = recorded()
    put("host", "= port\n", "= port\n listener\t7\t7\tno\teve\t\x1b]0;owned\x07python\n")(answers)
    host.answers = answers
    out = ddconsole("doctor", "ct200").out
    assert "\x1b" not in out
    assert "python" in out


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_terminal(
    width: int, host: RecordedHost, ddconsole: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words are wrapped under their column; only a path may be longer than its room."""
    monkeypatch.setenv("COLUMNS", str(width))
    lines = ddconsole("doctor", "ct200", "b=16", "B=26").out.splitlines()
    assert max(map(len, lines)) <= max(width, 44)

"""What single topics make of a host's answers: cards, links, traps of SM120, kernel log, caches; the table of codes."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from fakes.recorded_host import RecordedHost, recorded
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.finding_codes import FINDING_CODES, TOPICS
from ddconsole.core.profile import Profile
from ddconsole.engines.sglang.preflight import preflight
from ddconsole.engines.sglang.preflight.caches import check_page_cache
from ddconsole.engines.sglang.preflight.card_scripts import CARD_FIELDS
from ddconsole.engines.sglang.preflight.cards import Card, check_apps, check_cards
from ddconsole.engines.sglang.preflight.links import check_links, parse_matrix
from ddconsole.engines.sglang.preflight.machine import check_kernel_log
from ddconsole.engines.sglang.preflight.report import Report
from ddconsole.engines.sglang.preflight.sections import gib, sections
from ddconsole.engines.sglang.preflight.sm120 import check_driver, check_traps
from ddconsole.engines.sglang.preflight.weights import Weights, block_size_in, config_of, read_weights

ROOT = Path(__file__).parents[2]
TREE = Config(Algorithm.TREE, 8, 12, 6, 2048)
GIB = 1024**3
BLACKWELL = [Card(0, {"compute_cap": "12.0", "driver_version": "580.95.05"})]


def codes(report: Report) -> list[tuple[str, str]]:
    """Level and code."""
    return [(finding.level, finding.code) for finding in report.findings]


@pytest.mark.parametrize(
    ("config", "size"),
    [
        ({"dflash_config": {"block_size": 8}, "block_size": 16}, 8),
        ({"block_size": 16}, 16),
        ({"dflash_config": {}}, None),
        ({"dflash_config": []}, None),
        ({"block_size": True}, None),
        ({"block_size": "8"}, None),
    ],
)
def test_the_trained_block_size_is_read_where_the_engine_reads_it(config: dict[str, Any], size: int | None) -> None:
    """First in dflash_config, then at the top."""
    assert block_size_in(config) == size


@pytest.mark.parametrize("text", ["", "[]", "{", "7", "[" * 100_000])
def test_text_that_is_no_config_is_an_empty_one(text: str) -> None:
    """A missing file answers with nothing."""
    assert config_of(text) == {}


@pytest.mark.parametrize(
    ("args", "env", "expected"),
    [
        ({}, {}, []),
        ({"attention-backend": "triton", "kv-cache-dtype": "bf16"}, {}, []),
        ({"attention-backend": "fa3"}, {}, [("block", "sm120-backend")]),
        ({"speculative-draft-attention-backend": "fa4"}, {}, [("block", "sm120-backend")]),
        ({"decode-attention-backend": "tokenspeed_mla"}, {}, [("block", "sm120-backend")]),
        ({"moe-runner-backend": "deep_gemm"}, {}, [("warn", "sm120-deep-gemm")]),
        ({"fp8-gemm-backend": "flashinfer_deepgemm"}, {}, [("warn", "sm120-deep-gemm")]),
        ({"moe-runner-backend": "triton", "fp8-gemm-backend": "cutlass"}, {}, []),
        ({"attention-backend": "trtllm_mha"}, {}, [("warn", "sm120-xqa")]),
        ({"attention-backend": "triton", "decode-attention-backend": "trtllm_mha"}, {}, [("warn", "sm120-xqa")]),
        ({"attention-backend": "trtllm_mha", "decode-attention-backend": "triton"}, {}, []),
        ({"speculative-draft-attention-backend": "trtllm_mha"}, {}, [("warn", "sm120-xqa")]),
        ({"kv-cache-dtype": "fp8_e4m3"}, {}, [("warn", "sm120-fp8-kv")]),
        ({"fp4-gemm-backend": "flashinfer_cutlass"}, {}, [("warn", "sm120-fp4-gemm")]),
        ({}, {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, [("warn", "sm120-segments")]),
    ],
)
def test_traps_of_sm120(args: dict[str, str], env: dict[str, str], expected: list[tuple[str, str]]) -> None:
    """Only for these cards: a Hopper card runs all of it."""
    report, other = Report(), Report()
    check_traps(BLACKWELL, args, env, True, report)
    check_traps([Card(0, {"compute_cap": "9.0"})], args, env, True, other)
    assert codes(report) == expected
    assert codes(other) == []


def test_a_backend_without_a_mask_is_no_trap_for_an_engine_that_drafts_nothing() -> None:
    """One token a step needs none."""
    report = Report()
    check_traps(BLACKWELL, {"attention-backend": "trtllm_mha"}, {}, False, report)
    assert codes(report) == []


@pytest.mark.parametrize(
    ("driver", "nvcc", "expected"),
    [
        ("580.95.05", "13.0", []),
        ("580.95.05", "", []),
        ("565.57", "12.9", [("warn", "driver-old")]),
        ("580.95.05", "12.8", [("warn", "toolkit-old")]),
        ("580.95.05", "13.3", [("warn", "toolkit-new")]),
        ("[N/A]", "x.y", []),
    ],
)
def test_driver_and_toolkit_against_the_cards(driver: str, nvcc: str, expected: list[tuple[str, str]]) -> None:
    """What does not know SM120, and what does not fit torch's headers."""
    report = Report()
    cards = [Card(0, {"compute_cap": "12.0", "driver_version": driver})]
    check_driver(cards, {"toolkit": [f"nvcc\t{nvcc}\t/usr/bin/nvcc"]}, report)
    assert codes(report) == expected


def card_row(index: int, **cells: str) -> str:
    """A row of the card query."""
    good = dict(zip(CARD_FIELDS, f"{index}, GPU-{index}, card, 12.0, 580.1, 97887, 2, 5, 5, 16, 16, Disabled, Enabled, "
                    "600.00, 210, 405, 2430".split(", "), strict=True))  # fmt: skip
    return ", ".join((good | {name.replace("_", "."): cell for name, cell in cells.items()}).values())


def test_a_split_card_its_instances_and_who_is_on_them() -> None:
    """nvidia-smi names an instance by its own UUID, or as older drivers do by its card's."""
    report = Report()
    found = {"cards": [card_row(0, mig_mode_current="Enabled")], "apps": [
        "app\t7\t MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f\t 100\tana\t7\tno\tpython"]}  # fmt: skip
    cards = check_cards(found, CARD_FIELDS, 1, report)
    listed = ["GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-5d5ba0d6)",
              "  MIG 3g.40gb     Device  0: (UUID: MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f)"]  # fmt: skip
    check_links(cards, {"list": listed, "apps": found["apps"]}, report)
    assert codes(report) == [("warn", "mig")]
    assert report.facts["mig_instances"] == {"0": ["3g.40gb MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f"]}
    assert any("pid 7 is on an instance of card 0" in one.text for one in report.checked)


def test_more_than_eight_cards_and_rows_that_tell_little() -> None:
    """Unknown cells are unknown; they hide no card."""
    report = Report()
    rows = [card_row(index) for index in range(12)]
    rows[3] = card_row(3, memory_used="[Unknown Error]", name="[N/A]", power_limit="[Not Supported]")
    cards = check_cards({"cards": rows}, CARD_FIELDS, 12, report)
    assert len(cards) == 12
    assert codes(report) == []
    assert report.facts["cards"][3]["memory.used"] is None
    clocks = {"clocks.sm": 210.0, "clocks.mem": 405.0, "clocks.max.sm": 2430.0}
    assert {name: report.facts["cards"][0][name] for name in clocks} == clocks


def test_a_card_whose_cells_say_that_it_is_lost_is_no_card_to_launch_on() -> None:
    """It is named, and the launch on all of them is refused."""
    report = Report()
    rows = [card_row(0), card_row(1, memory_used="[GPU is lost]", power_limit="[GPU is lost]")]
    assert [card.index for card in check_cards({"cards": rows}, CARD_FIELDS, 2, report)] == [0]
    assert codes(report) == [("warn", "card-lost"), ("block", "too-few-cards")]


MEMORY = {"MemTotal": 127_600_748 * 1024, "MemAvailable": 118_566_368 * 1024}


@pytest.mark.parametrize(
    ("cells", "memory", "told"),
    [
        (
            {"name": "NVIDIA GB10"},
            MEMORY,
            ["unified memory: 8,822 MiB in use of 124,610 MiB, the host's (/proc/meminfo)"],
        ),
        ({"name": "NVIDIA GB10"}, {}, ["unified memory: the host's, which could not be read"]),
        ({"name": "NVIDIA GB10", "mig_mode_current": "Enabled"}, MEMORY, []),
        ({"name": "NVIDIA RTX A4000"}, MEMORY, []),
    ],
)
def test_memory_of_a_card_that_has_none_of_its_own(
    cells: dict[str, str], memory: dict[str, int], told: list[str]
) -> None:
    """Only of a chip that is known for it, and whole; another card that tells nothing is unknown."""
    report = Report()
    row = card_row(0, **cells, memory_total="[N/A]", memory_used="[N/A]", power_limit="[N/A]")
    check_cards({"cards": [row]}, CARD_FIELDS, 1, report, memory)
    assert [one.text for one in report.checked if one.name == "card memory"] == told
    assert ("unified_memory" in report.facts) is bool(told)


def test_ranks_of_one_engine_are_one_holder() -> None:
    """Eight schedulers of a session are one line, and ours are told from others'."""
    rows = [f"app\t9{n}\t GPU-{n}\t 1000\tana\t90\t{ours}\tsglang::scheduler_TP{n}"
            for n, ours in ((0, "no"), (1, "no"), (2, "no"))]  # fmt: skip
    rows += ["app\t50\t GPU-0\t 10\tana\t50\tyes\tsglang::scheduler_TP0"]
    report = Report()
    check_apps({"apps": rows}, [], report)
    assert codes(report) == [("warn", "gpu-busy"), ("warn", "gpu-ours")]
    assert "and 2 more of its session holds 3,000 MiB on 3 cards" in report.findings[0].text


@given(st.lists(st.text(alphabet="GPU0123 \tOKNSX\x1b[4m-,", max_size=40), max_size=12))
def test_any_matrix_is_read_without_an_error(lines: list[str]) -> None:
    """And no card has a way to itself."""
    assert all(row != column for row, column in parse_matrix(lines))
    check_links([], {"matrix": lines, "peers": lines}, Report())


@settings(max_examples=60, deadline=None)
@given(st.data())
async def test_any_cut_of_any_answer_is_survived(data: st.DataObject) -> None:
    """A host whose answers break off anywhere, or are filled with other bytes, gives findings, never an exception."""
    answers = recorded()
    for name, text in answers.items():
        cut = data.draw(st.integers(0, len(text)))
        answers[name] = text[:cut] + data.draw(st.text(alphabet=" =\t\n,0x[]{}\x1b", max_size=30))
    profile = Profile(schema=1, host="local", engine={"command": ["python3"], "model": "m", "drafter": "d"})
    found = await preflight(profile, RecordedHost(answers), TREE, 1)  # type: ignore[arg-type]
    assert all(finding.code in FINDING_CODES for finding in found.findings)


def test_an_answer_that_broke_off_is_said() -> None:
    """Half an answer must not pass for a good one."""
    assert "end" not in sections("= clock\n 1\n= port\n")


def test_the_kernels_log_is_told_by_kind_of_error() -> None:
    """A program's own fault is a note; a card's is a warning; a log that may not be read is no clean bill."""
    report = Report()
    line = "2026-12-02T09:00:00 NVRM: Xid (PCI:0000:c1:00): {}, pid=1"
    check_kernel_log({"kernel-log": [line.format(xid) for xid in (79, 79, 31, 999)]}, report)
    assert codes(report) == [("warn", "xid"), ("note", "xid"), ("warn", "xid")]
    hidden = Report()
    check_kernel_log({"kernel-log": ["unreadable"]}, hidden)
    assert "may not be read" in hidden.checked[0].text
    assert "xids" not in hidden.facts


@pytest.mark.parametrize(
    ("lines", "cached_kib", "share", "how"),
    [
        ([f"file\t{GIB}\t{GIB}", f"file\t0\t{GIB}"], 0, 0.5, "fincore, 2 of 2 files"),
        (["not-ours"], 1024**2, 0.5, "belong to another user"),
        (["no-fincore"], 4 * 1024**2, 1.0, "at most, by the size of the whole page cache"),
    ],
)
def test_the_page_cache_is_measured_or_estimated_and_says_which(
    lines: list[str], cached_kib: int, share: float, how: str
) -> None:
    """The kernel tells only of one's own files; the whole cache's size is an upper bound."""
    report = Report()
    target = Weights("/m", shards={"a": GIB, "b": GIB})
    check_page_cache(target, {"page-cache": lines, "memory": [f"Cached: {cached_kib} kB"]}, report)
    assert report.facts["page_cache"]["share"] == share
    assert how in report.checked[0].text
    assert codes(report) == ([("note", "page-cache-cold")] if share < 0.9 else [])


def test_sizes_in_words_and_a_model_that_is_one_file() -> None:
    """Bytes to GiB; a GGUF has no index."""
    assert [gib(size) for size in (640, 3 * 1024**2, 3 * GIB, 600 * GIB)] == [
        "640 bytes",
        "3 MiB",
        "3.0 GiB",
        "600 GiB",
    ]
    assert read_weights(["file\t100\t/m/model.gguf"]).size == 100


# --- the table of codes


def made_codes() -> dict[str, set[str]]:
    """Levels by code, of every finding that the source makes with a literal code."""
    found: dict[str, set[str]] = {}
    files = [*(ROOT / "ddconsole/engines/sglang/preflight").glob("*.py"), ROOT / "ddconsole/engines/sglang/rules.py",
             ROOT / "ddconsole/core/config_findings.py", ROOT / "ddconsole/core/earlier.py",
             ROOT / "ddconsole/runner/host_facts.py",
             *(ROOT / "ddconsole/engines/launch").glob("*.py")]  # fmt: skip
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and (made := _finding(node)) is not None:
                level, code = made
                found.setdefault(code, set()).add(level)
    return found


def _finding(call: ast.Call) -> tuple[str, str] | None:
    """Level and code of `Finding("warn", "code", …)`, `FindingSeen(…)` or `report.warn("code", …)`; `*` is any."""
    words = [arg.value if isinstance(arg, ast.Constant) else "*" for arg in call.args[:2]]
    if isinstance(call.func, ast.Name) and call.func.id in ("Finding", "FindingSeen"):
        return (words[0], words[1])
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("block", "warn", "note"):
        return (call.func.attr, words[0])
    return ("*", words[0]) if isinstance(call.func, ast.Name) and call.func.id == "say" else None


def test_every_finding_that_is_made_stands_in_the_table_with_its_levels_and_no_other() -> None:
    """Codes of nvidia-smi's own errors come by name from a table, `connection` from the door; the rest is literal."""
    made = made_codes()
    by_name = {"driver-mismatch", "driver-down", "no-gpu", "nvml", "connection", "service-not-ours"}
    assert set(made) - {"*"} == set(FINDING_CODES) - by_name
    for code, levels in made.items():
        if code != "*" and "*" not in levels:
            assert levels <= set(FINDING_CODES[code].levels.split(", ")), code
    assert {entry.topic for entry in FINDING_CODES.values()} == set(TOPICS)


def test_the_document_and_the_table_agree() -> None:
    """docs/doctor.md has a row for each code, in the table's words."""
    text = (ROOT / "docs" / "doctor.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| (`[a-z0-9-]+` .*) \|$", text)
    wanted = [" | ".join((f"`{one.code}`", one.levels, one.meaning, one.remedy)) for one in FINDING_CODES.values()]
    assert rows == wanted

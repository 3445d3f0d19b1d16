"""CSV, Markdown and JSON of results; other tools' names."""

import csv
import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from report.books import LEVEL

from ddconsole.core.imports import imported_items
from ddconsole.core.peers import aiperf_level, sglang_level
from ddconsole.report.book import Book
from ddconsole.report.tables import CSV_COLUMNS, guarded, levels_csv, levels_json, to_csv, to_markdown


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_has_a_line_for_each_result(make: Callable[..., Book]) -> None:
    """Units in the names, nothing for what is unknown, intervals beside the figures."""
    found = rows(to_csv(make(tok_s_e2e=None, outcome="failed", failure={"cause": "gpu-oom", "what": "out of memory"})))
    assert tuple(found[0])[: len(CSV_COLUMNS)] == CSV_COLUMNS
    assert [row["id"] for row in found] == ["E1", "E2", "E3", "E4", "E5", "E6"]
    tree, failed = found[2], found[5]
    assert (tree["budget"], tree["verify_width"], tree["topk"], tree["algorithm"]) == ("12", "13", "6", "tree")
    assert float(tree["tok_s_e2e_low"]) < float(tree["tok_s_e2e"]) < float(tree["tok_s_e2e_high"])
    assert (tree["reference"], tree["vs_reference_word"], tree["boots"], found[0]["boots"]) == (
        "E5",
        "faster",
        "1",
        "2",
    )
    assert (failed["tok_s_e2e"], failed["failure_cause"]) == ("", "gpu-oom")


def test_csv_has_columns_for_each_level(make: Callable[..., Book]) -> None:
    """Under pass, load and figure; of several repeats their median; nothing where a result has no such level."""
    made = make()
    repeats = made.entries[0].passes["throughput"]
    repeats.append({"levels": [LEVEL | {"output_tok_s": 110.0}], "round_trip_ms": 14.5})  # type: ignore[attr-defined]
    rate = LEVEL | {"label": "2/s poisson", "concurrency": 0, "ttft_from_due_ms": {"p99": 75.0}}
    made.entries[1].passes["throughput"][0]["levels"].append(rate)
    one, two, *_ = rows(to_csv(made))
    assert (one["throughput.c=4.output_tok_s"], two["throughput.c=4.output_tok_s"]) == ("105.0", "100.0")
    assert (one["throughput.c=4.ttft_ms.p95"], one["throughput.c=4.ttft_warm_ms.p50"]) == ("61.0", "19.0")
    assert (one["throughput.c=4.goodput_per_s"], one["throughput.c=4.ttfo_ms.p90"]) == ("0.7", "85.0")
    assert two["throughput.2/s poisson.ttft_from_due_ms.p99"] == "75.0"
    assert one["throughput.2/s poisson.output_tok_s"] == ""


def test_the_round_trip_stands_beside_ttft(make: Callable[..., Book]) -> None:
    """Of the requests that the result's TTFT is of."""
    made = make()
    level = LEVEL | {"concurrency": 1, "sums": {"requests": 3}}
    for place, trip in enumerate((12.5, 14.5)):
        made.entries[place].passes["throughput"][0].update(levels=[level], round_trip_ms=trip)  # type: ignore[attr-defined]
    found = rows(to_csv(made))
    assert [row["round_trip_ms"] for row in found[:3]] == ["12.5", "14.5", ""]
    assert list(found[0]).index("round_trip_ms") == list(found[0]).index("ttft_p50_ms") + 1


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1+1", "'=1+1"), ("+1", "'+1"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "' =1"),
        ("\r=1", "' =1"),
        ("  =1", "'  =1"), ("tree b 8", "tree b 8"), (-2.5, -2.5), (3, 3), (True, True), (None, ""), ("", ""),
        ("a\x1b[31m", "a [31m"),
    ],
)  # fmt: skip
def test_cells_are_no_formulas(value: Any, cell: Any) -> None:
    """Text that a spreadsheet would run gets an apostrophe; numbers stay numbers, below zero too."""
    assert guarded(value) == cell


def test_a_hostile_failure_stays_text(make: Callable[..., Book]) -> None:
    """In CSV and in Markdown."""
    hostile = make(outcome="failed", tok_s_e2e=None, failure={"cause": "x", "what": "=cmd|' /C calc'!A0 | <b>`x`\n# y"})
    assert rows(to_csv(hostile))[5]["failure_what"].startswith("'=cmd")
    line = next(line for line in to_markdown(hostile).splitlines() if line.startswith("| E6"))
    assert r"=cmd\|' /C calc'!A0 \| \<b\>\`x\` \# y" in line


def test_markdown_is_a_table_with_its_findings(make: Callable[..., Book]) -> None:
    """Every row as wide as the head; plateau and step cost above, definitions below."""
    text = to_markdown(make())
    lines = text.splitlines()
    tables = [part.splitlines() for part in re.findall(r"(?:^\|.*\n)+", text.replace(r"\|", ""), flags=re.MULTILINE)]
    assert [{line.count("|") for line in table} for table in tables] == [{11}, {12}, {9}, {9}]
    assert [len(table) for table in tables] == [2 + 6] * 4
    assert "| E2 | throughput 1 | c=4 | 9 (1 failed) | 100.0 | 0.80 | 0.70 |" in text
    assert "| E2 | throughput 1 | τ | 4.2 | 4.9 | +16.7 % | ⚠ disagrees | decode lines: 9 windows |" in text
    assert any("plateau, no winner: E3, E4 are not distinguishable" in line for line in lines)
    assert any("estimate, not measured" in line for line in lines)
    assert "intervals are 95 %" in text


def test_json_is_read_again_by_import(make: Callable[..., Book]) -> None:
    """What export writes, import takes, figures and recipe unchanged."""
    document = json.loads(json.dumps(make().to_json(), allow_nan=False))
    items = imported_items(document, "night", "f")
    assert [item["id"] for item in items] == [f"night:E{n}" for n in range(1, 7)]
    first = make().entries[0]
    assert items[0]["by_prompt"] == first.item["by_prompt"]
    assert (items[0]["recipe"], items[0]["boots"]) == (first.recipe, 2)
    assert document["standings"][0]["plateau"] == ["E3", "E4"]
    assert [curve["label"] for curve in document["step_cost"]] == ["tree b 8 K 6 W 2048"]


def test_names_of_aiperf() -> None:
    """Its statistics blocks where it is the same quantity; latency to the last token and goodput are not."""
    found = aiperf_level(LEVEL | {"ttfo_ms": None})
    assert found["request_count"] == {"unit": "requests", "avg": 8}
    assert found["output_token_throughput"] == {"unit": "tokens/sec", "avg": 100.0}
    assert found["inter_token_latency"] == {
        "unit": "ms", "avg": 7.0, "p50": 6.9, "p90": 8.0, "p95": 8.1, "p99": 8.2, "count": 8,
    }  # fmt: skip
    assert not {"request_latency", "goodput", "time_to_first_output_token"} & found.keys()


def test_names_of_sglang() -> None:
    """bench_serving's, without its TPOT and its lifetime accept length."""
    found = sglang_level(LEVEL)
    assert (found["completed"], found["max_concurrency"], found["output_throughput"]) == (8, 4, 100.0)
    assert (found["mean_ttft_ms"], found["median_itl_ms"], found["p99_e2e_latency_ms"]) == (50.0, 6.0, 1020.0)
    assert not [name for name in found if "tpot" in name or name == "accept_length"]


def test_levels_under_other_names(make: Callable[..., Book]) -> None:
    """One line or object a level, with the result, pass and repeat that it belongs to."""
    found = rows(levels_csv(make(), aiperf_level))
    assert len(found) == 6
    assert (found[0]["id"], found[0]["pass"], found[0]["time_to_first_token.p50"]) == ("E1", "throughput", "49.0")
    document = levels_json(make(), "sglang", sglang_level)
    assert document["levels"][5] | {"sglang": None} == {
        "id": "E6", "attempt": 1, "pass": "throughput", "repeat": 1, "concurrency": 4, "sglang": None,
    }  # fmt: skip

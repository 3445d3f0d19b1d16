"""A config that failed on a host before is told before it is paid for again."""

from __future__ import annotations

from typing import Any

from ddconsole.core.config import Algorithm, Config, effective_config
from ddconsole.core.earlier import earlier_failures

EFFECTIVE = effective_config(Config(Algorithm.TREE, 8, 12, 6, 2048)).to_json()
OTHER = effective_config(Config(Algorithm.TREE, 8, 16, 6, 2048)).to_json()


def item(id_: str, outcome: str = "failed", cause: str = "gpu-oom", **changes: Any) -> dict[str, Any]:
    """One of `results list --json`."""
    failure = {"cause": cause, "what": "…", "evidence": [], "advice": "lower the fraction", "phase": None}
    return {
        "id": id_,
        "outcome": outcome,
        "effective": EFFECTIVE,
        "measured_on": "ct200",
        "failure": failure if outcome == "failed" else None,
        "finished_at": "2026-12-01T14:02:33.120Z",
    } | changes


def said(*items: dict[str, Any]) -> list[str]:
    """The findings' texts."""
    return [one.text for one in earlier_failures(items, EFFECTIVE, "ct200", "prod")]


def test_each_failure_is_named_with_its_cause_and_when_the_newest_first() -> None:
    """The remedy is the newest one's, with the command that shows its evidence."""
    (found,) = earlier_failures([item("E3", cause="stalled"), item("E12")], EFFECTIVE, "ct200", "prod")
    assert (found.level, found.code) == ("note", "failed-before")
    assert found.text == (
        "this effective config has failed on ct200 before: E12 gpu-oom, 2026-12-01 14:02 UTC, "
        "E3 stalled, 2026-12-01 14:02 UTC"
    )
    assert found.advice == "lower the fraction (`ddconsole results prod show E12`)"


def test_another_engine_another_host_and_what_passed_are_no_failures_of_it() -> None:
    """An interruption or a cancellation is nothing that the config has done."""
    assert said() == []
    assert said(item("E1", effective=OTHER), item("E2", measured_on="ct201"), item("E3", "passed")) == []
    assert said(item("E4", "cancelled"), item("E5", "interrupted"), item("E6", "wrong")) == []


def test_many_are_counted_and_a_success_since_then_is_said() -> None:
    """One before the failure says nothing of it."""
    (text,) = said(item("E0", "passed"), *(item(f"E{number}") for number in range(1, 6)))
    assert "E5 gpu-oom" in text
    assert "E2" not in text
    assert text.endswith(" and 2 more")
    (text,) = said(item("E1"), item("E2", "passed"))
    assert text.endswith("; E2 has passed since")

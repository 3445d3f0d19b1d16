"""Our figures beside the engine's: what may differ, and what is held against the run."""

from typing import Any

import pytest
from fakes.records import record

from ddconsole.core.crosscheck import Compared, compare_counts
from ddconsole.core.level_words import pass_lines
from ddconsole.core.ports import DecodeTick, ServerCounts

OURS = [record("a", 20, 10), record("b", 200, 40)]
"""τ 4.4; neither the mean of means (3.5) nor the server's lifetime figure (3.1)."""


def compared(before: ServerCounts, after: ServerCounts, records: object = None) -> dict[tuple[str, str], Compared]:
    found = compare_counts(OURS if records is None else records, before, after)  # type: ignore[arg-type]
    return {(one.name, one.source): one for one in found}


def test_counters_over_the_run_agree() -> None:
    """Differences of counters over the very same requests are the same numbers."""
    found = compared(ServerCounts(tokens=1000, steps=300), ServerCounts(tokens=1220, steps=350))
    assert {name: (one.ours, one.theirs) for (name, _), one in found.items()} == {
        "completion tokens": (220, 220),
        "τ (ΔC/ΔV)": (4.4, 4.4),
    }
    assert all(one.finding is None and one.to_json()["agrees"] for one in found.values())


def test_somebody_elses_tokens_are_a_warning() -> None:
    """More tokens than our answers hold: another user, or wrong counts; either way the reader has to know."""
    found = compared(ServerCounts(tokens=0, steps=0), ServerCounts(tokens=320, steps=80))
    finding = found["completion tokens", "/metrics"].finding
    assert finding is not None
    assert finding.level == "warn"
    assert "220 by this run's answers, 320 by the engine's /metrics (+45.5%" in finding.text


def test_the_lifetime_figure_is_shown_and_never_held_against_the_run() -> None:
    """Its scope is another one, and stands beside it."""
    one = compared(ServerCounts(), ServerCounts(lifetime_tau=3.1))["τ", "/server_info"]
    assert (one.ours, one.theirs, one.finding, one.to_json()["agrees"]) == (4.4, 3.1, None, None)
    assert "since the engine's start or last flush" in one.scope


def test_failed_requests_take_the_counters_their_force() -> None:
    """Their tokens are in the engine's counters alone: shown, and not judged."""
    records = [*OURS, record("c", error="cut: gone")]
    one = compared(ServerCounts(tokens=0), ServerCounts(tokens=300), records)["completion tokens", "/metrics"]
    assert (one.finding, one.to_json()["agrees"]) == (None, None)
    assert "failed ones too" in one.scope


@pytest.mark.parametrize(
    "after", [ServerCounts(), ServerCounts(tokens=5.0, steps=None), ServerCounts(tokens=900.0, steps=300.0)]
)
def test_what_cannot_be_known_is_left_out(after: ServerCounts) -> None:
    """No counters, half of them, or ones that ran backwards because the engine began anew."""
    before = ServerCounts(tokens=1000, steps=400) if after.steps else ServerCounts()
    assert compared(before, after) == {}


def ticks(*lengths: float, running: int = 1) -> tuple[DecodeTick, ...]:
    return tuple(DecodeTick(running, 150.0, length) for length in lengths)


def test_decode_lines_of_the_pass_alone() -> None:
    """Those before it, and the first one in it, which covers the pause before, are not counted."""
    before = ServerCounts(ticks=ticks(1.0, 1.0))
    after = ServerCounts(ticks=ticks(1.0, 1.0, 1.0, 4.3, 4.5, 4.4))
    found = compared(before, after)
    assert found["τ", "decode lines"].theirs == pytest.approx(4.4)
    assert found["τ", "decode lines"].finding is None
    assert found["decode tok/s", "decode lines"].theirs == 150.0


def rates(*values: float, running: int = 1) -> tuple[DecodeTick, ...]:
    return tuple(DecodeTick(running, value) for value in (1.0, *values))


@pytest.mark.parametrize(
    ("values", "agrees"),
    [
        ((120.0, 121.0, 122.0), True),  # tok/s decode
        ((108.0, 110.0, 112.0), True),  # tok/s e2e: all pauses in the windows
        ((150.0, 151.0, 152.0), False),  # faster than any token came here
        ((80.0, 81.0, 82.0), False),  # slower than with all pauses
        ((90.0, 150.0, 210.0), True),  # three windows that far apart say nothing
        ((90.0, 150.0, 210.0) * 30, False),  # ninety do
    ],
)
def test_the_rate_of_the_log_is_held_against_ours_within_its_noise(values: tuple[float, ...], agrees: bool) -> None:
    """Between decode and end to end, for pauses are in the windows, and as near as their spread and number tell."""
    one = compared(ServerCounts(), ServerCounts(ticks=rates(*values)))["decode tok/s", "decode lines"]
    assert (round(one.ours, 1), round(one.lower or 0, 1)) == (121.1, 110.0)
    assert one.to_json()["agrees"] is agrees
    assert (one.finding is None) is agrees


@pytest.mark.parametrize("changes", [{"concurrency": 0}, {"error": "cut: gone"}])
def test_the_rate_of_the_log_is_not_judged_where_the_engine_may_idle(changes: dict[str, Any]) -> None:
    """At a rate, or where a request failed: shown, and not judged."""
    records = [*OURS, record("c", 1, None, **changes)]
    one = compared(ServerCounts(), ServerCounts(ticks=rates(50.0, 50.0, 50.0)), records)["decode tok/s", "decode lines"]
    assert (one.finding, one.to_json()["agrees"], one.to_json()["allowed"]) == (None, None, None)


def test_decode_lines_that_contradict_are_a_warning() -> None:
    """An acceptance that collapsed in the log while the answers claim another one."""
    one = compared(ServerCounts(), ServerCounts(ticks=ticks(1.0, 1.1, 1.1, 1.1)))["τ", "decode lines"]
    assert one.finding is not None
    assert one.finding.code == "cross-check"


def test_too_few_decode_lines_say_nothing() -> None:
    """And rates of several requests at once are no request's rate."""
    assert compared(ServerCounts(), ServerCounts(ticks=ticks(4, 4, 4))) == {}
    crowd = compared(ServerCounts(), ServerCounts(ticks=ticks(4, 4, 4, 4, running=8)))
    assert crowd.keys() == {("τ", "decode lines")}


def test_the_lines_of_a_cross_check() -> None:
    """Each says whether it agrees, and what it covers."""
    items = [
        one.to_json() for one in compared(ServerCounts(tokens=0), ServerCounts(tokens=320, lifetime_tau=3)).values()
    ]
    lines = list(pass_lines({"levels": [], "cross_check": items}))
    assert lines[0].startswith("cross-check: completion tokens 220, by the engine's /metrics 320: ⚠ disagrees (all")
    assert "for comparison only (since" in lines[1]

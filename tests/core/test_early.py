"""When no further request is asked."""

import pytest
from fakes.records import record

from ddconsole.core.boots import prompt_sums
from ddconsole.core.early import Best, hopeless, out_of_time
from ddconsole.core.metrics import RequestRecord


def answers(steps: tuple[int, ...], seconds: float = 1.0) -> list[RequestRecord]:
    """A request for each prompt: 100 tokens in so many verify steps."""
    return [record(f"p{place}", 100, count, seconds) for place, count in enumerate(steps)]


BEST = Best("E14", {prompt: tuple(row) for prompt, row in prompt_sums(answers((20, 21, 22, 20, 21, 22))).items()})


@pytest.mark.parametrize(
    ("asked", "elapsed", "total", "stops"),
    [(3, 180.0, 8, True), (2, 500.0, 8, False), (3, 179.0, 8, False), (8, 500.0, 8, False)],
)
def test_time_box(asked: int, elapsed: float, total: int, stops: bool) -> None:
    """From the third request on, and only where something is left to ask."""
    stop = out_of_time(asked, elapsed, 180.0, total)
    assert (stop is not None) == stops
    if stop:
        assert (stop.code, stop.text) == ("time-box", "the time box of 180 s was used up after 3 of 8 requests")
    assert out_of_time(asked, elapsed, None, total) is None


def test_a_collapse_is_seen_after_three_prompts() -> None:
    """τ 1.3 against 4.8, and four times slower."""
    slow = answers((76, 77, 78), seconds=4.0)
    assert hopeless(slow[:2], BEST) is None
    stop = hopeless(slow, BEST)
    assert stop is not None
    assert stop.code == "hopeless"
    assert stop.text.startswith("τ 1.30 after 3 prompts is hopeless against E14's 4.76 (at most ")


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [
        ((20, 21, 22, 20), 1.0),
        ((23, 24, 25, 23), 1.2),
        ((80, 80, 80, 80), 1.0),
        ((20, 21, 22, 20), 5.0),
        ((20, 90, 15), 4.0),
    ],
)
def test_nothing_is_ended_without_certainty(steps: tuple[int, ...], seconds: float) -> None:
    """As good as the best; a little worse; only τ; only speed (a slow neighbour); or scattered too widely."""
    assert hopeless(answers(steps, seconds), BEST) is None


def test_other_prompts_and_no_best_end_nothing() -> None:
    """Nothing is paired with them; nor do failed requests count."""
    strange = [record(f"q{n}", 100, 80, 4.0) for n in range(5)]
    broken = [record(f"p{n}", 100, 80, 4.0, error="cut: gone") for n in range(5)]
    assert hopeless(strange, BEST) is None
    assert hopeless(broken, BEST) is None
    assert hopeless(answers((80, 80, 80), 4.0), None) is None

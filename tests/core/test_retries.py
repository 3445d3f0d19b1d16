"""The rule for experiments that take the host down: three tries, and what else cut them does not count."""

from __future__ import annotations

import pytest

from ddconsole.core.retries import CONSOLE_ENDED, HOST_REBOOTED, SERVICE_VANISHED, may_try_again, try_words


@pytest.mark.parametrize(
    ("cuts", "again"),
    [
        ([], True),
        ([HOST_REBOOTED], True),
        ([HOST_REBOOTED, SERVICE_VANISHED], True),
        ([HOST_REBOOTED, HOST_REBOOTED, HOST_REBOOTED], False),
        ([HOST_REBOOTED, SERVICE_VANISHED, HOST_REBOOTED], False),
        ([CONSOLE_ENDED] * 9, True),
        ([HOST_REBOOTED, CONSOLE_ENDED, HOST_REBOOTED], True),
        ([HOST_REBOOTED, CONSOLE_ENDED, HOST_REBOOTED, SERVICE_VANISHED], False),
    ],
)
def test_at_most_two_more_tries_after_the_first(cuts: list[str], again: bool) -> None:
    """Only what took more down than the engine counts; a console may die as often as it likes."""
    assert may_try_again(cuts) is again


def test_the_words_say_which_try_is_next_or_that_none_is() -> None:
    """For the verdict that people read in the morning."""
    assert try_words([HOST_REBOOTED]) == "queued again at the front, try 2 of 3"
    assert try_words([HOST_REBOOTED, HOST_REBOOTED]) == "queued again at the front, try 3 of 3"
    assert try_words([HOST_REBOOTED] * 3) == "3 times with this experiment, so it is not tried again"

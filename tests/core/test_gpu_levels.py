"""GPU memory before a launch and after a stop: what is ours to answer for, and what is not."""

from __future__ import annotations

import pytest

from ddconsole.core.gpu_levels import TOLERANCE_MIB, not_given_back, parse_levels


def levels(*cards: int, apps: str = "") -> str:
    """Cards by their used MiB, and processes as `pid card MiB ours`, separated by commas."""
    lines = [f"card\t{index}, GPU-{index}, {used}" for index, used in enumerate(cards)]
    for app in filter(None, apps.split(",")):
        pid, card, mib, ours = app.split()
        lines.append(f"app\t{pid}\tGPU-{card}\t{mib}\t{ours}\troot\tsglang::scheduler_TP{card}")
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        (levels(0, 0), levels(0, 0)),
        (levels(4, 4), levels(4 + TOLERANCE_MIB, 0)),
        (levels(90_000), levels(0)),
        # a stranger's process is theirs: one that was there before and grew, and one of another user
        (levels(1000, apps="7 0 1000 yes"), levels(9000, apps="7 0 9000 yes")),
        (levels(0), levels(80_000, apps="8 0 80000 no")),
        # a card that one reading does not have proves nothing
        (levels(0), levels(0, 50_000)),
        ("", levels(50_000)),
        (levels(0), "card\t0, GPU-0, [N/A]"),
        (levels(0), "Failed to initialize NVML: Driver/library version mismatch"),
    ],
)
def test_memory_that_is_back_or_not_ours_is_no_remainder(before: str, now: str) -> None:
    """Nothing false is said."""
    assert not_given_back(parse_levels(before), parse_levels(now)) == []


def test_a_rank_that_survived_is_named_with_card_and_memory() -> None:
    """As sglang#23627 has it: a scheduler under process 1 that holds 100 GB."""
    now = parse_levels(levels(3, 100_998, apps="31207 1 100995 yes"))
    (line,) = not_given_back(parse_levels(levels(3, 3)), now)
    assert line == (
        "GPU 1: 100,995 MiB more than before the launch, held by "
        "pid 31207 (root, sglang::scheduler_TP1) with 100,995 MiB"
    )


def test_memory_that_nobody_visible_holds_is_said_as_such() -> None:
    """The driver has not given it back, or its holder is in another namespace."""
    (line,) = not_given_back(parse_levels(levels(0)), parse_levels(levels(40_000)))
    assert line == "GPU 0: 40,000 MiB more than before the launch, held by no visible process"


def test_a_stranger_who_left_does_not_hide_what_we_left() -> None:
    """Their 30 GB went, our 30 GB stayed: the card's sum is the same."""
    before = parse_levels(levels(30_000, apps="7 0 30000 no"))
    (line,) = not_given_back(before, parse_levels(levels(30_000, apps="9 0 30000 yes")))
    assert "pid 9" in line
    assert "30,000 MiB" in line


@pytest.mark.parametrize(
    "text", ["card", "card\t", "card\tx, y, z", "app\t1\t2", "app\tx\tGPU-0\t1\tyes\ta\tb", "\x00", "card\t1,2"]
)
def test_what_is_no_reading_means_nothing(text: str) -> None:
    """Lines of any shape are skipped."""
    assert parse_levels(text).used_mib == {}
    assert parse_levels(text).holders == ()

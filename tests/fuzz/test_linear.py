"""No input takes more than linear time, counted in lines of Python that run: the same on every machine.

What runs below Python (patterns, copies of buffers) is not counted here; `make fuzz` times it.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from fuzz.families import ONE_CUT, PLAIN, SLOW_CUT
from fuzz.targets import TARGETS, Target, attempt

SIZES = (1_024, 4_096)
SLACK = 1.6
"""Growth beyond fourfold that limits which begin to hold between the two sizes may bring; quadratic work has 4."""


def steep(small: int, large: int) -> bool:
    """Whether four times the input was more than about four times the work."""
    return large > 4 * SLACK * small + 400


def lines_run(target: Target, data: bytes) -> int:
    """Lines of ddconsole that one run executes; those of libraries are theirs."""
    count = 0

    def local(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        if event == "line":
            count += 1
        return local

    def called(frame: FrameType, event: str, arg: Any) -> Any:
        return local if "/ddconsole/" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        attempt(target, data)
    finally:
        sys.settrace(before)
    return count


def cuts(target: Target) -> tuple[bytes, ...]:
    return (ONE_CUT, SLOW_CUT) if target.fed else (b"",)


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_four_times_the_input_is_at_most_about_four_times_the_work(target: Target) -> None:
    """Over every family of hostile inputs, whole and in small pieces."""
    found = []
    for name, family in PLAIN.items():
        for cut in cuts(target):
            small, large = (lines_run(target, cut + family(size)) for size in SIZES)
            if steep(small, large):
                found.append(f"{name}: {small}, then {large} lines")
    assert found == []


def test_the_count_sees_quadratic_work() -> None:
    """The measure itself: a reader that looks at everything again for each byte stands out."""
    from ddconsole.engines.sglang.shardbar import find_bar

    def quadratic(data: bytes) -> None:
        for end in range(0, len(data), 16):
            for start in range(0, end, 16):
                find_bar(data[start : start + 1].decode("utf-8", "replace"))

    bad = Target("quadratic", quadratic, lambda: iter([b""]))
    small, large = (lines_run(bad, b"a" * size) for size in SIZES)
    assert steep(small, large)

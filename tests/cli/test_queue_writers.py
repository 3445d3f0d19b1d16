"""Many terminals, one queue, through the command line."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TERMINALS, LINES = 8, 5
TYPIST = """
import sys
from ddconsole.cli.main import cli
who = int(sys.argv[1])
for line in range(int(sys.argv[2])):
    words = ["queue", "demo", "add", f"b={8 + who}", f"B={40 + line}", f"note={who}-{line}"]
    if cli.main(words, standalone_mode=False) != 0:
        sys.exit(1)
"""


def test_eight_terminals_with_five_lines_each_end_with_exactly_the_expected_queue(
    ddconsole: Callable[..., Any],
) -> None:
    """Also the first line of all, which puts the profile's starting queue in: once."""
    typists = [
        subprocess.Popen(
            [sys.executable, "-c", TYPIST, str(who), str(LINES)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for who in range(TERMINALS)
    ]
    assert [typist.wait(60) for typist in typists] == [0] * TERMINALS
    items = ddconsole("queue", "demo", "list", "--json").json["items"]
    assert [item["id"] for item in items] == [f"E{number}" for number in range(1, 3 + TERMINALS * LINES + 1)]
    assert [item["origin"]["verb"] for item in items[:3]] == ["profile"] * 3
    for who in range(TERMINALS):
        own = [item["note"] for item in items if item["note"].startswith(f"{who}-")]
        assert own == [f"{who}-{line}" for line in range(LINES)]

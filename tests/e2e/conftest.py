"""A home for each test that runs the installed command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes.command import Cli, end_demo

THREE = ("add b=8 B=12 K=6 W=2048", "add algorithm=chain b=8 W=2048", "add b=16 B=26 K=6 W=2048")


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    """A home of its own; nothing of it is left afterwards."""
    command = Cli(tmp_path)
    yield command
    end_demo(command)

"""docs/measuring.md names what the code names: no figure without its definition, no definition without its figure."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fakes.records import fixture_record

from ddconsole.core.compare import Comparison
from ddconsole.core.config import Algorithm, Config, effective_config
from ddconsole.core.crosscheck import Compared
from ddconsole.core.early import HOPELESS
from ddconsole.core.experiment import Outcome, Workload
from ddconsole.core.levels import ClientLoad, Objectives, summarise_level
from ddconsole.core.loads import ClosedLoop, LoadedLevel, OpenLoop
from ddconsole.core.profile import QUICK_BOX_S
from ddconsole.core.stats import RESAMPLES
from ddconsole.core.verdict import result_item

PAGE = Path(__file__).parents[2] / "docs" / "measuring.md"
NOT_MEASURED = {
    "id", "sweep", "attempt", "outcome", "config", "effective", "engine_version", "vs_reference", "verdict", "failure",
    "measured_on", "started_at", "finished_at",
}  # fmt: skip
"""What a result also says, which is no figure of it."""


def sections() -> dict[str, str]:
    """The page by its headings."""
    parts = re.split(r"^## (.+)$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def named(section: str) -> list[str]:
    """The first column of a section's tables."""
    return re.findall(r"^\| `(\w+)` \|", sections()[section], flags=re.MULTILINE)


def result() -> dict[str, Any]:
    """The item of an attempt."""
    tree = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
    return result_item(
        id="E1", sweep=None, attempt=1, outcome=Outcome.PASSED, config=tree, effective=effective_config(tree),
        workload=Workload(), engine_version=None, boot_s=None, summaries={}, failure=None, measured_on=None,
        started_at="", finished_at="",
    )  # fmt: skip


def level(load: ClosedLoop | OpenLoop) -> dict[str, Any]:
    """A level's figures under a load."""
    records = (fixture_record(),)
    summary = summarise_level(records, 3.2, load.concurrency, objectives=Objectives(1, 1), load=ClientLoad(0.1, 0.001))
    return LoadedLevel(load, summary, records).to_json()


CODE = {
    "A result": set(result()) - NOT_MEASURED,
    "A level": set(level(ClosedLoop(1))) | set(level(OpenLoop(1.0, "poisson", 4, 1))),
    "The noise": set(Comparison("E1", "E2", 0.0, None, None, 0).to_json()),
    "Beside the engine's own figures": set(Compared("n", 1.0, 1.0, "s", "s", None).to_json()),
}


@pytest.mark.parametrize("section", CODE)
def test_every_figure_has_its_definition_and_every_definition_its_figure(section: str) -> None:
    """Each name once."""
    names = named(section)
    assert sorted(names) == sorted(CODE[section])


def test_numbers_that_the_page_gives_are_the_codes() -> None:
    """Resamples, the time box, what is hopeless."""
    page = PAGE.read_text("utf-8")
    assert f"each of {RESAMPLES:,} resamples" in page
    assert f"{QUICK_BOX_S:.0f} s for `quick`" in page
    assert f"lie below {HOPELESS:.0%} of the best".replace("85%", "85 %") in page

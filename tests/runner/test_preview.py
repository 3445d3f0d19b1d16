"""A line of the language before it is taken: price, starts of the engine, doubles, the missing control."""

from dataclasses import replace
from typing import Any

import pytest
from fakes.queues import CHAIN, NOW, TREE, applied, begun, ended

from ddconsole.core.experiment import Origin, Workload
from ddconsole.core.profile import Profile, parse_profile
from ddconsole.core.queue import Add, Draft, Queue, Refusal
from ddconsole.core.spec import Duplicate, SpecContext, SpecRefusal, parse
from ddconsole.runner.outlook import Outlook
from ddconsole.runner.preview import Known, Preview, preview

BOOT, PASS = 400.0, 70.0


def profile(**engine: Any) -> Profile:
    """A profile with known prices: 400 s a boot, 70 s a pass, two passes."""
    data: dict[str, Any] = {
        "host": "gpu1",
        "engine": {"command": ["serve"], "model": "m", "drafter": "d", "trained_block_size": "8"} | engine,
        "knobs": {
            "algorithm": {"flag": "--algorithm", "off": None, "chain": "C", "tree": "T"},
            "block_size": {"flag": "--b", "default": "8"},
            "budget": {"flag": "--budget", "default": "12"},
            "topk": {"flag": "--k", "default": "6"},
            "window": {"flag": "--w", "default": "2048"},
        },
        "expect": {"boot_s": str(BOOT), "pass_s": str(PASS)},
    }
    return parse_profile(data)


class Records:
    """The part of a store that a preview is looked up in."""

    def __init__(self, queues: dict[str, Queue], items: dict[str, list[dict[str, Any]]] | None = None) -> None:
        self._queues = queues
        self._items = items or {}

    def queue(self, name: str) -> Queue:
        """That profile's queue."""
        return self._queues[name]

    def results(self, name: str) -> list[dict[str, Any]]:
        """That profile's results."""
        return self._items.get(name, [])


def queue_of(*drafts: Draft) -> Queue:
    """These drafts, queued."""
    return applied(Queue(), Add(drafts, Origin()))


def seen(line: str, queue: Queue, known: Known | None = None, of: Profile | None = None) -> Preview:
    """The preview of a line."""
    of = of or profile()
    command = parse(line, SpecContext.of(of, queue))
    assert not isinstance(command, SpecRefusal), command
    found = preview(command, queue, of, Outlook("p", of, ()), known or Known(), NOW)
    assert not isinstance(found, Refusal), found
    return found


def test_a_sweep_shows_its_grid_its_price_and_its_doubles() -> None:
    queue = queue_of(Draft(CHAIN), Draft(replace(TREE, block_size=16, budget=32)), Draft(TREE))
    found = seen("sweep b=16,24 B=2b", queue)
    assert (found.command.grid, [item.id for item in found.items]) == ("b 16,24 × B 2b", ["E4", "E5"])
    assert (found.total_s, found.boots) == (2 * (BOOT + 2 * PASS), 2)
    assert found.doubles == (Duplicate("E2", "queued"), None)
    fewer = found.without_doubles()
    assert fewer is not None
    assert [draft.config and draft.config.block_size for draft in fewer.drafts] == [24]


def test_an_engine_that_is_kept_costs_no_boot() -> None:
    """Right behind its equal; elsewhere it does."""
    queue = queue_of(Draft(CHAIN), Draft(TREE))
    assert (seen("add b=8 B=12 repeats=3", queue).seconds, seen("add b=8 B=12", queue).boots) == ((6 * PASS,), 0)
    assert seen("next b=8 B=12 repeats=3", queue).seconds == (BOOT + 6 * PASS,)


def test_nothing_of_it_changes_the_queue() -> None:
    queue = queue_of(Draft(CHAIN))
    found = seen("add B=24", queue)
    assert [item.id for item in found.after.items] == ["E1", "E2"]
    assert [item.id for item in queue.items] == ["E1"]


def test_a_tree_without_a_control_is_offered_the_line_that_queues_it() -> None:
    """The line is one of the language, and taking it ends the offer."""
    found = seen("add b=16 B=26 repeats=2", Queue())
    assert found.control is not None
    assert found.control.spec == "next algorithm=chain b=8 W=2048 repeats=2"
    assert (found.control.seconds, found.control.assumed) == (BOOT + 4 * PASS, False)
    control = seen(found.control.spec, Queue())
    assert seen("add b=16 B=26 repeats=2", control.after).control is None


def test_a_block_size_that_the_profile_does_not_know_is_said_to_be_assumed() -> None:
    found = seen("add B=24", Queue(), of=profile(trained_block_size="auto"))
    assert found.control is not None
    assert found.control.assumed


def test_a_control_under_another_workload_is_no_control() -> None:
    """The same queue, measured before the profile asked for thinking."""
    queue = ended(queue_of(Draft(CHAIN)), "E1")
    assert seen("add B=24", queue).control is None
    results = {"p": [{"id": "E1", "workload": Workload(thinking=True).to_json()}]}
    known = Known.of(Records({"p": queue}, results), "p")  # type: ignore[arg-type]
    assert seen("add B=24", queue, known).control is not None


def test_work_of_another_profile_of_the_host_is_a_double_and_a_control() -> None:
    other = ended(ended(queue_of(Draft(CHAIN), Draft(TREE)), "E1"), "E2")
    records = Records({"p": Queue(), "lab": other})
    known = Known.of(records, "p", [("lab", profile())])  # type: ignore[arg-type]
    found = seen("add b=8 B=12", Queue(), known)
    assert (found.doubles, found.control) == ((Duplicate("lab:E2", "measured"),), None)


def test_an_edit_that_makes_a_double_names_it_and_an_edit_of_a_note_does_not() -> None:
    queue = queue_of(Draft(CHAIN), Draft(TREE), Draft(replace(TREE, budget=20)))
    assert seen("edit E3 B=12", queue).doubles == (Duplicate("E2", "queued"),)
    assert seen("edit E3 note=mine", queue).doubles == (None,)


@pytest.mark.parametrize("line", ["hold E1", "undo", "pause", "move E1 bottom"])
def test_verbs_that_add_nothing_have_no_price(line: str) -> None:
    found = seen(line, queue_of(Draft(CHAIN), Draft(TREE)))
    assert (found.doubles, found.control) == ((), None)


def test_what_the_rules_refuse_is_refused_here_too() -> None:
    queue = begun(queue_of(Draft(CHAIN)), "E1")
    command = parse("edit E1 W=64", SpecContext.of(profile(), queue))
    assert not isinstance(command, SpecRefusal)
    found = preview(command, queue, profile(), Outlook("p", profile(), ()), Known(), NOW)
    assert isinstance(found, Refusal)
    assert found.code == "running"

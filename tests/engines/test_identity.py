"""What is proved of a running engine, and what makes it another one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import Failure
from ddconsole.core.ports import Identity, Launched
from ddconsole.core.progress import BootFacts
from ddconsole.engines.sglang.identity import Witnesses, judge, same, same_model
from ddconsole.engines.sglang.verify_width import check_verify_width

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

INFO: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "server_info.json").read_text())
FACTS = BootFacts(block_size=8, budget=12, window=2048, verify_width=13)
ENVIRON = {"DDCONSOLE_ATTEMPT": "t0ken", "SGLANG_DDTREE_MAX_TOPK": "6"}
LAUNCHED = Launched("process", 42, 42, 1, "b", "t0ken", "/l", "/s", 30000)
TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
OFF = Config(Algorithm.OFF)
ENGINE = {"model": "/models/Kimi-K2.6", "drafter": "SubSir/Kimi-K2.6-DFlash-tmp-long", "args": {"tp-size": "8"}}


def judged(
    profile: Profile, config: Config = TREE, *, facts: BootFacts = FACTS, environ: dict[str, str] = ENVIRON,
    why_not: str = "", without_info: bool = False, **info: Any
) -> Identity | Failure:  # fmt: skip
    """A verdict on the recorded engine with some of its words changed."""
    told = {} if without_info else INFO | info
    return judge(profile, config, LAUNCHED, Witnesses(told, facts, environ, why_not))


def test_all_witnesses_agree(make_profile: MakeProfile) -> None:
    """Each proof says on what it stands; K is derived and stays unproved."""
    identity = judged(make_profile(ENGINE))
    assert isinstance(identity, Identity)
    assert identity.version == "0.5.23"
    proved = set(identity.proved)
    assert "block size 8 (server_info, log)" in proved
    assert "budget 12 (server_info, log)" in proved
    assert "window 2048 (server_info, log)" in proved
    assert "topk cap 6 (environment)" in proved
    assert "algorithm DDTREE (server_info)" in proved
    assert "verify width 13 (log)" in proved
    assert "process 42 is this attempt's (environment)" in proved
    assert "port 30000 (server_info)" in proved
    assert any("topk 2 (derived" in text for text in identity.unproved)


@pytest.mark.parametrize(
    ("info", "said"),
    [
        ({"speculative_num_draft_tokens": 16}, "block size: asked 8, server_info says 16"),
        ({"speculative_ddtree_budget": 24}, "budget: asked 12, server_info says 24"),
        ({"speculative_draft_window_size": 4096}, "window: asked 2048"),
        ({"speculative_algorithm": "DFLASH"}, "algorithm: asked DDTREE"),
        ({"speculative_algorithm": None}, "algorithm: asked DDTREE, server_info says none"),
        ({"model_path": "/models/Other"}, "model: asked /models/Kimi-K2.6, server_info says /models/Other"),
        ({"port": 30001}, "port: asked 30000"),
    ],
)
def test_another_engine_is_a_failure_with_a_name(make_profile: MakeProfile, info: dict[str, Any], said: str) -> None:
    """A stale engine that holds the port, or one that changed what was asked."""
    failure = judged(make_profile(ENGINE), **info)
    assert isinstance(failure, Failure)
    assert failure.cause == "identity-mismatch"
    assert said in failure.evidence[0]


@pytest.mark.parametrize(
    "facts",
    [replace(FACTS, budget=7), replace(FACTS, block_size=16), replace(FACTS, window=4096)],
    ids=["budget", "block-size", "window"],
)
def test_a_fork_that_ignores_a_knob_is_found_by_its_log(make_profile: MakeProfile, facts: BootFacts) -> None:
    """/server_info repeats what was asked; the worker's line tells what runs."""
    failure = judged(make_profile(ENGINE), facts=facts)
    assert isinstance(failure, Failure)
    assert failure.cause == "identity-mismatch"
    assert "log says" in failure.evidence[0]


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({"DDCONSOLE_ATTEMPT": "t0ken", "SGLANG_DDTREE_MAX_TOPK": "4"}, "topk cap: asked 6, environment says 4"),
        ({"DDCONSOLE_ATTEMPT": "other", "SGLANG_DDTREE_MAX_TOPK": "6"}, "another attempt"),
    ],
)
def test_the_process_environment_is_a_witness(make_profile: MakeProfile, environ: dict[str, str], said: str) -> None:
    """A cap that is spelled by environment, and the mark of this attempt."""
    failure = judged(make_profile(ENGINE), environ=environ)
    assert isinstance(failure, Failure)
    assert said in failure.evidence[0]


def test_what_nobody_tells_is_asked_not_proved(make_profile: MakeProfile) -> None:
    """Without /server_info and without environment the log alone stands."""
    identity = judged(make_profile(ENGINE), environ={}, why_not="HTTP 404", without_info=True)
    assert isinstance(identity, Identity)
    assert "block size 8 (log)" in identity.proved
    assert "topk cap 6 (asked, not proved)" in identity.unproved
    assert "server_info (HTTP 404)" in identity.unproved
    assert any("attempt token" in text for text in identity.unproved)


def test_silent_witnesses_prove_nothing(make_profile: MakeProfile) -> None:
    """An engine that tells nothing at all proves nothing at all."""
    identity = judged(make_profile(ENGINE), facts=BootFacts(), environ={}, why_not="timeout", without_info=True)
    assert isinstance(identity, Identity)
    assert identity.proved == ()


def test_off_must_not_draft(make_profile: MakeProfile) -> None:
    """Plain decoding: no algorithm told, no verify graph in the log."""
    identity = judged(make_profile(ENGINE), OFF, facts=BootFacts(), speculative_algorithm=None)
    assert isinstance(identity, Identity)
    assert "no drafting algorithm (server_info)" in identity.proved
    told = judged(make_profile(ENGINE), OFF, facts=BootFacts())
    logged = judged(make_profile(ENGINE), OFF, facts=BootFacts(verify_width=8), speculative_algorithm=None)
    for failure in (told, logged):
        assert isinstance(failure, Failure)
        assert failure.cause == "identity-mismatch"


CHAIN = Config(Algorithm.CHAIN, 8)


@pytest.mark.parametrize(
    ("config", "logged", "budget", "outcome"),
    [
        (TREE, 13, None, "verify width 13 (log)"),
        (TREE, 16, 12, "verify width 13, padded to 16 (log)"),
        (TREE, 32, 12, "verify width 13, padded to 32 (log)"),
        (TREE, 14, 12, "verify width 13, padded to 14 (log)"),
        (TREE, 25, 12, "identity-mismatch"),
        (TREE, 25, None, "identity-mismatch"),
        (TREE, 8, 12, "verify-graph-too-small"),
        (TREE, 8, None, "verify-graph-too-small"),
        (TREE, None, 12, "verify width 13 (no verify graph in the log)"),
        (CHAIN, 8, None, "verify width 8 (log)"),
        (CHAIN, 4, None, "verify-graph-too-small"),
        (CHAIN, 16, None, "identity-mismatch"),
        (CHAIN, 32, None, "identity-mismatch"),
        (CHAIN, 16, 15, "identity-mismatch"),
        (OFF, None, None, "no verify graph (log)"),
    ],
)
def test_the_verify_graph_has_to_hold_the_tree(
    config: Config, logged: int | None, budget: int | None, outcome: str
) -> None:
    """A graph sized to b in place of B + 1 is a named failure; a chain is never padded."""
    verdict = check_verify_width(config, BootFacts(verify_width=logged, budget=budget))
    assert (verdict.cause if isinstance(verdict, Failure) else verdict.text) == outcome


@pytest.mark.parametrize("width", [14, 16, 32])
def test_a_fork_stuck_at_a_default_budget_is_not_proved_by_its_padding(make_profile: MakeProfile, width: int) -> None:
    """16 may be a tree of 12 padded or a budget of 15: /server_info repeats what was asked, the worker says nothing."""
    identity = judged(make_profile(ENGINE), facts=BootFacts(block_size=8, window=2048, verify_width=width))
    assert isinstance(identity, Identity)
    assert not [text for text in identity.proved if text.startswith(("verify width", "budget"))]
    (reason,) = [text for text in identity.unproved if text.startswith("verify width")]
    assert f"the graph holds {width}" in reason
    assert f"a budget of {width - 1}" in reason
    assert "budget 12 (server_info)" in identity.unproved


def test_a_padded_width_is_proved_by_a_worker_that_names_the_budget(make_profile: MakeProfile) -> None:
    """As the fork that captures graphs for buckets of nodes does."""
    identity = judged(make_profile(ENGINE), facts=replace(FACTS, verify_width=16))
    assert isinstance(identity, Identity)
    assert "verify width 13, padded to 16 (log)" in identity.proved
    assert "budget 12 (server_info, log)" in identity.proved


@pytest.mark.parametrize(("width", "cause"), [(8, "verify-graph-too-small"), (25, "identity-mismatch")])
def test_a_fork_that_ignores_the_budget_is_found_by_its_graph_alone(
    make_profile: MakeProfile, width: int, cause: str
) -> None:
    """It repeats the budget that was asked, its worker says nothing, and only the verify graph tells."""
    failure = judged(make_profile(ENGINE), facts=BootFacts(block_size=8, window=2048, verify_width=width))
    assert isinstance(failure, Failure)
    assert failure.cause == cause
    assert f"num_tokens_per_req={width}" in failure.evidence


def test_arguments_of_the_experiment_must_be_as_asked(make_profile: MakeProfile) -> None:
    """The engine may correct the profile's, and then it is said."""
    profile = make_profile(ENGINE | {"args": {"page-size": "64"}})
    identity = judged(profile)
    assert isinstance(identity, Identity)
    assert "page-size: asked 64, runs 1 (server_info)" in identity.unproved
    failure = judged(make_profile(ENGINE), replace(TREE, args=(("attention_backend", "fa3"),)))
    assert isinstance(failure, Failure)
    assert "attention-backend: asked fa3" in failure.evidence[0]


def test_a_knob_in_a_json_flag_is_read_there(make_profile: MakeProfile) -> None:
    """A field of an object."""
    knobs = {"budget": {"json_field": "--speculative-config:budget"}}
    identity = judged(make_profile(ENGINE, knobs=knobs), speculative_config={"budget": 12})
    failure = judged(make_profile(ENGINE, knobs=knobs), speculative_config={"budget": 7})
    assert isinstance(identity, Identity)
    assert "budget 12 (server_info, log)" in identity.proved
    assert isinstance(failure, Failure)


def test_the_command_line_is_compared_where_it_is_told(make_profile: MakeProfile) -> None:
    """As one string or as words."""
    identity = judged(make_profile(ENGINE))
    assert isinstance(identity, Identity)
    missing = next(text for text in identity.unproved if text.startswith("command line"))
    assert "--speculative-draft-model-path" in missing
    command = (
        "x --model-path /models/Kimi-K2.6 --speculative-algorithm DDTREE --speculative-draft-model-path "
        "SubSir/Kimi-K2.6-DFlash-tmp-long --speculative-num-draft-tokens 8 --speculative-ddtree-budget 12 "
        "--speculative-draft-window-size 2048 --tp-size 8 --host 127.0.0.1 --port 30000"
    )
    for told in (command, command.split()):
        whole = judged(make_profile(ENGINE), launch_command=told)
        assert isinstance(whole, Identity)
        assert "command line (server_info)" in whole.proved


@pytest.mark.parametrize(
    ("asked", "told", "equal"),
    [("0.90", 0.9, True), ("true", True, True), ("8", 8, True), ("triton", "TRITON", True), ("8", 16, False),
     ("x", "y", False)],
)  # fmt: skip
def test_words_numbers_and_flags_are_compared_by_value(asked: Any, told: Any, equal: bool) -> None:
    """As an engine echoes them."""
    assert same(asked, told) is equal


@pytest.mark.parametrize(
    ("asked", "told", "equal"),
    [
        ("models/Toy-K2.6", "/home/x/models/Toy-K2.6", True),
        ("moonshotai/Kimi-K2.6", "/c/hub/models--moonshotai--Kimi-K2.6/snapshots/abc", True),
        ("moonshotai/Kimi-K2.6", "moonshotai/Kimi-K2.5", False),
        ("Kimi-K2", "/models/Kimi-K2.6", False),
        ("x", None, False),
    ],
)
def test_a_model_may_be_told_by_its_resolved_path(asked: str, told: Any, equal: bool) -> None:
    """The name has to be a whole part of it."""
    assert same_model(asked, told) is equal

"""A config becomes a command by the profile's spelling of the knobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import UsageError
from ddconsole.core.experiment import Workload
from ddconsole.core.ports import Prompt
from ddconsole.engines.sglang.command import launch_plan, tied_value
from ddconsole.engines.sglang.dialect import dialect_for, native_dialect

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
CHAIN = Config(Algorithm.CHAIN, block_size=8, window=2048)
OFF = Config(Algorithm.OFF)


def options(argv: tuple[str, ...]) -> dict[str, str | None]:
    """Long flags to their value, None for a bare one."""
    found: dict[str, str | None] = {}
    for word, following in zip(argv, (*argv[1:], "--"), strict=True):
        if word.startswith("--"):
            found[word] = None if following.startswith("--") else following
    return found


def test_a_tree_in_the_default_spelling(make_profile: MakeProfile) -> None:
    """Flags for b, B and W, the cap of K in the environment."""
    plan = launch_plan(make_profile(), TREE, 30123, {})
    assert plan.argv[:5] == ("python3", "-m", "sglang.launch_server", "--model-path", "M")
    assert options(plan.argv) == {
        "--model-path": "M",
        "--speculative-algorithm": "DDTREE",
        "--speculative-draft-model-path": "D",
        "--speculative-num-draft-tokens": "8",
        "--speculative-ddtree-budget": "12",
        "--speculative-draft-window-size": "2048",
        "--host": "127.0.0.1",
        "--port": "30123",
    }
    assert plan.env == {"PYTHONUNBUFFERED": "1", "SGLANG_DDTREE_MAX_TOPK": "6"}
    assert plan.port == 30123


def test_a_chain_has_no_tree_knobs(make_profile: MakeProfile) -> None:
    """Neither a budget nor a cap of K."""
    plan = launch_plan(make_profile(), CHAIN, 1, {})
    assert options(plan.argv)["--speculative-algorithm"] == "DFLASH"
    assert "--speculative-ddtree-budget" not in plan.argv
    assert plan.env == {"PYTHONUNBUFFERED": "1"}


def test_off_has_no_drafter(make_profile: MakeProfile) -> None:
    """Plain decoding: no algorithm flag, no drafter, even if the profile names one."""
    plan = launch_plan(make_profile(), OFF, 1, {})
    assert options(plan.argv) == {"--model-path": "M", "--host": "127.0.0.1", "--port": "1"}


def test_without_a_window_the_engine_decides(make_profile: MakeProfile) -> None:
    """None leaves the flag out."""
    assert "--speculative-draft-window-size" not in launch_plan(make_profile(), Config(Algorithm.CHAIN, 8), 1, {}).argv


@pytest.mark.parametrize(
    ("knobs", "flags", "env"),
    [
        ({"topk": {"flag": "--speculative-ddtree-topk"}}, {"--speculative-ddtree-topk": "6"}, {}),
        ({"budget": {"env": "TREE_BUDGET"}}, {"--speculative-ddtree-budget": "absent"}, {"TREE_BUDGET": "12"}),
        ({"topk": {"cap_env": "MAX_K", "derived": "ddtree-pr29907"}}, {}, {"MAX_K": "6"}),
        ({"window": {"flag": "--speculative-dflash-draft-window-size"}},
         {"--speculative-dflash-draft-window-size": "2048", "--speculative-draft-window-size": "absent"}, {}),
    ],
)  # fmt: skip
def test_each_way_of_spelling(
    make_profile: MakeProfile, knobs: dict[str, Any], flags: dict[str, str], env: dict[str, str]
) -> None:
    """By flag, by environment, by cap."""
    plan = launch_plan(make_profile(knobs=knobs), TREE, 1, {})
    found = options(plan.argv)
    assert {flag: found.get(flag, "absent") for flag in flags} == flags
    assert {name: plan.env[name] for name in env} == env


def test_json_fields_share_one_flag_with_what_the_args_put_there(make_profile: MakeProfile) -> None:
    """vLLM spells its knobs as fields of one JSON flag."""
    knobs = {
        "block_size": {"json_field": "--speculative-config:block"},
        "budget": {"json_field": "--speculative-config:budget"},
    }
    profile = make_profile({"args": {"speculative-config": '{"method": "ddtree"}'}}, knobs=knobs)
    argv = launch_plan(profile, TREE, 1, {}).argv
    assert argv.count("--speculative-config") == 1
    given = options(argv)["--speculative-config"]
    assert given is not None
    assert json.loads(given) == {"method": "ddtree", "block": 8, "budget": 12}


def test_a_json_flag_that_is_no_object_is_refused(make_profile: MakeProfile) -> None:
    """A field cannot be put into a number."""
    profile = make_profile(
        {"args": {"speculative_config": "3"}}, knobs={"budget": {"json_field": "--speculative-config:budget"}}
    )
    with pytest.raises(UsageError, match="JSON object"):
        launch_plan(profile, TREE, 1, {})


@pytest.mark.parametrize(
    ("knobs", "config", "said"),
    [
        ({"budget": {"tied": "block_size - 1"}}, TREE, "budget=12 .* budget is 7, tied to block_size - 1"),
        ({"topk": {"derived": "ddtree-pr29907"}}, TREE, "topk=6 .* topk is 2, derived from the budget"),
        ({"window": {"default": 4096}}, CHAIN, "window=2048 .* window is 4096"),
    ],
)
def test_a_knob_that_cannot_be_set_is_refused_by_name(
    make_profile: MakeProfile, knobs: dict[str, Any], config: Config, said: str
) -> None:
    """Two configs must never silently be the same engine."""
    with pytest.raises(UsageError, match=said):
        launch_plan(make_profile(knobs=knobs), config, 1, {})


def test_a_tied_knob_with_the_value_it_has_is_left_out(make_profile: MakeProfile) -> None:
    """B = b − 1 is what that fork runs anyway."""
    config = Config(Algorithm.TREE, block_size=8, budget=7)
    plan = launch_plan(make_profile(knobs={"budget": {"tied": "block_size - 1"}}), config, 1, {})
    assert "--speculative-ddtree-budget" not in plan.argv


@pytest.mark.parametrize(
    ("expression", "value"),
    [("block_size - 1", 7), ("block_size", 8), ("budget * 2", 24), ("window+1", 2049)],
)
def test_tied_expressions(expression: str, value: int) -> None:
    """A name, or a name with one whole number."""
    assert tied_value(expression, TREE) == value


def test_a_tied_expression_is_no_program() -> None:
    """Only arithmetic on one knob."""
    with pytest.raises(UsageError, match="not understood"):
        tied_value("__import__('os')", TREE)


def test_arguments_of_the_config_stand_over_the_profiles(make_profile: MakeProfile) -> None:
    """By name, `_` and `-` alike; true is bare, false and null leave out."""
    profile = make_profile(
        {"args": {"tp-size": "8", "trust-remote-code": "true", "page_size": "1", "disable-x": "true", "y": None}}
    )
    config = Config(Algorithm.OFF, args=(("disable_x", "false"), ("mem-fraction-static", "0.9"), ("page-size", "64")))
    found = options(launch_plan(profile, config, 1, {}).argv)
    assert found["--tp-size"] == "8"
    assert found["--trust-remote-code"] is None
    assert found["--page-size"] == "64"
    assert found["--mem-fraction-static"] == "0.9"
    assert "--disable-x" not in found
    assert "--y" not in found


@pytest.mark.parametrize(
    "name", ["port", "host", "model_path", "speculative_num_draft_tokens", "speculative-algorithm"]
)
def test_a_flag_of_ours_is_no_argument(make_profile: MakeProfile, name: str) -> None:
    """A knob set twice would measure one config and show another."""
    with pytest.raises(UsageError, match="is set by"):
        launch_plan(make_profile(), Config(Algorithm.OFF, args=((name, "1"),)), 1, {})


def test_secrets_are_kept_apart_from_the_command(make_profile: MakeProfile) -> None:
    """They go by file, never by `ps`."""
    plan = launch_plan(make_profile({"env": {"A": "1"}}), OFF, 1, {"HF_TOKEN": "s3cret"})
    assert plan.secret_env == {"HF_TOKEN": "s3cret"}
    assert plan.env["A"] == "1"
    assert "s3cret" not in plan.shown


def test_a_key_that_only_a_flag_can_carry_is_masked_where_it_is_shown(make_profile: MakeProfile) -> None:
    """SGLang takes its api key by flag alone; the store and the screen never see it, the requests carry it."""
    profile = make_profile({"args": {"api-key": "sk-not-for-the-store"}})
    plan = launch_plan(profile, OFF, 1, {})
    assert "sk-not-for-the-store" in plan.argv
    assert "sk-not-for-the-store" not in plan.shown
    for dialect in (native_dialect(profile), dialect_for("0.5.23", profile)):
        request = dialect.request(Prompt("p", "hello"), Workload())
        assert request.headers == {"Authorization": "Bearer sk-not-for-the-store"}
        assert "sk-not-for-the-store" not in repr(dialect)


def test_drafting_without_a_drafter_is_refused(make_profile: MakeProfile) -> None:
    """The profile has to name one."""
    with pytest.raises(UsageError, match="drafter"):
        launch_plan(make_profile({"drafter": None}), CHAIN, 1, {})

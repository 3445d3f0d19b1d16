"""What is kept of how a number was made."""

from ddconsole.core.difference import changes, flags_of
from ddconsole.core.experiment import Workload
from ddconsole.core.ports import LaunchPlan
from ddconsole.core.profile import Profile
from ddconsole.core.recipe import launch_recipe, measuring_recipe, shown_env


def profile(**changes: object) -> Profile:
    return Profile.model_validate(
        {"schema": 1, "host": "demo", "engine": {"command": ["x"], "model": "m", "drafter": "d"}} | changes
    )


def test_secrets_are_masked_by_name_and_by_look() -> None:
    """And the values of secret variables are not there at all."""
    env = {
        "HF_TOKEN": "x",
        "OPENAI_API_KEY": "y",
        "AUTH": "hf_abcdefghijklmnop",
        "PROXY": "http://me:pw@box",
        "LANG": "C",
    }
    assert shown_env(env) == {
        "AUTH": "***", "HF_TOKEN": "***", "LANG": "C", "OPENAI_API_KEY": "***", "PROXY": "***",
    }  # fmt: skip
    assert shown_env({"KEYBOARD": "us", "TOKENIZERS_PARALLELISM": "false"}) == {
        "KEYBOARD": "us", "TOKENIZERS_PARALLELISM": "false",
    }  # fmt: skip
    plan = LaunchPlan(("x",), {"A": "1"}, {"TOKEN": "s3cret"}, shown="x --api-key ***")
    assert launch_recipe(plan) == {"command": "x --api-key ***", "env": {"A": "1"}, "secret_env": ["TOKEN"]}
    assert "s3cret" not in str(launch_recipe(plan))


def test_suite_limits_and_seeds_are_kept() -> None:
    """With the time box that quick has without being asked."""
    quick = {"coding": {"samples": 3}, "throughput": {}}
    found = measuring_recipe(profile(passes={"quick": quick}), "quick", Workload(temperature=0.7))
    assert found["seeds"] == {"resampling": 0, "samples": [1, 2, 3]}
    assert found["plan"]["time_box_s"] == 180.0
    assert found["plan"]["coding"]["samples"] == 3
    assert found["workload"]["temperature"] == 0.7
    assert measuring_recipe(profile(), "confirm", Workload())["plan"]["time_box_s"] is None


def test_time_box_of_the_profile() -> None:
    """Its own where it gives one, for either suite."""
    passes = {"quick": {"coding": {}, "time_box_s": "60"}, "confirm": {"coding": {}, "time_box_s": "900"}}
    chosen = profile(passes=passes).passes
    assert (chosen.box_s("quick"), chosen.box_s("confirm")) == (60.0, 900.0)


def test_flags_of_a_command() -> None:
    """Values behind a blank or an equals sign, bare flags, several values; the port is the console's own."""
    shown = "python3 -m sglang --a 1 --b=2 --bare --list x y --port 30123"
    assert flags_of(shown) == {
        "command": "python3 -m sglang",
        "--a": "1",
        "--b": "2",
        "--bare": "true",
        "--list": "x y",
    }
    assert flags_of("it's not shell --a 1")["--a"] == "1"
    assert flags_of("") == {}


def test_what_differs_between_two_results() -> None:
    """Knobs, flags, environment, host facts, program; nothing that always differs."""
    a = {"config": {"budget": 12, "args": {"x": "1"}}, "engine_version": "1", "workload": {"prompts": "code"}}
    b = {"config": {"budget": 16, "args": {}}, "engine_version": "1", "workload": {"prompts": "code"}}
    mine = {
        "command": "e --b 12 --port 1", "env": {"A": "1"}, "boot": "x", "proved": ["p"], "ddconsole": "0.1",
        "host_facts": {"driver": "580", "memory": {"free": 1}, "uptime": 5},
    }  # fmt: skip
    theirs = {
        "command": "e --b 16 --port 2", "env": {"A": "2"}, "boot": "y", "ddconsole": "0.1",
        "host_facts": {"driver": "570", "memory": {"free": 2}, "uptime": 9},
    }  # fmt: skip
    assert [tuple(one) for one in changes(a, b, mine, theirs)] == [
        ("budget", 12, 16),
        ("args.x", "1", None),
        ("command --b", "12", "16"),
        ("env.A", "1", "2"),
        ("host_facts.driver", "580", "570"),
    ]
    assert changes(a, a, mine, mine) == []

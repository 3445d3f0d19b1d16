"""Profile values, names, environment and secrets as an attacker would choose them reach the engine byte for byte."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.errors import UsageError
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.launch.record import shell_lines
from ddconsole.engines.sglang.command import launch_plan

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ddconsole.core.ports import LaunchPlan
    from ddconsole.core.profile import Profile

    MakeProfile = Callable[..., Profile]

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the GPU host has /proc")

TREE = Config(Algorithm.TREE, block_size=8, budget=12, topk=6, window=2048)
DEADLINE_S = 20.0

ENGINE = """
here=$1; shift
printf '%s\\0' "$@" >"$here/argv.new"
cat /proc/$$/environ >"$here/environ.new"
mv "$here/argv.new" "$here/argv"; mv "$here/environ.new" "$here/environ"
"""
"""Writes what it was given, NUL-separated, and ends."""

PIECES = (
    "'", '"', "`reboot`", "$(id)", "${HOME}", "$PATH", ";", "&", "|", "<", ">", "\\", "\n", "\r", "\t", " ",
    "*", "?", "~", "!", "#", "{a,b}", "--", "=", "%s", "\x1b]52;c;aGk=\x07", "\x9b2J", "\u202e", "漢字", "é", "-rf",
)  # fmt: skip
VALUES = st.lists(st.one_of(st.sampled_from(PIECES), st.text(st.characters(codec="utf-8", exclude_characters="\x00"))),
                  min_size=1, max_size=6).map("".join)  # fmt: skip
ARGUMENTS = VALUES.filter(lambda text: text not in ("true", "false"))
"""Which two spell a flag without a value, and none."""
ALL_AT_ONCE = "".join(PIECES)


def wait_for(reached: Callable[[], bool]) -> None:
    """Poll a condition until its deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        assert time.monotonic() < deadline, "the engine wrote nothing"
        time.sleep(0.005)


async def arrived(plan: LaunchPlan, place: Path) -> tuple[list[bytes], dict[bytes, bytes]]:
    """Start the plan on this machine; the engine's argv and environment."""
    host, launcher = LocalHost(), ProcessLauncher(str(place / "state"), grace_s=1)
    try:
        launched = await launcher.launch(host, plan, "E1-1")
        await asyncio.to_thread(wait_for, (place / "environ").exists)
        await launcher.stop(host, launched)
    finally:
        await host.close()
    argv = (place / "argv").read_bytes().split(b"\0")[:-1]
    pairs = (line.partition(b"=") for line in (place / "environ").read_bytes().split(b"\0") if line)
    return argv, {name: value for name, _, value in pairs}


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(model=VALUES, drafter=VALUES, argument=ARGUMENTS, variable=VALUES, secret=VALUES)
@example(*[ALL_AT_ONCE] * 5)
@example(*["-n", "--", "$(id)\n", "\n\n", "'\n'"])
def test_hostile_values_arrive_as_they_are(
    make_profile: MakeProfile, model: str, drafter: str, argument: str, variable: str, secret: str
) -> None:
    """Profile, launch plan, launcher, a real shell, a real process: no word is split, expanded, or lost."""
    with tempfile.TemporaryDirectory() as folder:
        engine = {
            "command": ["sh", "-c", ENGINE, "engine", folder], "model": model, "drafter": drafter,
            "args": {"chat-template": argument}, "env": {"VARIABLE": variable},
        }  # fmt: skip
        plan = launch_plan(make_profile(engine), TREE, 30123, {"SECRET": secret})
        argv, environ = asyncio.run(arrived(plan, Path(folder)))
    asked = [word.encode() for word in plan.argv[5:]]
    assert argv == asked
    assert argv[argv.index(b"--model-path") + 1] == model.encode()
    assert argv[argv.index(b"--speculative-draft-model-path") + 1] == drafter.encode()
    assert argv[argv.index(b"--chat-template") + 1] == argument.encode()
    assert (environ[b"VARIABLE"], environ[b"SECRET"]) == (variable.encode(), secret.encode())


def nul_in(where: str) -> tuple[dict[str, object], Mapping[str, str]]:
    """An engine section with a NUL at one place."""
    engine: dict[str, object] = {"command": ["sh", "-c", "exit", "engine"]}
    if where == "secret":
        return engine, {"SECRET": "a\0b"}
    value: object = {"model": "a\0b", "args": {"chat-template": "a\0b"}, "env": {"VARIABLE": "a\0b"}}[where]
    return engine | {where: value}, {}


@pytest.mark.parametrize("where", ["model", "args", "env", "secret"])
def test_what_no_process_can_be_given_is_refused(make_profile: MakeProfile, where: str) -> None:
    """A NUL ends every word there is: it is said where it stands, without the value, and nothing is planned."""
    engine, secrets = nul_in(where)
    profile = make_profile(engine)
    with pytest.raises(UsageError, match=r"(--model-path|--chat-template|VARIABLE|SECRET) holds a NUL") as caught:
        launch_plan(profile, TREE, 30123, secrets)
    assert "\0" not in caught.value.what


def test_bytes_of_a_secret_that_are_no_text_stay_what_they_are() -> None:
    """An environment variable may hold any bytes."""
    assert shell_lines({"SECRET": os.fsdecode(b"a\xff\x9b")}) == b"export SECRET='a\xff\x9b'\n"

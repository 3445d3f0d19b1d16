"""The engine is asked for its flags once for each state of its files, and each flag of a launch is checked."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.adapters.local import LocalHost
from ddconsole.core.config import Algorithm, Config
from ddconsole.core.profile import Profile
from ddconsole.engines.sglang.preflight.asked import Asked, asked_flags
from ddconsole.engines.sglang.preflight.engine_answers import read_engine
from ddconsole.engines.sglang.preflight.engine_script import ENGINE_ANSWERS, PROBE
from ddconsole.engines.sglang.preflight.help_text import Help, parse_help
from ddconsole.engines.sglang.preflight.report import Report
from ddconsole.engines.sglang.preflight.sections import Sections, sections, value
from ddconsole.engines.sglang.preflight.spelling import check_spelling

MakeProfile = Callable[..., Profile]
TREE = Config(Algorithm.TREE, 8, 12, 6, 2048)
CHAIN = Config(Algorithm.CHAIN, 8, window=2048)

STOCK = """usage: launch_server.py [-h]
                        --model-path MODEL_PATH [--host HOST]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
                        The path of the model.
                        --deepep-mode is described elsewhere.
  --host HOST           The host.
  --port PORT           The port.
  --trust-remote-code   Whether or not to allow custom models.
  --enable-metrics
  --attention-backend {triton,fa3,flashinfer,trtllm_mla}
  --cuda-graph-bs-decode N [N ...]
  --max-running-requests N
  --max-running-tokens N
  --speculative-algorithm SPECULATIVE_ALGORITHM
  --speculative-draft-model-path PATH, --speculative-draft-model PATH
  --speculative-num-draft-tokens N
  --speculative-draft-window-size N
  --sandbox, --no-sandbox"""
FORK = STOCK + "\n  --speculative-ddtree-budget N"


def help_of(text: str) -> Help:
    """Parsed."""
    return parse_help(text.split("\n"))


def test_flags_are_read_with_their_aliases_choices_and_whether_they_take_a_value() -> None:
    """Descriptions that begin with a flag's name, deeper in, are no flags."""
    flags = help_of(STOCK).flags
    assert flags["--model"] is flags["--model-path"]
    assert flags["--attention-backend"].choices == ("triton", "fa3", "flashinfer", "trtllm_mla")
    assert [flags[name].takes_value for name in ("--port", "--trust-remote-code", "--enable-metrics")] == [
        True,
        False,
        False,
    ]
    assert flags["--no-sandbox"].names == ("--sandbox", "--no-sandbox")
    assert not flags["--sandbox"].takes_value
    assert "--deepep-mode" not in flags


@given(st.text(max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    """What is no help has no flags, or harmless ones."""
    for name, flag in help_of(text).flags.items():
        assert name in flag.names


@given(st.text(alphabet=" =\tabc-{},\n\x1b", max_size=200))
def test_any_answer_of_a_host_is_read_without_an_error(text: str) -> None:
    """Sections cut anywhere, and lines that pretend to begin one."""
    report = Report()
    found = sections(text)
    read_engine(Profile(schema=1, host="local", engine={"command": ["e"], "model": "m"}), found, report)


def test_a_line_of_the_host_can_not_begin_a_section() -> None:
    """Every line of a section begins with a space."""
    assert sections("= a\n = b\n  c\n= d\n") == {"a": ["= b", " c"], "d": []}


def spelled(make_profile: MakeProfile, text: str, config: Config, **engine: Any) -> list[tuple[str, str, str]]:
    """Level, code and text of what a launch's flags come to against a help."""
    knobs = engine.pop("knobs", {})
    profile = make_profile(engine, knobs=knobs)
    report = Report()
    check_spelling(profile, config, asked_flags(profile, config), help_of(text), report)
    return [(finding.level, finding.code, f"{finding.text} → {finding.advice}") for finding in report.findings]


def codes(found: list[tuple[str, str, str]]) -> list[tuple[str, str]]:
    """Level and code."""
    return [(level, code) for level, code, _ in found]


@pytest.mark.parametrize(
    ("text", "config", "args", "expected"),
    [
        (FORK, TREE, {}, []),
        (STOCK, CHAIN, {}, []),
        (STOCK, TREE, {}, [("block", "no-ddtree")]),
        (FORK, TREE, {"enable-metrics": "true", "attention-backend": "triton"}, []),
        (FORK, TREE, {"enable-metrics": "yes"}, [("block", "flag-value")]),
        (FORK, TREE, {"max-running-requests": "true"}, [("block", "flag-value")]),
        (FORK, TREE, {"attention-backend": "trition"}, [("block", "no-such-choice")]),
        (FORK, TREE, {"max-runing-requests": "4"}, [("block", "unknown-flag")]),
        (FORK, TREE, {"max-running": "4"}, [("block", "unknown-flag")]),
        (FORK, TREE, {"max-running-r": "4"}, [("note", "flag-abbreviated")]),
        (FORK, TREE, {"cuda-graph-bs": "4"}, [("block", "flag-renamed")]),
    ],
)
def test_flags_are_checked_one_by_one(
    make_profile: MakeProfile, text: str, config: Config, args: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    """Each by its level and code."""
    assert codes(spelled(make_profile, text, config, args=args)) == expected


def test_the_nearest_flag_and_the_place_to_mend_are_named(make_profile: MakeProfile) -> None:
    """So that nobody has to read 500 flags."""
    ((_, _, text),) = spelled(make_profile, FORK, TREE, args={"max-runing-requests": "4"})
    assert "did you mean --max-running-requests?" in text
    assert "write max-running-requests under engine.args" in text


OLD_WINDOW = "--speculative-dflash-draft-window-size"
NEW_WINDOW = "--speculative-draft-window-size"


@pytest.mark.parametrize(("ours", "theirs"), [(NEW_WINDOW, OLD_WINDOW), (OLD_WINDOW, NEW_WINDOW)])
def test_the_window_flag_is_known_by_both_its_names(make_profile: MakeProfile, ours: str, theirs: str) -> None:
    """0.5.11 has the old name alone, 0.5.20 and later the new one alone."""
    text = STOCK.replace(NEW_WINDOW, theirs)
    ((level, code, said),) = spelled(make_profile, text, CHAIN, knobs={"window": {"flag": ours, "default": 2048}})
    assert (level, code) == ("block", "flag-renamed")
    assert f"set knobs.window.flag to {theirs}" in said


def test_an_algorithm_with_choices_without_ours_has_no_ddtree(make_profile: MakeProfile) -> None:
    """As 0.5.11 lists them; upper and lower case are the same to the engine."""
    text = FORK.replace("--speculative-algorithm SPECULATIVE_ALGORITHM", "--speculative-algorithm {EAGLE,DFLASH}")
    ((_, code, said),) = spelled(make_profile, text, TREE)
    assert code == "no-ddtree"
    assert "EAGLE, DFLASH" in said
    chain = spelled(make_profile, text, CHAIN, knobs={"algorithm": {"chain": "dflash"}})
    assert chain == []


def test_a_fork_that_drives_its_tree_by_environment_is_not_called_stock(make_profile: MakeProfile) -> None:
    """Nothing of the tree stands in its help, and nothing of it is asked by flag."""
    knobs = {
        "algorithm": {"tree": "DFLASH"},
        "budget": {"env": "SGLANG_DDTREE_FORCE_WIDTH", "default": 12},
        "topk": {"env": "SGLANG_DDTREE_K", "default": 4},
    }
    assert spelled(make_profile, STOCK, TREE, knobs=knobs) == []


def test_every_flag_of_the_command_is_checked(make_profile: MakeProfile) -> None:
    """What is asked is what the launch will use."""
    from ddconsole.engines.sglang.command import launch_plan

    profile = make_profile({"args": {"enable-metrics": "true", "tp-size": "8", "disable-radix-cache": "false"}})
    used = {word for word in launch_plan(profile, TREE, 1, {}).argv if word.startswith("--")}
    assert {one.flag for one in asked_flags(profile, TREE)} == used
    assert Asked("--tp-size", "8", "engine.args.tp-size") in list(asked_flags(profile, TREE))


# --- the script that asks it


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a package whose `--help` counts how often it was run."""
    monkeypatch.setenv("HOME", str(tmp_path))
    package = tmp_path / "site" / "toyserver"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "args.py").write_text("FLAGS = ['--alpha A']\n")
    (package / "serve.py").write_text(
        "from toyserver.args import FLAGS\nopen('ran', 'a').write('x')\nprint('options:')\n"
        "print(*('  ' + flag for flag in FLAGS), sep='\\n')\n"
    )
    return tmp_path


async def ask(home: Path, *command: str) -> Sections:
    """One run of the script."""
    env = ["env", f"PYTHONPATH={home / 'site'}", "PYTHONDONTWRITEBYTECODE=1"]
    done = await LocalHost().run([*env, "sh", "-c", ENGINE_ANSWERS, "sh", "state dir", "abc", PROBE, *command])
    assert done.status == 0, done.stderr
    return sections(done.stdout)


def runs(home: Path) -> int:
    """How often its help was run."""
    return len((home / "ran").read_text())


async def test_help_is_run_once_while_the_engines_files_are_the_same(home: Path) -> None:
    """The second answer is the first one's, and says from when it is."""
    command = (sys.executable, "-m", "toyserver.serve")
    first, second = await ask(home, *command), await ask(home, *command)
    assert runs(home) == 1
    assert first["help"] == second["help"]
    assert value(first["read"], "remembered") is None
    assert int(value(second["read"], "remembered") or 0) > 1_700_000_000
    assert oct((home / "state dir" / "cache").stat().st_mode)[-3:] == "700"


async def test_any_changed_source_file_is_another_engine(home: Path) -> None:
    """A fork that is edited in place keeps its version number; its files tell."""
    command = (sys.executable, "-m", "toyserver.serve")
    await ask(home, *command)
    args = home / "site" / "toyserver" / "args.py"
    args.write_text("FLAGS = ['--bravo A']\n")  # as long as before
    os.utime(args, ns=(1, 1))
    assert "--bravo" in "\n".join((await ask(home, *command))["help"])
    assert runs(home) == 2
    await ask(home, sys.executable, "-u", "-m", "toyserver.serve")
    assert runs(home) == 3


async def test_a_console_script_leads_to_its_package(home: Path) -> None:
    """`sglang serve` is one: its first line names the interpreter, its import the package."""
    script = home / "serve"
    script.write_text(f"#!{sys.executable}\nimport sys\nfrom toyserver.args import FLAGS\nimport toyserver.serve\n")
    script.chmod(0o755)
    found = await ask(home, str(script))
    await ask(home, str(script))
    assert value(found["identity"], "package") == str(home / "site" / "toyserver")
    assert runs(home) == 1


async def test_what_a_wrapper_starts_is_not_known_so_it_is_asked_each_time(home: Path) -> None:
    """No key would be honest."""
    script = home / "wrapper"
    script.write_text(f"#!/bin/sh\nexec {sys.executable} -m toyserver.serve\n")
    script.chmod(0o755)
    await ask(home, str(script))
    await ask(home, str(script))
    assert runs(home) == 2


async def test_a_failed_help_is_not_remembered(home: Path) -> None:
    """It may work the next time."""
    (home / "site" / "toyserver" / "serve.py").write_text("raise ImportError('libcudart')\n")
    command = (sys.executable, "-m", "toyserver.serve")
    found = await ask(home, *command)
    report = Report()
    assert (
        read_engine(Profile(schema=1, host="local", engine={"command": command, "model": "m"}), found, report) is None
    )
    assert [(finding.level, finding.code) for finding in report.findings] == [("block", "engine-broken")]
    assert not (home / "state dir" / "cache").exists()


async def test_a_folder_that_cannot_be_written_costs_the_memory_not_the_answer(home: Path) -> None:
    """Where the state folder should be, there is a file."""
    (home / "state dir").write_text("")
    assert "--alpha" in "\n".join((await ask(home, sys.executable, "-m", "toyserver.serve"))["help"])


async def test_a_package_that_is_not_there_is_told_without_running_anything(home: Path) -> None:
    """And so is a program."""
    assert value((await ask(home, sys.executable, "-m", "nosuch.serve"))["identity"], "no-package") == "nosuch"
    assert "missing" in await ask(home, "no-such-program")


async def test_what_the_engine_wants_of_its_kernels_is_told(home: Path) -> None:
    """As its own metadata pin them, extras in brackets included; test extras are not its own needs."""
    about = {
        "toyserver-1.2": "Name: toyserver\nVersion: 1.2+fork\nRequires-Dist: flashinfer_python[cu13]==0.7.2\n"
        'Requires-Dist: sgl-kernel==9; extra == "test"\nRequires-Dist: sglang-kernel==0.4.10\n',
        "sglang_kernel-0.4.9": "Name: sglang-kernel\nVersion: 0.4.9\n",
    }
    for name, text in about.items():
        (home / "site" / f"{name}.dist-info").mkdir()
        (home / "site" / f"{name}.dist-info" / "METADATA").write_text(f"Metadata-Version: 2.1\n{text}")
    found = await ask(home, sys.executable, "-m", "toyserver.serve")
    report = Report()
    read_engine(Profile(schema=1, host="local", engine={"command": ["python3"], "model": "m"}), found, report)
    assert report.facts["engine"]["version"] == "1.2+fork"
    assert [finding.text for finding in report.findings] == [
        "this engine wants flashinfer-python 0.7.2; it is not installed",
        "this engine wants sglang-kernel 0.4.10; 0.4.9 is installed",
    ]
    elsewhere = Report()
    read_engine(
        Profile(schema=1, host="local", engine={"command": ["python3"], "model": "m"}), found, elsewhere, on_cards=False
    )
    assert elsewhere.findings == [], "an engine on the CPU calls none of them"

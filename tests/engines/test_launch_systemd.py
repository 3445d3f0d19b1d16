"""What the systemd launchers write and understand, without a systemd; tests/realhost has the real one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ddconsole.core.errors import HostError
from ddconsole.core.ports import Completed, Finding, LaunchPlan, NoAsker
from ddconsole.core.profile import Profile
from ddconsole.core.profile.rules import broken_rules
from ddconsole.engines.engine import make_launcher
from ddconsole.engines.launch.manager import refusal
from ddconsole.engines.launch.process import ProcessLauncher
from ddconsole.engines.launch.service import ServiceLauncher, parse_state
from ddconsole.engines.launch.systemd import SystemdLauncher
from ddconsole.engines.launch.unit_text import (
    drop_in,
    environment_file,
    exec_start,
    permanent_drop_in,
    unit_path,
    unit_word,
)


class OneAnswer:
    """A host that answers every command alike."""

    name = "scripted"

    def __init__(self, status: int, stdout: str = "", stderr: str = "") -> None:
        self.answer = Completed(status, stdout, stderr)
        self.ran: list[list[str]] = []

    async def run(self, argv: list[str], **_: Any) -> Completed:
        self.ran.append(list(argv))
        return self.answer


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("plain", '"plain"'),
        ("", '""'),
        ("a b", '"a b"'),
        (";", '";"'),
        ("$HOME ${X} $$", '"$$HOME $${X} $$$$"'),
        ("%h%%", '"%%h%%%%"'),
        ('say "hi" \\n', '"say \\"hi\\" \\\\n"'),
        ("two\nlines\t\x01\x7f", '"two\\nlines\\t\\x01\\x7f"'),
        ("[Install]\nAlias=x", '"[Install]\\nAlias=x"'),
    ],
)
def test_a_word_of_a_command_line_is_quoted_whole(word: str, quoted: str) -> None:
    """No line of a unit file begins inside a word, and systemd reads nothing in it."""
    assert unit_word(word) == quoted
    assert "\n" not in quoted


def test_a_command_replaces_the_services_own() -> None:
    """An empty ExecStart= first; the program is found on the unit's PATH by env."""
    assert exec_start(["python3", "-m", "x y"]) == 'ExecStart=\nExecStart=/usr/bin/env -- "python3" "-m" "x y"'


def test_the_drop_in_takes_over_what_would_interfere() -> None:
    """Its own start, stop and restart rules would act on our engine; everything else stays the service's."""
    text = drop_in(["engine", "--port", "1"], "/srv/runs/E1", "/run/ddconsole/u.env", 7.6, to_file=True)
    lines = text.splitlines()
    for line in (
        "ExecStart=", "ExecStop=", "ExecStopPost=", "ExecStartPost=", "Restart=no", "KillMode=control-group",
        "TimeoutStopSec=8", "EnvironmentFile=/run/ddconsole/u.env", "StandardOutput=append:/srv/runs/E1/engine.log",
    ):  # fmt: skip
        assert line in lines, line
    assert lines.index("ExecStopPost=") < lines.index('ExecStopPost=-+/bin/sh "/srv/runs/E1/ended"')
    assert not any(line.startswith(("User=", "Environment=", "ExecStartPre")) for line in lines)
    assert "StandardOutput=journal" in drop_in(["e"], "/r", "/e", 1, to_file=False)


@pytest.mark.parametrize("path", ["/a\nb", "/a\\", " /a", "/a\tb"])
def test_a_path_that_no_unit_can_name_is_refused(path: str) -> None:
    """With the key of the profile."""
    with pytest.raises(HostError, match="cannot be named") as refused:
        unit_path(path)
    assert "state_dir" in refused.value.advice


def test_variables_are_a_file_that_systemd_reads() -> None:
    """Four characters are escaped in double quotes; a name is a name."""
    assert environment_file({"A": 'x "y" $z `w` \\ %h\nend'}) == b'A="x \\"y\\" \\$z \\`w\\` \\\\ %h\nend"\n'
    with pytest.raises(HostError, match="environment variable"):
        environment_file({"A B": "x"})


def test_the_permanent_text_has_no_secret() -> None:
    """It names what has to be put into a file; `$` stands for itself in Environment=."""
    text = permanent_drop_in(["e", "$x"], {"CAP": "6 $ %"}, ["HF_TOKEN"])
    assert text.splitlines() == [
        "[Service]",
        "ExecStart=",
        'ExecStart=/usr/bin/env -- "e" "$$x"',
        'Environment="CAP=6 $ %%"',
        "# HF_TOKEN is a secret: put it into a file of mode 600 and name that by EnvironmentFile=",
    ]


@pytest.mark.parametrize(
    ("stderr", "what", "advice"),
    [
        ("ddconsole: no systemd", "runs no systemd", "kind: process"),
        (
            "System has not been booted with systemd as init system (PID 1). Can't operate.\n"
            "Failed to connect to bus: Host is down",
            "runs no systemd",
            "kind: process",
        ),
        ("Failed to connect to bus: No medium found", "no systemd of its own", "enable-linger"),
        (
            "Failed to connect to bus: $DBUS_SESSION_BUS_ADDRESS and $XDG_RUNTIME_DIR not defined (consider using "
            "--machine=<user>@.host --user to connect to bus of other user)",
            "no systemd of its own",
            "enable-linger",
        ),
        (
            "Failed to start transient service unit: Interactive authentication required.",
            "may not manage",
            "scope: user",
        ),
        ("Failed to start transient service unit: Access denied", "may not manage", "scope: user"),
        ("ddconsole: not root", "may not manage", "scope: user"),
        (
            "Failed to start transient service unit: Unit x.service was already loaded or has a fragment file.",
            "there already",
            "status",
        ),
        ("mkdir: cannot create directory '/x/runs/E1': File exists", "there already", "status"),
        ("Unknown assignment: ExecStopPost=…", "too old", "kind: process"),
        ("something else", "it did not work", "journalctl"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_stands_against_it_and_the_remedy(stderr: str, what: str, advice: str) -> None:
    """The manager's own words are the evidence."""
    error = refusal(Completed(1, "", stderr + "\n"), "it did not work")
    assert what in error.what
    assert advice in error.advice
    assert error.evidence == tuple(stderr.splitlines())


async def test_a_host_without_systemd_blocks_before_anything_is_started() -> None:
    """What the engine's own preflight found stands behind it."""
    host, other = OneAnswer(69, stderr="ddconsole: no systemd\n"), Finding("warn", "disk", "…")
    findings = await SystemdLauncher().review(host, 1, (other,))  # type: ignore[arg-type]
    assert [one.code for one in findings] == ["no-systemd", "disk"]
    assert findings[0].level == "block"
    with pytest.raises(HostError, match="runs no systemd"):
        await SystemdLauncher().launch(host, LaunchPlan(("engine",)), "E1-1")  # type: ignore[arg-type]


async def test_what_cannot_name_a_launch_or_a_variable_reaches_no_host() -> None:
    """Refused before any command is run."""
    host = OneAnswer(0)
    for launcher in (SystemdLauncher(), ServiceLauncher("u", NoAsker(), take_over="yes"), ProcessLauncher()):
        with pytest.raises(HostError, match="cannot name"):
            await launcher.launch(host, LaunchPlan(("e",)), "../x")  # type: ignore[arg-type]
    with pytest.raises(HostError, match="environment variable"):
        await SystemdLauncher().launch(host, LaunchPlan(("e",), {"A;B": ""}), "E1")  # type: ignore[arg-type]
    assert host.ran == []


async def test_no_secret_is_in_any_argument() -> None:
    """An argument of a command on the host is in its `ps`."""
    host = OneAnswer(1)
    with pytest.raises(HostError):
        await SystemdLauncher().launch(host, LaunchPlan(("e",), {"P": "pl4in"}, {"S": "s3cret"}), "E1")  # type: ignore[arg-type]
    assert host.ran
    assert not any("s3cret" in word or "pl4in" in word for argv in host.ran for word in argv)


def test_a_services_state_is_read_from_what_systemd_shows() -> None:
    """Ours when what runs is the invocation that we started; nobody's when nothing runs."""
    text = "LoadState=loaded\nActiveState=active\nMainPID=7\nInvocationID=ab\nRunInvocation=ab\nTaken=active\n"
    state = parse_state("u.service", text + "Pids=7 8 \nCommand=python3 -m x=1\n")
    assert (state.whose, state.taken, state.pids, state.command) == (
        "ours",
        "active",
        frozenset({7, 8}),
        "python3 -m x=1",
    )
    assert parse_state("u.service", text.replace("RunInvocation=ab", "RunInvocation=cd")).whose == "the service's own"
    assert parse_state("u.service", text.replace("MainPID=7", "MainPID=0")).whose == "nobody's"
    loop = parse_state("u.service", text.replace("MainPID=7", "MainPID=0") + "NRestarts=1655\n")
    assert loop.words() == "u.service is active, started again by systemd 1655 times"
    with pytest.raises(HostError, match=r"no unit u\.service"):
        parse_state("u.service", "LoadState=not-found\nActiveState=inactive\n")


@pytest.mark.parametrize(
    ("told", "stands"),
    [
        ("MainPID=7\nInvocationID=ab\nRunInvocation=ab\nTaken=active\nDropIn=/run/x\n", True),
        ("MainPID=0\nTaken=active\n", True),  # taken, and our engine ended or not started yet
        ("MainPID=7\nInvocationID=cd\nRunInvocation=ab\nTaken=active\nDropIn=/run/x\n", True),
        ("MainPID=7\nInvocationID=cd\nRunInvocation=ab\nTaken=active\n", False),  # the host was started anew
        ("MainPID=7\n", False),
    ],
)
def test_consent_of_an_earlier_take_over_ends_with_it(told: str, stands: bool) -> None:
    """After a reboot the service is its own again, and somebody has to be asked again."""
    assert parse_state("u.service", f"LoadState=loaded\nActiveState=active\n{told}").stands is stands


def test_the_profile_chooses_the_launcher(make_profile: Callable[..., Profile]) -> None:
    """By kind and unit; `no` in the profile is not overruled from the command line."""
    assert type(make_launcher(make_profile())) is ProcessLauncher
    assert type(make_launcher(make_profile(launcher={"kind": "systemd"}))) is SystemdLauncher
    assert type(make_launcher(make_profile(launcher={"kind": "systemd", "unit": "sglang"}))) is ServiceLauncher


@pytest.mark.parametrize(
    ("launcher", "key"),
    [
        ({"unit": "sglang"}, "unit"),
        ({"kind": "systemd", "unit": "../x"}, "unit"),
        ({"kind": "systemd", "unit": "-x"}, "unit"),
        ({"kind": "systemd", "unit": "a b"}, "unit"),
        ({"kind": "systemd", "unit": "x.socket"}, "unit"),
        ({"log": "journal"}, "log"),
    ],
)
def test_a_launcher_that_cannot_be_is_refused_by_its_key(
    make_profile: Callable[..., Profile], launcher: dict[str, str], key: str
) -> None:
    """With file, line and key, when the profile is read."""
    assert ("launcher", key) in [problem.path for problem in broken_rules(make_profile(launcher=launcher))]


@pytest.mark.parametrize("unit", ["sglang", "sglang.service", "sglang@0", "kimi-k2.6", "a:b_c"])
def test_names_of_services_are_taken(make_profile: Callable[..., Profile], unit: str) -> None:
    """Instances, dots and dashes included."""
    assert list(broken_rules(make_profile(launcher={"kind": "systemd", "unit": unit}))) == []

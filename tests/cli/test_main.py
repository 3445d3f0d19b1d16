"""The door: what it imports, how it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click
import pytest

from ddconsole import __version__
from ddconsole.cli import common, main
from ddconsole.cli.common import cli_errors, json_option
from ddconsole.core.errors import HostError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEAVY = ("textual", "asyncssh", "pydantic", "httpx", "rich", "yaml", "sqlite3", "asyncio")


def imported_by(*words: str) -> set[str]:
    """The heavy modules that a command line has imported when it ends."""
    program = (
        "import sys\nfrom ddconsole.cli.main import main\n"
        f"try:\n    main({list(words)!r})\nexcept SystemExit:\n    pass\n"
        f"sys.stderr.write(' '.join(m for m in {HEAVY!r} if m in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    return set(done.stderr.split())


def test_help_and_version_import_nothing_heavy() -> None:
    """They answer at once."""
    assert imported_by("--help") == set()
    assert imported_by("--version") == set()


@pytest.mark.parametrize(
    "words",
    [
        ("queue", "demo", "list", "--json"),
        ("queue", "demo", "hold", "E1", "--json"),
        ("results", "demo", "list", "--json"),
    ],
)
def test_the_queue_and_the_results_need_neither_screen_nor_network(words: tuple[str, ...]) -> None:
    """On a host without textual they work."""
    assert imported_by(*words) <= {"pydantic", "yaml", "sqlite3"}


def test_each_place_in_the_table_leads_to_a_command() -> None:
    """With a help of its own."""
    group = main.cli
    assert isinstance(group, main.LazyCommands)
    context = click.Context(group)
    for name in group.list_commands(context):
        module, _, attribute = main.COMMANDS[name].place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), name
        assert command.get_short_help_str(), name


def test_a_command_whose_module_is_missing_is_not_listed(
    ddconsole: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And calling it is bad usage."""
    monkeypatch.setitem(main.COMMANDS, "ghost", main.Entry("ddconsole.cli.ghost:ghost", "Not there."))
    assert "ghost" not in ddconsole("--help").out
    assert ddconsole("ghost").code == 2


def test_version(ddconsole: Callable[..., Any]) -> None:
    """The package's own."""
    assert ddconsole("--version").out.strip().endswith(__version__)


def failing(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `ddconsole queue` end with an error."""

    def fail(name: str) -> None:
        raise error

    monkeypatch.setattr("ddconsole.cli.queue.load_profile", fail)


def left_with(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a whole command line."""
    with pytest.raises(SystemExit) as left:
        main.main(words)
    assert isinstance(left.value.code, int)
    told = capsys.readouterr()
    return left.value.code, told.out, told.err


def test_an_error_is_three_lines_on_stderr(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What, evidence, advice; nothing on stdout, and no escape sequence of the host's."""
    failing(UnreachableError("ct200 is away", evidence=("no route\x1b[2J",), advice="wake it"), monkeypatch)
    code, out, err = left_with(capsys, "queue", "demo", "list")
    assert (code, out) == (5, "")
    assert err == "ddconsole: ct200 is away\n  | no route␛[2J\n  → wake it\n"


def test_an_error_with_json_is_one_document_on_stdout(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing on stderr."""
    failing(HostError("nonsense", advice="look"), monkeypatch)
    code, out, err = left_with(capsys, "queue", "demo", "list", "--json")
    assert (code, err) == (1, "")
    assert json.loads(out) == {
        "error": {"kind": "host", "what": "nonsense", "evidence": [], "advice": "look", "column": None}
    }


def test_a_bug_is_exit_code_70_with_the_trace_in_a_file(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    """A short text for the user; the trace is kept for the report."""
    failing(ZeroDivisionError("oops"), monkeypatch)
    code, _, err = left_with(capsys, "queue", "demo", "list")
    assert code == 70
    assert "a bug of ddconsole: ZeroDivisionError: oops" in err
    assert "Traceback" not in err
    assert "Traceback" in (home / "state" / "last-bug.txt").read_text(encoding="utf-8")
    code, out, _ = left_with(capsys, "queue", "demo", "list", "--json")
    assert (code, json.loads(out)["error"]["kind"]) == (70, "bug")


def test_an_interrupt_is_exit_code_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a word."""
    failing(KeyboardInterrupt(), monkeypatch)
    assert left_with(capsys, "queue", "demo", "list") == (130, "", "")


def test_bad_usage_is_exit_code_2_and_json_where_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Click's own words either way."""
    code, out, err = left_with(capsys, "queue", "demo", "lsit")
    assert (code, out, "No such command 'lsit'" in err) == (2, "", True)
    code, out, err = left_with(capsys, "queue", "demo", "list", "--json", "--nope")
    assert (code, err) == (2, "")
    assert json.loads(out)["error"]["kind"] == "usage"


def test_a_commands_number_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    """None is 0."""

    @main.cli.command("answer")
    @json_option()
    @click.argument("code", type=int)
    @cli_errors
    def answer(code: int, as_json: bool) -> int | None:
        """Leave with a number."""
        return code or None

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(main.LazyCommands, "get_command", lambda self, ctx, name: answer)
        assert left_with(capsys, "answer", "0")[0] == 0
        assert left_with(capsys, "answer", "3")[0] == 3
    main.cli.commands.pop("answer")


def test_an_author_without_a_name_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a container without a passwd entry, for example."""

    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert common.author() == ""

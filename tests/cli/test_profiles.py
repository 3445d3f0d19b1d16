"""`ddconsole profiles list|show|check|schema|new`."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_list_has_the_shipped_ones_and_says_which_are_broken(ddconsole: Callable[..., Any], home: Path) -> None:
    """A broken profile is a line of the list, not the end of it."""
    folder = home / "config" / "profiles"
    (folder / "broken.yaml").write_text("host: [", encoding="utf-8")
    found = {entry["name"]: entry for entry in ddconsole("profiles", "list", "--json").json["profiles"]}
    assert (found["demo"]["host"], found["demo"]["error"]) == ("demo", None)
    assert "broken.yaml:1:8" in found["broken"]["error"]
    assert "broken.yaml" in ddconsole("profiles", "list").out


def test_show_prints_the_file_and_json_every_value(ddconsole: Callable[..., Any]) -> None:
    """Comments and all; the place goes to stderr."""
    answer = ddconsole("profiles", "show", "ct200")
    assert answer.out.startswith("# Kimi-K2.6 on eight RTX PRO 6000")
    assert answer.err.endswith("ct200.yaml\n")
    values = ddconsole("profiles", "show", "ct200", "--json").json["profile"]
    assert (values["schema"], values["knobs"]["topk"]["derived"], values["launcher"]["take_over"]) == (
        1, "ddtree-pr29907", "ask",
    )  # fmt: skip


def test_check_reads_the_starting_queue_too(ddconsole: Callable[..., Any], home: Path) -> None:
    """Exit code 0 with the experiments in words, 2 with the place."""
    answer = ddconsole("profiles", "check", "ct200", "--json")
    assert (answer.code, answer.json["queue"]) == (0, ["tree b 8 B 12 K 6 W 2048", "tree b 8 B 16 K 4 W 2048"])
    assert "2 experiments to start with" in ddconsole("profiles", "check", "ct200").out
    text = "host: local\nengine: {command: [a], model: m, drafter: d}\nqueue: [after b=16]\n"
    (home.parent / "here" / "x.yaml").write_text(text, encoding="utf-8")
    broken = ddconsole("profiles", "check", "x.yaml")
    assert (broken.code, "x.yaml:3:9: queue[0]:" in broken.err) == (2, True)


def test_schema_is_one_document(ddconsole: Callable[..., Any]) -> None:
    """A JSON schema for editors."""
    assert ddconsole("profiles", "schema").json["$schema"].startswith("https://json-schema.org/")


@pytest.mark.parametrize("host", ["box", "ana@10.0.0.7", "odd: 'host'"])
def test_new_writes_a_profile_of_ones_own(ddconsole: Callable[..., Any], home: Path, host: str) -> None:
    """Private, with the shipped comments, and the host as it was given, whatever YAML thinks of it."""
    answer = ddconsole("profiles", "new", "mine", "--host", host)
    path = home / "config" / "profiles" / "mine.yaml"
    assert (answer.code, answer.out.strip()) == (0, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "# an alias of your ~/.ssh/config" in path.read_text(encoding="utf-8")
    shown = ddconsole("profiles", "show", "mine", "--json")
    assert (
        (shown.json["profile"]["host"] == host)
        if " " not in host
        else "no name of a host" in shown.json["error"]["what"]
    )


def test_new_overwrites_nothing(ddconsole: Callable[..., Any], home: Path) -> None:
    """Exit code 3, and the file is as it was."""
    ddconsole("profiles", "new", "mine", "--from", "demo")
    path = home / "config" / "profiles" / "mine.yaml"
    path.write_text("mine now", encoding="utf-8")
    assert ddconsole("profiles", "new", "mine").code == 3
    assert path.read_text(encoding="utf-8") == "mine now"


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".hidden", "a b"])
def test_new_takes_only_what_can_be_a_name(ddconsole: Callable[..., Any], home: Path, name: str) -> None:
    """A name becomes a file's name and a word of command lines."""
    assert ddconsole("profiles", "new", name).code == 2
    assert [path.name for path in (home / "config" / "profiles").iterdir()] == ["demo.yaml"]

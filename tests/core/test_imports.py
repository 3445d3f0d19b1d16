"""Documents of results from elsewhere, and answers side by side."""

from typing import Any

import pytest
from fakes.results import measured

from ddconsole.core.answers import diff_failed
from ddconsole.core.errors import UsageError
from ddconsole.core.imports import checked_tag, imported_items


def document(**changes: Any) -> dict[str, Any]:
    return {"schema": 1, "kind": "ddconsole-results", "profile": "lab", "items": [measured("E1", 100)]} | changes


def test_items_get_the_imports_name() -> None:
    """And lose their comparison, which is made anew."""
    (item,) = imported_items(document(items=[measured("E1", 100, vs_reference={"id": "E9"})]), "night", "f.json")
    assert (item["id"], item["vs_reference"], item["imported"]) == ("night:E1", None, True)
    assert item["by_prompt"] == measured("E1", 100)["by_prompt"]


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        ([], "no export"),
        ({"items": []}, "no export"),
        (document(schema=2), "schema 2"),
        (document(items=[{}]), r"items\[0\]: expected a result"),
        (document(items=[measured("E1", 1, outcome="great")]), "unknown outcome"),
        (document(items=[measured("E1", 1) | {"tau": "4"}]), "tau: expected a number"),
        (document(items=[measured("E1", 1) | {"tau": float("nan")}]), "tau: expected a number"),
        (document(items=[measured("E1", 1) | {"step_ms": -1}]), "step_ms: expected a number"),
        (document(items=[measured("E1", 1, config={"algorithm": "magic"})]), "config"),
        (document(items=[measured("E1", 1, config={})]), "config"),
        (document(items=[measured("E1", 1, recipe=[])]), "recipe: expected an object"),
        (document(items=[measured("E1", 1, by_prompt={"p": ["x", 1]})]), "by_prompt"),
        (document(items=[measured("E1", 1, by_prompt=[1])]), "by_prompt"),
        (document(items=[measured("E1", 1, attempt=0)]), "attempt"),
        (document(items=[measured("E1", 1), measured("E1", 2)]), "more than once"),
    ],
)
def test_what_is_no_export_is_refused_with_its_place(broken: Any, words: str) -> None:
    """Nothing half read."""
    with pytest.raises(UsageError, match=words):
        imported_items(broken, "night", "f.json")


@pytest.mark.parametrize("tag", ["", "a:b", "../x", "ä", "x" * 41])
def test_names_of_imports(tag: str) -> None:
    """They stand in front of ids and name a file."""
    with pytest.raises(UsageError):
        checked_tag(tag)
    assert checked_tag("night-2.1") == "night-2.1"


def request(prompt: str, text: str, error: str | None = None) -> dict[str, Any]:
    return {"prompt_id": prompt, "text": text, "error": error}


def test_failed_answers_beside_the_controls() -> None:
    """The answer that failed, not the sample that passed; passed tasks and those the control never had are left out."""
    tasks = [("a", "passed"), ("b", "passed"), ("c", "failed"), ("a", "failed"), ("b", "passed"), ("c", "failed")]
    summaries = [{"tasks": [{"id": name, "verdict": verdict} for name, verdict in tasks]}]
    mine = [request(name, f"{name}{place}\n") for place, (name, _) in enumerate(tasks)]
    theirs = [request("a", "a0\n"), request("b", "b\n")]
    (found,) = diff_failed(summaries, mine, theirs, "E4", "E1")
    assert (found["task"], found["control"], found["same"]) == ("a", "E1", False)
    assert found["diff"] == ["--- E1 (control)", "+++ E4", "@@ -1 +1 @@", "-a0", "+a3"]


def test_the_same_answer_is_said_to_be_the_same() -> None:
    """A task that both fail is no fault of the config."""
    summaries = [{"tasks": [{"id": "a", "verdict": "failed"}]}]
    (found,) = diff_failed(summaries, [request("a", "x")], [request("a", "x")], "E4", "E1")
    assert (found["same"], found["diff"]) == (True, [])

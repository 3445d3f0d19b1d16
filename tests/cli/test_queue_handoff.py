"""`queue PROFILE order`, `export` and `import`: nothing happens before it is accepted, and then as one step."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ddconsole.core.queue import Hold

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ddconsole.adapters.store import SqliteStore

NOW = datetime(2026, 12, 2, 14, 2, 11, tzinfo=UTC)


def ids(ddconsole: Callable[..., Any]) -> list[str]:
    """What waits, in order."""
    return [item["id"] for item in ddconsole("queue", "demo", "list", "--json").json["items"]]


def with_a_second_of_e1(ddconsole: Callable[..., Any]) -> None:
    """E1, E2, E3 of the profile and E4, which needs E1's engine again."""
    assert ddconsole("queue", "demo", "add", "b=8", "B=12", "repeats=3").code == 0


def test_an_order_is_proposed_with_what_it_saves_and_taken_on_request(ddconsole: Callable[..., Any]) -> None:
    """By this host's own boot time; undo takes it back."""
    with_a_second_of_e1(ddconsole)
    proposed = ddconsole("queue", "demo", "order", "--json").json
    assert (proposed["order"], proposed["accepted"]) == (["E1", "E4", "E2", "E3"], False)
    assert (proposed["boots_before"], proposed["boots_after"], proposed["saves_s"]) == (4, 3, 25.0)
    assert ids(ddconsole) == ["E1", "E2", "E3", "E4"]
    shown = ddconsole("queue", "demo", "order")
    assert "4 starts of the engine become 3: this saves 25 s" in shown.err
    assert [line.split()[1] for line in shown.out.splitlines()[1:]] == ["E1", "E4", "E2", "E3"]
    before = ddconsole("queue", "demo", "list", "--json").json["ends_at"]
    assert "keeps the engine" in shown.out
    assert ddconsole(*proposed["accept"].split()[1:]).code == 0
    assert ids(ddconsole) == ["E1", "E4", "E2", "E3"]
    after = ddconsole("queue", "demo", "list", "--json").json
    assert after["ends_at"] < before
    assert [item["keeps_engine"] for item in after["items"]] == [False, True, False, False]
    assert ddconsole("queue", "demo", "order", "--accept").code == 3
    ddconsole("queue", "demo", "undo")
    assert ids(ddconsole) == ["E1", "E2", "E3", "E4"]


def test_an_order_that_costs_restarts_says_so(ddconsole: Callable[..., Any]) -> None:
    """And why each stands where it stands."""
    with_a_second_of_e1(ddconsole)
    ddconsole("queue", "demo", "move", "E1", "E4", "top")
    ddconsole("queue", "demo", "add", "b=8", "B=10")
    document = ddconsole("queue", "demo", "order", "--by", "information", "--json").json
    assert (document["order"][0], document["why"]["E2"]) == ("E2", "a control")
    assert document["saves_s"] == -25.0
    assert "this costs 25 s" in ddconsole("queue", "demo", "order", "--by", "information").err


def test_anchors_are_proposed_with_their_price_taken_once_and_taken_back_at_once(
    ddconsole: Callable[..., Any],
) -> None:
    """The control that is queued is the first; its repeats are doubles on purpose, and nobody asks about them."""
    ddconsole("queue", "demo", "add", "b=8", "B=40")
    ddconsole("queue", "demo", "add", "algorithm=chain", "b=8", "W=2048")
    before = ids(ddconsole)
    proposed = ddconsole("queue", "demo", "order", "--by", "drift", "--json").json
    assert len(proposed["adds"]) >= 1
    assert (ids(ddconsole), proposed["accepted"], proposed["saves_s"] < 0) == (before, False, True)
    shown = ddconsole("queue", "demo", "order", "--by", "drift")
    assert "of the anchor" in shown.err
    assert "this costs" in shown.err
    assert "nothing was changed" in shown.err
    assert ddconsole(*proposed["accept"].split()[1:]).code == 0
    assert ids(ddconsole) == proposed["order"]
    assert ddconsole(*proposed["accept"].split()[1:]).code == 3
    again = ddconsole("queue", "demo", "order", "--by", "drift", "--json").json
    assert (again["accept"], again["adds"]) == (None, [])
    ddconsole("queue", "demo", "undo")
    assert ids(ddconsole) == before


def test_without_a_control_the_anchor_says_what_to_queue(ddconsole: Callable[..., Any]) -> None:
    chains = [
        item["id"]
        for item in ddconsole("queue", "demo", "list", "--json").json["items"]
        if item["config"]["algorithm"] == "chain"
    ]
    assert ddconsole("queue", "demo", "remove", *chains).code == 0
    answer = ddconsole("queue", "demo", "order", "--by", "drift")
    assert "next algorithm=chain" in answer.out
    refused = ddconsole("queue", "demo", "order", "--by", "drift", "--accept")
    assert (refused.code, "next algorithm=chain" in refused.err) == (3, True)


def test_an_order_seen_before_somebody_else_changed_it_is_refused(
    ddconsole: Callable[..., Any], store: SqliteStore
) -> None:
    """The command that was offered carries the revision that was seen."""
    with_a_second_of_e1(ddconsole)
    accept = ddconsole("queue", "demo", "order", "--json").json["accept"]
    ddconsole("queue", "demo", "edit", "E2", "W=512")
    answer = ddconsole(*accept.split()[1:])
    assert (answer.code, "E2 has changed since you looked" in answer.err) == (3, True)


def test_an_edited_export_is_taken_in_as_one_step(ddconsole: Callable[..., Any], home: Path) -> None:
    """Values, order, a removal and a new one; undone by one undo."""
    path = home.parent / "q.yaml"
    assert ddconsole("queue", "demo", "export", "-o", str(path)).code == 0
    text = path.read_text(encoding="utf-8")
    assert "- id: E2\n  spec: algorithm=chain b=8 W=2048\n" in text
    text = text.replace("- id: E2\n  spec: algorithm=chain b=8 W=2048\n", "- spec: B=77\n").replace("B=26", "B=44")
    path.write_text(text, encoding="utf-8")
    dry = ddconsole("queue", "demo", "import", str(path), "--dry-run", "--json").json
    assert ([item["id"] for item in dry["added"]], ids(ddconsole)) == (["E4"], ["E1", "E2", "E3"])
    document = ddconsole("queue", "demo", "import", str(path), "--json").json
    assert [(item["id"], item["author"]) for item in document["added"]] == [("E4", "ana")]
    assert {item["id"]: item["state"] for item in document["changed"]} == {"E2": "removed", "E3": "queued"}
    assert ids(ddconsole) == ["E1", "E4", "E3"]
    ddconsole("queue", "demo", "undo")
    assert ids(ddconsole) == ["E1", "E2", "E3"]


def test_an_unchanged_export_changes_nothing(ddconsole: Callable[..., Any]) -> None:
    """And says so."""
    text = ddconsole("queue", "demo", "export").out
    answer = ddconsole("queue", "demo", "import", "-", stdin=text)
    assert (answer.code, "nothing was changed" in answer.err) == (0, True)
    assert ddconsole("queue", "demo", "import", "-", "--json", stdin=text).json["changed"] == []


def test_a_document_with_a_fault_is_told_with_its_line_and_changes_nothing(ddconsole: Callable[..., Any]) -> None:
    """Exit code 2 for what cannot be read, 4 for what is there already."""
    text = ddconsole("queue", "demo", "export", "E1").out
    bad = ddconsole("queue", "demo", "import", "-", "--json", stdin=text.replace("B=12", "B=much"))
    assert bad.code == 2
    assert bad.json["error"]["what"].startswith("stdin:9:3: column 7 of `b=8 B=much K=6 W=2048`")
    double = ddconsole("queue", "demo", "import", "-", "--json", stdin=text + "- spec: b=16 B=26\n")
    assert (double.code, double.json["duplicate_of"]) == (4, "E3")
    assert ids(ddconsole) == ["E1", "E2", "E3"]
    assert ddconsole("queue", "demo", "import", "-", "--again", stdin=text + "- spec: b=16 B=26\n").code == 0


def test_what_started_or_changed_while_the_document_was_open_refuses_the_whole(
    ddconsole: Callable[..., Any], store: SqliteStore
) -> None:
    """Exit code 3, with the reason; the other entries are not taken either."""
    text = ddconsole("queue", "demo", "export").out.replace("B=26", "B=44")
    store.edit("demo", Hold(("E3",)))
    stale = ddconsole("queue", "demo", "import", "-", stdin=text)
    assert (stale.code, "E3 has changed since you looked" in stale.err) == (3, True)
    store.begin_attempt("demo", "E1", {}, NOW)
    started = ddconsole("queue", "demo", "import", "-", stdin=text)
    assert (started.code, "E1 is running and stays as it is" in started.err) == (3, True)
    assert ddconsole("queue", "demo", "export", "E1").code == 3

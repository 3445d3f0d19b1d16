"""The pictures: pure functions of values, width and height."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from fakes.results import measured
from tui.scenes import FAILURE, SCENES, recorded
from tui.story import START, Story, queue_document, result, tree

from ddconsole.core import events
from ddconsole.core.compare import compared
from ddconsole.runner.feed import Feed, View
from ddconsole.tui.draw.details import details_lines
from ddconsole.tui.draw.gpus import gpus, layout
from ddconsole.tui.draw.header import Place, header
from ddconsole.tui.draw.outcome import failure_lines, notice_lines
from ddconsole.tui.draw.rows import QUEUE_LAYOUTS, RESULT_LAYOUTS, fitting, queue_rows, result_rows
from ddconsole.tui.draw.running import running
from ddconsole.tui.replay import ReplayController


def scene(name: str) -> View:
    """The view at a scene."""
    controller = ReplayController(recorded(), "demo")
    SCENES[name](controller)
    return controller.feed.view


def plain(lines: list[Any]) -> str:
    """Lines without styles."""
    return "\n".join(line.plain for line in lines)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize(("width", "height"), [(58, 10), (38, 6), (36, 7), (20, 3), (8, 1)])
def test_running_keeps_to_its_room(name: str, width: int, height: int) -> None:
    """Never a line too many; none wider than the panel, but for the words that cannot be broken."""
    view = scene(name)
    lines = running(view, view.now or START, width, height)
    assert len(lines) <= height
    if width >= 36:
        assert max((line.cell_length for line in lines), default=0) <= width


def test_running_shows_the_weights() -> None:
    """Target bar with n of total, per cent, and time left."""
    view = scene("loading")
    text = plain(running(view, view.now or START, 58, 10))
    assert "▶ target" in text
    target = view.boot.target if view.boot is not None else None
    assert target is not None
    assert f"{target['done']}/64" in text
    assert f"{target['done'] / 64:.0%}" in text
    assert "left" in text


def test_silence_of_the_log_is_shown_when_it_is_long() -> None:
    """More than ten seconds without a line are said."""
    story = Story()
    story.begin("E1", tree(8, 12))
    story.tell(events.BootProgressed("load_target", target={"done": 3, "total": 64, "eta_s": None}, silent_s=42.0))
    feed = Feed()
    for event in story.told:
        feed.publish(event)
    assert "log silent for 42s" in plain(running(feed.view, START, 58, 10))


def test_running_shows_the_pass_with_its_figures() -> None:
    """Requests done, tok/s and τ of this run's requests."""
    view = scene("measuring")
    text = plain(running(view, view.now or START, 58, 10))
    assert "throughput" in text
    assert "3/6" in text
    current = view.current_pass
    assert current is not None
    assert f"{current.tok_s_e2e:.0f} tok/s" in text
    assert f"τ  {current.tau:.2f}" in text or f"τ {current.tau:.2f}" in text


def test_a_failure_has_what_evidence_and_advice_even_in_three_lines() -> None:
    """Contract 5, in any room that has three lines."""
    for room in (3, 4, 6):
        text = plain(failure_lines(FAILURE, 200, room))
        assert "ran out of memory" in text
        assert "OutOfMemoryError" in text
        assert "→ Lower" in text


def test_a_failure_without_evidence_still_says_what_to_do() -> None:
    """Nothing is made up."""
    lines = failure_lines({"what": "it died", "evidence": [], "advice": "look"}, 40, 4)
    assert [line.plain for line in lines] == ["✘ it died", "→ look"]


@pytest.mark.parametrize("count", [1, 2, 8, 16])
@pytest.mark.parametrize(("width", "height"), [(56, 10), (36, 6), (34, 4), (20, 2), (200, 30)])
def test_gpus_keep_to_their_room(count: int, width: int, height: int) -> None:
    """From a full row a card down to a strip of heat."""
    story = Story()
    story.cards(92, 0.88, 405, count)
    feed = Feed()
    feed.publish(story.told[0])
    lines = gpus(feed.view.gpus, feed.view.gpu_history, width, height)
    assert 0 < len(lines) <= height
    assert max(line.cell_length for line in lines) <= width


def test_sixteen_cards_get_two_columns_before_they_become_a_strip() -> None:
    """In the room of eight, sixteen cards stand side by side."""
    found = layout(16, 56, 10)
    assert found is not None
    assert found[0] == 2
    assert layout(16, 20, 3) is None


def test_unknown_values_of_a_card_are_dashes_never_zeros() -> None:
    """A card that tells nothing."""
    card = {"index": 3, "utilization_pct": None, "memory_used_mib": None, "memory_total_mib": None,
            "power_w": None, "temperature_c": None}  # fmt: skip
    text = plain(gpus([card], {}, 56, 4))
    assert "0" not in text.replace("GiB", "")
    assert text.count("–") == 5


def test_a_hot_card_has_a_mark_besides_its_colour() -> None:
    """Colour is never the only sign."""
    cold = {"index": 0, "temperature_c": 70.0}
    hot = {"index": 1, "temperature_c": 91.0}
    lines = plain(gpus([cold, hot], {}, 56, 4)).splitlines()
    assert "!91" in lines[2]
    assert "!" not in lines[1]


@pytest.mark.parametrize("width", range(12, 200, 7))
def test_columns_fit(width: int) -> None:
    """The chosen columns never need more than there is, down to the barest ones."""
    for layouts in (QUEUE_LAYOUTS, RESULT_LAYOUTS):
        chosen = fitting(layouts, width)
        if [column for column, _ in chosen] != list(layouts[-1]):
            assert sum(cells for _, cells in chosen) + 2 * (len(chosen) - 1) <= width


def test_queue_rows_say_state_in_words_and_warn() -> None:
    """Running, held, idea and what preflight would say."""
    feed = Feed()
    feed.publish(events.Event(0, START, events.QueueChanged(9, queue_document("E14", revision=9))))
    rows = {row.id: row for row in queue_rows(feed.view)}
    assert list(rows) == ["E14", "E15", "E16", "E17", "E18"]
    assert "▶ running" in rows["E14"].cells["notes"].plain
    assert "⚠ trained at 8" in rows["E16"].cells["notes"].plain
    assert "held" in rows["E17"].cells["notes"].plain
    assert rows["E18"].text is not None
    assert "to match" in rows["E18"].text.plain
    assert rows["E15"].cells["K"].plain == "3"


def test_what_is_bound_when_it_starts_says_so_in_its_row() -> None:
    """Its numbers are those of today's best; the ones that run may be others."""
    document = queue_document()
    document["items"] = [item | {"state": "queued", "base": "best"} for item in document["items"]]
    feed = Feed()
    feed.publish(events.Event(0, START, events.QueueChanged(9, document | {"revision": 9})))
    notes = [row.cells["notes"].plain for row in queue_rows(feed.view) if "notes" in row.cells]
    assert notes
    assert all("base=best" in note for note in notes)


def test_ended_experiments_are_no_longer_in_the_queue() -> None:
    """The document has them; the panel shows what runs and waits."""
    document = queue_document()
    document["items"][0]["state"] = "done"
    feed = Feed()
    feed.publish(events.Event(0, START, events.QueueChanged(9, document | {"revision": 9})))
    assert "E14" not in [row.id for row in queue_rows(feed.view)]


def test_results_are_newest_first_and_a_failure_has_its_cause_for_numbers() -> None:
    """Numbers where there are some, the cause where there are none."""
    feed = Feed()
    failure = {"cause": "gpu-oom", "what": "", "evidence": [], "advice": ""}
    versus = {"id": "E1", "delta_pct": 1.0, "ci_pct": 3.0, "boots": [1, 3]}
    feed.load_results([
        result("E1", tree(8, 12), 131.24, 3.9, vs_reference=versus),
        result("E2", tree(8, 64), None, None, outcome="failed", failure=failure, coding=None),
    ])  # fmt: skip
    failed, passed = result_rows(feed.view)
    assert failed.text is not None
    assert "✘ failed  gpu-oom" in failed.text.plain
    assert failed.cells["tok_s"].plain == "–"
    assert [passed.cells[key].plain for key in ("tok_s", "tau", "coding", "vs", "vs_tight")] == [
        "131.2",
        "3.90",
        "5/5",
        "+1.0 ±3.0% 1+3",
        "+1.0±3.0 1+3",
    ]


def test_details_say_in_words_what_is_not_told_apart_and_what_is_a_plateau() -> None:
    """With the boots of both: colour and a ± alone say neither."""
    chain = measured("E1", 100.0, budget=None, noise=(0.1, -0.1))
    near = measured("E2", 101.0, budget=12, noise=(-0.1, 0.1), hour=1)
    slow = measured("E3", 60.0, budget=16, hour=2)
    shown = compared([chain, near, slow])
    text = plain(details_lines({"id": "E2", "passes": ["coding"]}, shown, 200))
    assert "not distinguishable from E1: " in text
    assert "(6 prompts, 1 + 1 boots)" in text
    assert "plateau, no winner: E2, E1 are not distinguishable" in text
    assert "slower than E1: " in plain(details_lines({"id": "E3"}, shown, 200))
    assert "standing" not in plain(details_lines({"id": "E9"}, shown, 200))


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
@pytest.mark.parametrize("name", SCENES)
def test_header_is_one_line_of_its_width(name: str, width: int) -> None:
    """What matters most stays: the host and what is being done."""
    view = scene(name)
    line = header(view, Place("demo", "SGLang"), owns_run=True, width=width)
    assert line.cell_length == width
    assert "demo" in line.plain


def test_header_tells_who_runs_the_queue() -> None:
    """A console that only looks on says so."""
    view = scene("measuring")
    assert view.running is not None
    assert (
        f"watching: run by pid {view.running.pid}"
        in header(view, Place("demo", "SGLang"), owns_run=False, width=140).plain
    )
    assert "watching" not in header(view, Place("demo", "SGLang"), owns_run=True, width=140).plain


def test_time_that_runs_is_that_of_the_clock_given() -> None:
    """Nothing in a picture asks the wall clock."""
    view = scene("measuring")
    now = (view.started_at or START) + timedelta(minutes=61)
    assert "1:01:00 of 34 s" in plain(running(view, now, 70, 10))


def test_one_matter_is_one_notice_whoever_noticed_it() -> None:
    """Preflight says what a block larger than trained costs; the log's line on it is not shown beside that."""
    feed = Feed()
    log = events.FindingSeen("warn", "block-size-mismatch", "trained at 8, runs at 16", "")
    feed.publish(events.Event(0, START, log, id="E1"))
    assert [line.plain.rstrip() for line in notice_lines(feed.view, 80)] == ["⚠ trained at 8, runs at 16"]
    feed.publish(events.Event(1, START, events.FindingSeen("warn", "trained-block-size", "accepts less", ""), id="E1"))
    assert [line.plain.rstrip() for line in notice_lines(feed.view, 80)] == ["⚠ accepts less"]


def booting(**told: Any) -> str:
    """The panel of a boot of which this was told."""
    story, feed = Story(), Feed()
    story.begin("E1", tree(8, 12))
    story.tell(events.BootProgressed("init", **told))
    for event in story.told:
        feed.publish(event)
    return plain(running(feed.view, START, 120, 12))


def test_a_download_has_a_bar_of_its_own() -> None:
    """By files where they are counted, with the bytes beside; by bytes alone; and nothing made up."""
    bytes_ = {"bytes": 118_200_000_000, "bytes_total": 590_000_000_000}
    both = booting(download={"files": 16, "files_total": 64} | bytes_, doing="downloading")
    assert "▶ download" in both
    assert "16/64 files 118 GB of 590 GB" in both
    alone = booting(download={"files": None, "files_total": None} | bytes_, doing="downloading")
    assert "118 GB of 590 GB" in alone
    assert "files" not in alone
    unknown = booting(download={"files": None, "files_total": None, "bytes": 0, "bytes_total": None})
    assert "▶ download" in unknown
    assert "%" not in unknown


def test_a_silence_has_its_limit_and_what_may_be_behind_it_and_the_boot_its_own() -> None:
    """What looks like a hang may be a download without a bar; how long it is waited for is said."""
    text = booting(silent_s=42.0, stall_s=300.0, limit_s=14_400.0, doing="downloading?, no progress reported")
    assert "log silent for 42s of 5:00" in text
    assert "downloading?, no progress reported" in text
    assert "given up after 4 h" in text

"""The recorded session, whole, through the app: event by event, and twice the same."""

from __future__ import annotations

from datetime import UTC

from tui.desk import screen_text
from tui.scenes import RECORDING, recorded

from ddconsole.core.events import Event
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.replay import ReplayController, read_events

LOOK_EVERY = 9
"""Events between two frames that are drawn; every event is looked at by the panels."""


async def replay() -> list[str]:
    """Every frame of the recording."""
    controller = ReplayController(recorded(), "demo")
    app = ConsoleApp(controller, now=controller.now, zone=UTC, guarded=False)
    frames: list[str] = []
    async with app.run_test(size=(120, 40)) as pilot:
        for number in range(1, len(recorded()) + 1):
            controller.play_until(lambda _: True)
            app.bridge.tick()
            if number % LOOK_EVERY == 0 or number == len(recorded()):
                app.screen_stack[0].flush(controller.feed.view, controller.now(), second=True)  # type: ignore[attr-defined]
                await pilot.pause()
                frames.append(screen_text(app))
    return frames


async def test_the_whole_recording_is_shown_and_is_the_same_every_time() -> None:
    """Three boots with their bars, three verdicts, and an idle end; no frame differs the second time."""
    first = await replay()
    all_of_it = "\n".join(first)
    for words in ("E1 loading", "▶ target", "capturing graphs", "E2 measuring", "E3 measuring", "5/5"):
        assert words in all_of_it, words
    results = [event.body.result for event in recorded() if event.body.kind == "experiment_finished"]  # type: ignore[attr-defined]
    for result in results:
        assert f"{result['tok_s_e2e']:.1f}" in first[-1]
    assert f"RESULTS {len(results)}" in first[-1]
    assert "queue empty" in first[-1]
    assert await replay() == first


def test_every_line_of_the_recording_is_an_event_that_reads_and_writes_alike() -> None:
    """What is replayed is what was recorded."""
    for event in read_events(RECORDING):
        assert Event.from_json(event.to_json()) == event

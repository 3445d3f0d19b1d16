"""The screen as pictures: the dashboard's six states and the queue's screens at three sizes; the screenshots."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from tui.make_screenshots import FOLDER, PICTURES, draw
from tui.queue_scenes import QUEUE_SCENES, queue_app
from tui.scenes import SCENES, SIZES, app_at

from ddconsole.tui.app import ConsoleApp


async def settle(pilot: Pilot[Any]) -> None:
    """Two looks at a feed that stands still: the second for panels that were laid out by the first."""
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    for _ in range(2):
        app.bridge.tick()
        await pilot.pause()


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", SCENES)
def test_dashboard(scene: str, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    """Each state at each size looks as it was accepted; `--snapshot-update` accepts a change."""
    assert snap_compare(app_at(scene), terminal_size=size, run_before=settle)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("scene", QUEUE_SCENES)
def test_queue(scene: str, size: tuple[int, int], snap_compare: Callable[..., bool]) -> None:
    """The queue, its form, previews and refusals look as they were accepted."""
    assert snap_compare(queue_app(), terminal_size=size, run_before=QUEUE_SCENES[scene])


@pytest.mark.parametrize("name", PICTURES)
async def test_screenshots_match_the_code(name: str) -> None:
    """When this fails the README's pictures are old: `make screenshots` draws them anew."""
    assert (FOLDER / f"{name}.svg").read_text(encoding="utf-8") == await draw(name)

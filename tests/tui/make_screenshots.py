"""Draws the README's pictures: `python tests/tui/make_screenshots.py [folder]` writes them, a test compares them."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tui.scenes import app_at

FOLDER = Path(__file__).resolve().parents[2] / "screenshots"

PICTURES: dict[str, tuple[str, tuple[int, int], tuple[str, ...]]] = {
    "dashboard": ("measuring", (120, 40), ()),
    "loading": ("loading", (120, 40), ()),
    "failed": ("failed", (120, 40), ()),
    "form": ("measuring", (120, 40), ("a",)),
    "small": ("measuring", (80, 24), ()),
    "phone": ("loading", (40, 20), ()),
}
"""Name of a picture, and what it shows: scene, size, keys pressed."""


async def draw(name: str) -> str:
    """One picture as SVG, the same text on every machine and at every time."""
    scene, size, keys = PICTURES[name]
    app = app_at(scene)
    async with app.run_test(size=size) as pilot:
        for key in keys:
            app.bridge.tick()
            await pilot.press(key)
        for _ in range(2):
            app.bridge.tick()
            await pilot.pause()
        svg = app.export_screenshot(title="ddconsole", simplify=True)
    return re.sub(r"terminal-\d+-", f"terminal-{name}-", svg)


def write_all(folder: Path) -> None:
    """Every picture into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in PICTURES:
        (folder / f"{name}.svg").write_text(asyncio.run(draw(name)), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

"""Lines that are drawn for the room they have: a pure function of the width, as high as it is long."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.geometry import Size


class Lines(Widget):
    """Shows `draw(width)`."""

    def __init__(self, draw: Callable[[int], Sequence[Content]], *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._draw = draw

    def show(self, draw: Callable[[int], Sequence[Content]]) -> None:
        """Other lines."""
        self._draw = draw
        self.refresh(layout=True)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many as there are."""
        return len(self._draw(width))

    def render(self) -> Content:
        """The lines."""
        return Content("\n").join(self._draw(self.content_size.width))

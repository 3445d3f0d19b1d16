"""Tells a paste that arrives as single keys (tmux, plain ssh) from typing."""

from __future__ import annotations

from collections import deque

WINDOW_S = 0.02
"""Seconds around a key in which the others are counted; a held key repeats about every 30 ms."""

CROWD = 5
"""Keys within the window before they count as a paste. Fewer may be typing that a slow link delivered at once."""

PATIENCE_S = 0.04
"""Seconds that an action waits for the keys behind it before it starts, stops or takes away something."""


class Burst:
    """Remembers when the last keys came."""

    def __init__(self) -> None:
        self._times: deque[float] = deque(maxlen=64)

    def note(self, at: float) -> None:
        """A key came at `at`, monotonic seconds."""
        self._times.append(at)

    @property
    def last(self) -> float:
        """When the last key came."""
        return self._times[-1] if self._times else 0.0

    def crowded(self, at: float) -> bool:
        """Whether the key that came at `at` was one of many."""
        return sum(abs(time - at) <= WINDOW_S for time in self._times) >= CROWD

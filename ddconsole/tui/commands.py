"""Every action of the table in the command palette."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider

from ddconsole.tui import keys

if TYPE_CHECKING:
    from collections.abc import Callable


class ActionCommands(Provider):
    """Titles are `group: description`; choosing one does what its key does."""

    async def discover(self) -> Hits:
        """All of them, before anything is typed."""
        for action in keys.ACTIONS:
            yield DiscoveryHit(_title(action), self._doer(action), help=_help(action))

    async def search(self, query: str) -> Hits:
        """Those that match."""
        matcher = self.matcher(query)
        for action in keys.ACTIONS:
            score = matcher.match(_title(action))
            if score > 0:
                yield Hit(score, matcher.highlight(_title(action)), self._doer(action), help=_help(action))

    def _doer(self, action: keys.Action) -> Callable[[], None]:
        do = getattr(self.screen, "action_do", None)
        return partial(do, action.id) if do is not None else partial(self.app.bell)


def _title(action: keys.Action) -> str:
    return f"{action.group}: {action.description}"


def _help(action: keys.Action) -> str:
    return f"{action.tooltip} ({action.shown_key})" if action.tooltip else f"key {action.shown_key}"

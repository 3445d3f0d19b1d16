"""What a result was measured on: the facts of the host that preflight found, kept with each attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.events import FindingSeen
from ddconsole.core.gpu_load import slow_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.ports import AttemptKey, Store
    from ddconsole.runner.database import Database
    from ddconsole.runner.journal import Journal

HOST_FACTS: Final = "host_facts"
"""Entry of an attempt's recipe."""


async def keep_host_facts(database: Database, key: AttemptKey, facts: Mapping[str, Any]) -> None:
    """Keep what preflight found before this attempt's launch."""
    recipe = {HOST_FACTS: dict(facts)}
    await database.do(lambda store: store.update_recipe(key, recipe))


async def take_over_host_facts(database: Database, key: AttemptKey, engine: str) -> None:
    """An engine that is kept was looked at when it was launched, for an earlier attempt: its facts hold here too."""

    def copy(store: Store) -> None:
        launched_for = next((kept.key for kept in store.engines(key.profile) if kept.name == engine), None)
        if launched_for is None or launched_for == key:
            return
        facts = store.recipe(launched_for).get(HOST_FACTS)
        if facts:
            store.update_recipe(key, {HOST_FACTS: facts | {"by_attempt": f"{launched_for.id}/{launched_for.attempt}"}})

    await database.do(copy)


async def keep_load_facts(database: Database, journal: Journal, key: AttemptKey) -> None:
    """Keep PCIe links and SM clocks as they were while this attempt's engine worked; a slow link is told."""
    links, clocks = journal.under_load.to_json(), journal.under_load.clocks_json()
    journal.under_load.clear()
    if not links and not clocks:
        return
    seen = {"pcie_under_load": links, "sm_clock_under_load": clocks}

    def keep(store: Store) -> list[str]:
        facts = store.recipe(key).get(HOST_FACTS) or {}
        store.update_recipe(key, {HOST_FACTS: facts | {name: found for name, found in seen.items() if found}})
        return slow_links(links, facts.get("cards") or [])

    slow = await database.do(keep)
    if slow:
        text = f"PCIe stayed below its best under load: {', '.join(slow)}"
        await journal.emit(FindingSeen("warn", "pcie-slow", text, "look at the slot, the riser and the BIOS"), key)

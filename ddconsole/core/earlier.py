"""What is on record of a config on a host before it is paid for again: the times it failed there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.experiment import Outcome
from ddconsole.core.ports.engine import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAMED: Final = 3
"""Failures that are named one by one, the newest first."""


def earlier_failures(
    results: Sequence[Mapping[str, Any]], effective: Mapping[str, Any], host: str, profile: str
) -> tuple[Finding, ...]:
    """A note of the attempts on `host` that failed with this effective config, with id, cause and when.

    `results` are items of `results list --json`, oldest first. Equal effective configs are the same engine, whatever
    was asked for. What has passed since is said too.
    """
    same = [one for one in results if one.get("effective") == effective and one.get("measured_on") == host]
    failed = [one for one in same if one["outcome"] == Outcome.FAILED.value and one.get("failure")]
    if not failed:
        return ()
    newest = failed[::-1]
    named = ", ".join(_named(one) for one in newest[:NAMED])
    more = f" and {len(failed) - NAMED} more" if len(failed) > NAMED else ""
    since = [one["id"] for one in same[same.index(newest[0]) + 1 :] if one["outcome"] == Outcome.PASSED.value]
    passed = f"; {since[-1]} has passed since" if since else ""
    text = f"this effective config has failed on {host} before: {named}{more}{passed}"
    show = f"`ddconsole results {profile} show {newest[0]['id']}`"
    return (Finding("note", "failed-before", text, f"{newest[0]['failure']['advice'] or 'see its evidence'} ({show})"),)


def _named(item: Mapping[str, Any]) -> str:
    """`E12 gpu-oom, 2026-12-01 14:02 UTC`."""
    when = str(item["finished_at"])[:16].replace("T", " ")
    return f"{item['id']} {item['failure']['cause']}, {when} UTC"

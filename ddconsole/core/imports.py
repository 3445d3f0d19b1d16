"""A document of results from another machine: whether it is one of ours, and its items under names of their own."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ddconsole.core.config import Config
from ddconsole.core.errors import UsageError
from ddconsole.core.experiment import Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

KIND = "ddconsole-results"
"""What tells our exports from other JSON."""

SCHEMA = 1
MAX_ITEMS = 100_000
TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
"""The name in front of an imported id, `night` of `night:E11`."""

NUMBERS = (
    "tok_s_e2e", "tok_s_decode", "tau", "tau_n", "completion_tokens", "verify_steps", "step_ms", "ttft_p50_ms",
    "tpot_p50_ms", "boot_s", "pass_at_1",
)  # fmt: skip
OBJECTS = (
    "config", "effective", "workload", "coding", "failure", "vs_reference", "recipe", "phases", "passes", "by_prompt",
    "by_boot",
)  # fmt: skip


def checked_tag(tag: str) -> str:
    """The name that imported ids get in front.

    Raises:
        UsageError: it is no such name.
    """
    if not TAG.fullmatch(tag):
        raise UsageError(f"--as: {tag!r} is no name", advice="letters, digits, dashes: `--as night`")
    return tag


def imported_items(document: Any, tag: str, where: str) -> list[dict[str, Any]]:
    """The items of an export, as `tag:E11`. Their comparisons are dropped: they are made anew beside the others.

    Raises:
        UsageError: it is no export of ours, or an item of it cannot be one; the error names its place.
    """
    if not isinstance(document, dict) or document.get("kind") != KIND or not isinstance(document.get("items"), list):
        advice = "such a file is written by `ddconsole results PROFILE export --format json`"
        raise UsageError(f"{where} is no export of results", advice=advice)
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{where} has schema {document.get('schema')!r}, and this program reads {SCHEMA}")
    if len(document["items"]) > MAX_ITEMS:
        raise UsageError(f"{where} holds more than {MAX_ITEMS:,} results")
    items = [_item(item, f"{where}, items[{place}]") for place, item in enumerate(document["items"])]
    seen = {(item["id"], item["attempt"]) for item in items}
    if len(seen) != len(items):
        raise UsageError(f"{where} holds one attempt of an experiment more than once")
    return [item | {"id": f"{tag}:{item['id']}", "vs_reference": None, "imported": True} for item in items]


def _item(item: Any, where: str) -> dict[str, Any]:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        raise UsageError(f"{where}: expected a result with an id")
    if item.get("outcome") not in set(Outcome):
        raise UsageError(f"{where}.outcome: unknown outcome {item.get('outcome')!r}")
    for name in OBJECTS:
        if item.get(name) is not None and not isinstance(item[name], dict):
            raise UsageError(f"{where}.{name}: expected an object")
    for name in NUMBERS:
        if item.get(name) is not None and not _is_number(item[name]):
            raise UsageError(f"{where}.{name}: expected a number of zero or more, got {item[name]!r}")
    _check_config(item.get("config"), where)
    _check_prompts(item.get("by_prompt"), f"{where}.by_prompt")
    for boot, prompts in (item.get("by_boot") or {}).items():
        _check_prompts(prompts, f"{where}.by_boot[{boot}]")
    attempt = item.get("attempt", 1)
    if not isinstance(attempt, int) or attempt < 1:
        raise UsageError(f"{where}.attempt: expected a whole number from 1")
    return item | {"attempt": attempt}


def _check_config(config: Mapping[str, Any] | None, where: str) -> None:
    if config is None:
        return
    try:
        Config.from_json(dict(config))
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{where}.config: {error}") from None


def _check_prompts(prompts: Any, where: str) -> None:
    if prompts is None:
        return
    rows = prompts.values() if isinstance(prompts, dict) else ()
    if not isinstance(prompts, dict) or not all(
        isinstance(row, list) and len(row) >= 2 and all(map(_is_number, row)) for row in rows
    ):
        raise UsageError(f"{where}: expected lists of numbers by prompt")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0

"""Target and drafter on the host's disk: every shard of the index there and not empty, and what their configs say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ddconsole.engines.sglang.preflight.sections import gib, rows, shown, value, whole

if TYPE_CHECKING:
    from ddconsole.engines.sglang.preflight.report import Report

TOPIC = "model"
NAMED = 3
"""Missing shards that are named one by one."""

MISSING, UNREADABLE = "-", "unreadable"
"""What stands for a size."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model as the host has it.

    Attributes:
        folder: where it is; None when it is not on the host.
        config: its config.json, empty when there is none or it is no object.
        shards: size in bytes by file name; None where the file is missing, -1 where it may not be read.
        indexed: the names come from an index, so a missing file is known to be missing.
        promised: total_size of the index, in bytes.
        config_sha256: of config.json's bytes, as the host computed it; None where there is none, or no sha256sum.
    """

    folder: str | None = None
    config: dict[str, Any] = field(default_factory=dict)
    shards: dict[str, int | None] = field(default_factory=dict)
    indexed: bool = False
    promised: int | None = None
    config_sha256: str | None = None

    @property
    def size(self) -> int:
        """Bytes of all files that are there."""
        return sum(size for size in self.shards.values() if size is not None and size > 0)


def read_weights(lines: list[str]) -> Weights:
    """What the script found of one model."""
    if files := rows(lines, "file", 2):
        return Weights(files[0][1], shards={files[0][1]: whole(files[0][0])})
    shards: dict[str, int | None] = {}
    for size, name in rows(lines, "shard", 2):
        shards[name] = -1 if size == UNREADABLE else whole(size)
    config = config_of(value(lines, "config") or "")
    promised = rows(lines, "total", 1)
    total = whole(promised[0][0]) if promised else None
    return Weights(value(lines, "folder"), config, shards, bool(promised), total, _sha256(value(lines, "hash") or ""))


def _sha256(text: str) -> str | None:
    return text if re.fullmatch(r"[0-9a-f]{64}", text) else None


def config_of(text: str) -> dict[str, Any]:
    """A config.json as an object; empty for anything else."""
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}


def block_size_in(config: dict[str, Any]) -> int | None:
    """The drafter's block size where SGLang looks for it: `dflash_config.block_size`, then `block_size`."""
    inner = config.get("dflash_config")
    places = (inner.get("block_size") if isinstance(inner, dict) else None, config.get("block_size"))
    return next((size for size in places if isinstance(size, int) and not isinstance(size, bool) and size > 0), None)


def check_weights(role: str, named: str, weights: Weights, report: Report) -> None:
    """`role` is target or drafter, `named` what the profile calls it."""
    report.facts[role] = {
        "name": named,
        "folder": weights.folder,
        "shards": len(weights.shards),
        "bytes": weights.size or None,
        "model_type": weights.config.get("model_type"),
        "config_sha256": weights.config_sha256,
    }
    if weights.folder is None:
        _say_absent(role, named, report)
        return
    missing = [name for name, size in weights.shards.items() if size is None]
    empty = [name for name, size in weights.shards.items() if size == 0]
    locked = [name for name, size in weights.shards.items() if size == -1]
    report.see(TOPIC, role, _words(named, weights, len(missing)))
    if missing:
        text = f"{len(missing)} of {len(weights.shards)} shards of the {role} are missing: {_some(missing)}"
        report.block("shard-missing", text, "finish the download; older versions load without them and say nothing")
    if empty:
        report.block("shard-empty", f"shards of the {role} are empty: {_some(empty)}",
                     "download them again")  # fmt: skip
    if locked:
        report.block("shard-unreadable", f"this login may not read shards of the {role}: {_some(locked)}",
                     "give the login read access, or start the engine as their owner")  # fmt: skip
    if not (missing or empty or locked):
        _check_whole(role, weights, report)


def _check_whole(role: str, weights: Weights, report: Report) -> None:
    if not weights.shards:
        report.block("no-weights", f"the {role}'s folder has no weights: {shown(weights.folder or '')}",
                     "name the folder of the checkpoint")  # fmt: skip
    elif weights.promised and weights.size < weights.promised:
        report.warn("shards-short", f"the {role}'s shards have {gib(weights.size)}, its index promises "
                    f"{gib(weights.promised)}", "a download may have been cut; compare its checksums")  # fmt: skip


def _say_absent(role: str, named: str, report: Report) -> None:
    report.see(TOPIC, role, f"{shown(named)}: not on the host")
    if named.startswith(("/", "./", "../", "~")):
        advice = "the engine gets the path as it is; write it without ~" if named.startswith("~") else "mend the path"
        report.block("model-absent", f"the {role} is not on the host: {shown(named)}", advice)
    else:
        report.warn("model-absent", f"the {role} {shown(named)} is neither a folder nor in the Hugging Face cache",
                    "the engine would download it first, which no estimate covers; download it before")  # fmt: skip


def _words(named: str, weights: Weights, missing: int) -> str:
    count = len(weights.shards)
    files = f"{count - missing} of {count} shards" if missing else f"{count} shard{'s' if count != 1 else ''}"
    return f"{shown(named)}: {files}, {gib(weights.size)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(shown(name, 80) for name in names[:NAMED]) + more

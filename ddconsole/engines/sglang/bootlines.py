"""Lines of SGLang's log, 0.5.11 to 0.5.23 and its DDTree forks: what each one means for the boot.

A line is told by its first word, so that reading costs little; lines that mean nothing here are None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STAMP: Final = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?P<rank>(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] "
)
"""The prefix that SGLang's logger puts before every message; the rank's part is missing with one GPU."""


class Kind(StrEnum):
    """What a line tells."""

    INIT = "init"
    LOAD_BEGIN = "load-begin"
    LOAD_END = "load-end"
    KV = "kv"
    GRAPHS = "graphs"
    SERVER = "server"
    FIRED_UP = "fired-up"
    FACTS = "facts"
    BIND_FAILED = "bind-failed"
    DECODE = "decode"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Decode:
    """A `Decode batch` line. `accept_len` covers only the steps since the line before.

    Attributes:
        tokens_per_s: includes idle time before the request; the first after idle means nothing.
        graph: False means that the batch ran without a CUDA graph.
    """

    running: int
    accept_len: float | None
    accept_rate: float | None
    tokens_per_s: float | None
    graph: bool | None


@dataclass(frozen=True, slots=True)
class Mark:
    """A line that means something. `facts` are attributes of `BootFacts`."""

    kind: Kind
    facts: dict[str, int] = field(default_factory=dict)
    decode: Decode | None = None


def split_stamp(text: str) -> tuple[str | None, str]:
    """(rank, message) of a line; rank is "" for the main process and None for a line without a prefix."""
    match = STAMP.match(text)
    if match is None:
        return None, text
    return match["rank"].strip(), text[match.end() :]


def split_glued(text: str) -> Iterator[str]:
    """`text` cut before each log prefix inside it: lines of two processes that came out as one."""
    start = 0
    if text.find("[2", 1) > 0:
        for stamp in STAMP.finditer(text, 1):
            yield text[start : stamp.start()].rstrip()
            start = stamp.start()
    yield text[start:]


# --- one reader for each first word

_FACT = re.compile(r"\b(block_size|tree_budget|draft_window_size)=(\d{1,9})\b")
_FACT_NAMES = {"block_size": "block_size", "tree_budget": "budget", "draft_window_size": "window"}
_MISMATCH = re.compile(r"block size mismatch: using \w+=(\d{1,9}) but draft config block_size=(\d{1,9})")
_VERIFY = re.compile(r"Capture target verify .*?num_tokens_per_req=(\d{1,9})")
_INFERRED = re.compile(r"Inferred speculative_ddtree_budget=(\d{1,9})")
_DECODE = {
    name: re.compile(pattern)
    for name, pattern in {
        "running": r"#running-req: (\d{1,9})",
        "accept_len": r"\baccept len: ([\d.]{1,12})",
        "accept_rate": r"\baccept rate: ([\d.]{1,12})",
        "tokens_per_s": r"gen throughput \(token/s\): ([\d.]{1,12})",
        "graph": r"\bcuda graph: (True|False)",
    }.items()
}


def _init(message: str) -> Mark | None:
    begins = message.startswith(("Init parallel begin", "Init torch distributed begin"))
    return Mark(Kind.INIT) if begins else None


def _load(message: str) -> Mark | None:
    if message.startswith("Load weight begin"):
        return Mark(Kind.LOAD_BEGIN)
    return Mark(Kind.LOAD_END) if message.startswith("Load weight end") else None


def _kv(message: str) -> Mark | None:
    if message.startswith(("KV Cache", "Memory pool end")):
        return Mark(Kind.KV)
    return Mark(Kind.WARNING) if message.startswith("KV pool holds") else None


def _capture(message: str) -> Mark | None:
    if message.startswith("Capture cuda graph failed"):
        return None
    width = _VERIFY.match(message)
    return Mark(Kind.GRAPHS, {} if width is None else {"verify_width": int(width[1])})


def _initialized(message: str) -> Mark | None:
    found = {_FACT_NAMES[name]: int(value) for name, value in _FACT.findall(message)}
    return Mark(Kind.FACTS, found) if found else None


def _dflash(message: str) -> Mark | None:
    mismatch = _MISMATCH.search(message)
    if mismatch is not None:
        return Mark(Kind.WARNING, {"block_size": int(mismatch[1]), "trained_block_size": int(mismatch[2])})
    worries = ("does not support attention_backend", "kept eager", "materialization disabled")
    return Mark(Kind.WARNING) if any(worry in message for worry in worries) else None


def _inferred(message: str) -> Mark | None:
    match = _INFERRED.match(message)
    return None if match is None else Mark(Kind.FACTS, {"budget": int(match[1])})


def _uvicorn(message: str) -> Mark | None:
    text = message.partition(":")[2].lstrip() if message[:6] in ("INFO: ", "ERROR:") else message
    if "error while attempting to bind" in text or "address already in use" in text:
        return Mark(Kind.BIND_FAILED)
    begins = text.startswith(("Started server process", "Application startup complete", "Uvicorn running on"))
    return Mark(Kind.SERVER) if begins else None


def _the(message: str) -> Mark | None:
    if message.startswith("The server is fired up"):
        return Mark(Kind.FIRED_UP)
    return Mark(Kind.WARNING) if message.startswith("The memory capacity is unbalanced") else None


def _decode(message: str) -> Mark | None:
    found = {name: pattern.search(message) for name, pattern in _DECODE.items()}

    def number(name: str) -> float | None:
        match = found[name]
        try:
            return None if match is None else float(match[1])
        except ValueError:
            return None

    graph = found["graph"]
    return Mark(
        Kind.DECODE,
        decode=Decode(
            running=int(number("running") or 0),
            accept_len=number("accept_len"),
            accept_rate=number("accept_rate"),
            tokens_per_s=number("tokens_per_s"),
            graph=None if graph is None else graph[1] == "True",
        ),
    )


def _starts(*beginnings: str) -> Callable[[str], Mark | None]:
    """A reader of warnings that begin so."""
    return lambda message: Mark(Kind.WARNING) if message.startswith(beginnings) else None


_READERS: Final[dict[str, Callable[[str], Mark | None]]] = {
    "Init": _init,
    "Load": _load,
    "KV": _kv,
    "Memory": _kv,
    "Post-capture": lambda _: Mark(Kind.KV),
    "Capture": _capture,
    "Initialized": _initialized,
    "DFLASH": _dflash,
    "DDTREE": _dflash,
    "Inferred": _inferred,
    "INFO:": _uvicorn,
    "ERROR:": _uvicorn,
    "Started": _uvicorn,
    "Application": _uvicorn,
    "Uvicorn": _uvicorn,
    "[Errno": _uvicorn,
    "Engine": lambda message: Mark(Kind.SERVER) if message.startswith("Engine startup timings") else None,
    "The": _the,
    "Decode": _decode,
    "Disable": _starts("Disable DFLASH draft cuda graph"),
    "Failed": _starts("Failed to infer DFLASH block_size"),
    "speculative_num_draft_tokens": _starts("speculative_num_draft_tokens is not set"),
}


def read(message: str) -> Mark | None:
    """What `message` (without its prefix) means for the boot, or None."""
    reader = _READERS.get(message.partition(" ")[0])
    return None if reader is None else reader(message)

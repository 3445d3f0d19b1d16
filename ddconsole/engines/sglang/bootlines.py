"""Lines of SGLang's log, 0.5.11 to 0.5.23 and its DDTree forks: what each one means for the boot.

A line is told by its first word, so that reading costs little; lines that mean nothing here are None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from ddconsole.engines.sglang.cautions import find_caution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ddconsole.core.progress import LogWarning

STAMP_PATTERN: Final = (
    r"\[\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?"
    r"({rank}(?: (?:DP|PP|ATTN_CP|MOE_DP|TP|EP)\d+)*)\] "
)
"""The prefix that SGLang's logger puts before every message, to be filled with the kind of its one group: the rank."""

STAMP: Final = re.compile(STAMP_PATTERN.format(rank="?P<rank>"))
"""The rank's part is empty in the main process, and with one GPU."""

ROUTINE: Final = (
    r"(?:(?:Decode|Prefill) batch(?: \[\d{1,12}\])?,[\w #,:.()/%-]{0,800}"
    r"|INFO:     [\da-f.:]{3,46} - \"[A-Z]{3,7} /(?:v1/)?[a-z_/]{0,48} HTTP/\d(?:\.\d)?\" \d{3}[ \w]{0,40})"
)
"""Whole messages that a serving engine prints for ever: batches, and the HTTP server's lines about requests.

So narrow that they hold no bar, no second line, and nothing that could be a secret: a query string is not routine.
"""

_ROUTINE = re.compile(ROUTINE)


def is_routine(message: str) -> bool:
    """Whether a message behind a stamp is routine: it tells nothing about the boot, and no trouble."""
    return _ROUTINE.fullmatch(message) is not None


def is_echo(message: str) -> bool:
    """Whether a line without a stamp, or one that is not routine, still only echoes requests.

    An HTTP server may log without the stamp; a hung engine logs each health check that fails, each time that we ask.
    """
    return message.startswith("Health check failed") or (message.startswith("INFO: ") and is_routine(message))


class Kind(StrEnum):
    """What a line tells."""

    INIT = "init"
    ONE_MODEL = "one-model"
    LOAD_BEGIN = "load-begin"
    LOAD_END = "load-end"
    KV = "kv"
    GRAPHS = "graphs"
    SERVER = "server"
    FIRED_UP = "fired-up"
    FACTS = "facts"
    BIND_FAILED = "bind-failed"
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


class Mark(NamedTuple):
    """A line that means something. `facts` are attributes of `BootFacts`; `seconds` is what the line says it took."""

    kind: Kind
    facts: Mapping[str, int | str] = MappingProxyType({})
    seconds: float | None = None
    warning: LogWarning | None = None


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


_ELAPSED = re.compile(r"elapsed=([\d.]{1,12}) ?s")

OLD_DIALECT: Final = {"dialect": "0.5.11 to 0.5.12"}
NEW_DIALECT: Final = {"dialect": "0.5.16 or later"}
"""Target, KV and graphs before the draft in the old one; both loads first in the new one. Told by the first words."""


def _number(match: re.Match[str] | None) -> float | None:
    try:
        return None if match is None else float(match[1])
    except ValueError:
        return None


def _warning(message: str, facts: Mapping[str, int | str] | None = None) -> Mark | None:
    caution = find_caution(message)
    return None if caution is None else Mark(Kind.WARNING, facts or {}, warning=caution)


_INIT_NEW, _INIT_OLD = Mark(Kind.INIT, NEW_DIALECT), Mark(Kind.INIT, OLD_DIALECT)
_LOAD_BEGIN, _KV, _GRAPHS = Mark(Kind.LOAD_BEGIN), Mark(Kind.KV), Mark(Kind.GRAPHS)
"""The commonest of them, made once."""


def _init(message: str) -> Mark | None:
    if message.startswith("Init parallel begin"):
        return _INIT_NEW
    return _INIT_OLD if message.startswith("Init torch distributed begin") else None


def _load(message: str) -> Mark | None:
    if message.startswith("Load weight begin"):
        return _LOAD_BEGIN
    if not message.startswith("Load weight end"):
        return None
    return Mark(Kind.LOAD_END, seconds=_number(_ELAPSED.search(message)), warning=find_caution(message))


def _kv(message: str) -> Mark | None:
    if message.startswith(("KV Cache", "Memory pool end")):
        return _KV
    return _warning(message)


def _capture(message: str) -> Mark | None:
    if message.startswith("Capture cuda graph failed"):
        return None
    width = _VERIFY.match(message)
    return _GRAPHS if width is None else Mark(Kind.GRAPHS, {"verify_width": int(width[1])})


def _initialized(message: str) -> Mark | None:
    found = {_FACT_NAMES[name]: int(value) for name, value in _FACT.findall(message)}
    return Mark(Kind.FACTS, found) if found else None


def _dflash(message: str) -> Mark | None:
    mismatch = _MISMATCH.search(message)
    facts = {} if mismatch is None else {"block_size": int(mismatch[1]), "trained_block_size": int(mismatch[2])}
    return _warning(message, facts)


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
    return Mark(Kind.FIRED_UP) if message.startswith("The server is fired up") else _warning(message)


def is_decode(message: str) -> bool:
    """Whether it is a decode line."""
    return message.startswith("Decode batch")


def read_decode(message: str) -> Decode:
    """What a decode line says."""
    found = {name: pattern.search(message) for name, pattern in _DECODE.items()}
    graph = found["graph"]
    return Decode(
        running=int(_number(found["running"]) or 0),
        accept_len=_number(found["accept_len"]),
        accept_rate=_number(found["accept_rate"]),
        tokens_per_s=_number(found["tokens_per_s"]),
        graph=None if graph is None else graph[1] == "True",
    )


_READERS: Final[dict[str, Callable[[str], Mark | None]]] = {
    "Init": _init,
    "Load": _load,
    "KV": _kv,
    "Memory": _kv,
    "Post-capture": lambda _: _KV,
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
    "Disable": _warning,
    "Failed": _warning,
    "speculative_num_draft_tokens": _warning,
    "Casting": _warning,
    "Compute": _warning,
}


_NO_DRAFTER = re.compile(r"\bspeculative_algorithm'?(?:=|: )(?:None|'NGRAM')")
_ONE_MODEL = Mark(Kind.ONE_MODEL)


def read(message: str) -> Mark | None:
    """What `message` (without its prefix) means for the boot, or None."""
    reader = _READERS.get(message.partition(" ")[0])
    if reader is not None:
        return reader(message)
    if message.startswith("server_args=") and _NO_DRAFTER.search(message) is not None:
        return _ONE_MODEL
    return None


def means_nothing(messages: list[str]) -> bool:
    """Whether none of them means anything; an indented one never does."""
    for message in messages:  # noqa: SIM110 - a generator inside all() costs twice as much, for every line of a traceback
        if message[:1] not in _INDENTED and read(message) is not None:
            return False
    return True


_INDENTED: Final = " "
"""Holds the empty text too."""

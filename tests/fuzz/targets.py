"""Every reader of text that others wrote, behind one signature: bytes in, nothing out but errors that are expected.

`run` may raise only what `allowed` names; anything else that escapes is a bug, and so is time that grows faster than
the input. The first two bytes choose where the rest is cut into pieces, for readers that are fed in pieces.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ddconsole.adapters import profile_file, queue_file
from ddconsole.core.codec import queue_from_json
from ddconsole.core.errors import HostError, ProfileError, UsageError
from ddconsole.core.events import Event
from ddconsole.core.gpu import GpuParser
from ddconsole.core.gpu_list import parse_list
from ddconsole.core.masking import Masker
from ddconsole.core.metrics import RequestRecord
from ddconsole.core.ports import Answer
from ddconsole.core.profile import Profile
from ddconsole.core.queue import Queue
from ddconsole.core.spec import SpecContext, parse
from ddconsole.engines.launch.record import parse_launched
from ddconsole.engines.launch.service import parse_state
from ddconsole.engines.sglang.bootlog import BootLog
from ddconsole.engines.sglang.counters import counter, lifetime_tau
from ddconsole.engines.sglang.dialect import ChatDialect, NativeDialect, parse_version
from ddconsole.engines.sglang.preflight.help_text import parse_help
from ddconsole.engines.sglang.preflight.links import parse_matrix
from ddconsole.engines.sglang.preflight.sections import sections
from ddconsole.passes.extract import extract_answer
from ddconsole.passes.framing import BadFramingError, body_of, parse_head
from ddconsole.passes.sse import EventTooLargeError, SseDecoder

HERE = Path(__file__).parent
TESTS = HERE.parent
PROFILES = TESTS.parent / "profiles"

PROFILE = Profile.model_validate(
    {"schema": "1", "host": "h", "engine": {"command": ["e"], "model": "m", "drafter": "d", "trained_block_size": "8"}}
)


@dataclass(frozen=True)
class Target:
    """One reader. `seeds` are inputs from which mutation begins; `fed` ones read their first two bytes as `pieces`."""

    name: str
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]
    allowed: tuple[type[Exception], ...] = ()
    fed: bool = False


def pieces(data: bytes) -> Iterator[bytes]:
    """The input cut as its first two bytes say: pieces of 1 to 4,096 bytes."""
    size = 1 + (int.from_bytes(data[:2]) & 0xFFF)
    body = data[2:]
    for start in range(0, len(body), size):
        yield body[start : start + size]


def text_of(data: bytes) -> str:
    """As the host's text is decoded everywhere."""
    return data.decode("utf-8", "replace")


# --- the readers


def boot_log(data: bytes) -> None:
    log = BootLog(("xyzzy-plugh",))
    for number, piece in enumerate(pieces(data)):
        for line in log.feed(piece, float(number)):
            assert "\x1b" not in line
            assert "xyzzy-plugh" not in line
    assert log.progress.phase
    assert log.failure(137).cause
    assert log.facts is not None


def nvidia_smi(data: bytes) -> None:
    parser = GpuParser()
    ticks = [tick for piece in pieces(data) for tick in parser.feed(piece)] + parser.finish()
    for tick in ticks:
        json.dumps(tick.to_json(), allow_nan=False)
    parse_list(text_of(data).splitlines())


def sse(data: bytes) -> None:
    decoder, answers = SseDecoder(), [Answer(), Answer(), Answer()]
    dialects = (NativeDialect(incremental=False), NativeDialect(incremental=True), ChatDialect(model="m"))
    events = [event for piece in pieces(data) for event in decoder.feed(piece)] + decoder.close()
    for answer, dialect in zip(answers, dialects, strict=True):
        for event in events:
            dialect.read(answer, event)
            assert answer.new_tokens >= 0


def http(data: bytes) -> None:
    head, _, rest = data.partition(b"\r\n\r\n")
    body = body_of(parse_head(head))
    for piece in pieces(rest):
        body.feed(piece)
        if body.ended:
            break
    body.close()


def server_info(data: bytes) -> None:
    """What /server_info and /metrics may hold, behind the JSON reader."""
    text = text_of(data)
    counter(text, "sglang:generation_tokens_total")
    parse_version(text)
    Masker(("xyzzy-plugh",)).text(text)
    try:
        info = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(info, dict):
        Masker().data(info)
        lifetime_tau(info)


def profile_yaml(data: bytes) -> None:
    profile_file.parse(data, "fuzz.yaml")


def queue_yaml(data: bytes) -> None:
    queue_file.read_sheet(data, "fuzz.yaml", "demo")


def spec_line(data: bytes) -> None:
    found = parse(text_of(data), SpecContext.of(PROFILE, Queue()))
    assert found is not None


def journal(data: bytes) -> None:
    """Our own journal of events, as recordings and the store keep it: a broken line is a ValueError."""
    for line in data.splitlines():
        Event.from_json(json.loads(text_of(line)))


def store_rows(data: bytes) -> None:
    """A row of the store that was damaged, or written by a stranger."""
    found = json.loads(text_of(data))
    if isinstance(found, dict):
        queue_from_json(found)
        RequestRecord.from_json(found)


def host_answers(data: bytes) -> None:
    """What scripts on the host print: launches, services, preflight's sections, help texts, link matrices."""
    text = text_of(data)
    parse_launched(text)
    found = sections(text)
    for lines in found.values():
        parse_help(lines)
        parse_matrix(lines)
    parse_help(text.splitlines())
    parse_matrix(text.splitlines())


def systemd_journal(data: bytes) -> None:
    """What systemd tells of a unit."""
    parse_state("x.service", text_of(data))


def answer_text(data: bytes) -> None:
    """A model's answer: which code in it is the answer."""
    extract_answer(text_of(data), "add")


# --- seeds


def _files(folder: str, pattern: str, limit: int = 16_384) -> Iterator[bytes]:
    for path in sorted((TESTS / folder / "data").glob(pattern)):
        yield b"\x0f\xff" + path.read_bytes()[:limit]


def _bare(folder: str, pattern: str) -> Iterator[bytes]:
    return (data[2:] for data in _files(folder, pattern))


def _profiles() -> Iterator[bytes]:
    return (path.read_bytes() for path in sorted(PROFILES.glob("*.yaml")))


def _responses() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x00\x01hello"
    yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\x00\x015;x=y\r\nhello\r\n0\r\nA: b\r\n\r\n"
    yield b"HTTP/1.0 204 \r\nConnection: keep-alive\r\n\r\n"


def _specs() -> Iterator[bytes]:
    yield b"sweep b=16 B=match,2b,3b K=2..6 W=2048 repeats=3"
    yield b"after! E1 block_size=16 budget=match note='a b' arg.mem-fraction-static=0.8"
    yield b"move E17 top"
    yield b"edit E16 budget=32 suite=confirm"


def _events() -> Iterator[bytes]:
    with (TESTS / "data" / "recording.jsonl").open("rb") as recording:
        yield from (line for _, line in zip(range(60), recording, strict=False))


def _rows() -> Iterator[bytes]:
    yield b'{"revision":1,"paused":false,"items":[],"next_id":1,"next_sweep":1}'
    yield json.dumps(RequestRecord("p", chunks=((0.1, 1),), completion_tokens=3).to_json()).encode()


def _host_texts() -> Iterator[bytes]:
    yield b"launched\t12\t34\tboot\ttoken\t30000\t/s\t/s/runs/x\tprocess\t\t\n"
    yield b"= help\n  --port PORT  The port\n  --attention-backend {triton,fa3}  which\n"
    yield b"= topo\n \tGPU0\tGPU1\n GPU0\t X \tPHB\n GPU1\tPHB\t X \n"


def _units() -> Iterator[bytes]:
    yield b"LoadState=loaded\nActiveState=active\nMainPID=12\nInvocationID=ab\nPids=1 2 3\nTaken=active\nRun=x\n"


def _answers() -> Iterator[bytes]:
    yield b"<think>no</think>\n```python\ndef add(a, b):\n    return a + b\n```\n"
    yield b"~~~~py\ndef add(a, b): ...\n~~~~\n```bash\nls\n```"


TARGETS = (
    Target("boot-log", boot_log, lambda: _files("engines", "*.log"), fed=True),
    Target("nvidia-smi", nvidia_smi, lambda: _files("core", "nvidia-smi*"), fed=True),
    Target("sse", sse, lambda: _files("engines", "*.sse"), (EventTooLargeError,), fed=True),
    Target("http", http, _responses, (BadFramingError,)),
    Target("server-info", server_info, lambda: _bare("engines", "server_info.json")),
    Target("profile-yaml", profile_yaml, _profiles, (ProfileError,)),
    Target("queue-yaml", queue_yaml, lambda: iter([b"revision: 1\nexperiments:\n- id: E1\n  spec: b=16 B=26\n"]),
           (UsageError,)),
    Target("spec", spec_line, _specs),
    Target("journal", journal, _events, (ValueError, RecursionError)),
    Target("store-rows", store_rows, _rows, (ValueError, RecursionError, KeyError, TypeError)),
    Target("host-answers", host_answers, _host_texts),
    Target("systemd", systemd_journal, _units, (HostError,)),
    Target("answer", answer_text, _answers),
)  # fmt: skip
"""`journal`: JSON too deep to read is a RecursionError of the JSON reader. `store-rows`: what the rescue suppresses."""


def attempt(target: Target, data: bytes) -> None:
    """Run one input; an error that is not expected comes out."""
    try:
        target.run(data)
    except target.allowed:
        return


def corpus(target: Target) -> Iterator[bytes]:
    """The seeds, and inputs that have found something before."""
    yield from target.seeds()
    for path in sorted((HERE / "corpus" / target.name).glob("*")):
        yield path.read_bytes()


def by_name(name: str) -> Target:
    return next(target for target in TARGETS if target.name == name)

"""A host that answers the four questions of a preflight by recorded text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ddconsole.core.ports import Completed
from ddconsole.engines.sglang.preflight.card_scripts import CARDS, LINKS
from ddconsole.engines.sglang.preflight.engine_script import ENGINE_ANSWERS
from ddconsole.engines.sglang.preflight.host_script import HOST

SCRIPTS = {HOST: "host", CARDS: "cards", LINKS: "links", ENGINE_ANSWERS: "engine"}
RECORDED = Path(__file__).parents[1] / "cli" / "data" / "doctor" / "recorded"


def recorded() -> dict[str, str]:
    """What a ct200 in its good state answers, by question."""
    return {name: (RECORDED / f"{name}.txt").read_text("utf-8") for name in SCRIPTS.values()}


class RecordedHost:
    """Answers a script by the text of its name. `asked` are the argvs; `most` is how many ran at one time."""

    name = "recorded"
    notes: tuple[str, ...] = ()

    def __init__(self, answers: Mapping[str, str | Exception]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], *, stdin: bytes = b"", timeout: float = 30.0) -> Completed:
        self.asked.append(tuple(argv))
        name = next(SCRIPTS[word] for word in argv if word in SCRIPTS)
        answer = self.answers[name]
        if isinstance(answer, Exception):
            raise answer
        return Completed(0, answer)

    async def close(self) -> None:
        return

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"a preflight has no use for {name}")


class RecordedConnector:
    """Connects to a recorded host."""

    def __init__(self, host: RecordedHost) -> None:
        self.host = host

    async def connect(self) -> RecordedHost:
        return self.host

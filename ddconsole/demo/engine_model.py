"""The toy engine's model: a request's text in, a generation out, under one fixed config."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddconsole.core.config import Algorithm
from ddconsole.demo.decode import Generation
from ddconsole.demo.drafter import Drafter
from ddconsole.demo.engine_scheduler import Job
from ddconsole.demo.language import LoopingRecall, load_language

if TYPE_CHECKING:
    from ddconsole.demo.engine_flags import EngineArgs
    from ddconsole.demo.language import Language


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, whatever endpoint it came by.

    Attributes:
        text: what is looked up: the prompt of /generate, the last user message of a chat.
        max_new_tokens: at least 1.
    """

    text: str
    max_new_tokens: int
    ignore_eos: bool = False
    rid: str | None = None


class ToyModel:
    """Target and drafter over the shipped corpus."""

    def __init__(self, args: EngineArgs) -> None:
        self.effective = args.effective
        self.language = load_language()
        self._drafter = _drafter(args, self.language)
        self._garbage = args.fail == "garbage-at-budget" and args.garbage_budget == args.effective.budget

    def job(self, ask: Ask) -> Job:
        """A job for the scheduler, ready to be prefilled."""
        prompt = self.language.prompt_tokens(ask.text)
        recall = self.language.recall(ask.text)
        generation = Generation(
            self.effective,
            self._drafter,
            LoopingRecall(recall) if self._garbage else recall,
            prompt,
            max_new_tokens=ask.max_new_tokens,
            ignore_eos=ask.ignore_eos,
        )
        return Job(ask.rid or uuid.uuid4().hex, tuple(prompt), generation)

    def text(self, job: Job, tokens: int) -> str:
        """The first `tokens` tokens of a job's output as text."""
        return self.language.tokenizer.decode(job.generation.output[:tokens])


def _drafter(args: EngineArgs, language: Language) -> Drafter | None:
    effective = args.effective
    if effective.algorithm is Algorithm.OFF:
        return None
    assert effective.block_size is not None
    assert effective.window is not None
    return Drafter(
        language,
        block_size=effective.block_size,
        window=effective.window,
        trained_block_size=args.trained_block_size,
    )

"""Prompts that begin alike, made up from a seed: what agents, chats and system prompts are to a prefix cache."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from ddconsole.core.ports import Prompt

if TYPE_CHECKING:
    from ddconsole.core.profile import SharedPrefix

NAME = "shared-prefix"
"""The word in a profile's `workload.prompts`."""

WORDS = (  # noqa: SIM905 - a list of 170 words takes 170 lines
    "about above across after again almost along always among another answer around because become before begin behind "
    "below beside better between beyond both bring build carry change clear close common complete copy count course "
    "cover cross deep describe differ distance draw during early earth either engine enough evening every example "
    "expect family figure final follow force forward found front garden general given ground group half harbour hold "
    "however hundred inside island itself journey keep kitchen known language large later letter light listen little "
    "machine many market matter measure middle minute morning mountain moment music near never night north number "
    "object often open order other outside paper part people perhaps picture place plain plant point possible present "
    "problem quick quiet reach record remember river road room round school second several short simple since small "
    "south space stand station still stone story street strong summer system table teacher thing though thousand "
    "through together toward travel under until upon village voice watch water weather while whole window winter wonder"
).split()
"""Common words, nearly all of them one token in any vocabulary."""


def shared_prefix_prompts(section: SharedPrefix, max_tokens: int) -> tuple[Prompt, ...]:
    """`groups` × `questions` prompts; those of a group share their first `prefix_words` words.

    They are sized in words, since we have no tokenizer of the model's: the engine's own `prompt_tokens` and
    `cached_tokens` stand with every result. The first question of every group comes first, then the second of every
    group, and so on. The same section gives the same prompts.
    """
    draw = random.Random(section.seed)
    prefixes = [_text(draw, section.prefix_words) for _ in range(section.groups)]
    prompts = []
    for question in range(1, section.questions + 1):
        for group, prefix in enumerate(prefixes, 1):
            text = f"{prefix}\n\nQuestion {question}. {_text(draw, section.question_words)}?"
            prompts.append(Prompt(f"prefix-{group}-question-{question}", text, max_tokens))
    return tuple(prompts)


def label(section: SharedPrefix) -> str:
    """`shared-prefix(4×4, 1024+64 words, seed 1)`: the key of results on these prompts."""
    size = f"{section.groups}×{section.questions}, {section.prefix_words}+{section.question_words} words"
    return f"{NAME}({size}, seed {section.seed})"


def _text(draw: random.Random, words: int) -> str:
    """Random words in sentences of eight to sixteen."""
    chosen = draw.choices(WORDS, k=words)
    at = 0
    while at < words:
        chosen[at] = chosen[at].capitalize()
        at += draw.randint(8, 16)
        if at < words:
            chosen[at - 1] += "."
    return " ".join(chosen)

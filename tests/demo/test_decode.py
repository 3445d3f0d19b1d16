"""Decoding under every config gives the autoregressive text, and counts what it did."""

from __future__ import annotations

import functools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.config import Algorithm, Config, effective_config
from ddconsole.demo.decode import Generation, Step, autoregressive
from ddconsole.demo.drafter import Drafter
from ddconsole.demo.language import END, load_language

LANGUAGE = load_language()
PROMPTS = [doc.prompt for doc in LANGUAGE.documents]


@functools.lru_cache(maxsize=64)
def drafter(block_size: int, window: int) -> Drafter:
    return Drafter(LANGUAGE, block_size=block_size, window=window)


@st.composite
def configs(draw: st.DrawFn) -> Config:
    algorithm = draw(st.sampled_from(Algorithm))
    if algorithm is Algorithm.OFF:
        return Config(algorithm)
    size = draw(st.sampled_from([2, 3, 8, 11, 16]))
    window = draw(st.sampled_from([16, 64, 2048]))
    if algorithm is Algorithm.CHAIN:
        return Config(algorithm, size, window=window)
    return Config(algorithm, size, draw(st.integers(1, 40)), draw(st.none() | st.integers(1, 8)), window)


def start(config: Config, prompt: str, limit: int, *, ignore_eos: bool = False) -> Generation:
    made = None if config.algorithm is Algorithm.OFF else drafter(config.block_size or 0, config.window or 0)
    return Generation(
        effective_config(config),
        made,
        LANGUAGE.recall(prompt),
        LANGUAGE.prompt_tokens(prompt),
        max_new_tokens=limit,
        ignore_eos=ignore_eos,
    )


def finish(generation: Generation) -> list[Step]:
    steps = [generation.prefill()]
    while generation.finish is None:
        steps.append(generation.step())
    return steps


@settings(max_examples=60, deadline=None)
@given(configs(), st.sampled_from(PROMPTS) | st.text(max_size=40), st.integers(1, 150), st.booleans())
def test_output_equals_the_autoregressive_output(config: Config, prompt: str, limit: int, ignore_eos: bool) -> None:
    """Token for token, on the corpus and off it, cut by the limit or by the end mark."""
    generation = start(config, prompt, limit, ignore_eos=ignore_eos)
    steps = finish(generation)
    expected = autoregressive(LANGUAGE.recall(prompt), max_new_tokens=limit, ignore_eos=ignore_eos)
    assert generation.output == expected
    assert [token for step in steps for token in step.tokens] == expected
    assert generation.finish == ("stop" if not ignore_eos and expected[-1] == END else "length")


@settings(max_examples=40, deadline=None)
@given(configs(), st.sampled_from(PROMPTS), st.integers(1, 150))
def test_counts_agree_with_the_steps(config: Config, prompt: str, limit: int) -> None:
    """V, accepted drafts and histogram are those of the steps; C = 1 + accepted + V but for the last step's cut."""
    generation = start(config, prompt, limit)
    _, *steps = finish(generation)
    counts = generation.counts
    if config.algorithm is Algorithm.OFF:
        assert counts.verify_steps == 0
        assert all(step.width == 1 and step.accepted is None for step in steps)
        return
    accepted = [step.accepted for step in steps if step.accepted is not None]
    assert counts.verify_steps == len(steps) == len(accepted) == sum(counts.histogram)
    assert counts.accepted == sum(accepted) == sum(k * n for k, n in enumerate(counts.histogram))
    assert counts.proposed == len(steps) * (config.block_size or 0) - len(steps)
    assert all(len(step.tokens) == kept + 1 for step, kept in zip(steps[:-1], accepted, strict=False))
    assert len(generation.output) <= 1 + counts.accepted + counts.verify_steps


def test_the_first_token_comes_from_prefill() -> None:
    """A request of one token is answered without any verify step."""
    generation = start(Config(Algorithm.CHAIN, 8, window=64), PROMPTS[0], limit=1)
    step = generation.prefill()
    assert (len(step.tokens), step.width, step.accepted) == (1, generation.prompt_tokens, None)
    assert (generation.finish, generation.counts.verify_steps) == ("length", 0)


@pytest.mark.parametrize(("budget", "topk", "width"), [(12, 6, 13), (3, 1, 4), (40, 1, 8)])
def test_verify_width_is_the_trees(budget: int, topk: int, width: int) -> None:
    """N = B + 1, and less where K leaves fewer nodes to take."""
    generation = start(Config(Algorithm.TREE, 8, budget, topk, 2048), PROMPTS[0], limit=60)
    assert {step.width for step in finish(generation)[1:]} == {width}

"""The drafter acts on τ as block size, budget, topk and window do in the real thing, and stays calibrated."""

from __future__ import annotations

import functools
import itertools
import math
import statistics

import pytest

from ddconsole.core.config import Algorithm, Config, effective_config
from ddconsole.demo.cost import CostModel
from ddconsole.demo.decode import Generation
from ddconsole.demo.drafter import CANDIDATES, Context, Drafter
from ddconsole.demo.language import load_language

LANGUAGE = load_language()
CODE = tuple(doc.prompt for doc in LANGUAGE.documents if doc.id.startswith("code-"))
LONG = tuple(doc.prompt for doc in LANGUAGE.documents if doc.id == "long-handbook")


@functools.cache
def drafter(block_size: int, window: int = 2048) -> Drafter:
    return Drafter(LANGUAGE, block_size=block_size, window=window)


@functools.cache
def measure(config: Config, prompts: tuple[str, ...] = CODE) -> tuple[float, float]:
    """(τ = ΣC/ΣV, decoded tokens a second by the cost model) over the prompts, at most 192 tokens each."""
    tokens = verifies = 0
    seconds = 0.0
    made = None if config.block_size is None else drafter(config.block_size, config.window or 0)
    for prompt in prompts:
        generation = Generation(
            effective_config(config),
            made,
            LANGUAGE.recall(prompt),
            LANGUAGE.prompt_tokens(prompt),
            max_new_tokens=192,
        )
        generation.prefill()
        while generation.finish is None:
            step = generation.step()
            seconds += CostModel().step_s([step.width], [generation.context_tokens], drafted=made is not None)
        tokens += len(generation.output)
        verifies += generation.counts.verify_steps
    return tokens / max(verifies, 1), (tokens - len(prompts)) / seconds


def chain(block_size: int, window: int = 2048, prompts: tuple[str, ...] = CODE) -> float:
    return measure(Config(Algorithm.CHAIN, block_size, window=window), prompts)[0]


def tree(block_size: int, budget: int, topk: int = 6, window: int = 2048, prompts: tuple[str, ...] = CODE) -> float:
    return measure(Config(Algorithm.TREE, block_size, budget, topk, window), prompts)[0]


def test_calibration_at_block_size_8() -> None:
    """The neighbourhood that the demo promises: chain about 3.9, a tree of 12 nodes about 4.6."""
    assert chain(8) == pytest.approx(3.9, abs=0.15)
    assert tree(8, 12) == pytest.approx(4.6, abs=0.15)


def test_acceptance_rises_with_the_budget() -> None:
    """τ of the tree grows with every doubling or so of its nodes."""
    taus = [tree(8, budget) for budget in (8, 12, 16, 24, 48)]
    assert all(lower < higher for lower, higher in itertools.pairwise(taus)), taus


def test_tree_beats_chain_beats_nothing() -> None:
    """At the trained block size the tree accepts more than the chain, and the chain more than one token."""
    assert tree(8, 12) > chain(8) > 1.5


def test_a_block_longer_than_the_trained_one_is_worse() -> None:
    """The chain at 16 falls below the chain at 8, and a tree wins some of it back."""
    assert chain(16) < chain(8) - 0.3
    assert chain(16) < tree(16, 26) < tree(8, 24)


def test_every_depth_gets_worse_beyond_the_trained_size() -> None:
    """Not only the new depths: the first seven suffer too. Below the trained size nothing changes."""
    prompt = LANGUAGE.prompt_tokens(CODE[0])
    answer = LANGUAGE.streams["code-run-length"][len(prompt) :]

    def masses(block_size: int, offsets: tuple[int, ...]) -> list[float]:
        """Mean probability of the right token at each offset, over every third place of the answer."""
        found: list[list[float]] = [[] for _ in offsets]
        for place in range(1, len(answer) - 8, 3):
            offers = drafter(block_size).marginals(Context([*prompt, *answer[:place]]))
            for shares, offset in zip(found, offsets, strict=True):
                shares.append(math.exp(dict(offers[offset - 1]).get(answer[place + offset - 1], -math.inf)))
        return [statistics.mean(shares) for shares in found]

    trained = masses(8, (1, 3, 7))
    assert all(worse < right for worse, right in zip(masses(16, (1, 3, 7)), trained, strict=True))
    assert masses(4, (1, 3)) == trained[:2]


def test_topk_acts() -> None:
    """K = 1, 2 and 6 are three different engines at a budget of 24."""
    one, two, six = (tree(8, 24, topk) for topk in (1, 2, 6))
    assert one < two < six
    assert one == chain(8), "one candidate a position leaves the chain"


def test_window_acts_on_the_long_prompt() -> None:
    """A drafter that sees more of a long context copies more of it."""
    small, middle, large = (tree(8, 12, window=window, prompts=LONG) for window in (64, 512, 2048))
    assert small < middle < large


def test_marginals_are_distributions() -> None:
    """Descending, without doubles, at most CANDIDATES, and with something left for the rest of the vocabulary."""
    context = Context(LANGUAGE.prompt_tokens(LONG[0]))
    for offers in drafter(8).marginals(context):
        log_probs = [log_prob for _, log_prob in offers]
        assert log_probs == sorted(log_probs, reverse=True)
        assert 0 < len({token for token, _ in offers}) == len(offers) <= CANDIDATES
        assert 0.5 < sum(math.exp(log_prob) for log_prob in log_probs) < 1.0


def test_drafting_is_deterministic() -> None:
    """Another drafter, asked in another order, gives the same marginals."""
    tokens = LANGUAGE.prompt_tokens(CODE[3])
    other = Drafter(LANGUAGE, block_size=8, window=2048)
    other.marginals(Context(LANGUAGE.prompt_tokens(CODE[4])))
    assert other.marginals(Context(tokens)) == drafter(8).marginals(Context(tokens))


def test_context_finds_its_end_in_the_window_only() -> None:
    """Earlier places agree in two to four tokens, and both of the first two have to lie in the window."""
    context = Context([9, 1, 2, 3, 8, 2, 3, 7, 1, 2, 3])
    assert context.earlier(100) == [(3, 3), (6, 2)]
    assert context.earlier(6) == [(6, 2)]
    assert context.earlier(5) == []
    assert Context([1]).earlier(10) == []


def test_speed_rises_with_the_budget_peaks_and_falls() -> None:
    """The stated cost of a step turns τ into a curve worth sweeping; the chain's speed is near 131, B 12's near 149."""
    speeds = {b: measure(Config(Algorithm.TREE, 8, b, 6, 2048))[1] for b in (8, 12, 24, 64)}
    assert measure(Config(Algorithm.OFF))[1] == pytest.approx(89, abs=4)
    assert measure(Config(Algorithm.CHAIN, 8, window=2048))[1] == pytest.approx(131, abs=6)
    assert speeds[12] == pytest.approx(149, abs=6)
    assert speeds[8] < speeds[12] < speeds[24] > speeds[64]

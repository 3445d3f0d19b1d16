"""The toy engine's block drafter: one marginal distribution for each position of a block, never conditionals.

Two sources, as in a trained drafter: what it learnt from the corpus's answers (skip-grams: after these last one to
three tokens, what stood i places on), and what it can copy from the last W tokens of its context (where the end of
the context stood before, what came i places on). So the window acts, most of all on long prompts.

It learns imperfectly, and that is what a draft tree can make up for. Each place of the corpus was, by a fixed draw,
learnt sharply, or blurred with its neighbour (the right token then comes second, where only a tree finds it), or not
at all. Deeper positions were learnt less often. Beyond the trained block size every depth gets worse, and the
distributions flatter. The draws are hashes, so everything is deterministic.

The constants are calibrated on the shipped code prompts at block size 8: the chain's τ is about 3.9 and that of a
tree of 12 nodes about 4.6. The tests hold them to it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ddtree import Candidate
    from ddconsole.demo.language import Language

CANDIDATES = 64
"""The most tokens that one position offers."""
ORDER = 3
"""The longest end of the context, in tokens, that skip-grams look at."""

SHARP_SHARE, SHARP_DECAY = 0.835, 0.98
"""Share of the corpus's places learnt sharply at depth 1, and what is left of it with each further depth."""
BLURRED_SHARE = 0.6
"""Share of the other places that were learnt, but blurred."""
SHARP_MASS, BLURRED_MASS = 0.8, 0.35
"""What the right token gets of a place's weight; its neighbour gets the rest."""
BACKOFF = (1.0, 0.5, 0.3)
"""Weight, in observations, of the next shorter end of the context, for ends of 1, 2 and 3 tokens."""
TEMPERATURE = 1.0
"""Above 1 flattens each position's distribution; it changes which nodes a tree holds, not the chain."""
ELSEWHERE = 0.1
"""Probability left for the rest of the vocabulary, relative to the candidates'."""

COPY_WEIGHT = (0.02, 0.3, 8.0)
"""Weight of one earlier place by how many tokens before it agree with the context's end: 2, 3, 4 or more."""
COPY_MOST, COPY_DECAY = 8.0, 0.98
"""The most that copying weighs against what was learnt, and what is left of it with each further depth."""

OVERSIZE_SHARE, OVERSIZE_BACKOFF = 0.978, 0.08
"""For each position that a block is longer than the trained one: what is left of the sharp share and of copying at
every depth, and how much more the shorter ends of the context weigh."""


class Context:
    """The tokens of one request so far, with an index of their pairs so that copying is cheap."""

    def __init__(self, tokens: Sequence[int] = ()) -> None:
        self.tokens: list[int] = []
        self._pairs: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
        self.extend(tokens)

    def __len__(self) -> int:
        return len(self.tokens)

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
        for token in tokens:
            if self.tokens:
                self._pairs[self.tokens[-1], token].append(len(self.tokens))
            self.tokens.append(token)

    def tail(self) -> tuple[int, ...]:
        """The last tokens, as many as skip-grams look at."""
        return tuple(self.tokens[-ORDER:])

    def earlier(self, window: int) -> list[tuple[int, int]]:
        """Places in the last `window` tokens where the context's end stood before.

        Each is (index of the place's last token, tokens that agree: 2 to 4).
        """
        tokens, size = self.tokens, len(self.tokens)
        if size < 2:
            return []
        first = max(size - window, 0)
        places = self._pairs[tokens[-2], tokens[-1]]
        return [(place, self._agreeing(place, first)) for place in places if first < place < size - 1]

    def _agreeing(self, place: int, first: int) -> int:
        length, most = 2, len(COPY_WEIGHT) + 1
        while length < most and place - length >= first and self.tokens[place - length] == self.tokens[-1 - length]:
            length += 1
        return length


class Drafter:
    """Gives the marginals of a block after a context. Tables are counted when first needed, then kept."""

    def __init__(self, language: Language, *, block_size: int, window: int, trained_block_size: int = 8) -> None:
        """`block_size` is b, the anchor included; `window` is W in tokens."""
        self.depth = block_size - 1
        self.window = window
        self._oversize = max(block_size - trained_block_size, 0)
        self._text: list[int] = []
        self._end_of_answer: dict[int, int] = {}
        self._places: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        self._learnt: dict[tuple[tuple[int, ...], int], dict[int, float]] = {}
        self._alone: dict[tuple[tuple[int, ...], int], list[Candidate]] = {}
        for doc in language.documents:
            self._read(language.prompt_tokens(doc.prompt), language.answer_tokens(doc))
        answers = Counter(self._text[place + 1] for place in self._end_of_answer)
        total = sum(answers.values())
        self._common = {token: count / total for token, count in answers.most_common(CANDIDATES // 2)}

    def marginals(self, context: Context) -> list[list[Candidate]]:
        """For each depth 1 … b − 1, the candidates and their log-probabilities in descending order."""
        earlier = context.earlier(self.window)
        tail = context.tail()
        return [self._position(context, tail, earlier, offset) for offset in range(1, self.depth + 1)]

    def _read(self, prompt: list[int], answer: list[int]) -> None:
        """Take a document in: as in training, only the answer's tokens are ever predicted."""
        start = len(self._text) + len(prompt)
        self._text += [*prompt, *answer]
        for place in range(start - 1, len(self._text) - 1):
            self._end_of_answer[place] = len(self._text)
            for order in range(1, ORDER + 1):
                self._places[tuple(self._text[place + 1 - order : place + 1])].append(place)

    def _position(
        self, context: Context, tail: tuple[int, ...], earlier: list[tuple[int, int]], offset: int
    ) -> list[Candidate]:
        copied, weight = self._copied(context, earlier, offset)
        if copied:
            return _candidates(_mix(self._from_corpus(tail, offset), copied, weight))
        key = (tail, offset)
        if key not in self._alone:
            self._alone[key] = _candidates(self._from_corpus(tail, offset))
        return self._alone[key]

    def _copied(self, context: Context, earlier: list[tuple[int, int]], offset: int) -> tuple[dict[int, float], float]:
        """The distribution of what stood `offset` places on in the window, and its weight against the corpus's."""
        votes: dict[int, float] = {}
        for place, agreeing in earlier:
            if place + offset < len(context):
                token = context.tokens[place + offset]
                votes[token] = votes.get(token, 0.0) + COPY_WEIGHT[agreeing - 2]
        total = sum(votes.values())
        if not total:
            return {}, 0.0
        decay = COPY_DECAY ** (offset - 1) * OVERSIZE_SHARE**self._oversize
        return {token: vote / total for token, vote in votes.items()}, min(total, COPY_MOST) * decay

    def _from_corpus(self, tail: tuple[int, ...], offset: int) -> dict[int, float]:
        """What was learnt to stand `offset` places after `tail`, backing off to shorter ends of it."""
        if not tail:
            return self._common
        key = (tail, offset)
        if key not in self._learnt:
            counts = self._counts(tail, offset)
            shorter = self._from_corpus(tail[1:], offset)
            backoff = BACKOFF[len(tail) - 1] * (1 + OVERSIZE_BACKOFF * self._oversize)
            self._learnt[key] = _mix(shorter, _normal(counts), sum(counts.values()) / backoff) if counts else shorter
        return self._learnt[key]

    def _counts(self, tail: tuple[int, ...], offset: int) -> dict[int, float]:
        """Observations of tokens `offset` places after `tail`, as sharply as each place was learnt."""
        sharp = SHARP_SHARE * SHARP_DECAY ** (offset - 1) * OVERSIZE_SHARE**self._oversize
        blurred = sharp + (1 - sharp) * BLURRED_SHARE
        counts: dict[int, float] = {}
        for place in self._places.get(tail, ()):
            draw = _draw(place, offset, salt=0)
            end = self._end_of_answer[place]
            if place + offset >= end or draw >= blurred:
                continue
            later = (offset == 1 or _draw(place, offset, salt=1) < 0.5) and place + offset + 1 < end
            neighbour = offset + 1 if later else offset - 1
            mass = SHARP_MASS if draw < sharp else BLURRED_MASS
            for where, share in ((offset, mass), (neighbour, 1 - mass)):
                token = self._text[place + where]
                counts[token] = counts.get(token, 0.0) + share
        return counts


def _normal(weights: dict[int, float]) -> dict[int, float]:
    total = sum(weights.values())
    return {token: weight / total for token, weight in weights.items()}


def _mix(base: dict[int, float], other: dict[int, float], weight: float) -> dict[int, float]:
    """`base` and `other` in the proportion 1 : weight, the likeliest candidates only."""
    whole = 1.0 + weight
    mixed = {token: share / whole for token, share in base.items()}
    for token, share in other.items():
        mixed[token] = mixed.get(token, 0.0) + weight * share / whole
    if len(mixed) <= CANDIDATES:
        return mixed
    return dict(sorted(mixed.items(), key=_likeliest_first)[:CANDIDATES])


def _likeliest_first(item: tuple[int, float]) -> tuple[float, int]:
    return (-item[1], item[0])


def _candidates(shares: dict[int, float]) -> list[Candidate]:
    """Log-probabilities in descending order, flattened, with a rest kept for the whole vocabulary."""
    ranked = sorted(shares.items(), key=_likeliest_first)
    flat = [(token, share ** (1.0 / TEMPERATURE)) for token, share in ranked]
    total = sum(share for _, share in flat) * (1.0 + ELSEWHERE)
    return [(token, math.log(share / total)) for token, share in flat]


def _draw(place: int, offset: int, *, salt: int) -> float:
    """A fixed number in [0, 1) for a place of a text, a depth and a purpose (the finaliser of splitmix64)."""
    mask = 0xFFFFFFFFFFFFFFFF
    word = (place * 0x9E3779B97F4A7C15 + offset * 0xBF58476D1CE4E5B9 + salt * 0xD6E8FEB86659FD93 + 0x2545F491) & mask
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & mask
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & mask
    return (word ^ (word >> 31)) / 2**64

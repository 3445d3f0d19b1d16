"""The toy engine's language: a small vocabulary, and a target model that recalls its corpus exactly.

The corpus is a text file of documents, each a prompt followed by its answer and an end mark. A prompt is looked up
once; from there a cursor runs along the answer to the end mark. So greedy text is exact and the same every time,
which is what makes every difference between configs a matter of speed alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

END = 0
"""The end mark's token. It decodes to nothing."""
BYTES = 1
"""The first of 256 tokens for single bytes, which spell out what the vocabulary does not have."""
FALLBACK = "fallback"
"""The id of the document whose answer is given to a prompt that nothing in the corpus resembles."""
SHORTEST_SUFFIX = 4
"""Tokens of a prompt's end that have to be found in the corpus for the text to go on from there."""

PIECE = re.compile(r"\n[ \t]*|[ ]?[A-Za-z]+|[ ]?[0-9]+|[ ]?[^\sA-Za-z0-9]|[ \t]+|\s")
"""A line break with its indentation, or a word, number or sign with the space before it: every character is in one."""
DOCUMENT = re.compile(r"<\|doc ([\w-]+)\|>\n(.*?)\n<\|answer\|>\n(.*?)\n<\|end\|>\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A prompt and its answer, as texts."""

    id: str
    prompt: str
    answer: str


class Tokenizer:
    """Turns text into tokens and back without loss; unknown pieces become bytes."""

    def __init__(self, texts: Iterable[str]) -> None:
        """A vocabulary of the end mark, 256 bytes, and the pieces of `texts` in the order of their first use."""
        pieces = dict.fromkeys(piece for text in texts for piece in PIECE.findall(text))
        first = BYTES + 256
        self._ids: dict[str, int] = {piece: first + index for index, piece in enumerate(pieces)}
        self._bytes: list[bytes] = [
            b"",
            *(bytes([value]) for value in range(256)),
            *(piece.encode() for piece in pieces),
        ]

    def __len__(self) -> int:
        return len(self._bytes)

    def encode(self, text: str) -> list[int]:
        """The tokens of `text`."""
        tokens: list[int] = []
        for piece in PIECE.findall(text):
            known = self._ids.get(piece)
            if known is not None:
                tokens.append(known)
            else:
                tokens.extend(BYTES + value for value in piece.encode("utf-8", "surrogatepass"))
        return tokens

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of `tokens`; bytes that are no UTF-8 become replacement signs."""
        return b"".join(self._bytes[token] for token in tokens).decode("utf-8", "replace")


class Recall:
    """What the target says after one prompt: an endless row of tokens that is known in advance.

    After the end mark (which only a request that ignores it gets to see) the answer starts again.
    """

    def __init__(self, tokens: Sequence[int]) -> None:
        """`tokens` end with END."""
        self._tokens = tuple(tokens)

    def __getitem__(self, index: int) -> int:
        return self._tokens[index % len(self._tokens)]

    def __len__(self) -> int:
        """Tokens until the end mark, the mark included."""
        return len(self._tokens)


class LoopingRecall(Recall):
    """Broken output: after a few right tokens it repeats itself and never ends. For the failure of that name."""

    def __init__(self, good: Recall, right: int = 12, loop: int = 3) -> None:
        """`right` tokens of `good`, the last `loop` of them repeated for ever."""
        super().__init__([good[index] for index in range(min(right, len(good) - 1))])
        self._loop = loop

    def __getitem__(self, index: int) -> int:
        if index < len(self._tokens):
            return self._tokens[index]
        start = max(len(self._tokens) - self._loop, 0)
        return self._tokens[start + (index - start) % (len(self._tokens) - start)]


class Language:
    """The corpus with its tokenizer, and the lookup of prompts."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(documents)
        self.tokenizer = Tokenizer(text for doc in documents for text in (doc.prompt, doc.answer, "\n\n"))

    @cached_property
    def streams(self) -> dict[str, list[int]]:
        """Each document as the models read it: prompt, blank line, answer, end mark."""
        return {doc.id: [*self.prompt_tokens(doc.prompt), *self.answer_tokens(doc)] for doc in self.documents}

    def prompt_tokens(self, text: str) -> list[int]:
        """A prompt as it stands before an answer: without white space at its end, then a blank line."""
        return self.tokenizer.encode(text.rstrip() + "\n\n")

    def answer_tokens(self, doc: Document) -> list[int]:
        """The answer and the end mark."""
        return [*self.tokenizer.encode(doc.answer), END]

    def recall(self, text: str) -> Recall:
        """What the target says after the prompt `text`.

        A prompt of the corpus, alone or inside other words, gets its own answer, or the rest of it when the text
        already holds the beginning. Otherwise the text goes on from the longest end of it that the corpus holds.
        """
        return self._known_prompt(text) or self._known_suffix(self.tokenizer.encode(text.rstrip()))

    def _known_prompt(self, text: str) -> Recall | None:
        found = [doc for doc in self.documents if doc.prompt in text]
        if not found:
            return None
        doc = max(found, key=lambda doc: (text.rfind(doc.prompt) + len(doc.prompt), len(doc.prompt)))
        begun = text[text.rfind(doc.prompt) + len(doc.prompt) :].strip()
        answer = self.answer_tokens(doc)
        spoken = self.tokenizer.encode(begun)
        if doc.answer.startswith(begun) and answer[: len(spoken)] == spoken:
            return Recall(answer[len(spoken) :])
        return Recall(answer)

    def _known_suffix(self, tokens: list[int]) -> Recall:
        best, where = SHORTEST_SUFFIX - 1, (FALLBACK, 0)
        for name, stream in self.streams.items():
            for end in range(len(stream) - 1):
                length = _common_suffix(tokens, stream, end)
                if length > best:
                    best, where = length, (name, end)
        if where[0] == FALLBACK:
            return Recall(self.answer_tokens(next(doc for doc in self.documents if doc.id == FALLBACK)))
        return Recall(self.streams[where[0]][where[1] + 1 :])


def _common_suffix(tokens: list[int], stream: list[int], end: int) -> int:
    """How many tokens before and at the end of `tokens` equal those of `stream` before and at `end`."""
    length = 0
    while length < len(tokens) and length <= end and tokens[-1 - length] == stream[end - length]:
        length += 1
    return length


def parse_corpus(text: str) -> list[Document]:
    """The documents of a corpus file."""
    return [Document(*match.groups()) for match in DOCUMENT.finditer(text)]


def load_language() -> Language:
    """The shipped corpus."""
    text = resources.files("ddconsole.demo").joinpath("data/corpus.txt").read_text("utf-8")
    return Language(parse_corpus(text))

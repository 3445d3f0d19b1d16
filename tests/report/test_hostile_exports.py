"""The corpus of hostile text through every export."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from fakes.hostile import HOSTILE, harmful
from report.books import LEVEL

from ddconsole.cli.results.export import FORMATS, NAMINGS, _text
from ddconsole.report.book import Book

FORMULA = tuple("=+-@\t\r\uff1d")
TAGS = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "p", "div", "table", "thead", "tbody", "tr",
    "th", "td", "br", "span", "details", "summary", "pre", "svg", "g", "path", "line", "circle", "text", "rect",
    "polyline", "polygon", "section", "ul", "li", "header", "footer", "figure", "figcaption", "code", "b", "dl", "dt",
    "dd", "strong", "em", "small", "ol",
}  # fmt: skip


class Tags(HTMLParser):
    """Every tag and attribute of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, value in attrs if name.startswith("on") or "evil" in (value or "")}


def hostile_book(make: Callable[..., Book], word: str) -> Book:
    """A result in which every text of others is that word."""
    failure = {"cause": word, "what": word, "evidence": [word], "advice": word, "phase": word}
    made: Book = make(
        outcome="failed", tok_s_e2e=None, failure=failure, verdict=word, engine_version=word, measured_on=word,
        sweep=word, workload={"prompts": word, "temperature": 0, "thinking": False},
    )  # fmt: skip
    item: dict[str, Any] = dict(made.entries[-1].item)
    item["config"] = item["config"] | {"args": {word or "x": word}}
    made.entries[-1].item.update(item)
    check = {"name": word, "ours": 1.0, "theirs": 2.0, "off_pct": 100.0, "source": word, "scope": word, "agrees": False}
    made.entries[-1].passes[word] = [{"levels": [LEVEL | {"label": word}], "cross_check": [check]}]  # type: ignore[index]
    made.entries[-1].recipe.update({"command": word, "env": {word: word}})  # type: ignore[attr-defined]
    return made


def check_csv(text: str) -> None:
    for row in csv.reader(io.StringIO(text)):
        for cell in row:
            assert cell == "" or not cell.startswith(FORMULA) or is_number(cell), cell[:80]


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def check_md(text: str) -> None:
    for table in re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE):
        assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1, "a cell broke its row"
    assert text.count("\n| --- |") == 4, "a table is missing"
    assert "<script" not in text.replace("\\<", "")
    assert "](" not in text.replace("\\]", "")


def check_html(text: str) -> None:
    tags = Tags()
    tags.feed(text)
    assert tags.tags <= TAGS, tags.tags - TAGS
    assert tags.attributes == set()


def check_json(text: str) -> None:
    json.loads(text)
    assert text.count("\n") == 1


CHECKS = {"csv": check_csv, "md": check_md, "html": check_html, "json": check_json}
"""A format without a check fails the test."""


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", HOSTILE)
def test_no_export_passes_hostile_text_on(make: Callable[..., Book], form: str, name: str) -> None:
    """No control character, no formula, no markup, no broken row; whatever the word, the file is whole."""
    text = _text(hostile_book(make, HOSTILE[name]), form, "ddconsole")
    CHECKS[form](text)
    assert harmful(text.encode("utf-8", "replace").decode(), lines=True) == []
    assert "E6" in text


@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("form", ["json", "csv"])
def test_other_tools_names_neither(make: Callable[..., Book], form: str, naming: str) -> None:
    """All of the corpus at once."""
    book = hostile_book(make, "".join(HOSTILE.values()))
    text = _text(book, form, naming)
    CHECKS[form](text)
    assert harmful(text.encode("utf-8", "replace").decode(), lines=True) == []

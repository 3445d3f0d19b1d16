"""The HTML report: whole in itself, well formed, and never a way in for text from the host."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from fakes.results import measured

from ddconsole.report import plots
from ddconsole.report.book import Book, Entry, make_book
from ddconsole.report.page import to_html

VOID = {"meta", "br", "!doctype"}


class Outline(HTMLParser):
    """Checks that tags nest, and keeps what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [str(value) for name, value in attrs if name in ("src", "href", "action", "srcset")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(html: str) -> Outline:
    parser = Outline()
    parser.feed(html)
    assert parser.open == []
    return parser


def svgs(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]


def test_the_page_needs_nothing_else(make: Callable[..., Book]) -> None:
    """No script, no link, no image, no font; and a policy that forbids them."""
    page = outline(to_html(make()))
    assert page.links == []
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(page.tags)
    assert "default-src 'none'; style-src 'unsafe-inline'" in to_html(make())


def test_it_is_for_light_dark_and_paper(make: Callable[..., Book]) -> None:
    """Colours are named once, for each of the three."""
    html = to_html(make())
    assert "@media (prefers-color-scheme: dark)" in html
    assert "@media print" in html
    body = html.partition("</style>")[2]
    assert not re.findall(r'(?:fill|stroke|color)="', body)


def test_what_it_says(make: Callable[..., Book]) -> None:
    """The plateau, the step cost with its estimate, τ / step beside decode, boots, levels, recipes."""
    page = outline(to_html(make()))
    for words in (
        "plateau, no winner: E3, E4 are not distinguishable",
        "estimate, not measured",
        "B 12 → 16: τ +4.3 %, step +10.7 %: lost",
        "164.3",  # τ 4.6 / 28.0 ms
        "49.0 / 60.0 / 61.0 / 62.0(warm 19.0 / 22.0 / 23.0 / 24.0)(round trip 12.5)",
        "79.0 / 85.0 / 86.0 / 87.0",  # TTFO
        "100.00.800.70",  # output, requests and goodput a second, cell by cell
        "+16.7 %⚠ disagreesdecode lines: 9 windows",
        '"profile_digest": "abc"',
        "drift: not looked for",
    ):
        assert words in page.text, words
    assert len(svgs(to_html(make()))) == 4


def test_hostile_text_stays_text(make: Callable[..., Book]) -> None:
    """Markup, attributes, control characters and half surrogates, in every field that comes from outside."""
    hostile = '"><script>alert(1)</script><svg onload=x>\x1b[31m\x00\ud800'
    html = to_html(
        make(
            id=hostile,
            outcome=hostile,
            measured_on=hostile,
            engine_version=hostile,
            tok_s_e2e=None,
            failure={"cause": hostile, "what": hostile, "evidence": [hostile], "advice": hostile},
        )
    )
    page = outline(html)
    assert "script" not in page.tags
    assert "onload=x" in page.text
    assert not re.search("[\x00-\x08\x0b-\x1f\ud800-\udfff]", html)


def test_nothing_measured_is_a_page_too() -> None:
    """Without plots."""
    page = outline(to_html(make_book("empty", "now", "0.1.0", [])))
    assert "Nothing passed yet." in page.text
    assert "svg" not in page.tags


def test_the_curve_passes_through_the_measured_points(make: Callable[..., Book]) -> None:
    """Corners of the drawn line are the points' places: four of them, and straight lines between."""
    (curve,) = make().curves
    (drawing,) = [ElementTree.fromstring(plots.step_cost(curve))]
    space = "{http://www.w3.org/2000/svg}"
    lines = drawing.findall(f"{space}polyline")
    squares = drawing.findall(f"{space}rect")
    assert [len(line.attrib["points"].split()) for line in lines] == [4, 4, 4]
    corners = [tuple(map(float, pair.split(","))) for pair in lines[0].attrib["points"].split()]
    marks = [(float(one.attrib["x"]) + 4.5, float(one.attrib["y"]) + 4.5) for one in squares[:4]]
    for corner, mark in zip(corners, marks, strict=True):
        assert corner == pytest.approx(mark, abs=0.11)


def test_a_lone_result_has_no_scatter() -> None:
    """One point is no plot; a result without a reference is on no forest plot."""
    entry = Entry(measured("E1", 100))
    assert plots.speed_over_tau([entry]) is None
    assert plots.against_reference([entry]) is None
    assert plots.drift(make_book("x", "now", "0", [entry])) is None

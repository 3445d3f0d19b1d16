"""What PyYAML says of a broken file, in words for someone who only wants to mend it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import yaml

_SENTENCES: tuple[tuple[str, str], ...] = (
    (r"found character '\\t'", "a tab where YAML wants spaces; indent with spaces"),
    (r"found character '(.+?)' that cannot start", r"a plain value cannot start with \1; put it in quotes"),
    (r"expected '<document start>'", "a line cannot start with % here; put the text in quotes"),
    (r"mapping values are not allowed", "a second `: ` in one value; put the value in quotes"),
    (
        r"could not find expected ':'",
        "a key without its `:`, or a line that is indented differently from its neighbours",
    ),
    (r"expected a single document", "a second document starts here (`---`); a profile is one document"),
    (r"found undefined alias '?(.+?)'?$", r"the alias *\1 points at nothing; an anchor &\1 must stand before it"),
    (r"found duplicate anchor '?(.+?)'?;", r"the anchor &\1 is given twice"),
    (
        r"found unknown escape character '(.+?)'",
        r"\\\1 in double quotes is no escape; use single quotes for a backslash",
    ),
    (r"unexpected end of stream", "a quote is opened and never closed"),
    (r"expected ',' or '([\]}])'", r"a bracket is opened and not closed by \1, or a comma is missing"),
    (r"expected <block end>", "this line is indented differently from its neighbours"),
    (r"sequence entries are not allowed", "a list item `- ` cannot stand behind a key on the same line"),
    (r"undefined tag handle|could not determine a constructor", "tags are not used here; write the value alone"),
    (r"expected alphabetic or numeric", "`*` and `&` start an alias or an anchor; put the value in quotes"),
)


def in_words(error: yaml.MarkedYAMLError) -> str:
    """One sentence about a YAML error; what has no sentence of its own is shown as PyYAML words it."""
    problem = " ".join(part for part in (error.context, error.problem) if part)
    for pattern, sentence in _SENTENCES:
        match = re.search(pattern, problem)
        if match:
            return match.expand(sentence)
    return f"this is not YAML: {problem}"

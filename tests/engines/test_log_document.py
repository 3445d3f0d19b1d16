"""docs/engine-log.md names every warning and every cause that a log can give."""

from __future__ import annotations

import re
from pathlib import Path

from ddconsole.engines.sglang.cautions import CAUTIONS, eager_decode, useless_drafter
from ddconsole.engines.sglang.faults import describe_exit
from ddconsole.engines.sglang.signatures import SIGNATURES

DOCUMENT = (Path(__file__).parents[2] / "docs" / "engine-log.md").read_text("utf-8")


def test_every_code_is_explained() -> None:
    """A code in an event or a result can be looked up."""
    exits = {describe_exit(status)[0] for status in (None, 0, 1, 127, 137, 139, 143)}
    codes = {row.cause for row in SIGNATURES} | {row.code for row in CAUTIONS} | exits
    codes |= {
        eager_decode("").code,
        useless_drafter("").code,
        "exception",
        "stalled",
        "boot-limit",
        "identity-mismatch",
    }
    assert codes - set(re.findall(r"^\| `([\w-]+)` \|", DOCUMENT, re.MULTILINE)) == set()

"""A result judged by its baseline."""

import pytest
from fakes.results import measured

from ddconsole.core.errors import UsageError
from ddconsole.core.gate import gate, parse_loss

BASE = measured("E11", 100, budget=None)
CALM = (0.005, -0.005, 0.004, -0.004, 0.003, -0.003)
LOUD = (0.05, -0.05, 0.04, -0.04, 0.03, -0.03)
WILD = (0.4, -0.4, 0.3, -0.3, 0.2, -0.2)


@pytest.mark.parametrize(
    ("rate", "noise", "strict", "passed", "code"),
    [
        (110, CALM, False, True, "faster"),
        (98, CALM, False, True, "within"),
        (98, CALM, True, True, "within"),
        (90, CALM, False, False, "slower"),
        (100, CALM, False, True, "within"),
        (100, LOUD, False, True, "undecided"),
        (100, LOUD, True, False, "undecided"),
        (97.1, CALM, False, True, "undecided"),
        (97.1, CALM, True, False, "undecided"),
        (100, WILD, False, False, "no-data"),
    ],
)
def test_three_percent_may_be_lost(
    rate: float, noise: tuple[float, ...], strict: bool, passed: bool, code: str
) -> None:
    """Surely more fails; what is not distinguishable passes with a note unless strict; a wild interval is no data."""
    verdict = gate(measured("E12", rate, noise=noise), BASE, max_loss_pct=3, strict=strict)
    assert (verdict.passed, verdict.code) == (passed, code), verdict.text


def test_too_little_data_fails_with_its_reason() -> None:
    """No shared prompts, another workload, or something that did not pass."""
    other = measured("E12", 100, by_prompt={"x": [1.0, 1.0]})
    assert gate(other, BASE, max_loss_pct=3).text == (
        "not enough data: E12 and E11 share 0 prompts at concurrency 1, and three are needed"
    )
    elsewhere = gate(measured("E12", 100, workload={"prompts": "long"}), BASE, max_loss_pct=3)
    assert (elsewhere.passed, elsewhere.code) == (False, "no-data")
    wrong = gate(measured("E12", 200, outcome="wrong", failure={"what": "it loops"}), BASE, max_loss_pct=3)
    assert (wrong.passed, wrong.code, wrong.text) == (False, "not-passed", "E12 is wrong: it loops")
    assert not gate(measured("E12", 200), measured("E11", 100, outcome="failed"), max_loss_pct=3).passed
    assert gate(measured("E12", 100, tok_s_e2e=None), BASE, max_loss_pct=3).to_json()["comparison"] is None


@pytest.mark.parametrize(("text", "value"), [("3%", 3.0), ("3", 3.0), (" 2.5 % ", 2.5), ("0%", 0.0)])
def test_loss_is_read(text: str, value: float) -> None:
    """With or without its sign."""
    assert parse_loss(text) == value


@pytest.mark.parametrize("text", ["", "three", "-1%", "101%", "3%%", "1e1"])
def test_no_loss_is_refused(text: str) -> None:
    """With what was expected."""
    with pytest.raises(UsageError, match="expected a percentage"):
        parse_loss(text)

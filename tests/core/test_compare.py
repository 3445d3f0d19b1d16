"""One result against another, prompts paired."""

import random
from typing import Any

from ddconsole.core.compare import compare, reference_of, vs_reference


def item(identity: str, rates: dict[str, float], **changes: Any) -> dict[str, Any]:
    """A result whose prompts ran at these tok/s, 100 tokens each."""
    seconds = sum(100 / rate for rate in rates.values())
    fields = {
        "id": identity,
        "outcome": "passed",
        "effective": {"algorithm": "tree", "block_size": 8, "window": 2048},
        "workload": {"prompts": "code"},
        "measured_on": "demo",
        "finished_at": f"2026-12-02T14:{len(identity):02}:00.000Z",
        "tok_s_e2e": 100 * len(rates) / seconds if rates else None,
        "by_prompt": {prompt: [100, 100 / rate] for prompt, rate in rates.items()},
    }
    return fields | changes


def chain(identity: str, rates: dict[str, float], block_size: int = 8, **changes: Any) -> dict[str, Any]:
    return item(identity, rates, effective={"algorithm": "chain", "block_size": block_size, "window": 2048}, **changes)


def rates(base: float, noise: float, seed: int, n: int = 8) -> dict[str, float]:
    draw = random.Random(seed)
    return {f"p{i}": base * (1 + i / 5) * (1 + draw.uniform(-noise, noise)) for i in range(n)}


def test_clear_difference() -> None:
    """Every prompt 12 % faster: the prompts' own differences do not blur that, since they are paired."""
    slow = rates(100, 0, 0)
    found = compare(item("A", {p: r * 1.12 for p, r in slow.items()}), item("B", slow))
    assert found is not None
    assert (found.word, found.pairs) == ("faster", 8)
    assert abs(found.delta_pct - 12) < 1e-9
    assert found.ci_pct is not None
    assert found.ci_pct < 1e-6
    back = compare(item("B", slow), item("A", {p: r * 1.12 for p, r in slow.items()}))
    assert back is not None
    assert back.word == "slower"


def test_noise_is_not_distinguishable() -> None:
    """The same speed with 10 % of noise on each prompt."""
    found = compare(item("A", rates(100, 0.1, 1)), item("B", rates(100, 0.1, 2)))
    assert found is not None
    assert found.word == "not distinguishable"
    assert found.low_pct is not None
    assert found.high_pct is not None
    assert found.low_pct < 0 < found.high_pct


def test_few_or_other_prompts_have_no_interval() -> None:
    """A difference is still given; it is only not told from noise."""
    two = {"p0": 100.0, "p1": 120.0}
    few = compare(item("A", {p: r * 2 for p, r in two.items()}), item("B", two))
    other = compare(item("A", {"x": 200.0}), item("B", {"y": 100.0}))
    assert few is not None
    assert other is not None
    assert few.to_json() == {"id": "B", "delta_pct": 100.0, "ci_pct": None}
    assert (few.word, other.word, other.pairs) == ("not distinguishable", "not distinguishable", 0)
    assert abs(other.delta_pct - 100) < 1e-9


def test_only_shared_prompts_are_compared() -> None:
    """A prompt that one of them never answered is left out of both."""
    base = rates(100, 0, 0)
    more = {p: r * 1.1 for p, r in base.items()} | {"extra": 5.0}
    found = compare(item("A", more), item("B", base))
    assert found is not None
    assert abs(found.delta_pct - 10) < 1e-9


def test_without_speed_there_is_no_comparison() -> None:
    """A failed attempt has nothing to compare."""
    assert compare(item("A", {}), item("B", rates(100, 0, 0))) is None
    assert compare(item("A", rates(100, 0, 0)), item("B", {})) is None


def test_reference_is_the_chain_at_the_trained_block_size() -> None:
    """Passed, of the same workload and host; the newest with the same window."""
    speed = rates(100, 0, 0)
    tree = item("E9", speed)
    wanted = chain("E11", speed)
    others = [
        tree,
        chain("E12", speed, block_size=16),
        chain("E13", speed, outcome="failed"),
        chain("E14", speed, workload={"prompts": "long"}),
        chain("E15", speed, measured_on="ct200"),
        chain("E4", speed),
        wanted,
        chain("E100", speed) | {"effective": {"algorithm": "chain", "block_size": 8, "window": 512}},
    ]
    assert reference_of(tree, others, 8) is wanted
    assert reference_of(wanted, others, 8) is None
    assert reference_of(tree, others[:5], 8) is None
    at_16 = reference_of(chain("E12", speed, block_size=16), others, 8)
    assert at_16 is not None
    assert at_16["effective"]["block_size"] == 8


def test_vs_reference_object() -> None:
    """The item's `vs_reference`: id, percent, and half the interval."""
    base = rates(100, 0, 0)
    tree = item("E2", {p: r * 1.12 for p, r in base.items()})
    assert vs_reference(tree, [chain("E1", base)], trained_block_size=8) == {
        "id": "E1",
        "delta_pct": 12.0,
        "ci_pct": 0.0,
    }
    assert vs_reference(tree, [], trained_block_size=8) is None

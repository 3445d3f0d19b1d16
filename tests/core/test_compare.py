"""One result against another, prompts paired."""

import math
import random
from typing import Any

import pytest

from ddconsole.core.boots import E2E, STEP, TAU, Known
from ddconsole.core.compare import Comparison, compare, own_interval, reference_of, vs_reference


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
    assert few.to_json().items() >= {"id": "B", "delta_pct": 100.0, "ci_pct": None, "pairs": 2}.items()
    assert few.settle_text == "fewer than three shared prompts say nothing of noise"
    assert (few.word, other.word, other.pairs) == ("not distinguishable", "not distinguishable", 0)
    assert abs(other.delta_pct - 100) < 1e-9


def test_only_shared_prompts_are_compared() -> None:
    """A prompt that one of them never answered is left out of both."""
    base = rates(100, 0, 0)
    more = {p: r * 1.1 for p, r in base.items()} | {"extra": 5.0}
    found = compare(item("A", more), item("B", base))
    assert found is not None
    assert abs(found.delta_pct - 10) < 1e-9


def test_prompts_that_were_asked_otherwise_are_no_pairs() -> None:
    """The same ids under another length: nothing is paired, so nothing is told apart, and no boots are pooled."""
    work = {"pass": "coding", "tasks": "small", "max_tokens": 512, "exact_tokens": False}
    a = item("E1", rates(120, 0, 0), work=work)
    b = item("E2", rates(100, 0, 0), work=work | {"max_tokens": 64})
    found = compare(a, b, [a, b])
    assert found is not None
    assert (found.pairs, found.ci_pct, found.word) == (0, None, "not distinguishable")
    assert len(Known([a, b]).boots(a)) == 1
    alike = compare(a, b | {"work": work}, [a, b])
    assert alike is not None
    assert (alike.pairs, alike.word) == (8, "faster")


def test_a_chain_that_was_asked_alike_is_the_better_reference() -> None:
    """Even where another one is newer and of the same suite."""
    work = {"pass": "coding", "tasks": "small", "max_tokens": 512, "exact_tokens": False}
    alike = chain("E1", rates(100, 0, 0), work=work, suite="confirm")
    newer = chain("E10", rates(100, 0, 0), work=work | {"max_tokens": 64})
    assert reference_of(item("E20", rates(120, 0, 0), work=work), [alike, newer], 8) is alike


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
    found = vs_reference(tree, [chain("E1", base)], trained_block_size=8)
    assert found == {
        "id": "E1",
        "delta_pct": 12.0,
        "ci_pct": 0.0,
        "low_pct": 12.0,
        "high_pct": 12.0,
        "word": "faster",
        "pairs": 8,
        "boots": [1, 1],
        "repeats_to_settle": None,
        "drift": None,
    }
    assert vs_reference(tree, [], trained_block_size=8) is None


def boots(identity: str, means: list[float], algorithm: str = "tree", **changes: Any) -> list[dict[str, Any]]:
    """One config measured on several boots: every prompt runs at the boot's rate."""
    effective = {"algorithm": algorithm, "block_size": 8, "window": 2048}
    return [
        item(
            f"{identity}{n}",
            {f"p{i}": mean * (1 + i / 5) for i in range(6)},
            effective=effective,
            boot=f"{identity}-{n}",
        )
        | changes
        for n, mean in enumerate(means)
    ]


def test_boots_are_a_level_of_their_own() -> None:
    """Prompts that agree to the last digit do not make two restarts that differ by 5 % a certain 5 %."""
    alone = compare(boots("A", [105])[0], boots("B", [100], "chain")[0])
    assert alone is not None
    assert (alone.word, alone.boots) == ("faster", (1, 1))
    a, b = boots("A", [105]), boots("B", [95, 100, 105], "chain")
    found = compare(a[0], b[0], [*a, *b])
    assert found is not None
    assert (found.word, found.boots) == ("not distinguishable", (1, 3))
    assert found.low_pct is not None
    assert found.low_pct < -5
    assert "1 + 3 boots" in found.text


def test_the_spread_of_boots_is_their_standard_error_by_students_t() -> None:
    """95, 100, 105 on a logarithm: s = 0.05006, its mean over 3 boots and one more boot: ± t(2) · s · √(1 + 1/3).

    The resampled distribution of so few boots is coarse, so the bound is compared within a fifth.
    """
    logs = [math.log(value) for value in (95, 100, 105)]
    mean = sum(logs) / 3
    deviation = math.sqrt(sum((value - mean) ** 2 for value in logs) / 2)
    expected = 4.303 * deviation * math.sqrt(1 + 1 / 3)
    a, b = boots("A", [100]), boots("B", [95, 100, 105], "chain")
    found = compare(a[0], b[0], [*a, *b])
    assert found is not None
    assert found.low_pct is not None
    assert found.high_pct is not None
    half = (math.log1p(found.high_pct / 100) - math.log1p(found.low_pct / 100)) / 2
    assert half == pytest.approx(expected, rel=0.2)


def test_delta_over_boots_is_of_their_geometric_means() -> None:
    """(100 · 121)^½ = 110 against 100."""
    a, b = boots("A", [100, 121]), boots("B", [100], "chain")
    found = compare(a[0], b[0], [*a, *b])
    assert found is not None
    assert found.delta_pct == pytest.approx(10, abs=1e-9)


def test_results_on_one_boot_are_one_boot() -> None:
    """A kept engine that was measured twice did not start twice."""
    a = [one | {"boot": "same"} for one in boots("A", [100, 102])]
    assert len(Known(a).boots(a[0])) == 1


def test_one_result_on_two_boots_is_two_boots() -> None:
    """An interruption between two repeats: the engine was started twice, and the spread between the starts counts."""
    first, second = boots("A", [95, 105])
    both = first | {"by_boot": {"A-0": first["by_prompt"], "A-1": second["by_prompt"]}}
    control = boots("B", [100], "chain")[0]
    assert len(Known([both]).boots(both)) == 2
    found = compare(both, control, [both, control])
    assert found is not None
    assert (found.boots, found.word) == ((2, 1), "not distinguishable")
    assert found.delta_pct == pytest.approx((math.sqrt(95 * 105) / 100 - 1) * 100)


def test_a_boot_that_two_results_share_counts_once() -> None:
    """One of them had it for one repeat alone."""
    first, second = boots("A", [95, 105])
    both = first | {"by_boot": {"A-0": first["by_prompt"], "A-1": second["by_prompt"]}}
    assert len(Known([both, second]).boots(second)) == 2


def test_two_boots_of_one_config_are_compared_with_each_other() -> None:
    """Not the config with itself, which would always be 0 %."""
    a = boots("A", [100, 104])
    found = compare(a[1], a[0], a)
    assert found is not None
    assert (found.delta_pct, found.boots) == (pytest.approx(4), (1, 1))


def test_what_would_settle_it() -> None:
    """Half-width h around a difference d: (h/d · 2.80/1.96)² measurements tell it four times out of five."""
    found = Comparison("A", "B", 2.0, -2.0, 6.0, 8, (1, 1))
    assert found.ci_pct == 4.0
    assert found.repeats_to_settle == math.ceil((4.0 / 2.0 * 2.8016 / 1.96) ** 2) == 9
    assert "about 9 measurements of each would settle it" in found.text
    hopeless = Comparison("A", "B", 0.1, -3.9, 4.1, 8, (1, 1))
    assert hopeless.repeats_to_settle is None
    assert "take them as equal" in hopeless.text
    assert Comparison("A", "B", 5.0, 1.0, 9.0, 8).repeats_to_settle is None


def test_less_is_better_for_step_time() -> None:
    """A longer step is slower."""
    assert Comparison("A", "B", 10.0, 5.0, 15.0, 8, better=-1).word == "slower"
    assert Comparison("A", "B", -10.0, -15.0, -5.0, 8, better=-1).word == "faster"


def test_other_figures_are_paired_too() -> None:
    """τ and step time from the totals of each prompt; a result of an older version has neither."""
    full = {
        "p0": [100, 1, 99, 0.9, 100, 25, 0.9],
        "p1": [100, 2, 99, 1.8, 100, 20, 1.8],
        "p2": [50, 1, 49, 0.9, 50, 10, 0.9],
    }
    more = {prompt: [*row[:5], row[5] * 0.8, row[6]] for prompt, row in full.items()}
    a = item("A", {}, by_prompt=more, tok_s_e2e=1.0, tau=1.0, step_ms=1.0)
    b = item("B", {}, by_prompt=full, tok_s_e2e=1.0, tau=1.0, step_ms=1.0)
    tau, step = compare(a, b, figure=TAU), compare(a, b, figure=STEP)
    assert tau is not None
    assert step is not None
    assert (tau.delta_pct, step.delta_pct) == (pytest.approx(25), pytest.approx(25))
    assert (tau.word, step.word) == ("faster", "slower")
    old = item("C", rates(100, 0, 0), tau=4.0)
    told = compare(old, old | {"id": "D", "tau": 3.2}, figure=TAU)
    assert told is not None
    assert (told.delta_pct, told.ci_pct) == (pytest.approx(25), None)


def test_own_interval_holds_the_figure() -> None:
    """Around the result's own figure, wider with fewer prompts."""
    wide, narrow = item("A", rates(100, 0.1, 1, 4)), item("B", rates(100, 0.1, 1, 40))
    intervals = [own_interval(one, E2E) for one in (wide, narrow)]
    for one, interval in zip((wide, narrow), intervals, strict=True):
        assert interval is not None
        assert interval[0] < one["tok_s_e2e"] < interval[1]
    assert own_interval(item("C", {"a": 1.0, "b": 2.0}), E2E) is None


def test_coverage_of_the_interval() -> None:
    """Of 60 pairs of equal configs, three boots each, at most six are told apart: 95 % means that three would be.

    P(more than 6 of 60 at 5 %) is 2 %, and the seeds are fixed.
    """
    told = 0
    for seed in range(60):
        draw = random.Random(seed)
        bases = [draw.gauss(0, 0.3) for _ in range(8)]
        results = []
        for side in "AB":
            own = [draw.gauss(0, 0.03) for _ in range(8)]
            for boot in range(3):
                shift = draw.gauss(0, 0.01)
                speed = {f"p{i}": 100 * math.exp(bases[i] + own[i] + shift + draw.gauss(0, 0.01)) for i in range(8)}
                results.append(item(f"{side}{boot}", speed, effective={"algorithm": side}, boot=f"{side}{boot}"))
        found = compare(results[0], results[3], results)
        assert found is not None
        told += found.word != "not distinguishable"
    assert told <= 6


def test_the_same_suite_is_preferred_as_reference() -> None:
    """A confirmed tree is held against a confirmed chain where there is one."""
    speed = rates(100, 0, 0)
    quick, confirm = chain("E11", speed), chain("E4", speed, suite="confirm")
    assert reference_of(item("E9", speed, suite="confirm"), [quick, confirm], 8) is confirm
    assert reference_of(item("E9", speed), [quick, confirm], 8) is quick
    assert reference_of(item("E9", speed, suite="confirm"), [quick], 8) is quick

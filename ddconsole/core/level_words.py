"""A level in words: one line of it, its part of a verdict, and what stood beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.stats import percentile

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LATENCIES = (("TTFT", "ttft_ms"), ("TPOT", "tpot_ms"), ("ITL", "itl_ms"))
"""Names and keys of the latencies that a line has room for."""


def pass_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a pass: its levels, and the engine's own figures beside ours."""
    for level in summary.get("levels", ()):
        yield level_words(level, summary.get("round_trip_ms"))
    for one in summary.get("cross_check") or ():
        verdict = {True: "agrees", False: "⚠ disagrees", None: "for comparison only"}[one["agrees"]]
        yield (
            f"cross-check: {one['name']} {one['ours']:.6g}, by the engine's {one['source']} {one['theirs']:.6g}: "
            f"{verdict} ({one['scope']})"
        )


def level_words(level: Mapping[str, Any], round_trip_ms: float | None = None) -> str:
    """One line: load, throughput, τ, latencies, the tunnel's round trip beside TTFT, and what was wrong with it."""
    label = level.get("label") or f"c={level['concurrency']}"
    parts = [label, f"{level['output_tok_s'] or 0:.1f} tok/s output", *_steady_words(level)]
    if level.get("tok_s_decode"):
        parts.append(f"{level['tok_s_decode']:.1f} decode")
    if level.get("tau"):
        parts.append(f"τ {level['tau']:.2f} (ΣC/ΣV, {level['tau_n']} requests)")
    if level.get("step_ms"):
        parts.append(f"step {level['step_ms']:.1f} ms")
    if level.get("goodput_per_s") is not None:
        parts.append(f"goodput {level['goodput_per_s']:.2f} of {level['requests_per_s'] or 0:.2f} req/s")
    parts += list(_latency_words(level, round_trip_ms))
    if level.get("failed"):
        parts.append(f"⚠ {level['failed']} of {level['requests']} requests failed")
    if level.get("held"):
        parts.append(f"⚠ {level['held']} of {level['requests']} requests held at the cap of {level['load']['cap']}")
    if level.get("client_saturated"):
        parts.append("⚠ the client was near its limit")
    return " · ".join(parts)


def _steady_words(level: Mapping[str, Any]) -> Iterator[str]:
    steady = level.get("steady")
    if steady and steady["output_tok_s"] is not None:
        yield f"{steady['output_tok_s']:.1f} in the steady {steady['to_s'] - steady['from_s']:.1f} s"
    elif level.get("no_steady"):
        yield f"no steady window ({level['no_steady']})"


def _latency_words(level: Mapping[str, Any], round_trip_ms: float | None) -> Iterator[str]:
    for label, name in LATENCIES:
        found = level.get(name)
        if not found or found.get("p50") is None:
            continue
        said = f"{label} p50 {found['p50']:.1f} p99 {found['p99']:.1f} ms"
        yield said if name != "ttft_ms" else _ttft_words(level, found, round_trip_ms)
    if level.get("held") and level.get("ttft_from_due_ms"):
        yield f"TTFT from the due time p99 {level['ttft_from_due_ms']['p99']:.1f} ms"


def _ttft_words(level: Mapping[str, Any], found: Mapping[str, Any], round_trip_ms: float | None) -> str:
    """Cold and warm requests apart, where there are both; what all of them found in the cache, where it is not cold."""
    warm = level.get("ttft_warm_ms")
    mixed = warm if warm and level.get("prefix") != "warm" else None
    kind = " cold" if mixed and level.get("prefix") == "cold" else " warm" if warm and not mixed else ""
    words = f"TTFT{kind} p50 {found['p50']:.1f} p99 {found['p99']:.1f} ms"
    if mixed:
        words += f", warm p50 {mixed['p50']:.1f} p99 {mixed['p99']:.1f} ms"
    return words + ("" if round_trip_ms is None else f" (round trip {round_trip_ms:.1f})")


def rate_words(levels: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of each rate, in a verdict's words: `310.2 tok/s at 2/s poisson, TTFT p99 512 ms with a round trip of 31`, and
    whether its cap held it.

    Args:
        levels: the levels of all repeats of the throughput pass.
    """
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for level in levels:
        if (level.get("load") or {}).get("kind") == "open" and level.get("output_tok_s") is not None:
            groups.setdefault(level["label"], []).append(level)
    for label, group in sorted(groups.items(), key=lambda item: float(item[1][0]["load"]["rate"])):
        output = sum(level["output_tok_s"] for level in group) / len(group)
        felt = percentile([level["ttft_from_due_ms"]["p99"] for level in group if level["ttft_from_due_ms"]], 0.5)
        trip = percentile([level["round_trip_ms"] for level in group if level.get("round_trip_ms") is not None], 0.5)
        late = "" if felt is None else f", TTFT p99 {felt:.0f} ms" + _beside(trip)
        held, asked = sum(level["held"] for level in group), sum(level["requests"] for level in group)
        capped = f" (⚠ {held} of {asked} requests held at the cap of {group[0]['load']['cap']})" if held else ""
        yield f"{output:.1f} tok/s at {label}{late}{capped}"


def _beside(round_trip_ms: float | None) -> str:
    return "" if round_trip_ms is None else f" with a round trip of {round_trip_ms:.0f}"


def early_words(summaries: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    """What was not measured to its end, and by which rule.

    Args:
        summaries: by pass, one a repeat.
    """
    for name, repeats in summaries.items():
        texts = [one["ended_early"]["text"] for one in repeats if one.get("ended_early")]
        yield from dict.fromkeys(f"{name} ended early: {text}" for text in texts)
        cut, left_out = (_labels(repeats, key) for key in ("cut", "left_out"))
        if cut and not texts:
            yield f"{name} cut short by the time box: {cut}"
        if left_out:
            yield f"{name} left out: {left_out}" + ("" if texts else " (the time box was used up)")


def _labels(repeats: Sequence[Mapping[str, Any]], key: str) -> str:
    """Loads that the summaries name under `key`, each once."""
    return ", ".join(dict.fromkeys(label for one in repeats for label in one.get(key) or ()))

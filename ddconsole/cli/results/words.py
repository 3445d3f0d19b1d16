"""Words that several verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ddconsole.core.plateau import config_label

if TYPE_CHECKING:
    from collections.abc import Mapping


def against(reference: Mapping[str, Any] | None) -> str:
    """`+12 % ± 3 of E11`, marked where it is not told from noise."""
    if not reference or reference.get("delta_pct") is None:
        return "—"
    interval = "" if reference.get("ci_pct") is None else f" ± {reference['ci_pct']:.0f}"
    same = " (not distinguishable)" if reference.get("word") == "not distinguishable" else ""
    return f"{reference['delta_pct']:+.0f} %{interval} of {reference['id']}{same}"


def attempt_name(item: Mapping[str, Any]) -> str:
    """`E11`, or `E11 #2` for a later attempt."""
    attempt = item.get("attempt") or 1
    return str(item["id"]) + (f" #{attempt}" if attempt > 1 else "")


def label(item: Mapping[str, Any]) -> str:
    """The config in one line; a dash where it has none."""
    return config_label(item)


def coding_score(item: Mapping[str, Any]) -> str:
    """`5/5`; a dash without the pass."""
    coding = item.get("coding")
    return f"{coding['passed']}/{coding['total']}" if coding and coding.get("total") is not None else "—"

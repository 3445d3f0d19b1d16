"""The answers of two configs to the same tasks, side by side."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MAX_LINES = 2000
"""Lines of an answer that are compared; a loop may have many more, and says nothing new behind them."""


def diff_failed(
    summaries: Sequence[Mapping[str, Any]],
    requests: Sequence[Mapping[str, Any]],
    control_requests: Sequence[Mapping[str, Any]],
    id_: str,
    control: str,
) -> list[dict[str, Any]]:
    """For each task that was not passed in some answer: `{task, verdict, control, same, diff}`, each task once.

    Args:
        summaries: of the coding pass's repeats.
        requests, control_requests: records as JSON, in the order they ended. The answer is the first of the task
            with the verdict's place among the task's answers; the control's is its first.
    """
    mine, theirs = _answers(requests), _answers(control_requests)
    found: dict[str, dict[str, Any]] = {}
    seen: dict[str, int] = {}
    for summary in summaries:
        for task in summary.get("tasks", ()):
            name, place = task["id"], seen.get(task["id"], 0)
            seen[name] = place + 1
            answers = mine.get(name, [])
            if task["verdict"] in ("passed", "not-scored") or name in found or place >= len(answers):
                continue
            if name in theirs:
                diff = _diff(theirs[name][0], answers[place], control, id_)
                found[name] = {"task": name, "verdict": task["verdict"], "control": control, "diff": diff}
    return [one | {"same": not one["diff"]} for one in found.values()]


def _answers(requests: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for request in requests:
        if request.get("error") is None:
            found.setdefault(str(request["prompt_id"]), []).append(str(request.get("text") or ""))
    return found


def _diff(before: str, after: str, control: str, id_: str) -> list[str]:
    theirs, mine = (text.splitlines()[:MAX_LINES] for text in (before, after))
    return list(unified_diff(theirs, mine, f"{control} (control)", id_, lineterm=""))

"""The question about work that is there already: the line, the form and the editor ask the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ddconsole.tui.screens.confirm import Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.runner.intents import Plan

MOST_NAMED = 4


def about_doubles(plan: Plan, describe: Callable[[str], str], *, back: str, some: bool = True) -> Question:
    """What is there already, with its result; and what can be done about it.

    Args:
        describe: what is known of an experiment, `139.0 tok/s, τ 4.61`.
        back: where the first answer goes back to.
        some: the part that is new can be taken alone.
    """
    doubles = [double for double in plan.preview.doubles if double is not None]
    new = len(plan.preview.new)
    named = [f"{double.id} {double.state}" + (f" ({known})" if (known := describe(double.id)) else "")
             for double in doubles[:MOST_NAMED]]  # fmt: skip
    more = f", and {len(doubles) - MOST_NAMED} more" if len(doubles) > MOST_NAMED else ""
    everything = "all of it, all the same" if len(plan.preview.doubles) > 1 else "take it all the same"
    answers = [("back", "b", f"go back to the {back}"), ("again", "y", everything)]
    if new and some:
        answers.insert(1, ("new", "n", f"only what is new ({new} of {new + len(doubles)})"))
    return Question("The same work is there already", ", ".join(named) + more, tuple(answers))

"""Each flag that a launch will use, checked against the engine's own `--help`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.config import Algorithm
from ddconsole.core.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ddconsole.core.config import Config
    from ddconsole.core.profile import Profile
    from ddconsole.engines.sglang.preflight.asked import Asked
    from ddconsole.engines.sglang.preflight.help_text import Flag, Help
    from ddconsole.engines.sglang.preflight.report import Report

RENAMED: Final = (
    (
        "--speculative-dflash-draft-window-size",
        "--speculative-draft-window-size",
        "the old name alone in 0.5.11, both from 0.5.12 to 0.5.18, the new one alone from 0.5.20",
    ),
    ("--speculative-dflash-block-size", "--speculative-num-draft-tokens", "an alias, for DFLASH only"),
    ("--cuda-graph-max-bs", "--cuda-graph-max-bs-decode", "0.5.23 has one for decode and one for prefill"),
    ("--cuda-graph-bs", "--cuda-graph-bs-decode", "0.5.23 has one for decode and one for prefill"),
)
"""Flags of SGLang that changed their name between 0.5.11 and 0.5.23: old, new, when."""

TREE_KNOBS: Final = ("budget", "topk")
FORKS: Final = "a DDTree fork, such as sgl-project/sglang pull request 29907"


def check_spelling(profile: Profile, config: Config, asked: Iterable[Asked], known: Help, report: Report) -> None:
    """Unknown flags with the nearest, renamed ones, values that are no choice, and an engine without DDTREE."""
    asked = list(asked)
    without_tree = config.algorithm is Algorithm.TREE and _lacks_tree(profile, asked, known)
    if without_tree:
        _say_no_tree(profile, asked, known, report)
    for one in asked:
        if without_tree and one.knob in (*TREE_KNOBS, "algorithm"):
            continue
        flag = known.flags.get(one.flag)
        if flag is None:
            _say_unknown(one, known, report)
        else:
            _check_value(one, flag, report)


def _lacks_tree(profile: Profile, asked: list[Asked], known: Help) -> bool:
    """An algorithm that is no choice, or tree knobs that the engine has no flag for."""
    value = profile.knobs.algorithm.tree
    flag = known.flags.get(profile.knobs.algorithm.flag)
    if flag is not None and flag.choices and value not in flag.choices:
        return True
    missing = [one.flag for one in asked if one.knob in TREE_KNOBS and one.flag not in known.flags]
    has_tree = any("ddtree" in name or "tree" in name.split("-") for name in known.flags) or known.mentions("ddtree")
    return bool(missing) and not has_tree and not any(_new_name(name, known) for name in missing)


def _say_no_tree(profile: Profile, asked: list[Asked], known: Help, report: Report) -> None:
    missing = [one.flag for one in asked if one.knob in TREE_KNOBS and one.flag not in known.flags]
    flag = known.flags.get(profile.knobs.algorithm.flag)
    because = (
        f"its --help knows no {' and no '.join(missing)}"
        if missing
        else f"{profile.knobs.algorithm.flag} has the choices {', '.join(flag.choices if flag else ())}"
    )
    report.block(
        "no-ddtree",
        f"this engine has no {profile.knobs.algorithm.tree}: {because}",
        f"stock SGLang up to 0.5.23 has no draft trees; install {FORKS}, or run algorithm=chain",
    )


def _say_unknown(one: Asked, known: Help, report: Report) -> None:
    begun = known.abbreviated(one.flag)
    new = _new_name(one.flag, known)
    if new is not None:
        name, when = new
        report.block("flag-renamed", f"{one.flag} is called {name} in this engine ({when})", _mend(one, name))
    elif len(begun) == 1:
        report.note(
            "flag-abbreviated", f"{one.flag} is taken as {begun[0]}, which begins with it", _mend(one, begun[0])
        )
    elif begun:
        report.block("unknown-flag", f"{one.flag} could be {', '.join(begun[:4])}", _mend(one, begun[0]))
    else:
        close = nearest(one.flag, known.flags)
        meant = f"; did you mean {close}?" if close else ""
        report.block("unknown-flag", f"this engine knows no {one.flag}{meant}", _mend(one, close))


def _new_name(flag: str, known: Help) -> tuple[str, str] | None:
    """What the flag is called in this engine, in either direction, and since when."""
    for old, new, when in RENAMED:
        for was, now in ((old, new), (new, old)):
            if flag == was and now in known.flags:
                return now, when
    return None


def _mend(one: Asked, name: str | None) -> str:
    if one.origin.startswith("engine.args."):
        return f"write {name.lstrip('-')} under engine.args" if name else f"remove {one.origin}"
    if one.knob:
        return f"set {one.origin} to {name}" if name else f"spell {one.origin} as this engine does"
    return "this engine is not the SGLang that ddconsole knows; see its --help"


def _check_value(one: Asked, flag: Flag, report: Report) -> None:
    if one.value is None and flag.takes_value and not flag.choices:
        report.block("flag-value", f"{one.flag} takes a value, and none is given", f"give {one.origin} its value")
    elif one.value is not None and not flag.takes_value:
        report.block("flag-value", f"{one.flag} takes no value; {one.value} is given", f"set {one.origin} to true")
    elif one.value is not None and flag.choices and not _is_choice(one, flag):
        close = nearest(one.value, flag.choices)
        report.block(
            "no-such-choice",
            f"{one.flag} {one.value} is no choice of this engine",
            _choices(flag, close),
        )


def _choices(flag: Flag, close: str | None) -> str:
    if len(flag.choices) <= 12:
        return f"it has {', '.join(flag.choices)}"
    return f"did you mean {close}?" if close else f"it has {', '.join(flag.choices[:12])} and more"


def _is_choice(one: Asked, flag: Flag) -> bool:
    """The algorithm is made upper-case by the engine itself."""
    assert one.value is not None
    return one.value in flag.choices or (one.knob == "algorithm" and one.value.upper() in flag.choices)

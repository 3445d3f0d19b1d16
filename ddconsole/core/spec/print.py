"""A config or a draft as the spec that makes it: reading what is printed gives the same again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ddconsole.core.config import Config
from ddconsole.core.spec.context import KNOBS_OF, SHORT_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.queue.values import Draft
    from ddconsole.core.spec.context import SpecContext


def print_spec(what: Config | Draft, context: SpecContext) -> str:
    """The words behind `add`, quoted for a shell; for an idea `idea "…"`.

    A draft's place, its `after!` and whether it is held are verbs and not part of a spec, so they are not printed.
    """
    if isinstance(what, Config):
        return " ".join(_config_words(what, context, None))
    if what.config is None:
        return f"idea {shlex.quote(what.note)}"
    pinned = what.pinned if what.base_best else None
    words = [*_config_words(what.config, context, pinned), *_draft_words(what, context)]
    return " ".join(words)


def _config_words(config: Config, context: SpecContext, pinned: tuple[str, ...] | None) -> Iterator[str]:
    """Every knob that can be set; of a config that is bound at start only what was pinned."""

    def said(key: str) -> bool:
        return pinned is None or key in pinned

    if said("algorithm") and (pinned is not None or config.algorithm is not context.defaults.algorithm):
        yield f"algorithm={config.algorithm}"
    for name in KNOBS_OF[config.algorithm]:
        value = getattr(config, name)
        if said(name) and not context.knobs[name].fixed:
            yield f"{SHORT_NAMES[name]}={'auto' if value is None else value}"
    own = dict(config.args)
    for name in sorted({*own, *dict(context.defaults.args)}):
        if said(f"arg.{name}"):
            yield shlex.quote(f"arg.{name}={_escaped(own.get(name, ''))}")


def _draft_words(draft: Draft, context: SpecContext) -> Iterator[str]:
    if draft.suite != context.default_suite:
        yield f"suite={draft.suite}"
    if draft.passes != context.suites[draft.suite]:
        yield f"passes={','.join(draft.passes)}"
    if draft.repeats != context.repeats_of(draft.suite):
        yield f"repeats={draft.repeats}"
    if draft.base_best:
        yield "base=best"
    if draft.note:
        yield shlex.quote(f"note={draft.note}")


def _escaped(text: str) -> str:
    r"""A comma of the text is written `\,`, for a bare one begins the next value of a sweep."""
    return text.replace(",", "\\,")

"""Waiting experiments as one YAML document for an editor, and back. Read strictly, as profiles are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from ddconsole.adapters import yaml_text
from ddconsole.core.errors import ProfileError, RefusedError, UsageError
from ddconsole.core.exchange import Entry, Sheet, SheetRefused, command_of, leaving_out
from ddconsole.core.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from ddconsole.adapters.yaml_text import Document, KeyPath
    from ddconsole.core.spec import Command, SpecContext

HEAD = """\
# The queue of {profile}, as it stood at revision {revision}. All of this is taken as one step, or nothing.
# Change a spec, a note or held; put entries into another order; delete one to remove its experiment; write
# `- spec: b=16 B=32` or `- idea: words` for a new one. An experiment that has started meanwhile refuses the whole.
"""
KEYS = ("profile", "revision", "of", "experiments")
ENTRY_KEYS = ("id", "spec", "idea", "note", "held")
YES, NO = frozenset({"true", "yes", "on"}), frozenset({"false", "no", "off"})


def write(profile: str, sheet: Sheet) -> str:
    """The document, with its comments."""
    parts = [HEAD.format(profile=profile, revision=sheet.revision)]
    head = {"profile": profile, "revision": sheet.revision, "of": " ".join(sheet.of)}
    parts.append(_dumped(head))
    parts.append("experiments:\n" if sheet.entries else "experiments: []\n")
    parts += [_written(entry) for entry in sheet.entries]
    return "".join(parts)


def read_sheet(raw: bytes, name: str, profile: str) -> Sheet:
    """What a document says, before it is held against a queue. `name` is how errors call the document.

    Raises:
        UsageError: it cannot be read; with name, line and column.
    """
    return _read(raw, name, profile)[0]


def read_command(
    raw: bytes, name: str, profile: str, context: SpecContext, *, without: Collection[str] = ()
) -> tuple[Command | None, int]:
    """The command that a document comes to, and the revision of the queue that its author saw.

    The command is None when the document says what stands already. `name` is how errors call the document. What it
    says of the experiments of `without` is passed over.

    Raises:
        UsageError: it cannot be read; with name, line and column.
        RefusedError: it is of an experiment that has started, or has ended.
    """
    sheet, document = _read(raw, name, profile)
    kept = [index for index, entry in enumerate(sheet.entries) if entry.id not in without]
    try:
        command = command_of(leaving_out(sheet, without), context)
    except SheetRefused as refused:
        refused.index = kept[refused.index] if refused.index >= 0 else refused.index
        raise _told(refused, document, name) from None
    return command, context.queue.revision if sheet.revision is None else sheet.revision


def _read(raw: bytes, name: str, profile: str) -> tuple[Sheet, Document]:
    if not raw.strip():
        raise UsageError(f"{name} is empty, and so nothing is changed", advice="delete single entries to remove them")
    try:
        document = yaml_text.read(raw, name)
        return _sheet(document, name, profile), document
    except ProfileError as error:  # the same reader, but this is no profile
        raise UsageError(error.what, evidence=error.evidence, advice=error.advice) from None


def _written(entry: Entry) -> str:
    values = {"id": entry.id, "spec": entry.spec, "idea": entry.idea, "note": entry.note}
    data: dict[str, Any] = {key: value for key, value in values.items() if value is not None}
    if entry.held:
        data["held"] = True
    comment = f"# the next one starts only if {entry.requires} passes\n" if entry.requires else ""
    return comment + _dumped([data], seen=all(value.isprintable() for value in values.values() if value))


def _dumped(data: object, *, seen: bool = True) -> str:
    """YAML; with `seen` False every character beyond ASCII is escaped, for the reader refuses what cannot be seen."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=seen, width=10_000, default_flow_style=False)
    return text


def _sheet(document: Document, name: str, profile: str) -> Sheet:
    data = document.data
    _check_keys(data, KEYS, (), document, name)
    named = data.get("profile")
    if named not in (None, profile):
        raise _error(document, name, ("profile",), f"this is the queue of {named}, not of {profile}")
    entries = data.get("experiments") or []
    if not isinstance(entries, list):
        raise _error(document, name, ("experiments",), "experiments is a list")
    read = tuple(_entry(entry, index, document, name) for index, entry in enumerate(entries))
    of = _text(data, "of", (), document, name) or ""
    if of and not read:  # more likely cut off than meant
        raise _error(document, name, ("experiments",), "experiments is empty, and so nothing is changed",
                     "delete single entries to remove them, or use `remove`")  # fmt: skip
    return Sheet(read, tuple(of.split()), _revision(data, document, name))


def _revision(data: Mapping[str, Any], document: Document, name: str) -> int | None:
    text = _text(data, "revision", (), document, name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit()):
        raise _error(document, name, ("revision",), f"{text!r} is no revision", "leave it as it was written")
    return int(text)


def _entry(data: object, index: int, document: Document, name: str) -> Entry:
    path = ("experiments", index)
    if not isinstance(data, dict):
        raise _error(document, name, path, "an entry has keys", "such as `- spec: b=16 B=26`, or `- idea: words`")
    _check_keys(data, ENTRY_KEYS, path, document, name)
    texts = {key: _text(data, key, path, document, name) for key in ENTRY_KEYS}
    held = (texts["held"] or "false").lower()
    if held not in YES | NO:
        raise _error(document, name, (*path, "held"), f"held is true or false, not {held!r}")
    id_ = texts["id"]
    return Entry(id_ and id_.upper(), texts["spec"], texts["idea"], texts["note"], held in YES)


def _text(data: Mapping[str, Any], key: str, path: KeyPath, document: Document, name: str) -> str | None:
    value = data.get(key)
    if value is not None and not isinstance(value, str):
        raise _error(document, name, (*path, key), f"{key} is a text")
    return value


def _check_keys(data: Iterable[str], known: tuple[str, ...], path: KeyPath, document: Document, name: str) -> None:
    for key in data:
        if key not in known:
            near = nearest(key, known)
            advice = f"did you mean {near}?" if near else f"there is {', '.join(known)}"
            raise _error(document, name, (*path, key), f"unknown key {key}", advice)


def _error(document: Document, name: str, path: KeyPath, text: str, advice: str = "") -> UsageError:
    line, column = document.place(path)
    return UsageError(f"{name}:{line}:{column}: {text}", advice=advice)


def _told(refused: SheetRefused, document: Document, name: str) -> UsageError | RefusedError:
    path: KeyPath = ("experiments", refused.index, refused.key) if refused.index >= 0 else (refused.key,)
    error = _error(document, name, path, refused.reason, refused.advice)
    return RefusedError(error.what, advice="export again; nothing was changed") if refused.forbidden else error

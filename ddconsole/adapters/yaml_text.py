"""YAML read strictly: every scalar stays the text that was typed, and whatever cannot be meant is one plain sentence.

Nodes are composed, never constructed, so no tag runs code and `012`, `1e3`, `on`, `1.10` are not reinterpreted. The
schema gives the text its type later. Every error names file, line and column, all from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import yaml

from ddconsole.adapters.yaml_bytes import decoded
from ddconsole.adapters.yaml_words import in_words
from ddconsole.core.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 50
"""Levels of nesting; a profile needs six."""
MAX_ALIASED = 10_000
"""Nodes that aliases may add to a file; a bomb adds millions."""

Data: TypeAlias = "dict[str, Any] | list[Any] | str | None"
KeyPath: TypeAlias = "tuple[str | int, ...]"
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_STR_TAG = "tag:yaml.org,2002:str"
_MERGE_TAG = "tag:yaml.org,2002:merge"


@dataclass(slots=True)
class Document:
    """A file's data (text, None, lists and dicts) with the line and column of every key and item, from 1."""

    data: dict[str, Any]
    places: dict[KeyPath, tuple[int, int]] = field(default_factory=dict)

    def place(self, path: KeyPath) -> tuple[int, int]:
        """Where `path` stands, or the nearest thing around it that the file has."""
        while path and path not in self.places:
            path = path[:-1]
        return self.places.get(path, (1, 1))


def read(raw: bytes, name: str) -> Document:
    """The one mapping that a file holds. `name` is how errors call the file.

    Raises:
        ProfileError: it is not UTF-8, not YAML, not one mapping, or holds what a profile cannot mean.
    """
    loader = _Loader(decoded(raw, name), name)
    try:
        node = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise refusal(name, line, column, in_words(error)) from None
    finally:
        loader.dispose()
    if node is None:
        raise refusal(name, 1, 1, "the file is empty; `ddconsole profiles new NAME` writes one to start from")
    if not isinstance(node, yaml.MappingNode):
        found = "a list" if isinstance(node, yaml.SequenceNode) else "plain text"
        raise refusal(name, 1, 1, f"expected keys with values, such as `host: demo`; found {found}")
    return _Reader(name).document(node)


def refusal(name: str, line: int, column: int, text: str) -> ProfileError:
    """The error at a place, in the form that editors jump to."""
    return ProfileError(f"{name}:{line}:{column}: {text}")


class _Loader(yaml.SafeLoader):
    """Composes with a limit on depth and refuses tags."""

    def __init__(self, text: str, name: str) -> None:
        super().__init__(text)
        self._file = name
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(event, f"nested deeper than {MAX_DEPTH} levels")
        if getattr(event, "tag", None) not in (None, _STR_TAG):
            self._refuse(event, f"the tag {event.tag} is not used here; write the value alone")
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node

    def _refuse(self, event: Any, text: str) -> NoReturn:
        raise refusal(self._file, event.start_mark.line + 1, event.start_mark.column + 1, text)


class _Reader:
    """Turns composed nodes into data, and writes down where everything stands."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._open: set[int] = set()
        self._seen: set[int] = set()
        self._budget = MAX_ALIASED
        self._places: dict[KeyPath, tuple[int, int]] = {}

    def document(self, node: yaml.MappingNode) -> Document:
        data = self._mapping(node, ())
        return Document(data, self._places)

    def _value(self, node: yaml.Node, path: KeyPath) -> Data:
        if isinstance(node, yaml.ScalarNode):
            self._count(node)
            return self._scalar(node)
        if id(node) in self._open:
            self._refuse(node, "an alias inside the value that it points at; this would never end")
        self._open.add(id(node))
        if len(self._open) > MAX_DEPTH:
            self._refuse(node, f"aliases nest deeper than {MAX_DEPTH} levels")
        self._count(node)
        value = self._mapping(node, path) if isinstance(node, yaml.MappingNode) else self._list(node, path)
        self._open.discard(id(node))
        self._seen.add(id(node))
        return value

    def _count(self, node: yaml.Node) -> None:
        """Charge what aliases repeat; a long file without them costs nothing."""
        if id(node) in self._seen:
            self._budget -= 1
        self._seen.add(id(node))
        if self._budget < 0:
            self._refuse(node, f"aliases repeat more than {MAX_ALIASED} values; write them out or use fewer")

    def _scalar(self, node: yaml.ScalarNode) -> str | None:
        text: str = node.value
        if node.style is None and text in NULLS and node.tag != _STR_TAG:
            return None
        one_line = node.start_mark.line == node.end_mark.line
        if node.style == '"' and one_line and any(ord(letter) < 32 for letter in text):
            self._refuse(
                node, "a backslash in double quotes starts an escape, so this is no plain text; use single quotes"
            )
        return text

    def _list(self, node: yaml.Node, path: KeyPath) -> list[Data]:
        items: list[Data] = []
        for index, item in enumerate(node.value):
            self._note((*path, index), item)
            items.append(self._value(item, (*path, index)))
        return items

    def _mapping(self, node: yaml.MappingNode, path: KeyPath) -> dict[str, Any]:
        lines: dict[str, int] = {}
        own: dict[str, Any] = {}
        merged: list[yaml.Node] = []
        for key, value in node.value:
            name = self._key(key, lines)
            if key.tag == _MERGE_TAG:
                merged += self._sources(value)
                continue
            self._note((*path, name), key)
            own[name] = self._value(value, (*path, name))
        for source in merged:
            own = self._merge(source, path, own)
        return own

    def _merge(self, source: yaml.Node, path: KeyPath, own: dict[str, Any]) -> dict[str, Any]:
        """`own` with what `source` has and it has not: keys written out and earlier sources win."""
        before = {place: at for place, at in self._places.items() if place[: len(path)] == path}
        data = self._value(source, path)
        assert isinstance(data, dict)
        written = {place: at for place, at in before.items() if len(place) > len(path) and place[len(path)] in own}
        self._places.update(written)
        return data | own

    def _sources(self, value: yaml.Node) -> Iterator[yaml.Node]:
        """The mappings that `<<` merges."""
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(source, yaml.MappingNode):
                self._refuse(source, "`<<` merges a mapping or a list of mappings, such as `<<: *base`")
            yield source

    def _key(self, key: yaml.Node, lines: dict[str, int]) -> str:
        """A key's text; one that is given twice in a mapping is refused, with both lines."""
        if not isinstance(key, yaml.ScalarNode):
            self._refuse(key, "a key is a word, not a list or a mapping; a value that starts with { or [ wants quotes")
        name: str = key.value
        if name in lines:
            line = key.start_mark.line + 1
            self._refuse(key, f"the key {name} is given twice, in lines {lines[name]} and {line}; keep one of them")
        lines[name] = key.start_mark.line + 1
        return name

    def _note(self, path: KeyPath, node: yaml.Node) -> None:
        self._places[path] = (node.start_mark.line + 1, node.start_mark.column + 1)

    def _refuse(self, node: yaml.Node, text: str) -> NoReturn:
        raise refusal(self._name, node.start_mark.line + 1, node.start_mark.column + 1, text)

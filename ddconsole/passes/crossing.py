"""Values between a test and the answer it tests, which lives in another process. Runs in the sandbox: stdlib only.

JSON with a tag for each type that JSON lacks: `["tuple", [1, 2]]`, `["dict", [[1, "a"]]]`, `["bytes", "00ff"]`. Values
cross by their plain type, so a subclass that lies about its equality arrives as what it holds. Whatever has no plain
type crosses as a handle: `["handle", [3, "Cache"]]`.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ITEMS = 100_000
"""Items that are taken from an iterator."""

CONTAINERS: tuple[type, ...] = (list, tuple, set, frozenset)
VIEWS: tuple[Any, ...] = (type({}.keys()), type({}.values()), type({}.items()))


def encode(value: Any, keep: Callable[[Any], list[Any]]) -> Any:
    """A JSON value. `keep` gets what cannot cross, and returns what stands for it.

    The types' own methods are called, never the value's: those belong to the answer.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return str.__str__(value)
    for kind in CONTAINERS:
        if isinstance(value, kind):
            return [kind.__name__, [encode(item, keep) for item in _items(kind, value)]]
    if isinstance(value, dict):
        return ["dict", [[encode(key, keep), encode(item, keep)] for key, item in dict.items(value)]]
    return _encode_other(value, keep)


def _items(kind: Any, value: Any) -> Any:
    return kind.__iter__(value)


def _encode_other(value: Any, keep: Callable[[Any], list[Any]]) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return [type(value).__name__, value.hex()]
    if isinstance(value, complex):
        return ["complex", [value.real, value.imag]]
    if isinstance(value, range):
        return ["range", [value.start, value.stop, value.step]]
    if isinstance(value, VIEWS):
        return ["list", [encode(item, keep) for item in value]]
    if hasattr(type(value), "__next__"):
        return ["iterator", [encode(item, keep) for item in islice(value, MAX_ITEMS)]]
    return keep(value)


def decode(data: Any, fetch: Callable[[list[Any]], Any]) -> Any:
    """The inverse. `fetch` turns what stands for a kept value into the value, or into its stand-in."""
    if not isinstance(data, list):
        return data
    tag, items = data
    if tag == "handle":
        return fetch(items)
    if tag == "dict":
        return {decode(key, fetch): decode(item, fetch) for key, item in items}
    if tag == "range":
        return range(*items)
    if tag in PLAIN:
        return PLAIN[tag](items)
    return MAKERS[tag]([decode(item, fetch) for item in items])


PLAIN: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": lambda pair: complex(*pair),
}
MAKERS: dict[str, Callable[[Any], Any]] = {kind.__name__: kind for kind in CONTAINERS} | {"iterator": iter}

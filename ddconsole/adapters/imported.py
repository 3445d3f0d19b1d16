"""Results of other machines: one file each import, beside the store, so that nothing measured here is touched."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from ddconsole.adapters.paths import FILE_MODE, Paths, is_read_only, private_dir, refuse_change
from ddconsole.core.errors import StoreError, UsageError
from ddconsole.core.imports import imported_items

if TYPE_CHECKING:
    from pathlib import Path

MAX_BYTES = 512 * 1024 * 1024
"""A file that is longer is no export that anybody wants to read."""


def read_export(path: Path) -> Any:
    """The JSON of a file.

    Raises:
        UsageError: it cannot be read, is too long, or is no JSON.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError(f"{path} is longer than {MAX_BYTES >> 20} MiB")
        return json.loads(path.read_text("utf-8"), parse_constant=_no_constant)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from None


def keep(profile: str, tag: str, document: Any) -> None:
    """Put a document, checked before, beside the store; one of the same name is replaced as a whole.

    Raises:
        RefusedError: this process is read-only.
        StoreError: it cannot be written.
    """
    if is_read_only():
        raise refuse_change()
    path = _file(profile, tag)
    private_dir(path.parent)
    part = path.with_suffix(".part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, FILE_MODE), "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error


def load_all(profile: str) -> list[dict[str, Any]]:
    """The items of every import of a profile, by the imports' names.

    Raises:
        UsageError: one of the files is no export any more.
    """
    folder = _folder(profile)
    found: list[dict[str, Any]] = []
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        try:
            found += imported_items(read_export(path), path.stem, str(path))
        except UsageError as error:
            raise UsageError(error.what, advice=f"import it again, or remove {path}") from None
    return found


def _folder(profile: str) -> Path:
    return Paths.from_environment().data / "imported" / quote(profile, safe="").replace(".", "%2E")


def _file(profile: str, tag: str) -> Path:
    return _folder(profile) / f"{tag}.json"


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is no JSON number")

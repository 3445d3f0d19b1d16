"""Secrets of a profile, from where it says they are. They are never written anywhere but the engine's own file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.core.errors import ProfileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.profile import SecretSource


def read_secrets(sources: Mapping[str, SecretSource]) -> dict[str, str]:
    """The value of each secret by its name in the engine's environment.

    Raises:
        ProfileError: a source has no value; the text names the secret and the source, never a value.
    """
    return {name: _read(name, source) for name, source in sources.items()}


def _read(name: str, source: SecretSource) -> str:
    if source.env is not None:
        value = os.environ.get(source.env)
        if not value:
            raise _missing(name, f"the environment variable {source.env} is not set", f"export {source.env}=…")
        return value
    if source.file is not None:
        return _from_file(name, Path(source.file).expanduser())
    assert source.keyring is not None
    return _from_keyring(name, source.keyring)


def _from_file(name: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _missing(name, f"cannot read {path}: {error}", "Put the secret there, mode 600.") from error


def _from_keyring(name: str, entry: str) -> str:
    try:
        import keyring
    except ImportError:
        raise _missing(name, "the keyring package is not installed", "pip install keyring") from None
    value = keyring.get_password("ddconsole", entry)
    if value is None:
        raise _missing(name, f"the keyring has no entry {entry!r}", f"keyring set ddconsole {entry}")
    return str(value)


def _missing(name: str, why: str, advice: str) -> ProfileError:
    return ProfileError(f"engine.secrets.{name}: {why}", advice=advice)

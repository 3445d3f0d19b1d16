"""Secrets of a profile, from where it says they are. They are never written anywhere but the engine's own file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.core.errors import ProfileError
from ddconsole.core.masking import Masker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.profile import SecretSource


SERVICE = "ddconsole"
"""Under which name a keyring keeps our secrets."""

_read_here: set[str] = set()
"""Values that this process has read: what it reports of its own errors must not hold them."""


def read_secrets(sources: Mapping[str, SecretSource]) -> dict[str, str]:
    """The value of each secret by its name in the engine's environment.

    Raises:
        ProfileError: a source has no value; the text names the secret and the source, never a value.
    """
    found = {name: _read(name, source) for name, source in sources.items()}
    _read_here.update(found.values())
    return found


def without_secrets(text: str) -> str:
    """`text` for a report, with `***` for every secret that this process has read and for what looks like one."""
    return Masker(tuple(_read_here)).text(text)


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
        value = path.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise _missing(
            name, f"cannot read {path}: {error.strerror or error}", "Put the secret there, mode 600."
        ) from None
    except UnicodeDecodeError:  # its words would hold a byte of the secret
        raise _missing(name, f"{path} is no text", "Put the secret there as UTF-8, mode 600.") from None
    if not value:
        raise _missing(name, f"{path} is empty", "Put the secret there, mode 600.")
    return value


def _from_keyring(name: str, entry: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        advice = "pip install 'ddconsole[keyring]', or name `env` or `file` in the profile"
        raise _missing(name, "the keyring package is not installed", advice) from None
    try:
        value = keyring.get_password(SERVICE, entry)
    except KeyringError as error:
        why = f"the keyring does not answer: {type(error).__name__}"
        raise _missing(name, why, "Unlock it, or name `env` or `file` in the profile.") from None
    if not value:
        raise _missing(name, f"the keyring has no entry {entry!r}", f"keyring set {SERVICE} {entry}")
    return str(value)


def _missing(name: str, why: str, advice: str) -> ProfileError:
    return ProfileError(f"engine.secrets.{name}: {why}", advice=advice)

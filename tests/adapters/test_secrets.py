"""Secrets come from the environment, a file or the keyring; what is missing is told without a value."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from ddconsole.adapters.secrets import read_secrets, without_secrets
from ddconsole.core.errors import ProfileError
from ddconsole.core.profile import SecretSource


class KeyringError(Exception):
    """As keyring.errors has it: the base of what a backend raises."""


class NoKeyringError(KeyringError):
    """There is no backend."""


class FakeKeyring:
    """A backend in memory, behind the two names of the keyring package that we use."""

    def __init__(self, entries: dict[tuple[str, str], str]) -> None:
        self.entries = entries
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise NoKeyringError("secret sesame in a message")
        return self.entries.get((service, username))


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> FakeKeyring:
    backend = FakeKeyring({("ddconsole", "hf"): "ring-value-123"})
    module, errors = ModuleType("keyring"), ModuleType("keyring.errors")
    module.get_password = backend.get_password  # type: ignore[attr-defined]
    errors.KeyringError = KeyringError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", module)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    return backend


def test_each_source_gives_its_value(ring: FakeKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may end with a newline."""
    monkeypatch.setenv("OURS", "env-value-123")
    (tmp_path / "secret").write_text("file-value-123\n")
    found = read_secrets(
        {
            "A": SecretSource(env="OURS"),
            "B": SecretSource(file=str(tmp_path / "secret")),
            "C": SecretSource(keyring="hf"),
        }
    )
    assert found == {"A": "env-value-123", "B": "file-value-123", "C": "ring-value-123"}
    assert without_secrets("env-value-123, file-value-123 and ring-value-123") == "***, *** and ***"


def test_an_entry_that_the_keyring_has_not_is_named(ring: FakeKeyring) -> None:
    """With the command that puts it there."""
    with pytest.raises(ProfileError, match=r"engine\.secrets\.TOKEN: the keyring has no entry 'other'") as caught:
        read_secrets({"TOKEN": SecretSource(keyring="other")})
    assert caught.value.advice == "keyring set ddconsole other"


def test_a_keyring_that_is_locked_or_missing_is_no_bug_of_ours(ring: FakeKeyring) -> None:
    """A login over ssh has none: said by the kind of error, never by its text."""
    ring.locked = True
    with pytest.raises(ProfileError, match="NoKeyringError") as caught:
        read_secrets({"TOKEN": SecretSource(keyring="hf")})
    assert "sesame" not in str(caught.value)
    assert "env" in caught.value.advice


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(ProfileError, match="not installed") as caught:
        read_secrets({"TOKEN": SecretSource(keyring="hf")})
    assert "ddconsole[keyring]" in caught.value.advice


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"\xff\xfesecret"])
def test_a_file_without_a_secret_is_told_without_its_bytes(tmp_path: Path, content: bytes | None) -> None:
    """Missing, empty, or no text."""
    path = tmp_path / "secret"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ProfileError, match=r"engine\.secrets\.TOKEN") as caught:
        read_secrets({"TOKEN": SecretSource(file=str(path))})
    assert "0xff" not in str(caught.value)


def test_a_variable_that_is_not_set_is_told_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty counts as not set."""
    monkeypatch.setenv("OURS", "")
    with pytest.raises(ProfileError, match="OURS is not set"):
        read_secrets({"TOKEN": SecretSource(env="OURS")})

"""Where to connect."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_BRACKETED = re.compile(r"\[(?P<host>[^\]]+)\](?::(?P<port>\d+))?")


@dataclass(frozen=True, slots=True)
class SshTarget:
    """Where to connect. None means: as OpenSSH resolves it from the user's configuration.

    Attributes:
        host: an alias of ssh_config, a name or an address.
        client_keys: private key files; when given, neither the agent nor other keys are tried.
        known_hosts: files that hold the trusted host keys.
        config: ssh_config files; an empty tuple reads none.
        send_env: variables that the host's sshd may accept for our commands.
    """

    host: str
    port: int | None = None
    username: str | None = None
    client_keys: tuple[str, ...] | None = None
    known_hosts: tuple[str, ...] | None = None
    config: tuple[str, ...] | None = None
    send_env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> SshTarget:
        """`alias`, `user@host` or `user@host:port`; a jump host is written in the same way."""
        text = text.removeprefix("ssh://").rstrip("/")
        user, _, place = text.rpartition("@")
        bracketed = _BRACKETED.fullmatch(place)
        if bracketed:
            host, port = bracketed["host"], bracketed["port"]
        elif place.count(":") == 1 and place.partition(":")[2].isdigit():
            host, _, port = place.partition(":")
        else:
            host, port = place, None
        return cls(host, int(port) if port else None, user or None)

    def given(self) -> dict[str, Any]:
        """The options that fix what OpenSSH's configuration would say, in asyncssh's names."""
        chosen = {"port": self.port, "username": self.username}
        return {name: value for name, value in chosen.items() if value is not None} | {"config": self._config()}

    def _config(self) -> list[str] | None:
        if self.config is not None:
            return list(self.config) or None
        usual = (Path.home() / ".ssh" / "config", Path("/etc/ssh/ssh_config"))
        return [str(path) for path in usual if path.is_file()] or None

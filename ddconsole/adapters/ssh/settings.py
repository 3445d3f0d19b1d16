"""What ssh_config says of a host, read by OpenSSH itself (`ssh -G`) where it is installed, else by asyncssh.

Nothing here parses ssh_config: Include, Match, tokens and canonical names are OpenSSH's own business, and its answer is
the only one that agrees with what the user sees from `ssh HOST`. Without an `ssh` on this machine asyncssh's reader
stands in; it knows fewer options, which is said.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import os
import re
import shutil
import signal
import socket
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh

from ddconsole.adapters.ssh.errors import FOREIGN, explain, printable
from ddconsole.core.errors import UnreachableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.adapters.ssh.target import SshTarget

RESOLVE_S = 10.0
"""Seconds for `ssh -G`, which may run the commands of `Match exec` and ask the name service."""

NO_WAY_AROUND_QUOTING = re.compile(r"[\s'\"`$\\;&<>|(){}*?!]|^-|[\x00-\x1f\x7f]")
"""What no name may hold that ssh_config can put into a command line (ProxyCommand, Match exec). OpenSSH 9.6 refuses the
same; older versions hand it to a shell."""

_NEXT_PATH = re.compile(r"\s+(?=[/~])")
_TOKEN = re.compile(r"%(.)")
_VARIABLE = re.compile(r"\$\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of one host, by OpenSSH's names in lower case, each with its values in order.

    Attributes:
        alias: the name that was typed.
        by_openssh: OpenSSH read them; otherwise asyncssh did.
        changed: the options that the user's configuration sets to something else than OpenSSH's default.
    """

    alias: str
    values: Mapping[str, tuple[str, ...]]
    by_openssh: bool
    changed: frozenset[str] = field(default=frozenset())

    def first(self, option: str, default: str = "") -> str:
        """The first value of an option; `none` counts as not set."""
        found = self.values.get(option, ())
        return found[0] if found and found[0].lower() != "none" else default

    def every(self, option: str) -> tuple[str, ...]:
        """All values of an option that may be given more than once."""
        return tuple(value for value in self.values.get(option, ()) if value.lower() != "none")

    def files(self, option: str) -> tuple[str, ...]:
        """The paths of an option that holds a list of them. `ssh -G` prints spaces within a path without quotes."""
        return tuple(word for value in self.every(option) for word in _NEXT_PATH.split(value))

    def says(self, option: str, *values: str) -> bool:
        """It is set to one of `values`."""
        return self.first(option).lower() in values

    @property
    def host(self) -> str:
        """The name or address to connect to."""
        return self.first("hostname", self.alias)

    @property
    def port(self) -> int:
        """The port to connect to."""
        return int(self.first("port", "22"))

    @property
    def user(self) -> str:
        """The name to log in with."""
        return self.first("user") or getpass.getuser()

    def expand(self, text: str) -> str:
        """`text` with OpenSSH's tokens, `${VARIABLES}` and `~` replaced; what is unknown stays as it is."""
        local = socket.gethostname()
        tokens = {
            "%": "%", "h": self.host, "n": self.alias, "p": str(self.port), "r": self.user, "u": getpass.getuser(),
            "d": str(Path.home()), "i": str(os.getuid()), "l": local, "L": local.partition(".")[0],
            "k": self.first("hostkeyalias") or self.alias, "j": self.first("proxyjump"),
        }  # fmt: skip
        filled = _TOKEN.sub(lambda found: tokens.get(found[1], found[0]), text)
        return str(Path(_VARIABLE.sub(lambda found: os.environ.get(found[1], found[0]), filled)).expanduser())

    def command(self, text: str) -> str:
        """A command line with its tokens replaced; variables and `~` are its shell's business."""
        tokens = {"%": "%", "h": self.host, "n": self.alias, "p": str(self.port), "r": self.user}
        return _TOKEN.sub(lambda found: tokens.get(found[1], found[0]), text)


async def read_settings(target: SshTarget) -> Settings:
    """The settings for a target; what the target itself gives comes first.

    Raises:
        UnreachableError: its name or the configuration cannot be used; with OpenSSH's or asyncssh's own words.
    """
    _check_names(target.host, target.username or "")
    if target.config == ():
        return _unconfigured(target)
    program = ssh_program()
    if program is None or len(target.config or ()) > 1:
        settings = await _by_asyncssh(target)
    else:
        settings = await _by_openssh(program, target)
    _check_names(settings.host, settings.user)
    return settings


def _unconfigured(target: SshTarget) -> Settings:
    """No configuration is read: the target says it all."""
    values = {"hostname": (target.host,), "identityfile": _USUAL_KEYS}
    values |= {"port": (str(target.port),)} if target.port else {}
    values |= {"user": (target.username,)} if target.username else {}
    return Settings(target.host, values, by_openssh=True)


def ssh_program() -> str | None:
    """The system's ssh, if there is one."""
    return shutil.which("ssh")


def _check_names(*names: str) -> None:
    for name in names:
        if NO_WAY_AROUND_QUOTING.search(name):
            raise UnreachableError(
                f"{printable(name)!r} is no name of a host or user",
                evidence=("ssh_config may put it into a command line, where these characters would act",),
                advice="Write an alias without quotes, spaces and shell characters into ~/.ssh/config.",
            )


# --- by OpenSSH


async def _by_openssh(program: str, target: SshTarget) -> Settings:
    config = target.config
    file = () if config is None else ("-F", config[0])
    port = ("-p", str(target.port)) if target.port else ()
    user = ("-l", target.username) if target.username else ()
    told = await _ssh_g(program, target.host, *file, *port, *user)
    values = _parse(told)
    usual = await _defaults(program)
    changed = frozenset(name for name, value in values.items() if usual.get(name) != value) - {"host", "hostname"}
    return Settings(target.host, values, by_openssh=True, changed=changed)


async def _ssh_g(program: str, host: str, *options: str) -> str:
    """The answer of `ssh -G`.

    Raises:
        UnreachableError: ssh cannot read the configuration; its own words are the evidence.
    """
    process = await asyncio.create_subprocess_exec(
        program, "-G", *options, "--", host,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(RESOLVE_S):
            out, err = await process.communicate()
    except TimeoutError:
        raise UnreachableError(
            f"`ssh -G {host}` did not end within {RESOLVE_S:g} s",
            advice="A `Match exec` of your ssh configuration hangs, or the name service does.",
        ) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # the command of a Match exec too
            await process.wait()
    if process.returncode:
        said = tuple(printable(line) for line in err.decode("utf-8", "replace").splitlines() if line.strip())
        raise UnreachableError(
            "your ssh configuration cannot be read",
            evidence=said[-5:],
            advice=f"Mend the line that it names; `ssh -G {host}` shows how OpenSSH reads it.",
        )
    return out.decode("utf-8", "replace")


def _parse(told: str) -> dict[str, tuple[str, ...]]:
    values: dict[str, tuple[str, ...]] = {}
    for line in told.splitlines():
        name, _, value = line.partition(" ")
        if name:
            values[name.lower()] = (*values.get(name.lower(), ()), value)
    return values


_DEFAULTS: dict[str, dict[str, tuple[str, ...]]] = {}


async def _defaults(program: str) -> dict[str, tuple[str, ...]]:
    """What OpenSSH says where no configuration says anything; asked once."""
    if program not in _DEFAULTS:
        _DEFAULTS[program] = _parse(await _ssh_g(program, "localhost", "-F", "none"))
    return _DEFAULTS[program]


# --- by asyncssh


async def _by_asyncssh(target: SshTarget) -> Settings:
    from asyncssh.config import SSHClientConfig

    try:
        made = await asyncssh.SSHClientConnectionOptions.construct(
            host=target.host, client_keys=None, agent_path=None, **target.given()
        )
    except FOREIGN as exc:
        raise explain(exc, target.host) from exc
    names = [name for name, _ in SSHClientConfig._handlers.values()]
    values = {name.lower(): _told(made.config.get(name)) for name in names if made.config.get(name) is not None}
    changed = frozenset(values)
    usual = {"hostname": (made.host,), "port": (str(made.port),), "user": (made.username,)}
    files = {"identityfile": _USUAL_KEYS}
    return Settings(target.host, files | values | usual, by_openssh=False, changed=changed)


_USUAL_KEYS = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


def _told(value: Any) -> tuple[str, ...]:
    """A value of asyncssh's reader as OpenSSH prints it."""
    if isinstance(value, bool):
        return ("yes" if value else "no",)
    if isinstance(value, list | tuple):
        return tuple(map(str, value)) or ("none",)
    return (str(value),)

"""What asyncssh makes of the settings, and what it cannot: the options that matter and are not heeded."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from ddconsole.adapters.ssh.keys import GLOBAL_KNOWN_HOSTS, TrustedKeys

if TYPE_CHECKING:
    from ddconsole.adapters.ssh.settings import Settings
    from ddconsole.adapters.ssh.target import SshTarget

_ALGORITHMS = {
    "ciphers": "encryption_algs",
    "kexalgorithms": "kex_algs",
    "macs": "mac_algs",
    "pubkeyacceptedalgorithms": "signature_algs",
}

_UNHEEDED = {
    "addkeystoagent": "keys that are unlocked stay in this process",
    "bindinterface": "the connection leaves by the route that the system chooses",
    "checkhostip": "a host is known by its name",
    "gssapiauthentication": "no Kerberos login",
    "gssapikeyexchange": "no Kerberos key exchange",
    "hostbasedauthentication": "no host-based login",
    "knownhostscommand": "only known_hosts files are read",
    "pkcs11provider": "no keys from a smart card; the agent can hold them",
    "proxyusefdpass": "the ProxyCommand has to carry the bytes itself",
    "requiredrsasize": "short RSA keys are not refused",
    "revokedhostkeys": "only @revoked lines of known_hosts count",
    "securitykeyprovider": "no keys of a security key; the agent can hold them",
    "tunnel": "no tunnel device",
    "verifyhostkeydns": "SSHFP records are not looked up",
}
"""Options that change whether, how or how safely a host is reached, and what happens instead here."""

_HARMLESS = {"no", "none", "false", "internal", "0", "1024"}
"""Values that ask for nothing, whatever the option's default is."""


def unheeded(settings: Settings) -> tuple[str, ...]:
    """One sentence for each option that the user's configuration sets and asyncssh does not follow."""
    found = [
        f"ssh_config's {name} {settings.first(name)} is not heeded: {instead}"
        for name, instead in _UNHEEDED.items()
        if name in settings.changed and settings.first(name, "none").lower() not in _HARMLESS
    ]
    if settings.says("stricthostkeychecking", "no", "off", "false"):
        found.append(
            "ssh_config's StrictHostKeyChecking no is taken as accept-new: a changed host key is still refused"
        )
    if "setenv" in settings.changed:
        found.append("ssh_config's SetEnv is not sent: an engine's variables are the profile's `engine.env`")
    if not settings.by_openssh:
        found.append("no ssh on this machine: ssh_config was read by asyncssh, which knows fewer options and tokens")
    remedy = " (`transport: openssh` in the profile follows it)"
    return tuple(text + remedy if "not heeded" in text and settings.by_openssh else text for text in found)


def trusted_keys(target: SshTarget, settings: Settings) -> TrustedKeys:
    """The known_hosts lines for a host."""
    files = target.known_hosts or (*user_known_hosts(settings), *_global_known_hosts(settings))
    return TrustedKeys(files, settings.host, settings.port, settings.first("hostkeyalias"))


def user_known_hosts(settings: Settings) -> tuple[str, ...]:
    """The user's files; the first is the one that new keys go to. `none` leaves no file: nobody is trusted then."""
    if "userknownhostsfile" in settings.values:
        return tuple(settings.expand(word) for word in settings.files("userknownhostsfile"))
    return tuple(str(Path.home() / ".ssh" / name) for name in ("known_hosts", "known_hosts2"))


def _global_known_hosts(settings: Settings) -> tuple[str, ...]:
    named = "globalknownhostsfile" in settings.values
    return settings.files("globalknownhostsfile") if named else GLOBAL_KNOWN_HOSTS


def connect_options(settings: Settings, trusted: TrustedKeys) -> dict[str, Any]:
    """The arguments of `asyncssh.connect` that follow from the settings, but for keys, times and the way there."""
    options: dict[str, Any] = {
        "port": settings.port,
        "username": settings.user,
        "host_key_alias": settings.first("hostkeyalias") or None,
        "known_hosts": trusted,
        "config": None,
    }
    options |= {ours: _known(settings.first(name)) for name, ours in _ALGORITHMS.items() if name in settings.changed}
    options |= _host_key_algorithms(settings, trusted)
    options |= _login_methods(settings)
    if settings.says("compression", "yes"):
        options["compression_algs"] = "zlib@openssh.com,zlib,none"
    if settings.says("addressfamily", "inet", "inet6"):
        options["family"] = socket.AF_INET6 if settings.says("addressfamily", "inet6") else socket.AF_INET
    if settings.first("bindaddress"):
        options["local_addr"] = (settings.first("bindaddress"), 0)
    return {name: value for name, value in options.items() if value != []}


def _known(names: str) -> list[str]:
    """The algorithms of a list that asyncssh has; OpenSSH's `+` and `-` are resolved by `ssh -G` already."""
    have = {
        name.decode()
        for found in (
            asyncssh.encryption.get_encryption_algs(),
            asyncssh.kex.get_kex_algs(),
            asyncssh.mac.get_mac_algs(),
            asyncssh.public_key.get_public_key_algs(),
            asyncssh.public_key.get_certificate_algs(),
        )
        for name in found
    }
    return [name for name in names.split(",") if name in have]


def _host_key_algorithms(settings: Settings, trusted: TrustedKeys) -> dict[str, list[str]]:
    """asyncssh asks for the types of the known keys. Of an unknown host a plain key is wanted, not a certificate,
    which nobody could compare."""
    matched = trusted(settings.host, "", None)
    if any(matched[:2]):
        return {}
    wanted = settings.first("hostkeyalgorithms").split(",") if "hostkeyalgorithms" in settings.changed else []
    plain = [name.decode() for name in get_default_public_key_algs()]
    return {"server_host_key_algs": [name for name in wanted if name in plain] or plain}


def _login_methods(settings: Settings) -> dict[str, Any]:
    named = settings.first("preferredauthentications")
    chosen: dict[str, Any] = {"preferred_auth": named} if named else {}
    for option, ours in (("passwordauthentication", "password_auth"), ("kbdinteractiveauthentication", "kbdint_auth")):
        if settings.says(option, "no", "false"):
            chosen[ours] = False
    return chosen

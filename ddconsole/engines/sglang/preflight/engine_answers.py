"""Which engine this is: program, package, versions, flags."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ddconsole.engines.sglang.preflight.help_text import Help, parse_help
from ddconsole.engines.sglang.preflight.sections import rows, shown, value, whole

if TYPE_CHECKING:
    from ddconsole.core.profile import Profile
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "engine"


def read_engine(profile: Profile, found: Sections, report: Report, *, on_cards: bool = True) -> Help | None:
    """Tell what the engine is; None when its flags could not be read.

    `on_cards` is False for an engine that computes elsewhere: packages of CUDA kernels that are not as it wants them,
    or not there, are then no finding.
    """
    program = profile.engine.command[0]
    command = " ".join(profile.engine.command)
    if "missing" in found:
        report.see(TOPIC, "command", f"{command}: not found")
        report.block("no-command", f"{program} is not on the host's PATH",
                     "give its full path in engine.command of the profile")  # fmt: skip
        return None
    identity = found.get("identity", [])
    report.see(TOPIC, "command", command)
    absent = value(identity, "no-package")
    if absent is not None:
        report.block("no-command", f"{_python(identity) or program} has no package {shown(absent, 60)}",
                     "name the python of the engine's own environment in engine.command")  # fmt: skip
        return None
    known = _read_help(found, report)
    _tell_version(command, identity, known, report)
    _tell_packages(identity, report)
    if on_cards:
        _check_needs(identity, report)
    return known


def _python(identity: list[str]) -> str | None:
    return next((row[0] for row in rows(identity, "python", 2)), None)


def _read_help(found: Sections, report: Report) -> Help | None:
    lines = found.get("help", [])
    known = parse_help(lines)
    status = next((row[0] for row in rows(found.get("read", []), "now", 2)), "0")
    if status == "0" and known.flags:
        return known
    said = next((shown(line) for line in reversed(lines) if line.strip()), "nothing")
    broken = any(line.startswith("Traceback ") for line in lines)
    text = f"--help of the engine ended with status {status} and said: {said}"
    if broken:
        report.block("engine-broken", text, "the launch would end in the same way; mend the engine's environment")
    else:
        report.warn("help-unreadable", text, "its flags could not be checked; a misspelled one costs a launch")
    return None


def _tell_version(command: str, identity: list[str], known: Help | None, report: Report) -> None:
    name, version = next(((row[0], row[1]) for row in rows(identity, "distribution", 2)), ("", ""))
    version = version or (known.version if known and known.version else "")
    report.facts["engine"] = {
        "command": command,
        "program": next((row[1] for row in rows(identity, "program", 2)), None),
        "package": value(identity, "package"),
        "version": version or None,
        "packages": dict(rows(identity, "version", 2)),
        "plugins": [row[0] for row in rows(identity, "plugin", 2)],
        "sources": next((row[1] for row in rows(identity, "tree", 2)), None),
    }
    words = [part for part in (name, version) if part] or ["version not told"]
    report.see(TOPIC, "version", shown(" ".join(words)))


def tell_flags(found: Sections, known: Help, report: Report) -> None:
    """How many flags there are, and how fresh that knowledge is."""
    read = found.get("read", [])
    remembered = whole(value(read, "remembered"))
    seconds = next((whole(row[1]) for row in rows(read, "now", 2)), None)
    if remembered is not None:
        when = datetime.fromtimestamp(remembered, UTC).strftime("%Y-%m-%d %H:%M UTC")
        fresh = f"read {when}, the engine's files are unchanged since"
    else:
        fresh = f"read now, {seconds} s" if seconds else "read now"
    report.see(TOPIC, "flags", f"{len({id(flag) for flag in known.flags.values()})} ({fresh})")


def _tell_packages(identity: list[str], report: Report) -> None:
    """The versions beside it."""
    versions: dict[str, Any] = dict(rows(identity, "version", 2))
    if versions:
        report.see(TOPIC, "packages", shown(", ".join(f"{name} {version}" for name, version in versions.items()), 400))


def _check_needs(identity: list[str], report: Report) -> None:
    """What it wants of kernel packages: SGLang ends itself when one is too old."""
    for name, wanted, there in rows(identity, "needs", 3):
        if there != wanted:
            has = f"{there} is installed" if there else "it is not installed"
            report.warn("package-skew", f"this engine wants {name} {wanted}; {has}",
                        "an older one may end the launch at once; install the version it names")  # fmt: skip

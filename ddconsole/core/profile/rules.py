"""What a profile must keep beyond the types of its keys: rules between keys, and names that reach a command line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ddconsole.core.profile.problems import Problem
from ddconsole.core.spec.context import OWN_ARGUMENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddconsole.core.profile import Knob, Profile

KNOBS = ("block_size", "budget", "topk", "window")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ARGUMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_OTHER_UNITS = r"(?!.*\.(?:socket|timer|target|mount|automount|path|slice|scope|device|swap)$)"
_UNIT = re.compile(_OTHER_UNITS + r"[A-Za-z0-9:_][A-Za-z0-9:_.@\\-]{0,200}?(\.service)?")
_TIED = re.compile(r"(block_size|budget|topk|window)(\s*[-+*]\s*\d+)?")


def broken_rules(profile: Profile) -> Iterator[Problem]:
    """Every rule that a well-typed profile breaks."""
    yield from _host(profile)
    yield from _engine(profile)
    yield from _launcher(profile)
    for name in KNOBS:
        yield from _knob(name, getattr(profile.knobs, name))
    yield from _knobs_together(profile)
    yield from _suites(profile)


def _host(profile: Profile) -> Iterator[Problem]:
    if profile.host.startswith("-") or re.search(r"\s", profile.host):
        yield Problem(("host",), f"expected an ssh alias, local or demo; {profile.host!r} is no name of a host")
    port = re.search(r"[^:]:(\d+)$", profile.host)
    if port is not None and not 0 < int(port[1]) < 65536:
        yield Problem(("host",), f"{port[1]} is no port: 1 to 65535")


def _engine(profile: Profile) -> Iterator[Problem]:
    engine = profile.engine
    spelled = {knob.flag for knob in _knobs(profile) if knob.flag} | {profile.knobs.algorithm.flag}
    if not all(word.strip() for word in engine.command):
        yield Problem(("engine", "command"), "expected words; one of these is empty")
    for name in engine.args:
        at = ("engine", "args", name)
        if not _ARGUMENT.fullmatch(name.lstrip("-")):
            yield Problem(at, "expected the name of a long flag: letters, digits, dashes")
            continue
        if name.replace("_", "-") in OWN_ARGUMENTS:
            yield Problem(at, OWN_ARGUMENTS[name.replace("_", "-")])
        if name.startswith("-"):
            yield Problem(at, f"expected the long flag without its dashes: {name.lstrip('-')}")
        elif "--" + name.replace("_", "-") in spelled:
            yield Problem(at, "this flag is a knob; set its default under knobs instead")
    for section, names in (("env", engine.env), ("secrets", engine.secrets)):
        for name in names:
            if not _VARIABLE.fullmatch(name):
                yield Problem(("engine", section, name), "expected the name of an environment variable")
    for name in engine.secrets.keys() & engine.env.keys():
        yield Problem(("engine", "env", name), "this name is a secret too; keep it in one of the two")


def _launcher(profile: Profile) -> Iterator[Problem]:
    launcher = profile.launcher
    if launcher.unit is not None and launcher.kind != "systemd":
        yield Problem(("launcher", "unit"), "a unit belongs to kind: systemd")
    if launcher.unit is not None and not _UNIT.fullmatch(launcher.unit):
        yield Problem(("launcher", "unit"), f"expected a service, such as sglang; {launcher.unit!r} names none")
    if launcher.log == "journal" and launcher.kind != "systemd":
        yield Problem(("launcher", "log"), "the journal belongs to kind: systemd")


def _knob(name: str, knob: Knob) -> Iterator[Problem]:
    if knob.min > knob.max:
        yield Problem(("knobs", name, "min"), f"min {knob.min} is above max {knob.max}")
    if knob.flag is not None and not knob.flag.startswith("-"):
        yield Problem(("knobs", name, "flag"), f"expected the long flag with its dashes: --{knob.flag}")
    for key in ("env", "cap_env"):
        variable = getattr(knob, key, None)
        if variable is not None and not _VARIABLE.fullmatch(variable):
            yield Problem(("knobs", name, key), "expected the name of an environment variable")
    if knob.json_field is not None and not re.fullmatch(r"--[^:\s]+:[^:\s]+", knob.json_field):
        yield Problem(("knobs", name, "json_field"), "expected FLAG:FIELD, such as --speculative-config:num_nodes")
    if knob.tied is not None and (not _TIED.fullmatch(knob.tied.strip()) or knob.tied.strip().startswith(name)):
        yield Problem(("knobs", name, "tied"), "expected another knob and a number, such as block_size - 1")


def _knobs_together(profile: Profile) -> Iterator[Problem]:
    """Specs start from the defaults, so what the default algorithm has needs one, and they must fit together."""
    knobs = profile.knobs
    if knobs.algorithm.default == "off":
        return
    if profile.engine.drafter is None:
        why = f"knobs.algorithm.default is {knobs.algorithm.default}, which drafts"
        yield Problem(("engine", "drafter"), f"a needed key is missing: {why}", missing=True)
    needed = ("block_size", "budget") if knobs.algorithm.default == "tree" else ("block_size",)
    for name in needed:
        knob: Knob = getattr(knobs, name)
        if knob.default is None and knob.tied is None:
            yield Problem(("knobs", name, "default"), "a needed key is missing: specs start from it", missing=True)
    block_size, window = knobs.block_size.default, knobs.window.default
    if block_size is not None and window is not None and window < block_size:
        yield Problem(("knobs", "window", "default"), f"expected at least the block size {block_size}; read {window}")


def _suites(profile: Profile) -> Iterator[Problem]:
    for name in ("quick", "confirm"):
        if not getattr(profile.passes, name).names():
            yield Problem(("passes", name), "no pass in it; expected coding, throughput or quality")


def _knobs(profile: Profile) -> tuple[Knob, ...]:
    return tuple(getattr(profile.knobs, name) for name in KNOBS)

"""The four questions that a preflight puts to a host, side by side: it, its cards, their links, the engine."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError, UnreachableError
from ddconsole.engines.launch.record import shell_lines
from ddconsole.engines.sglang.preflight.card_scripts import CARD_FIELDS, CARDS, LINKS, NVIDIA_SMI_S
from ddconsole.engines.sglang.preflight.cards import refused_field
from ddconsole.engines.sglang.preflight.engine_script import ENGINE_ANSWERS, HELP_S, PROBE
from ddconsole.engines.sglang.preflight.host_script import HOST
from ddconsole.engines.sglang.preflight.sections import sections

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Host
    from ddconsole.core.profile import Profile
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

UNDER: Final = 'eval "$(cat)" && exec "$@"'
"""Becomes its arguments, under the variables that it reads from standard input: what `ps` shows has none of them.

Not `. /dev/stdin`, which cannot be opened where sshd's standard input is a socket.
"""

HOST_S: Final = 60.0
"""Seconds for the cheap facts; an index of a trillion parameters is 30 MB to read."""


@dataclass(slots=True)
class Answers:
    """What the host has said; a question that failed has no sections, and a finding."""

    host: Sections = field(default_factory=dict)
    cards: Sections = field(default_factory=dict)
    links: Sections = field(default_factory=dict)
    engine: Sections = field(default_factory=dict)
    card_fields: tuple[str, ...] = CARD_FIELDS


async def ask_all(profile: Profile, host: Host, port: int, report: Report) -> Answers:
    """Ask everything, four commands at a time.

    Raises:
        UnreachableError: the connection is lost.
    """
    answers, lost = Answers(), None
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_ask_host(profile, host, port, answers, report))
            group.create_task(_ask_cards(profile, host, answers, report))
            group.create_task(_ask_links(profile, host, answers, report))
            group.create_task(_ask_engine(profile, host, answers, report))
    except* UnreachableError as several:
        lost = several.exceptions[0]  # raised below: within `except*` Python before 3.11.4 wraps it in a group again
    if lost is not None:
        raise lost
    return answers


async def _ask_host(profile: Profile, host: Host, port: int, answers: Answers, report: Report) -> None:
    engine = profile.engine
    drafter = engine.drafter or ""
    words = (profile.launcher.state_dir, str(port), engine.model, _in_hub(engine.model), drafter, _in_hub(drafter))
    argv = ["sh", "-c", HOST, "sh", *words]
    answers.host = await _ask(profile, host, argv, HOST_S, "the host", report)


def _in_hub(name: str) -> str:
    """A model's folder in the Hugging Face cache."""
    return f"models--{name.replace('/', '--')}"


async def _ask_cards(profile: Profile, host: Host, answers: Answers, report: Report) -> None:
    """A driver that does not know a field is asked again without it."""
    for _ in CARD_FIELDS:
        query = ",".join(answers.card_fields)
        argv = ["sh", "-c", CARDS, "sh", query]
        answers.cards = await _ask(profile, host, argv, 2.5 * NVIDIA_SMI_S, "nvidia-smi", report)
        unknown = refused_field(answers.cards)
        if unknown not in answers.card_fields[1:]:
            return
        answers.card_fields = tuple(name for name in answers.card_fields if name != unknown)


async def _ask_links(profile: Profile, host: Host, answers: Answers, report: Report) -> None:
    argv = ["sh", "-c", LINKS, "sh"]
    answers.links = await _ask(profile, host, argv, 3.5 * NVIDIA_SMI_S, "nvidia-smi topo", report)


async def _ask_engine(profile: Profile, host: Host, answers: Answers, report: Report) -> None:
    env = profile.engine.env
    digest = hashlib.sha256(repr(sorted(env.items())).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    words = (profile.launcher.state_dir, digest, PROBE, *profile.engine.command)
    argv = ["sh", "-c", ENGINE_ANSWERS, "sh", *words]
    answers.engine = await _ask(profile, host, argv, HELP_S + 60.0, "the engine", report)


async def _ask(
    profile: Profile, host: Host, argv: Sequence[str], timeout: float, what: str, report: Report
) -> Sections:
    """Run under the engine's own environment, since it moves programs and caches.

    A question that the host could not answer is a warning, not the end of the preflight.
    """
    try:
        variables = shell_lines(dict(sorted(profile.engine.env.items())))
        done = await host.run(["sh", "-c", UNDER, "sh", *argv], stdin=variables, timeout=timeout)
    except HostError as exc:
        report.warn("check-failed", f"{what} could not be asked: {exc.what}", exc.advice)
        return {}
    found = sections(done.stdout)
    if "end" not in found:
        last = next((line for line in reversed(done.stderr.splitlines()) if line.strip()), "")
        report.warn("check-failed", f"{what} broke off with status {done.status} {last[:160]}".rstrip())
    return found

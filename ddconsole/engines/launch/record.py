"""What a launch leaves on the host to be found by: names, files of variables, and the record that scripts print."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError
from ddconsole.core.ports import Launched

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ddconsole.core.ports import Completed

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,100}")
"""Names of launches: folders on the host, and parts of units' names."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check_name(name: str) -> None:
    """Refuse what could leave the folder of runs.

    Raises:
        HostError: it could.
    """
    if not NAME.fullmatch(name):
        raise HostError(f"{name!r} cannot name a run on the host", advice="letters, digits, dot, dash, underscore")


def checked_variable(name: str) -> str:
    """A variable's name that cannot be anything else to a shell or to systemd.

    Raises:
        HostError: it is none.
    """
    if not _VARIABLE.fullmatch(name):
        raise HostError(f"{name!r} is no name of an environment variable", advice="mend engine.env in the profile")
    return name


def shell_lines(values: Mapping[str, str]) -> bytes:
    """Variables as a file that a shell reads with `.`; each value is quoted whole. Bytes that are no UTF-8 stay so."""
    lines = (f"export {checked_variable(name)}={shlex.quote(value)}\n" for name, value in values.items())
    return "".join(lines).encode("utf-8", "surrogateescape")


def run_dir(launched: Launched) -> str:
    """The launch's folder on the host."""
    return launched.log_path.rpartition("/")[0]


def parse_launched(stdout: str) -> Launched | None:
    """The record that a script printed: `launched`, then the ten cells of scripts.TOLD; None when there is none."""
    for line in stdout.splitlines():
        mark, *cells = line.split("\t")
        if mark == "launched" and len(cells) == 10 and all(map(_is_number, (cells[0], cells[1] or "0", cells[4]))):
            pid, ticks, boot_id, token, port, state_dir, run, kind, unit, scope = cells
            return Launched(
                launcher=kind,
                pid=int(pid),
                pgid=int(pid),
                start_ticks=int(ticks or 0),
                boot_id=boot_id,
                token=token,
                log_path=f"{run}/engine.log",
                state_dir=state_dir,
                port=int(port),
                unit=unit or None,
                scope=scope or None,
            )
    return None


def _is_number(word: str) -> bool:
    """A count as the system writes it; a damaged record holds anything."""
    return word.isascii() and word.isdigit() and len(word) <= 18


def last_words(done: Completed, lines: int = 6) -> tuple[str, ...]:
    """The end of what a script said, for an error's evidence."""
    return tuple(line for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip())[-lines:]

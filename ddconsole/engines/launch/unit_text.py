"""Text of systemd's own files: words of a command line, values of an environment file, the drop-in of a service.

Formats: systemd.service(5) "Command lines", systemd.exec(5) "EnvironmentFile=", systemd.syntax(7).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.engines.launch.record import checked_variable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "%": "%%"}

DROP_IN: Final = """\
# Written by ddconsole for one experiment; `ddconsole engine PROFILE restore` removes it, and so does a reboot.
[Service]
Type=exec
{command}
ExecStartPost=
ExecReload=
ExecStop=
ExecStopPost=
ExecStopPost=-+/bin/sh {ended}
EnvironmentFile={env}
{output}Restart=no
RemainAfterExit=no
WatchdogSec=0
KillMode=control-group
SendSIGKILL=yes
IgnoreSIGPIPE=no
TimeoutStartSec=infinity
TimeoutStopSec={grace}
RuntimeMaxSec=infinity
"""


def unit_value(text: str) -> str:
    """One word of a setting, quoted: neither specifiers nor escapes of the word itself are read."""
    return '"' + "".join(_ESCAPES.get(c) or (c if c >= " " and c != "\x7f" else f"\\x{ord(c):02x}") for c in text) + '"'


def unit_word(word: str) -> str:
    """One word of a command line, quoted: variables are not read either."""
    return unit_value(word).replace("$", "$$")


def unit_path(path: str) -> str:
    """A path as the rest of a line, as EnvironmentFile= and StandardOutput= take it.

    Raises:
        HostError: it cannot stand there.
    """
    if path.strip() != path or path.endswith("\\") or any(c < " " for c in path):
        raise HostError(f"{path!r} cannot be named in a unit", advice="give launcher.state_dir a plainer path")
    return path.replace("%", "%%")


def exec_start(argv: Sequence[str]) -> str:
    """ExecStart= for an argv, replacing the unit's own; found on the unit's PATH by env, for systemd has its own."""
    return "ExecStart=\nExecStart=" + " ".join(["/usr/bin/env", "--", *map(unit_word, argv)])


def environment_file(values: Mapping[str, str]) -> bytes:
    """Variables as systemd's EnvironmentFile= reads them: double quotes, where only four characters are escaped."""
    lines = []
    for name, value in values.items():
        escaped = "".join(f"\\{c}" if c in '"\\`$' else c for c in value)
        lines.append(f'{checked_variable(name)}="{escaped}"\n')
    return "".join(lines).encode()


def drop_in(argv: Sequence[str], run: str, env_file: str, grace_s: float, *, to_file: bool) -> str:
    """The runtime drop-in by which a service runs an experiment's command; its output goes to the run's folder.

    Raises:
        HostError: a path cannot be named in a unit.
    """
    log = f"StandardOutput=append:{unit_path(run)}/engine.log\nStandardError=inherit\n"
    return DROP_IN.format(
        command=exec_start(argv),
        ended=unit_word(f"{run}/ended"),
        env=unit_path(env_file),
        output=log if to_file else "StandardOutput=journal\nStandardError=inherit\n",
        grace=max(1, round(grace_s)),
    )


def permanent_drop_in(argv: Sequence[str], env: Mapping[str, str], secrets: Sequence[str]) -> str:
    """What `promote` prints for /etc/systemd/system/UNIT.d/: the command alone; everything else stays the service's."""
    lines = [f"Environment={unit_value(f'{checked_variable(name)}={value}')}" for name, value in env.items()]
    lines += [
        f"# {name} is a secret: put it into a file of mode 600 and name that by EnvironmentFile=" for name in secrets
    ]
    return "\n".join(["[Service]", exec_start(argv), *lines]) + "\n"

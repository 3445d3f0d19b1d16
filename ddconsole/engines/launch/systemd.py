"""An engine as a transient unit of systemd: it outlives the connection, and its whole cgroup is ended as one.

`systemd-run` starts a file of the run's folder, `start`, which takes the login's environment, the profile's and the
secrets from files of mode 600 and removes them, so that neither `ps` nor `systemctl show` has them. Output goes to
`engine.log` in the run's folder, or to the journal (`launcher: {log: journal}`); systemd's own notes are in the journal
in both cases. The exit status is kept twice: by the unit's ExecStopPost in the file `exit`, and by the failed unit.
"""

from __future__ import annotations

import secrets
import shlex
from typing import TYPE_CHECKING, Final

from ddconsole.core.ports import Finding
from ddconsole.engines.launch.base import FoundLauncher
from ddconsole.engines.launch.gpus import read_levels
from ddconsole.engines.launch.manager import MANAGER, refusal
from ddconsole.engines.launch.record import check_name, parse_launched, shell_lines
from ddconsole.engines.launch.scripts import ENGINE, PRELUDE, TOLD
from ddconsole.engines.launch.systemd_scripts import CHECK, ENDED, START, UNIT_LAUNCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.core.ports import Host, Launched, LaunchPlan

LAUNCH_TIMEOUT_S: Final = 60.0


def unit_of(name: str) -> str:
    """The unit of a launch."""
    return f"ddconsole-{name}.service"


def start_file(argv: Sequence[str]) -> str:
    """What the unit runs: a shell that becomes the engine."""
    return f'{PRELUDE}{START}set -- "$run" "$token" {shlex.join(argv)}\n{ENGINE}'


class SystemdLauncher(FoundLauncher):
    """A `Launcher` by `systemd-run`.

    Args:
        scope: `user` or `system`: whose manager has the unit. A system unit runs as the login's user.
        log: `file` or `journal`.
    """

    def __init__(
        self, state_dir: str = "~/.ddconsole", grace_s: float = 30.0, *, scope: str = "user", log: str = "file"
    ) -> None:
        super().__init__(state_dir, grace_s)
        self._scope = scope
        self._log = log

    async def review(self, host: Host, port: int, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Blocks where no manager answers; warns where it would end with the login, and the engine with it."""
        done = await host.run(["sh", "-c", f"scope={self._scope}\n{MANAGER}{CHECK}", "sh"])
        if not done.ok:
            why = refusal(done, "the host's systemd does not answer")
            return (Finding("block", "no-systemd", " · ".join((why.what, *why.evidence[:1])), why.advice), *findings)
        for line in done.stdout.splitlines():
            mark, _, user = line.partition("\t")
            if mark == "no-linger":
                text = f"{user} does not linger: systemd ends the engine when the last login of {user} ends"
                advice = f"`sudo loginctl enable-linger {user}` on the host, or `launcher: {{kind: process}}`"
                return (*findings, Finding("warn", "no-linger", text, advice))
        return findings

    async def launch(self, host: Host, plan: LaunchPlan, name: str) -> Launched:
        """Start `plan` as the unit `ddconsole-<name>.service`.

        Raises:
            HostError: it could not be started; the error says what stands against it and what to use instead.
        """
        check_name(name)
        variables = shell_lines({**plan.env, **plan.secret_env})
        place = (self._state_dir, name, secrets.token_hex(16), str(plan.port), await read_levels(host))
        own = (unit_of(name), self._log, str(max(1, round(self._grace_s))), start_file(plan.argv), ENDED)
        done = await host.run(
            ["sh", "-c", f"scope={self._scope} unit=\n{PRELUDE}{MANAGER}{TOLD}{UNIT_LAUNCH}", "sh", *place, *own],
            stdin=variables,
            timeout=LAUNCH_TIMEOUT_S,
        )
        launched = parse_launched(done.stdout)
        if launched is None:
            raise refusal(done, "the engine's unit could not be started")
        return launched

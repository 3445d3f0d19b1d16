"""An engine as a process of its own session: it outlives us, is found again, and is ended with proof.

Environment and secrets pass through a file of mode 600 that the engine reads and removes before it starts. A small
watcher outside the engine's session waits for it and writes the exit status.

Hosts without /proc (macOS) are served by small branches with ps and lsof, which are untested.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError
from ddconsole.engines.launch.base import FoundLauncher
from ddconsole.engines.launch.gpus import read_levels
from ddconsole.engines.launch.record import check_name, last_words, parse_launched, shell_lines
from ddconsole.engines.launch.scripts import DETACH, ENGINE, LAUNCH, PRELUDE, TOLD, WATCH

if TYPE_CHECKING:
    from ddconsole.core.ports import Host, Launched, LaunchPlan

LAUNCH_TIMEOUT_S: Final = 30.0


class ProcessLauncher(FoundLauncher):
    """A `Launcher` that needs nothing of the host but a shell."""

    async def launch(self, host: Host, plan: LaunchPlan, name: str) -> Launched:
        """Start `plan` in a session of its own, its output in `<state_dir>/runs/<name>/engine.log`.

        Raises:
            HostError: it could not be started.
        """
        check_name(name)
        variables = shell_lines({**plan.env, **plan.secret_env})
        place = (self._state_dir, name, secrets.token_hex(16), str(plan.port), await read_levels(host))
        watch, engine = PRELUDE + DETACH + WATCH, PRELUDE + ENGINE
        done = await host.run(
            ["sh", "-c", PRELUDE + DETACH + TOLD + LAUNCH, "sh", *place, watch, engine, *plan.argv],
            stdin=variables,
            timeout=LAUNCH_TIMEOUT_S,
        )
        launched = parse_launched(done.stdout)
        if launched is None:
            raise HostError(
                "the engine could not be started", evidence=last_words(done), advice="is the state folder writable?"
            )
        return launched

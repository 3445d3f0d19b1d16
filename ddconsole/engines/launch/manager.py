"""Shell for talking to a systemd manager, and what its refusals mean. Scripts are constants, as in `scripts.py`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError

if TYPE_CHECKING:
    from ddconsole.core.ports import Completed

MANAGER: Final = r"""
# $scope is `user` or `system`; over ssh the user's runtime folder may not be known
if [ "$scope" = user ] && [ -z "$XDG_RUNTIME_DIR" ]; then XDG_RUNTIME_DIR=/run/user/$(id -u); export XDG_RUNTIME_DIR; fi
ctl() { LC_ALL=C systemctl "--$scope" "$@"; }
shown() { ctl show "$unit" --property="$1" --value 2>/dev/null; }
has_systemd() { [ -d /run/systemd/system ] && command -v systemctl >/dev/null 2>&1; }
# does $unit still run, or remember, the invocation that the run in $run started?
is_ours() {
  [ -n "$unit" ] && [ -s "$run/invocation" ] && has_systemd || return 1
  [ "$(shown InvocationID)" = "$(cat "$run/invocation")" ]
}
# the main process's end as a shell tells it; nothing while it lives
main_status() {
  case $(shown ExecMainCode) in
    1) shown ExecMainStatus ;;
    2 | 3) echo $((128 + $(shown ExecMainStatus))) ;;
  esac
}
# TERM, wait, KILL by the manager; says in $cgroup where what is left would be, and in $forced whether KILL was needed
stop_unit() {
  is_ours || return 0
  cgroup=$(shown ControlGroup)
  case $cgroup in /?*) ;; *) cgroup= ;; esac
  ctl stop "$unit" >&2
  if [ "$(shown Result)" = timeout ]; then forced=yes; fi
  ctl reset-failed "$unit" 2>/dev/null
  return 0
}
"""
"""Needs `scope`, `unit` and `run`; with `unit` empty nothing is asked of any manager."""

NO_SYSTEMD: Final = "ddconsole: no systemd"
NOT_ROOT: Final = "ddconsole: not root"
"""What our own scripts print on stderr where they stop."""

PROCESS_INSTEAD: Final = "set `launcher: {kind: process}` in the profile: it needs nothing but a shell"

REFUSALS: Final = (
    (
        rf"{NO_SYSTEMD}|not been booted with systemd|systemd-run: (?:command )?not found",
        "the host runs no systemd",
        PROCESS_INSTEAD,
    ),
    (
        r"No medium found|XDG_RUNTIME_DIR not defined|Failed to connect to (?:user scope )?bus|to user manager",
        "the host's login has no systemd of its own, so there is nothing to start a user's unit with",
        f"`sudo loginctl enable-linger USER` on the host starts one; or {PROCESS_INSTEAD}",
    ),
    (
        rf"{NOT_ROOT}|[Ii]nteractive authentication required|Access denied|Permission denied|Operation not permitted",
        "this login may not manage the host's system units",
        "set `launcher: {scope: user}`, or `{kind: process}`, in the profile; or connect as root",
    ),
    (
        r"already (?:exists|loaded)|has a fragment file|File exists",
        "a unit or a run of that name is there already",
        "`ddconsole engine PROFILE status` shows ours; nothing was started",
    ),
    (
        r"Unknown assignment|Failed to parse service type|append:",
        "the host's systemd is too old for this launcher (240 is needed)",
        PROCESS_INSTEAD,
    ),
)
"""Pattern in the words of systemctl or systemd-run, what it means, what to do."""


def refusal(done: Completed, otherwise: str) -> HostError:
    """The error that a failed script's words mean; `otherwise` says what did not work when they are unknown."""
    evidence = tuple(line for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip())[-8:]
    for pattern, what, advice in REFUSALS:
        if any(re.search(pattern, line) for line in evidence):
            return HostError(what, evidence=evidence, advice=advice)
    return HostError(otherwise, evidence=evidence, advice="`journalctl -xe` on the host may say more")

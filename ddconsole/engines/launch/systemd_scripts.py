"""Shell scripts for engines under systemd; constants, as those in `scripts.py`."""

from __future__ import annotations

from typing import Final

from ddconsole.engines.launch.manager import NO_SYSTEMD, NOT_ROOT
from ddconsole.engines.launch.scripts import PREPARE, STARTED

ENDED: Final = r"""
run=${0%/*}
case $EXIT_CODE in
  exited) status=$EXIT_STATUS ;;
  killed | dumped)
    status=1
    while [ $status -lt 65 ] && [ "$(kill -l $status 2>/dev/null)" != "$EXIT_STATUS" ]; do status=$((status + 1)); done
    status=$((128 + status))
    ;;
  *) exit 0 ;;
esac
printf '%s\n' "$SERVICE_RESULT" >"$run/result"
printf '%s\n' "$status" >"$run/exit.new" && mv "$run/exit.new" "$run/exit"
"""
"""The unit's ExecStopPost: writes the main process's end as a shell tells it. The unit itself may be forgotten."""

START: Final = r"""
run=${0%/*}
printf '%s\n' "$INVOCATION_ID" >"$run/invocation"
if [ -f "$run/engine.log" ]; then
  echo "ddconsole: the engine's output goes to $run/engine.log"
  exec >>"$run/engine.log" 2>&1
fi
read -r token port <"$run/launch"
"""
"""Begins the file that the unit runs; after it come `set -- "$run" "$token" ARGV` and scripts.ENGINE."""

_NEEDS_SYSTEMD: Final = rf"""
if ! has_systemd || ! command -v systemd-run >/dev/null 2>&1; then echo "{NO_SYSTEMD}" >&2; exit 69; fi
"""

UNIT_LAUNCH: Final = (
    _NEEDS_SYSTEMD
    + PREPARE
    + r"""
unit=$1 log=$2 grace=$3 start=$4 ended=$5
printf 'systemd %s %s\n' "$unit" "$scope" >"$run/unit" || exit 73
printf '%s' "$ended" >"$run/ended" && printf '%s' "$start" >"$run/start" || exit 73
# what the login gives an engine: a manager gives its units another environment. What it means for one process stays out
(unset INVOCATION_ID JOURNAL_STREAM NOTIFY_SOCKET WATCHDOG_PID WATCHDOG_USEC LISTEN_FDS LISTEN_PID; export -p) \
  >"$run/login" || exit 73
if [ "$log" = file ]; then : >"$run/engine.log" || exit 73; fi
umask "$mask"
# systemd expands $ in a command line, and unquotes the words of a property
word() { printf %s "$1" | sed 's/\$/$$/g'; }
quoted() { printf '"%s"' "$(word "$1" | sed 's/[\\"]/\\&/g')"; }
user=
if [ "$scope" = system ] && [ "$(id -u)" != 0 ]; then user=$(id -un); fi
if ! LC_ALL=C systemd-run --quiet "--$scope" --no-ask-password "--unit=$unit" "--description=ddconsole engine $name" \
  --property=Type=exec --property=Restart=no --property=KillMode=control-group --property=SendSIGKILL=yes \
  --property="TimeoutStopSec=$grace" --property=IgnoreSIGPIPE=no --property=TasksMax=infinity \
  ${user:+"--property=User=$user"} --property="ExecStopPost=-/bin/sh $(quoted "$run/ended")" \
  /bin/sh "$(word "$run/start")" && [ ! -s "$run/exit" ]; then # one that died at once was started all the same
  rm -f "$run/env" "$run/login"; exit 70
fi
"""
    + STARTED
)
"""Needs MANAGER and `scope`. Arguments: those of PREPARE, unit, `file` or `journal`, grace, the files start and ended.

The unit is not collected: a failed one stays readable until it is stopped, beside the exit file that ENDED writes.
"""

CHECK: Final = (
    _NEEDS_SYSTEMD
    + r"""
# only asks: a name that no unit has
unit=ddconsole-none.service
if ! ctl show "$unit" --property=LoadState >/dev/null; then exit 70; fi
if [ "$scope" = user ]; then
  me=$(id -un)
  if [ ! -e "/var/lib/systemd/linger/$me" ] &&
    [ "$(timeout 5 loginctl show-user "$me" --property=Linger --value 2>/dev/null)" != yes ]; then
    printf 'no-linger\t%s\n' "$me"
  fi
fi
echo fine
"""
)
"""Whether the manager answers, and whether it outlives the login. Needs MANAGER and `scope`."""

LOOK: Final = (
    rf"""
if ! has_systemd; then echo "{NO_SYSTEMD}" >&2; exit 69; fi
"""
    + r"""
state=$(expand "$state_dir")
show_all() {
  ctl show "$unit" --property=LoadState --property=ActiveState --property=SubState --property=UnitFileState \
    --property=MainPID --property=InvocationID --property=ActiveEnterTimestamp --property=ControlGroup \
    --property=NRestarts
}
shown_lines=$(show_all) || exit 70
printf '%s\n' "$shown_lines"
pid=$(shown MainPID)
if [ "${pid:-0}" != 0 ]; then
  printf 'User=%s\n' "$(stat -c %U "/proc/$pid" 2>/dev/null)"
  printf 'Command=%s\n' "$(tr '\0\n' '  ' <"/proc/$pid/cmdline" 2>/dev/null | cut -c1-120)"
fi
cgroup=$(shown ControlGroup)
case $cgroup in /?*) printf 'Pids=%s\n' "$(in_cgroup | tr '\n' ' ')" ;; esac
if [ -f "$state/services/$unit/active" ]; then
  printf 'Taken=%s\n' "$(cat "$state/services/$unit/active")"
  name=$(cat "$state/services/$unit/run" 2>/dev/null)
  printf 'Run=%s\nRunInvocation=%s\n' "$name" "$(cat "$state/runs/$name/invocation" 2>/dev/null)"
fi
if [ -e "$(dropin)" ]; then printf 'DropIn=%s\n' "$(dropin)"; fi
"""
)
"""What is to be known of a service, as NAME=VALUE lines. Needs PRELUDE, MANAGER, MEMBERS, PLACES, `scope`, `unit`."""

PLACES: Final = r"""
runtime() { if [ "$scope" = user ]; then echo "$XDG_RUNTIME_DIR"; else echo /run; fi; }
units() { if [ "$scope" = user ]; then echo "$XDG_RUNTIME_DIR/systemd/user"; else echo /run/systemd/system; fi; }
dropin() { echo "$(units)/$unit.d/50-ddconsole.conf"; }
envfile() { echo "$(runtime)/ddconsole/$unit.env"; }
"""
"""Where the drop-in and its variables are: both are gone after a reboot, and then the service is its own again."""

_MAY_WRITE: Final = rf"""
if ! has_systemd; then echo "{NO_SYSTEMD}" >&2; exit 69; fi
if [ "$scope" = system ] && [ "$(id -u)" != 0 ]; then echo "{NOT_ROOT}" >&2; exit 77; fi
state=$(expand "$state_dir")
record=$state/services/$unit
"""

TAKE: Final = (
    _MAY_WRITE
    + r"""
if [ "$(shown LoadState)" != loaded ]; then echo "ddconsole: no unit $unit" >&2; exit 66; fi
umask 077
# what was there first is what is put back, however often this is called and wherever it was cut off
if [ ! -f "$record/active" ]; then
  mkdir -p "$record" || exit 73
  for one in $(shown RequiredBy) $(shown BoundBy) $(shown ConsistsOf); do
    if ctl is-active --quiet "$one"; then echo "$one"; fi
  done >"$record/along" || exit 73
  shown ActiveState >"$record/active.new" && mv "$record/active.new" "$record/active" || exit 73
fi
# by the service's own ExecStop and time-outs: our drop-in is not loaded yet, or the engine in it is ended already
if ! ctl stop "$unit"; then exit 70; fi
printf 'state\t%s\n' "$state"
printf 'env\t%s\n' "$(envfile)"
"""
)
"""Records what the service was and stops it. Needs PRELUDE, MANAGER, PLACES, `scope`, `unit`, `state_dir`."""

SERVICE_LAUNCH: Final = (
    _MAY_WRITE
    + PREPARE
    + r"""
text=$1 log=$2 ended=$3
if [ ! -f "$record/active" ]; then echo "ddconsole: $unit was not taken over" >&2; exit 70; fi
printf 'service %s %s\n' "$unit" "$scope" >"$run/unit" || exit 73
printf '%s' "$ended" >"$run/ended" || exit 73
if [ "$log" = file ]; then : >"$run/engine.log" || exit 73; fi
mkdir -p "$(runtime)/ddconsole" && mv "$run/env" "$(envfile)" || exit 73
printf '%s\n' "$name" >"$record/run" || exit 73
umask 022
mkdir -p "$(units)/$unit.d" && printf '%s' "$text" >"$(dropin).new" && mv "$(dropin).new" "$(dropin)" || exit 73
umask "$mask"
ctl daemon-reload || exit 70
ctl reset-failed "$unit" 2>/dev/null
# a main process that died at once fails the start, or is forgotten already: it was started all the same, and how it
# ended is written by another process, which may take a moment
ended_at_once() {
  tries=0
  while [ ! -s "$run/exit" ] && [ $tries -lt 30 ]; do tries=$((tries + 1)); nap; done
  [ -s "$run/exit" ]
}
if ! ctl start "$unit" && ! ended_at_once; then ctl status --no-pager --lines=5 "$unit" >&2; exit 70; fi
shown InvocationID >"$run/invocation"
pid=$(shown MainPID)
if [ "${pid:-0}" != 0 ]; then
  # the ranks of an engine inherit it; a main process without it was started by another drop-in than ours
  # (one that has just died has no environment to look at, and one that has just been forked not yet its own)
  tries=0
  while grep -q . "/proc/$pid/environ" 2>/dev/null && ! grep -q -F "DDCONSOLE_ATTEMPT=$token" "/proc/$pid/environ" \
    && [ $tries -lt 10 ]; do tries=$((tries + 1)); nap; done
  if grep -q . "/proc/$pid/environ" 2>/dev/null && ! grep -q -F "DDCONSOLE_ATTEMPT=$token" "/proc/$pid/environ"; then
    echo "ddconsole: another drop-in of $unit comes after ours" >&2; exit 70
  fi
  stat=$(stat_of "$pid")
else
  pid=$(shown ExecMainPID) stat=
  if [ "${pid:-0}" = 0 ] && ended_at_once; then pid=1; fi
fi
if [ "${pid:-0}" = 0 ]; then ctl status --no-pager --lines=5 "$unit" >&2; exit 70; fi
# no process has the start time 0, least of all process 1: what is dead stays dead
ticks=${stat##* }
printf '%s %s %s\n' "$pid" "${ticks:-0}" "$(boot_id)" >"$run/pid" || exit 73
told "$run" "$state"
"""
)
"""Writes the drop-in and starts the service with it. Arguments: those of PREPARE, the drop-in, log, the file ended.

Needs PRELUDE, MANAGER, PLACES, TOLD, `scope`, `unit`, `state_dir`.
"""

RESTORE: Final = (
    _MAY_WRITE
    + r"""
if [ ! -f "$record/active" ] && [ ! -e "$(dropin)" ]; then echo nothing; exit 0; fi
was=$(cat "$record/active" 2>/dev/null)
if [ -e "$(dropin)" ]; then
  ctl stop "$unit" || exit 70
  rm -f "$(dropin)" || exit 73
fi
# a restore that was cut off after the drop-in was gone still has these to do
rmdir "$(units)/$unit.d" 2>/dev/null
rm -f "$(envfile)"
ctl daemon-reload || exit 70
ctl reset-failed "$unit" 2>/dev/null
case $was in
  active | activating | reloading)
    ctl start --no-block "$unit" $(cat "$record/along" 2>/dev/null) || exit 70
    tries=0
    while [ $tries -lt 50 ]; do
      case $(shown ActiveState) in inactive | deactivating) tries=$((tries + 1)); nap ;; *) break ;; esac
    done
    case $(shown ActiveState) in active | activating | reloading) ;; *)
      ctl status --no-pager --lines=5 "$unit" >&2; exit 71 ;;
    esac
    ;;
esac
rm -rf "$record"
printf 'restored\t%s\n' "$(shown ActiveState)"
"""
)
"""Undoes TAKE and SERVICE_LAUNCH, from wherever they were cut off. Needs PRELUDE, MANAGER, PLACES, the variables."""

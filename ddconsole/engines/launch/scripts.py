"""Shell scripts that run on the host. They are constants: what varies comes as positional parameters, never as text.

POSIX sh (dash, bash, BusyBox). Where /proc is missing (macOS) small branches use ps and lsof; those are untested.
"""

from __future__ import annotations

from typing import Final

PLAIN: Final = """
LC_ALL=C; export LC_ALL
"""
"""For scripts whose output is read; never for one that becomes the engine."""

PRELUDE: Final = r"""
expand() { case $1 in "~") echo "$HOME" ;; "~/"*) echo "$HOME/${1#??}" ;; /*) echo "$1" ;; *) echo "$HOME/$1" ;; esac; }
nap() { sleep 0.1 2>/dev/null || sleep 1; }
# whole seconds that no jump of the clock changes
uptime_s() { if [ -r /proc/uptime ]; then read -r up _ </proc/uptime; echo "${up%%.*}"; else date +%s; fi; }
boot_id() { cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo -; }
# "STATE PPID PGRP SESSION TICKS" of a process, nothing when it is gone
stat_of() {
  if [ -d /proc/self ]; then
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${line##*) }
    [ $# -ge 20 ] || return 1
    state=$1 ppid=$2 pgrp=$3 session=$4; shift 19
    echo "$state $ppid $pgrp $session $1"
  else
    line=$(ps -o stat=,ppid=,pgid= -p "$1" 2>/dev/null) || return 1
    set -- $line "$(ps -o lstart= -p "$1" | cksum | cut -d' ' -f1)"
    echo "$1 $2 $3 $3 $4"
  fi
}
# is process $1, started at ticks $2 of boot $3, alive? a zombie is dead
alive() {
  [ "$(boot_id)" = "$3" ] || return 1
  found=$(stat_of "$1") || return 1
  case $found in Z* | X*) return 1 ;; esac
  [ "${found##* }" = "$2" ]
}
"""
"""Functions that the other scripts share."""

TOLD: Final = r"""
told() {
  read -r pid ticks boot <"$1/pid"
  read -r token port <"$1/launch"
  kind=process unit= scope=
  if [ -f "$1/unit" ]; then read -r kind unit scope <"$1/unit"; fi
  printf 'launched\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' \
    "$pid" "$ticks" "$boot" "$token" "$port" "$2" "$1" "$kind" "$unit" "$scope"
}
"""
"""Prints the record of the run in folder $1 of the state folder $2."""

ENGINE: Final = r"""
run=$1 token=$2; shift 2
# from here on only positional parameters count: the files that are read may set any variable
set -- "$run" "$token" "$(command -v rm)" "$(stat_of $$)" "$@"
printf '%s %s %s\n' "$$" "${4##* }" "$(boot_id)" >"$1/pid.new" && mv "$1/pid.new" "$1/pid" || exit 126
if [ -f "$1/login" ]; then . "$1/login"; fi
cd "$HOME" || exit 126
if [ -f "$1/env" ]; then . "$1/env"; fi
"$3" -f "$1/login" "$1/env"
DDCONSOLE_ATTEMPT=$2; export DDCONSOLE_ATTEMPT
shift 4
# a shell's background job ignores SIGINT and SIGQUIT; the engine must not inherit that
if env --default-signal=INT,QUIT true 2>/dev/null; then exec env --default-signal=INT,QUIT "$@"; fi
if command -v python3 >/dev/null 2>&1; then
  exec python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL); signal.signal(signal.SIGQUIT, signal.SIG_DFL)
os.execvp("env", ["env", *sys.argv[1:]])' "$@"
fi
exec env "$@"
"""
"""Becomes the engine: it notes who it is, takes its environment from files that it removes, and execs.

Arguments: run folder, token, then the argv. `login` is the login's environment, where a manager gave it another.
"""

DETACH: Final = r"""
detach() {
  if command -v setsid >/dev/null 2>&1; then exec setsid "$@"; fi
  if command -v python3 >/dev/null 2>&1; then
    exec python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' "$@"
  fi
  exec perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' "$@"
}
"""
"""Runs its arguments in a session of their own. Call it in the background only: it execs."""

WATCH: Final = r"""
run=$1 engine=$2 token=$3; shift 3
detach sh -c "$engine" ddconsole-engine "$run" "$token" "$@" </dev/null >>"$run/engine.log" 2>&1 &
wait $!
echo $? >"$run/exit.new" && mv "$run/exit.new" "$run/exit"
"""
"""Waits for the engine in a session of its own and writes its exit status; it carries no token and ends with it."""

PREPARE: Final = r"""
mask=$(umask); umask 077
state=$(expand "$1") name=$2 token=$3 port=$4 levels=$5; shift 5
run=$state/runs/$name
mkdir -p "$state/runs" && mkdir "$run" || exit 73 # a folder that is there is another launch's
printf '%s %s\n' "$token" "$port" >"$run/launch" || exit 73
cat >"$run/env" || exit 73
if [ -n "$levels" ]; then printf '%s' "$levels" >"$run/gpus" || exit 73; fi
"""
"""Makes the run's folder. Arguments: state folder, name, token, port, GPU levels before the launch.

Standard input: the environment and the secrets, as lines for `.` (mode 600, removed by the engine before it execs).
"""

STARTED: Final = r"""
tries=0
while [ ! -s "$run/pid" ]; do
  tries=$((tries + 1))
  if [ -f "$run/exit" ] || [ $tries -gt 100 ]; then
    cat "$run/engine.log" >&2; rm -f "$run/env" "$run/login"; exit 70
  fi
  nap
done
told "$run" "$state"
"""
"""Waits until the engine has noted who it is, and prints the record."""

LAUNCH: Final = (
    PREPARE
    + r"""
: >"$run/engine.log" || exit 73
watch=$1 engine=$2; shift 2
umask "$mask"
detach sh -c "$watch" ddconsole-watch "$run" "$engine" "$token" "$@" </dev/null >/dev/null 2>&1 &
"""
    + STARTED
)
"""Arguments: those of PREPARE, the watch script, the engine script, then the argv."""

FIND: Final = r"""
state=$(expand "$1") run=$(expand "$1")/runs/$2
if [ -s "$run/pid" ] && [ -s "$run/launch" ]; then told "$run" "$state"; fi
"""
"""Arguments: state folder, name."""

LIVENESS: Final = r"""
pid=$1 ticks=$2 boot=$3
if alive "$pid" "$ticks" "$boot"; then echo alive; exit; fi
tries=0
while [ "$(boot_id)" = "$boot" ] && [ ! -s "$run/exit" ] && [ $tries -lt 10 ]; do tries=$((tries + 1)); nap; done
status=$(cat "$run/exit" 2>/dev/null)
if [ -z "$status" ] && is_ours; then status=$(main_status); fi
printf 'dead\t%s\n' "$status"
"""
"""Arguments: pid, start ticks, boot id, run folder, scope, unit ("" for none). Needs MANAGER.

The status may be written a moment after the death; a unit that still ends its children knows it already.
"""

MEMBERS: Final = r"""
# pids that belong to the launch: its session, while that is provably ours, whatever carries its token, and what was
# below them when the stop began. Each is needed: a child may leave the session, and one that calls itself by another
# name (setproctitle, as SGLang's schedulers do) writes that name over its environment, the token with it
root_reused() {
  found=$(stat_of "$1") || return 1
  [ "${found##* }" != "$2" ]
}
in_session() {
  if [ -d /proc/self ]; then
    cat /proc/[0-9]*/stat 2>/dev/null | awk -v sid="$1" '{
      pid = $1; sub(/^.*\) /, ""); if ($4 == sid && $1 != "Z" && $1 != "X") print pid }'
  else
    ps -axo pid=,pgid=,stat= | awk -v sid="$1" '$2 == sid && $3 !~ /^Z/ { print $1 }'
  fi
}
with_token() {
  for file in $(grep -l -F "DDCONSOLE_ATTEMPT=$1" /proc/[0-9]*/environ 2>/dev/null); do
    one=${file#/proc/}; one=${one%/environ}
    case $(stat_of "$one") in Z* | X* | "") ;; *) echo "$one" ;; esac
  done
}
members() {
  [ "$(boot_id)" = "$3" ] || return 0
  { root_reused "$1" "$2" || in_session "$1"; with_token "$4"; in_cgroup; of_kin; } | sort -un
}
# "pid ticks" of the processes $@ and all below them by parentage
below() {
  [ -d /proc/self ] && [ $# -gt 0 ] || return 0
  cat /proc/[0-9]*/stat 2>/dev/null | awk -v roots="$*" '
    BEGIN { n = split(roots, word, " "); for (i = 1; i <= n; i++) mine[word[i]] = 1 }
    { pid = $1; sub(/^.*\) /, ""); parent[pid] = $2; ticks[pid] = $20 }
    END {
      do {
        more = 0
        for (pid in parent) if (!(pid in mine) && (parent[pid] in mine)) mine[pid] = more = 1
      } while (more)
      for (pid in mine) if (pid in ticks) print pid, ticks[pid] }'
}
# those of `kin`, as `below` printed it, that live
of_kin() {
  printf '%s\n' "$kin" | while read -r one ticks; do
    case $(stat_of "${one:--}") in Z* | X* | "") ;; *" $ticks") echo "$one" ;; esac
  done
}
# pids in the unit's cgroup; `cgroup` is empty unless the unit is provably ours
in_cgroup() {
  [ -n "$cgroup" ] || return 0
  for root in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
    if [ -d "$root$cgroup" ]; then find "$root$cgroup" -name cgroup.procs -exec cat {} + 2>/dev/null; fi
  done | sort -u | while read -r one; do
    case $(stat_of "$one") in Z* | X* | "") ;; *) echo "$one" ;; esac
  done
}
name_of() { tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null | cut -c1-120; }
"""
"""Who is left of a launch; needs `cgroup` and `kin`, which may be empty.

A pid that was reused by a stranger is never ours: its start ticks differ.
"""

STOP: Final = r"""
pid=$1 ticks=$2 boot=$3 token=$4 grace=$5
group=0 cgroup= kin=
root_reused "$pid" "$ticks" || group=$pid
forced=no
end() {
  if [ "$group" != 0 ]; then kill "-$1" "-$group" 2>/dev/null; fi
  for one in $2; do kill "-$1" "$one" 2>/dev/null; done
}
end_after() {
  deadline=$(($(uptime_s) + $2 + 1)) # whole seconds: rather one more than one less
  while :; do
    left=$(members "$pid" "$ticks" "$boot" "$token")
    [ -n "$left" ] || return 0
    if [ "$1" = KILL ]; then end KILL "$left"; fi
    [ "$(uptime_s)" -lt "$deadline" ] || return 1
    nap
  done
}
kin=$(below $(members "$pid" "$ticks" "$boot" "$token"))
stop_unit
left=$(members "$pid" "$ticks" "$boot" "$token")
if [ -n "$left" ]; then
  end TERM "$left"
  if ! end_after TERM "$grace"; then forced=yes; end_after KILL 10; fi
fi
printf 'forced\t%s\n' "$forced"
for one in $(members "$pid" "$ticks" "$boot" "$token"); do printf 'left\t%s\t%s\n' "$one" "$(name_of "$one")"; done
"""
"""Arguments: pid, start ticks, boot id, token, grace in seconds, run folder, scope, unit ("" for none).

The unit first, when it is still the invocation that we started; then TERM, wait, KILL until nobody of ours is left.
Needs MANAGER.
"""

LISTENERS: Final = r"""
port=$1 token=$2
if [ -r /proc/net/tcp ]; then
  hex=$(printf '%04X' "$port")
  sockets=$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
    awk -v port=":$hex" '$4 == "0A" && substr($2, length($2) - 4) == port { print $10 " " $8 }' | tr '\n' ' ')
  [ -n "$sockets" ] || exit 0
  ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v wanted="$sockets" '
    BEGIN { n = split(wanted, word, " "); for (i = 1; i < n; i += 2) inode["socket:[" word[i] "]"] = word[i + 1] }
    /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); pid = part[3]; next }
    $NF in inode { print pid, inode[$NF]; seen[$NF] = 1 }
    END { for (each in inode) if (!(each in seen)) print 0, inode[each] }' | sort -u |
    while read -r one uid; do
      ours=no
      if [ "$one" != 0 ] && grep -q -F "DDCONSOLE_ATTEMPT=$token" "/proc/$one/environ" 2>/dev/null; then ours=yes; fi
      set -- $(stat_of "$one")
      user=$(id -nu "$uid" 2>/dev/null || echo "uid $uid")
      printf 'listener\t%s\t%s\t%s\t%s\t%s\n' "$one" "${4:-0}" "$ours" "$user" \
        "$(tr '\0' ' ' <"/proc/$one/cmdline" 2>/dev/null | cut -c1-120)"
    done
else
  lsof -nP -iTCP:"$port" -sTCP:LISTEN -Fpun 2>/dev/null | awk '
    /^p/ { pid = substr($0, 2) } /^u/ { printf "listener\t%s\t%s\tno\tuid %s\t\n", pid, pid, substr($0, 2) }'
fi
"""
"""Who listens on port $1: pid (0: not visible to us), session, whether it carries token $2, user, command."""

USED_PORTS: Final = r"""
if [ -r /proc/net/tcp ]; then
  cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | awk '$2 ~ /:[0-9A-F]+$/ { print substr($2, length($2) - 3) }' | sort -u
else
  lsof -nP -iTCP -Fn 2>/dev/null | sed -n 's/^n.*:\([0-9]*\)$/\1/p; s/^n.*:\([0-9]*\)->.*/\1/p' |
    while read -r one; do printf '%04X\n' "$one"; done
fi
"""
"""Every local TCP port in use, in hexadecimal."""

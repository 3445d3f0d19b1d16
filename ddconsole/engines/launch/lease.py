"""One runner a host, for consoles on different machines: a lease in the state folder on the host.

`<state_dir>/lease` holds token, boot id, expiry and owner, a line each. It expires by the host's uptime, which no
clock jump changes and which begins anew at a boot. A console that renews it in time keeps it; one that slept too long
finds it in other hands, and then neither starts nor ends anything.

On a full disk there is no room for a new file; then the holder's bytes are written over in place. Where even that
cannot be done, whose it is can still be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import HostError, RefusedError, UnwritableLeaseError
from ddconsole.engines.launch.scripts import PLAIN, PRELUDE

if TYPE_CHECKING:
    from ddconsole.core.ports import Host

LIFE_S: Final = 60
"""Seconds after which a lease that was not renewed is anybody's."""

_LOCKED: Final = r"""
state=$(expand "$1") token=$2; shift 2
umask 077
# whoever may not look into the folder cannot tell whose it is; without the lock it is only read
made=$(mkdir -p "$state" 2>&1) || { printf '%s\n' "$made" >&2; case $made in *"Permission denied"*) exit 77 ;; esac; }
if [ -d "$state" ] && [ ! -x "$state" ]; then exit 77; fi
locked=no
if ( : 9>>"$state/lease.lock" ); then
  exec 9>>"$state/lease.lock"
  if command -v flock >/dev/null 2>&1; then flock -w 10 9 || exit 75; fi
  locked=yes
fi
now() { if [ -r /proc/uptime ]; then read -r up _ </proc/uptime; echo "${up%%.*}"; else date +%s; fi; }
holder= boot= expires=0 owner=
if [ -f "$state/lease" ] && [ ! -r "$state/lease" ]; then exit 77; fi
if [ -f "$state/lease" ]; then { read -r holder; read -r boot; read -r expires; read -r owner; } <"$state/lease"; fi
"""

_TAKE: Final = r"""
case $expires in "" | *[!0-9]*) expires=0 ;; esac
left=$((expires - $(now)))
if [ -n "$holder" ] && [ "$holder" != "$token" ] && [ "$boot" = "$(boot_id)" ] && [ "$left" -gt 0 ]; then
  printf 'held\t%s\t%s\n' "$left" "$owner"; exit
fi
lines() { printf '%s\n%s\n%s\n%s\n' "$token" "$(boot_id)" "$(($(now) + $1))" "$2"; }
written() {
  [ $locked = yes ] || return 1
  if lines "$2" "$1" >"$state/lease.new" && mv "$state/lease.new" "$state/lease"; then return; fi
  rm -f "$state/lease.new"
  [ "$holder" = "$token" ] && lines "$2" "$1" 1<>"$state/lease"
}
if written "$1" "$2"; then echo ours; exit; fi
echo unwritten
# a shell's own printf does not say why
dd if=/dev/zero of="$state/lease.new" bs=512 count=1 2>&1 | head -n 1 >&2
rm -f "$state/lease.new"
"""

_RELEASE: Final = r"""
if [ "$holder" = "$token" ]; then rm -f "$state/lease"; fi
"""


class HostLease:
    """A `Lease` in the profile's state folder on the host.

    Args:
        state_dir: the folder; `~` is the home there.
        token: the console's own secret; the same after a restart, so that it need not wait for itself.
        owner: who holds it, for people, in one line.
        life_s: seconds that it holds without being renewed.
    """

    def __init__(self, state_dir: str, token: str, owner: str, life_s: int = LIFE_S) -> None:
        self._place = (state_dir, token)
        self._owner = " ".join(owner.split())
        self._life_s = life_s

    async def take(self, host: Host) -> None:
        """Take it, or renew it.

        Raises:
            RefusedError: another console holds it.
            UnwritableLeaseError: nobody else holds it, and it cannot be written there.
            HostError: whose it is cannot be told.
        """
        script = PLAIN + PRELUDE + _LOCKED + _TAKE
        done = await host.run(["sh", "-c", script, "sh", *self._place, self._owner, str(self._life_s)])
        mark, *cells = done.stdout.strip().split("\t")
        if mark == "held" and len(cells) == 2:
            raise RefusedError(
                f"{host.name} is run by {cells[1]}",
                evidence=(f"its lease on the host holds for another {cells[0]} s, and is renewed while it runs",),
                advice="One runner a host: watch and edit the queue from here, or end that one first.",
            )
        if mark != "ours":
            error = UnwritableLeaseError if mark == "unwritten" else HostError
            raise error(
                "the lease on the host cannot be taken",
                evidence=tuple(line for line in done.stderr.splitlines() if line.strip())[-3:],
                advice="Is the launcher's `state_dir` writable, and is there room on its disk?",
            )

    async def release(self, host: Host) -> None:
        """Give it back, if it is still ours."""
        await host.run(["sh", "-c", PLAIN + PRELUDE + _LOCKED + _RELEASE, "sh", *self._place])

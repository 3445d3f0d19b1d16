"""Who held the port that an engine needed, and since when: the end of every false "ready"."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from ddconsole.core.errors import Failure
from ddconsole.core.progress import Phase
from ddconsole.engines.launch.ports import listeners

if TYPE_CHECKING:
    from ddconsole.core.ports import Host, Launched
    from ddconsole.core.progress import BootFacts

_BEGAN = r"""
[ -r "/proc/$1/stat" ] || exit 0
read -r up rest </proc/uptime
awk -v up="$up" -v hertz="$(getconf CLK_TCK 2>/dev/null || echo 100)" -v now="$(date +%s)" '
  { sub(/^.*\) /, ""); printf "%.0f\n", now - up + $20 / hertz }' "/proc/$1/stat" 2>/dev/null
"""
"""When process $1 began, in seconds since 1970."""

ADVICE: Final = "End that server, or give this profile another port; nothing was measured against it."


def names_port(line: str | None, port: int) -> bool:
    """Whether a line that tells of a failed bind means this port, and no internal one of the engine."""
    return line is not None and re.search(rf"\b{port}\b", line) is not None


async def began_at(host: Host, pid: int) -> datetime | None:
    """When a process of the host began, UTC to about a second; None when the host does not tell."""
    done = await host.run(["sh", "-c", _BEGAN, "sh", str(pid)], timeout=15)
    word = done.stdout.strip()
    return datetime.fromtimestamp(int(word), UTC) if word.isdecimal() else None


async def port_held(host: Host, launched: Launched, facts: BootFacts, who: str = "") -> Failure:
    """The failure of an engine whose port another process holds; `who` says it where the host cannot be asked."""
    strangers = [
        one
        for one in await listeners(host, launched.port, launched.token)
        if not one.carries_token and one.session != launched.pid
    ]
    evidence = [facts.bind_failed] if facts.bind_failed else []
    if strangers:
        holder = strangers[0]
        since = await began_at(host, holder.pid) if holder.pid else None
        when = f" since {since:%Y-%m-%d %H:%M:%S} UTC" if since is not None else ""
        what = f"port {launched.port} was held by {holder.words()}{when}"
        evidence.append(f"{holder.words()} listens on port {launched.port}; the engine that was started is pid "
                        f"{launched.pid}")  # fmt: skip
    elif facts.bind_failed:
        what = f"port {launched.port} was held by a process that is gone by now"
    else:
        what = f"the engine that was started does not answer on port {launched.port}: {who}"
    return Failure("port-held", what, tuple(evidence), ADVICE, Phase.READY.value)

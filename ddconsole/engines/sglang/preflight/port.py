"""Who holds the engine's port: SGLang finds that out only after all weights are loaded."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ddconsole.engines.sglang.preflight.sections import rows, shown, whole

if TYPE_CHECKING:
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "port"


def check_port(port: int, found: Sections, report: Report) -> None:
    """Free, or held by whom and since when."""
    lines = found.get("port", [])
    now = whole(found.get("clock", [""])[0] if found.get("clock") else None)
    started = {row[0]: whole(row[1]) for row in rows(lines, "started", 2)}
    ours = {row[0] for row in rows(lines, "ours", 1)}
    holders = rows(lines, "listener", 5)
    if not holders:
        report.see(TOPIC, f"port {port}", "free")
        return
    report.see(TOPIC, f"port {port}", "held")
    for pid, _, _, user, command in holders:
        who = _who(pid, user, command, _since(started.get(pid), now))
        if pid in ours:
            report.block("port-held", f"port {port} is held by an engine of ddconsole: {who}",
                         "stop it with `ddconsole engine PROFILE stop`")  # fmt: skip
        elif pid == "0":
            report.block("port-held", f"port {port} is held by {who}",
                         f"`ss -ltnp sport = :{port}` as root names it; or set another engine.port")  # fmt: skip
        else:
            report.block("port-held", f"port {port} is held by {who}",
                         "end it, or set another engine.port (auto takes a free one)")  # fmt: skip


def _who(pid: str, user: str, command: str, since: str) -> str:
    if pid == "0":
        return f"a process of {shown(user, 40)} of which this login can read nothing: no pid, no command"
    parts = [shown(user, 40), shown(command, 100)]
    return f"pid {pid} ({', '.join(filter(None, parts))}){since}"


def _since(started: int | None, now: int | None) -> str:
    """` since 2026-12-02 09:01 UTC (4 h)`; nothing when the host does not tell."""
    if started is None or not 0 < started < 2**33:
        return ""
    age = "" if now is None or now < started else f" ({_span(now - started)})"
    return f" since {datetime.fromtimestamp(started, UTC).strftime('%Y-%m-%d %H:%M UTC')}{age}"


def _span(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    return f"{seconds // 3600} h" if seconds < 172_800 else f"{seconds // 86_400} days"

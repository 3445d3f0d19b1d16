"""The machine itself: kernel, CPU, its governor, and what the kernel's log says of the cards."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ddconsole.engines.sglang.preflight.sections import rows, shown, value

if TYPE_CHECKING:
    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "machine"

XIDS: Final = {
    13: ("note", "an exception in a program's kernel"),
    31: ("note", "a program read memory that is not its own"),
    43: ("note", "a program's channel was stopped"),
    45: ("note", "a program was ended while it computed"),
    48: ("warn", "memory error that ECC could not correct"),
    62: ("warn", "the card's own controller halted"),
    63: ("warn", "a row of memory was replaced"),
    64: ("warn", "a row of memory could not be replaced"),
    74: ("warn", "an error of the link"),
    79: ("warn", "the card has fallen off the bus"),
    94: ("warn", "memory error, contained in one program"),
    95: ("warn", "memory error, not contained: reset the card"),
    119: ("warn", "the card's firmware does not answer"),
    120: ("warn", "an error of the card's firmware"),
}
"""Xid numbers by how grave they are and what they usually mean (NVIDIA's Xid catalogue, in few words)."""

_XID: Final = re.compile(r"NVRM: Xid \(PCI:([0-9A-Fa-f:.]{1,16})\): (\d{1,4})\b", re.ASCII)


def check_machine(found: Sections, tree: bool, report: Report) -> None:
    """Kernel, CPU and governor."""
    lines = found.get("system", [])
    facts = {name: value(lines, name) or None for name in ("kernel", "os", "cpu", "cpus", "numa", "driver")}
    governors = dict(rows(lines, "governor", 2))
    report.facts["machine"] = facts | {"governors": governors}
    report.see(TOPIC, "kernel", shown(", ".join(filter(None, (facts["kernel"], facts["os"])))) or "not told")
    cpus = f"{facts['cpus']} CPUs" if facts["cpus"] else "CPUs not counted"
    nodes = (
        f"{facts['numa']} NUMA node{'s' if facts['numa'] != '1' else ''}" if facts["numa"] not in (None, "0") else ""
    )
    report.see(TOPIC, "CPU", shown(", ".join(filter(None, (facts["cpu"], cpus, nodes)))))
    slow = sorted(name for name in governors if name != "performance")
    report.see(TOPIC, "governor", ", ".join(governors) if governors else "not told by this kernel")
    if slow and tree:
        report.note("cpu-governor", f"the CPU's governor is {', '.join(slow)}",
                    "the tree is built on the CPU each step; `performance` keeps its clock up")  # fmt: skip


def check_kernel_log(found: Sections, report: Report) -> None:
    """Xid errors of the last days, each kind once."""
    lines = found.get("kernel-log", [])
    if "unreadable" in lines:
        report.see(TOPIC, "Xid errors", "the kernel's log may not be read by this login")
        return
    seen: dict[tuple[int, str], list[str]] = {}
    for line in lines:
        if match := _XID.search(line):
            seen.setdefault((int(match[2]), match[1]), []).append(shown(line, 160))
    report.facts["xids"] = [{"xid": xid, "card": card, "count": len(each)} for (xid, card), each in seen.items()]
    report.see(TOPIC, "Xid errors", f"{sum(map(len, seen.values()))} in the kernel's log" if seen else "none")
    for (xid, card), each in seen.items():
        level, meaning = XIDS.get(xid, ("warn", "see NVIDIA's Xid catalogue"))
        text = f"Xid {xid} on card {card}{f', {len(each)} times' if len(each) > 1 else ''}: {meaning}"
        say = report.warn if level == "warn" else report.note
        say("xid", text, f"last: {each[-1]}")

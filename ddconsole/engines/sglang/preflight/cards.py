"""The cards: are they enough, does the driver answer, and who else is on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.gpu import GPU_IS_LOST, parse_number
from ddconsole.core.gpu_list import bad_field
from ddconsole.core.gpu_problem import problem_of
from ddconsole.core.gpu_unified import SOURCE, host_memory, is_integrated
from ddconsole.engines.sglang.preflight.sections import rows, shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddconsole.engines.sglang.preflight.report import Report
    from ddconsole.engines.sglang.preflight.sections import Sections

TOPIC = "cards"
NAMED: Final = 3
"""Cards that are named one by one in a message."""

STRAY_MIB: Final = 1024
"""Memory in use without a process that can be seen, from which it is said."""

FATAL: Final = {
    "driver-mismatch": "the driver's kernel module and library differ: reload the module or reboot the host",
    "driver-down": "nvidia-smi cannot reach the driver: is it loaded? see dmesg",
    "no-gpu": "the driver shows no card to this login",
    "nvml": "the driver does not answer: a container may have lost its devices; start it again",
}
"""What of nvidia-smi's error texts means that no engine can use a card."""


@dataclass(frozen=True, slots=True)
class Card:
    """One card as the query tells it; None is "not told"."""

    index: int
    cells: Mapping[str, str] = field(default_factory=dict)

    def text(self, name: str) -> str | None:
        """A cell of words."""
        cell = self.cells.get(name, "")
        return None if not cell or cell.startswith("[") or cell == "N/A" else shown(cell, 100)

    def number(self, name: str) -> float | None:
        """A cell with a number."""
        return parse_number(self.cells.get(name, ""), 0, 1e8)

    @property
    def shares_host_memory(self) -> bool:
        """Whether it is a whole chip without memory of its own, and tells none."""
        told = [number for name in ("memory.total", "memory.used") if (number := self.number(name)) is not None]
        return not told and self.text("mig.mode.current") != "Enabled" and is_integrated(self.text("name"))

    def to_json(self) -> dict[str, Any]:
        """As it is kept with a result."""
        words = ("uuid", "name", "compute_cap", "driver_version", "mig.mode.current", "persistence_mode")
        numbers = ("memory.total", "memory.used", "pcie.link.gen.current", "pcie.link.gen.max",
                   "pcie.link.width.current", "pcie.link.width.max", "power.limit",
                   "clocks.sm", "clocks.mem", "clocks.max.sm")  # fmt: skip
        told: dict[str, Any] = {name: self.text(name) for name in words}
        return {"index": self.index} | told | {name: self.number(name) for name in numbers}


def read_cards(lines: Sequence[str], fields: Sequence[str]) -> tuple[list[Card], list[str]]:
    """The rows that are cards, and the lines that are not."""
    cards: dict[int, Card] = {}
    other: list[str] = []
    for line in lines:
        cells = [cell.strip() for cell in line.split(",")]
        if GPU_IS_LOST in cells:
            other.append(f"card {cells[0]}: GPU is lost")
        elif len(cells) == len(fields) and cells[0].isascii() and cells[0].isdigit() and len(cells[0]) <= 4:
            card = Card(int(cells[0]), dict(zip(fields, cells, strict=True)))
            cards.setdefault(card.index, card)
        elif line.strip():
            other.append(line)
    return [cards[index] for index in sorted(cards)], other


def refused_field(found: Sections) -> str | None:
    """A field of the query that this driver does not know."""
    return next((name for line in found.get("cards", []) if (name := bad_field(line)) is not None), None)


def check_cards(
    found: Sections, fields: Sequence[str], needed: int, report: Report, memory: Mapping[str, int] | None = None
) -> list[Card]:
    """Whether the driver answers and shows enough cards; returns them.

    `memory` is the host's, in bytes by its names in /proc/meminfo, for cards that have none of their own.
    """
    if "missing" in found:
        report.see(TOPIC, "nvidia-smi", "not on this host")
        report.note("no-nvidia-smi", "the host has no nvidia-smi", "cards are not watched, foreign processes not seen")
        return []
    cards, other = read_cards(found.get("cards", []), fields)
    report.facts["cards"] = [card.to_json() for card in cards]
    if cards:
        _tell_cards(cards, report)
        _tell_unified(cards, memory or {}, report)
    elif not other:
        other = ["nvidia-smi printed nothing"]
    for line in dict.fromkeys(other):
        _say_problem(line, report)
    if cards and needed > len(cards):
        report.block("too-few-cards", f"the engine wants {needed} cards and {len(cards)} answer",
                     "set arg.tp-size to what is there, or bring the lost card back")  # fmt: skip
    _check_mig(cards, report)
    return cards


def _tell_cards(cards: list[Card], report: Report) -> None:
    kinds: dict[str, int] = {}
    for card in cards:
        kinds[card.text("name") or "a card without a name"] = kinds.get(card.text("name") or "", 0) + 1
    report.see(TOPIC, "cards", ", ".join(f"{count} × {name}" for name, count in kinds.items()))
    total = [number for card in cards if (number := card.number("memory.total")) is not None]
    used = [number for card in cards if (number := card.number("memory.used")) is not None]
    if total and used:
        report.see(TOPIC, "card memory", f"{sum(used):,.0f} MiB in use of {sum(total):,.0f} MiB")


def _tell_unified(cards: list[Card], memory: Mapping[str, int], report: Report) -> None:
    """The memory of chips that share the host's. MIG and lost cards, which tell none either, are no such chips."""
    shared = [card for card in cards if card.shares_host_memory]
    if not shared:
        return
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    host = host_memory(*(None if amount is None else amount // 1024 for amount in (total, available)))
    told = {"source": SOURCE, "total_mib": host.total_mib, "used_mib": host.used_mib} if host else None
    report.facts["unified_memory"] = {"cards": [card.index for card in shared], "memory": told}
    text = "the host's, which could not be read"
    if host is not None:
        text = f"{host.used_mib:,} MiB in use of {host.total_mib:,} MiB, the host's ({SOURCE})"
    report.see(TOPIC, "card memory", f"unified memory: {text}")


def _say_problem(line: str, report: Report) -> None:
    problem = problem_of(line)
    if line.startswith("NVML library version"):
        return  # the second line of a driver mismatch
    if problem.code in FATAL:
        report.block(problem.code, f"nvidia-smi says: {problem.text}", FATAL[problem.code])
    elif problem.code == "device-lost":
        report.warn("card-lost", f"nvidia-smi says: {problem.text}", "reset the card or reboot; dmesg has its Xid")
    else:
        report.warn("nvidia-smi", f"nvidia-smi says: {problem.text}", "the cards could not all be read")


def _check_mig(cards: list[Card], report: Report) -> None:
    split = [card.index for card in cards if card.text("mig.mode.current") == "Enabled"]
    if split:
        where = ", ".join(map(str, split))
        report.warn("mig", f"MIG is on for card {where}: an engine gets an instance, not the card",
                    "tensor parallelism over instances does not work; turn it off, or name one by UUID")  # fmt: skip


def check_apps(found: Sections, cards: list[Card], report: Report) -> None:
    """Processes that hold GPU memory: shown with their owner, never touched."""
    groups: dict[tuple[str, str], list[list[str]]] = {}
    for row in rows(found.get("apps", []), "app", 7):
        pid, _, _, user, session, _, _ = (cell.strip() for cell in row)
        groups.setdefault((user, session if session not in ("", "0") else f"pid {pid}"), []).append(row)
    report.facts["gpu_processes"] = [_holder(group) for group in groups.values()]
    if groups:
        count = len({row[0] for group in groups.values() for row in group})
        report.see(TOPIC, "in use", f"{count} process{'es' if count > 1 else ''}")
    for group in groups.values():
        holder = _holder(group)
        text = f"{holder['who']} holds {holder['memory']} on {holder['cards']} card{'s' if holder['cards'] > 1 else ''}"
        if holder["ours"]:
            report.warn("gpu-ours", f"an engine of ddconsole is on the cards: {text}",
                        "a run keeps it or ends it by itself; `ddconsole engine PROFILE stop` ends it now")  # fmt: skip
        else:
            report.warn("gpu-busy", text, "it is left alone; free the cards if they are needed")
    if not groups and cards:
        report.see(TOPIC, "in use", "no process")
        _check_stray(cards, report)


def _holder(group: list[list[str]]) -> dict[str, Any]:
    """Who it is in words: the first process stands for its session."""
    pid, _, _, user, _, _, command = (cell.strip() for cell in group[0])
    pids = {row[0] for row in group}
    others = f" and {len(pids) - 1} more of its session" if len(pids) > 1 else ""
    who = ", ".join(filter(None, (shown(user, 40), shown(command, 80))))
    known = [int(row[2]) for row in group if row[2].strip().isdigit()]
    return {
        "who": f"pid {pid} ({who}){others}",
        "memory": f"{sum(known):,} MiB" if known else "memory",
        "cards": len({row[1].strip() for row in group}),
        "ours": any(row[5].strip() == "yes" for row in group),
    }


def _check_stray(cards: list[Card], report: Report) -> None:
    held = {card.index: used for card in cards if (used := card.number("memory.used") or 0) >= STRAY_MIB}
    if held:
        where = ", ".join(f"card {index} {used:,.0f} MiB" for index, used in list(held.items())[:NAMED])
        more = f" and {len(held) - NAMED} more" if len(held) > NAMED else ""
        report.warn("gpu-memory-held", f"memory is in use without a process that can be seen: {where}{more}",
                    "another container, another user, or a process whose memory the driver still frees")  # fmt: skip

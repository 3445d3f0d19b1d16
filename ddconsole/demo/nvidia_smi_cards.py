"""The eight cards of the demo host at one moment, by what its engines say they do.

An engine tells it through `$DDCONSOLE_DEMO_HOME/run/engine-PID.json`:
`{"pid", "ranks": [pid x8], "memory_mib": [x8], "utilization": [x8], "power_w": [x8]}`. What a dead process said is
ignored. The noise on top is a function of card and second, so that two readings in one second agree.
"""

from __future__ import annotations

import json
import os
from typing import NamedTuple

CARDS = 8
NAME = "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"
DRIVER, CUDA = "580.95.05", "13.0"
MEMORY_MIB, RESERVED_MIB, IDLE_MEMORY_MIB = 97_887, 641, 2
POWER_LIMIT_W, IDLE_POWER_W = 300.0, 30.0
IDLE_CELSIUS, FULL_CELSIUS = 34, 78
IDLE_MHZ, BUSY_MHZ, MAX_MHZ = 180, 2_287, 3_090
BUS = (0x01, 0x21, 0x41, 0x61, 0x81, 0xA1, 0xC1, 0xE1)


class App(NamedTuple):
    """A process on a card."""

    pid: int
    card: int
    memory_mib: int


class Card:
    """One card at one moment."""

    def __init__(self, index: int, memory: float, utilization: float, power: float, second: int) -> None:
        self.index = index
        busy = utilization > 0
        self.utilization = round(min(100, max(1, utilization + _noise(index, second, 3)))) if busy else 0
        self.used = min(MEMORY_MIB - RESERVED_MIB, IDLE_MEMORY_MIB + round(memory))
        self.power = min(POWER_LIMIT_W, max(IDLE_POWER_W, power) + _noise(index, second, 4 if busy else 1))
        heat = (self.power - IDLE_POWER_W) / (POWER_LIMIT_W - IDLE_POWER_W)
        self.celsius = round(IDLE_CELSIUS + (FULL_CELSIUS - IDLE_CELSIUS) * max(0.0, heat) + index % 3)
        self.awake = busy or memory > 0
        self.mhz = (BUSY_MHZ - 15 * ((index + second) % 4)) if self.awake else IDLE_MHZ
        self.bandwidth = round(self.utilization * 0.66)


def uuid(index: int) -> str:
    """A card's name for ever, as the driver writes it."""
    return f"GPU-{index:08x}-dd7e-4c0d-8e6f-0123456789ab"


def bus_id(index: int) -> str:
    """PCI domain, bus, device, function."""
    return f"00000000:{BUS[index]:02X}:00.0"


def _noise(index: int, second: int, width: float) -> float:
    """A small number in ±width that depends on card and second alone."""
    mixed = (index * 2_654_435_761 + second * 40_503 + 12_345) & 0xFFFFFFFF
    mixed = (mixed ^ (mixed >> 15)) * 2_246_822_519 & 0xFFFFFFFF
    return ((mixed >> 8) % 2001 / 1000 - 1) * width


def engine_states(home: str) -> list[dict[str, object]]:
    """The states of engines whose root process lives; a file that cannot be read is being replaced or is no state."""
    run = os.path.join(home, "run")
    try:
        names = sorted(os.listdir(run))
    except OSError:
        return []
    found = []
    for name in names:
        if name.startswith("engine-") and name.endswith(".json"):
            state = _read_state(os.path.join(run, name))
            if state is not None and is_alive(state.get("pid")):
                found.append(state)
    return found


def _read_state(path: str) -> dict[str, object] | None:
    try:
        with open(path, encoding="utf-8") as file:
            state = json.load(file)
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def is_alive(pid: object) -> bool:
    """Whether a process runs; a zombie holds no memory and counts as dead."""
    if not isinstance(pid, int) or pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return True  # no /proc here


def process_name(pid: int) -> str:
    """The program of a process, or what nvidia-smi says when it cannot see it."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[0].decode("utf-8", "replace") or "[Not Found]"
    except OSError:
        return "[Not Found]"


def _at(state: dict[str, object], key: str, index: int) -> float:
    values = state.get(key)
    value = values[index] if isinstance(values, list) and index < len(values) else 0
    return float(value) if isinstance(value, int | float) else 0.0


def read_cards(home: str, second: int) -> tuple[list[Card], list[App]]:
    """All cards, and the processes on them."""
    totals = [[0.0, 0.0, 0.0] for _ in range(CARDS)]
    apps = []
    for state in engine_states(home):
        for index in range(CARDS):
            rank = int(_at(state, "ranks", index))
            if not is_alive(rank):
                continue
            memory = _at(state, "memory_mib", index)
            total = totals[index]
            total[0] += memory
            total[1] = max(total[1], _at(state, "utilization", index))
            total[2] = max(total[2], _at(state, "power_w", index))
            if memory > 0:
                apps.append(App(rank, index, round(memory)))
    return [Card(index, t[0], t[1], t[2], second) for index, t in enumerate(totals)], sorted(
        apps, key=lambda app: app.card
    )

"""The fields that `nvidia-smi --query-…` knows on the demo host: name, unit, value.

The unit stands in the header and after each value, unless `nounits` is asked for.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ddconsole.demo import nvidia_smi_cards as cards
from ddconsole.demo.nvidia_smi_cards import bus_id, process_name, uuid

if TYPE_CHECKING:
    from collections.abc import Callable

    from ddconsole.demo.nvidia_smi_cards import App, Card

FIELDS: dict[str, tuple[str, Callable[[Card], object]]] = {
    "timestamp": ("", lambda c: time.strftime("%Y/%m/%d %H:%M:%S") + f".{int(time.time() * 1000) % 1000:03d}"),
    "count": ("", lambda c: cards.CARDS),
    "driver_version": ("", lambda c: cards.DRIVER),
    "index": ("", lambda c: c.index),
    "name": ("", lambda c: cards.NAME),
    "gpu_name": ("", lambda c: cards.NAME),
    "uuid": ("", lambda c: uuid(c.index)),
    "gpu_uuid": ("", lambda c: uuid(c.index)),
    "serial": ("", lambda c: "[N/A]"),
    "pci.bus_id": ("", lambda c: bus_id(c.index)),
    "gpu_bus_id": ("", lambda c: bus_id(c.index)),
    "compute_cap": ("", lambda c: "12.0"),
    "compute_mode": ("", lambda c: "Default"),
    "persistence_mode": ("", lambda c: "Enabled"),
    "mig.mode.current": ("", lambda c: "[N/A]"),
    "ecc.mode.current": ("", lambda c: "Disabled"),
    "ecc.errors.uncorrected.volatile.total": ("", lambda c: "[N/A]"),
    "fan.speed": ("%", lambda c: 30 + c.utilization // 4),
    "pstate": ("", lambda c: "P1" if c.awake else "P8"),
    "utilization.gpu": ("%", lambda c: c.utilization),
    "utilization.memory": ("%", lambda c: c.bandwidth),
    "memory.total": ("MiB", lambda c: cards.MEMORY_MIB),
    "memory.reserved": ("MiB", lambda c: cards.RESERVED_MIB),
    "memory.used": ("MiB", lambda c: c.used),
    "memory.free": ("MiB", lambda c: cards.MEMORY_MIB - cards.RESERVED_MIB - c.used),
    "temperature.gpu": ("", lambda c: c.celsius),
    "temperature.memory": ("", lambda c: "N/A"),
    "power.draw": ("W", lambda c: f"{c.power:.2f}"),
    "power.draw.average": ("W", lambda c: f"{c.power:.2f}"),
    "power.draw.instant": ("W", lambda c: f"{c.power:.2f}"),
    "power.limit": ("W", lambda c: f"{cards.POWER_LIMIT_W:.2f}"),
    "power.default_limit": ("W", lambda c: f"{cards.POWER_LIMIT_W:.2f}"),
    "enforced.power.limit": ("W", lambda c: f"{cards.POWER_LIMIT_W:.2f}"),
    "power.max_limit": ("W", lambda c: f"{cards.POWER_LIMIT_W:.2f}"),
    "clocks.current.sm": ("MHz", lambda c: c.mhz),
    "clocks.sm": ("MHz", lambda c: c.mhz),
    "clocks.current.graphics": ("MHz", lambda c: c.mhz),
    "clocks.gr": ("MHz", lambda c: c.mhz),
    "clocks.current.memory": ("MHz", lambda c: 14_001 if c.awake else 405),
    "clocks.mem": ("MHz", lambda c: 14_001 if c.awake else 405),
    "clocks.max.sm": ("MHz", lambda c: cards.MAX_MHZ),
    "clocks.max.graphics": ("MHz", lambda c: cards.MAX_MHZ),
    "clocks.max.memory": ("MHz", lambda c: 14_001),
    "clocks_event_reasons.active": ("", lambda c: "0x0000000000000000" if c.awake else "0x0000000000000001"),
    "clocks_throttle_reasons.active": ("", lambda c: "0x0000000000000000" if c.awake else "0x0000000000000001"),
    "clocks_event_reasons.sw_power_cap": ("", lambda c: "Not Active"),
    "clocks_event_reasons.hw_slowdown": ("", lambda c: "Not Active"),
    "clocks_event_reasons.hw_thermal_slowdown": ("", lambda c: "Not Active"),
    "clocks_event_reasons.sw_thermal_slowdown": ("", lambda c: "Not Active"),
    "pcie.link.gen.current": ("", lambda c: 5 if c.awake else 1),
    "pcie.link.gen.gpucurrent": ("", lambda c: 5 if c.awake else 1),
    "pcie.link.gen.max": ("", lambda c: 5),
    "pcie.link.gen.gpumax": ("", lambda c: 5),
    "pcie.link.width.current": ("", lambda c: 16),
    "pcie.link.width.max": ("", lambda c: 16),
}

APP_FIELDS: dict[str, tuple[str, Callable[[App], object]]] = {
    "timestamp": ("", lambda a: time.strftime("%Y/%m/%d %H:%M:%S")),
    "pid": ("", lambda a: a.pid),
    "process_name": ("", lambda a: process_name(a.pid)),
    "name": ("", lambda a: process_name(a.pid)),
    "gpu_name": ("", lambda a: cards.NAME),
    "gpu_uuid": ("", lambda a: uuid(a.card)),
    "gpu_bus_id": ("", lambda a: bus_id(a.card)),
    "used_memory": ("MiB", lambda a: a.memory_mib),
    "used_gpu_memory": ("MiB", lambda a: a.memory_mib),
}

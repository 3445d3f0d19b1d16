"""Text that nvidia-smi prints where rows should be, by what it means."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class GpuProblem:
    """Why there are no rows, or why one was refused. `code` is a stable word, `text` is nvidia-smi's own."""

    code: str
    text: str
    advice: str = ""

    def __str__(self) -> str:
        return f"{self.text}: {self.advice}" if self.advice else self.text


PROBLEMS: Final = (
    ("driver-mismatch", r"Driver/library version mismatch", "reload the driver or reboot the host"),
    ("driver-down", r"couldn't communicate with the NVIDIA driver", "is the driver loaded? see dmesg on the host"),
    ("no-gpu", r"No devices were found|No supported GPUs were found", "no card is visible to this login"),
    ("device-lost", r"Unable to determine the device handle|GPU is lost", "a card is lost: see dmesg for Xid errors"),
    ("nvml", r"Failed to initialize NVML", "the container may have lost its devices; it can come back"),
    ("bad-field", r"is not a valid field to query", "this driver does not know one of the queried fields"),
    ("no-nvidia-smi", r"nvidia-smi.*not found|No such file or directory", "no nvidia-smi on this host's PATH"),
)
"""Error text in place of rows: code, pattern, advice."""


def problem_of(text: str) -> GpuProblem:
    """Name a line that is not a row."""
    for code, pattern, advice in PROBLEMS:
        if re.search(pattern, text):
            return GpuProblem(code, shown(text), advice)
    return GpuProblem("unreadable", shown(text) or "unreadable output", "this is no row of nvidia-smi")


def shown(text: str, limit: int = 200) -> str:
    """Text of the host as it may be shown: printable, and cut."""
    return "".join(letter for letter in text if letter.isprintable()).strip()[:limit]

"""What the checks write into: findings, facts for the record, and the same in words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ddconsole.core.ports import Checked, Finding, Preflight

if TYPE_CHECKING:
    from collections.abc import Iterable

ORDER: Final = {"block": 0, "warn": 1, "note": 2}


@dataclass(slots=True)
class Report:
    """Grows while the checks run."""

    findings: list[Finding] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    checked: list[Checked] = field(default_factory=list)

    def block(self, code: str, text: str, advice: str = "") -> None:
        """A launch would fail, or measure something else."""
        self.findings.append(Finding("block", code, text, advice))

    def warn(self, code: str, text: str, advice: str = "") -> None:
        """A launch may go on; the user should know before it is paid for."""
        self.findings.append(Finding("warn", code, text, advice))

    def note(self, code: str, text: str, advice: str = "") -> None:
        """Worth knowing beside the numbers."""
        self.findings.append(Finding("note", code, text, advice))

    def take(self, findings: Iterable[Finding]) -> None:
        """Findings that a rule has made."""
        self.findings.extend(findings)

    def see(self, topic: str, name: str, text: str) -> None:
        """What was looked at, in words."""
        self.checked.append(Checked(topic, name, text))

    def done(self) -> Preflight:
        """Everything, what blocks first."""
        ordered = sorted(self.findings, key=lambda finding: ORDER[finding.level])
        return Preflight(tuple(ordered), self.facts, tuple(self.checked))

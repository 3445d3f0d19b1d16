"""The exception tree, and failures as values.

    DdconsoleError
    ├── UsageError           bad usage, spec or profile            exit code 2
    │   ├── ProfileError     a profile that cannot be read, with file, line and key
    │   └── SpecError        a spec that cannot be read, with its column
    ├── RefusedError         stale, running, held by another, read-only   exit code 3
    ├── DuplicateError       the same effective work is already there     exit code 4
    ├── UnreachableError     the host cannot be reached            exit code 5
    │   └── AnswerNeededError a person has to answer first: a passphrase, a password, a code, an unknown host key
    ├── HostError            a command on the host could not be run, or answered nonsense
    │   └── UnwritableLeaseError nobody else holds the host, but our lease cannot be written there
    └── StoreError           the store cannot be opened or written    exit code 74

Expected outcomes of an experiment are values (`Failure`), not exceptions. An exception that is not in this
tree is a bug of ours (exit code 70).
"""

from __future__ import annotations

from dataclasses import dataclass, field


class DdconsoleError(Exception):
    """Something the user can act on: what happened, the evidence, and what to do."""

    kind = "error"
    exit_code = 1

    def __init__(self, what: str, *, evidence: tuple[str, ...] = (), advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.evidence = evidence
        self.advice = advice

    def to_json(self) -> dict[str, object]:
        """The `error` object of every `--json` answer."""
        return {
            "kind": self.kind,
            "what": self.what,
            "evidence": list(self.evidence),
            "advice": self.advice,
            "column": None,
        }


class UsageError(DdconsoleError):
    """Bad usage: the command cannot mean anything as it was typed."""

    kind = "usage"
    exit_code = 2


class ProfileError(UsageError):
    """A profile that cannot be read. `what` names file, line and key."""

    kind = "profile"


class SpecError(UsageError):
    """A spec that cannot be read. `column` counts from 1 in the words joined by one space."""

    kind = "spec"

    def __init__(self, what: str, *, column: int, text: str = "", advice: str = "") -> None:
        super().__init__(what, evidence=(text,) if text else (), advice=advice)
        self.column = column

    def to_json(self) -> dict[str, object]:
        """The `error` object, with the column filled in."""
        return super().to_json() | {"column": self.column}


class RefusedError(DdconsoleError):
    """Understood, but not allowed now: stale revision, already running, held by another, read-only.

    `code` is the stable word of the queue's `Refusal`, such as `running` or `stale`; empty where no rule refused it.
    """

    kind = "refused"
    exit_code = 3

    def __init__(self, what: str, *, evidence: tuple[str, ...] = (), advice: str = "", code: str = "") -> None:
        super().__init__(what, evidence=evidence, advice=advice)
        self.code = code


class DuplicateError(DdconsoleError):
    """The same effective work is queued, running or measured already."""

    kind = "duplicate"
    exit_code = 4

    def __init__(self, what: str, *, of: str, advice: str = "") -> None:
        super().__init__(what, advice=advice)
        self.of = of


class UnreachableError(DdconsoleError):
    """The host cannot be reached, or the connection to it was lost."""

    kind = "unreachable"
    exit_code = 5


class AnswerNeededError(UnreachableError):
    """The connection needs an answer that nobody gave: a host key, a passphrase, a password, a code."""

    kind = "answer-needed"


class HostError(DdconsoleError):
    """A command on the host could not be run, or its answer makes no sense."""

    kind = "host"


class UnwritableLeaseError(HostError):
    """The host's lease was read and is nobody else's, and ours cannot be written: its disk is full or read-only."""


class StoreError(DdconsoleError):
    """The store cannot be opened, read or written."""

    kind = "store"
    exit_code = 74


class DamagedStoreError(StoreError):
    """The store's file is damaged, or is none of SQLite's."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended without its numbers: a value, for it is expected.

    `cause` is a stable word for scripts (`gpu-oom`, `port-held`, `unknown-flag` …); `what` says what happened,
    `evidence` holds the log lines that show it, `advice` says what to do.
    """

    cause: str
    what: str
    evidence: tuple[str, ...] = field(default=())
    advice: str = ""
    phase: str | None = None

    def to_json(self) -> dict[str, object]:
        """The `failure` object of results and events."""
        return {
            "cause": self.cause,
            "what": self.what,
            "evidence": list(self.evidence),
            "advice": self.advice,
            "phase": self.phase,
        }

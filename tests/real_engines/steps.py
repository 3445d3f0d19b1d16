"""Steps that are checked and timed, and the table of them."""

from __future__ import annotations

import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class Step:
    """One step. `told` is what it found, for the table."""

    name: str
    told: str = ""
    seconds: float = 0.0
    ok: bool = False


@dataclass(slots=True)
class Steps:
    """All steps so far, in order."""

    done: list[Step] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Time the block, and say how it went. What it raises is raised on, so that nothing is built upon it."""
        step = Step(name)
        self.done.append(step)
        print(f"… {name}", flush=True)
        began = time.monotonic()
        try:
            yield step
            step.ok = True
        except Exception as error:
            step.told = f"{type(error).__name__}: {error}"[:2000]
            raise
        finally:
            step.seconds = time.monotonic() - began
            print(f"{'✔' if step.ok else '✘'} {name}, {step.seconds:.1f} s: {step.told}", flush=True)

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part whose failure ends it alone: the parts after it do not build upon it."""
        try:
            yield
        except Exception:
            traceback.print_exc()

    @property
    def all_ok(self) -> bool:
        """Whether there were steps and each was as it should be."""
        return bool(self.done) and all(step.ok for step in self.done)

    def table(self) -> Iterator[str]:
        """Step, seconds, how it went, what it found."""
        width = max((len(step.name) for step in self.done), default=4)
        yield f"{'step':<{width}} {'s':>7}  ok"
        for step in self.done:
            told = step.told.partition("\n")[0]
            yield f"{step.name:<{width}} {step.seconds:>7.1f}  {'ok' if step.ok else '✘ '}  {told}"

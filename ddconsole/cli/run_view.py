"""What `ddconsole run` shows on stderr: live bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from ddconsole.cli.boot_note import SILENT_S, Silence, boot_note, clock_text
from ddconsole.cli.report import clean
from ddconsole.core import events
from ddconsole.core.level_words import pass_lines
from ddconsole.core.progress import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

NAMES = {
    "preflight": "preflight",
    "launch": "launch",
    "init": "init",
    "load_target": "target weights",
    "load_draft": "drafter weights",
    "kv": "KV pool",
    "graphs": "graphs",
    "warmup": "warm-up",
    "stop": "stop",
}
"""Phases in words."""

MARKS = {"passed": ("✔", "green"), "wrong": ("✘", "yellow"), "failed": ("✘", "red"), "cancelled": ("■", "yellow")}


ENDINGS = {"drained": "nothing more is queued", "paused": "the queue is paused", "max": "as many as were asked for"}
"""Why a run ended, in words."""


class RunView:
    """Listens to a run's events and draws them. Use it as a context manager around the run."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = Progress(
            SpinnerColumn(style="cyan"),
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=32, complete_style="cyan"),
            TextColumn("{task.fields[count]}", justify="right", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", style="dim", markup=False),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._bars: dict[str, TaskID] = {}
        self._shown: set[str] = set()
        self._silence = Silence()
        self._handlers: dict[type[events.Body], Callable[[Any, events.Event], None]] = {
            events.Connection: self._connection,
            events.ExperimentStarted: self._started,
            events.FindingSeen: self._finding,
            events.PhaseChanged: self._phase,
            events.BootProgressed: self._boot,
            events.Ready: self._ready,
            events.PassStarted: self._pass_started,
            events.RequestDone: self._request,
            events.PassFinished: self._pass_finished,
            events.Warned: self._warning,
            events.ExperimentFinished: self._finished,
            events.RunFinished: self._run_finished,
        }

    def __enter__(self) -> RunView:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Draw nothing within: somebody else uses the terminal."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()

    def take(self, event: events.Event) -> None:
        """Draw one event."""
        handler = self._handlers.get(type(event.body))
        if handler is not None:
            texts = {each.name: _cleaned(getattr(event.body, each.name)) for each in fields(event.body)}
            handler(replace(event.body, **texts), event)

    # --- one small drawing for each kind

    def _connection(self, body: events.Connection, _: events.Event) -> None:
        if body.state == "connected" and "connected" not in self._shown:
            self._shown.add("connected")
            self._line("●", "green", f"connected · {body.rtt_ms} ms")
        elif body.state == "lost" and "connected" in self._shown:
            self._shown.discard("connected")
            self._line("○", "red", f"connection lost: {body.detail}")

    def _started(self, body: events.ExperimentStarted, event: events.Event) -> None:
        self._shown -= set(NAMES)
        estimate = "" if body.estimate_s is None else f" · about {clock_text(body.estimate_s)}"
        self._progress.print(Text(f"\n{event.id}  {body.label}{estimate}", style="bold"))

    def _finding(self, body: events.FindingSeen, _: events.Event) -> None:
        mark, style = {"block": ("✘", "red"), "warn": ("⚠", "yellow")}.get(body.level, ("·", "dim"))
        self._line(mark, style, f"{body.text}: {body.advice}" if body.advice and body.level != "note" else body.text)

    def _phase(self, body: events.PhaseChanged, _: events.Event) -> None:
        name = NAMES.get(body.phase)
        if name is None:
            return
        if body.state == "started":
            self._bar(body.phase, name)
            return
        self._drop(body.phase)
        mark, style = ("✔", "green") if body.state == "done" else ("✘", "red")
        self._line(mark, style, f"{name:<16} {clock_text(body.seconds or 0):>8}")

    def _boot(self, body: events.BootProgressed, _: events.Event) -> None:
        bars = {Phase.LOAD_TARGET.value: body.target, Phase.LOAD_DRAFT.value: body.draft, "graphs": body.graphs}
        bar = bars.get(body.phase)
        note = boot_note(body)
        if not self._console.is_terminal and self._silence.is_due(body):
            self._line("·", "dim", f"{NAMES.get(body.phase, body.phase)}: {note}")
        task = self._bar(body.phase, NAMES.get(body.phase, body.phase))
        if bar is None:
            self._progress.update(task, note=note)
            return
        if bar["eta_s"] is not None and body.silent_s < SILENT_S:
            note = f"{clock_text(bar['eta_s'])} left · {note}".removesuffix(" · ")
        self._progress.update(
            task, completed=bar["done"], total=bar["total"], count=f"{bar['done']}/{bar['total'] or '?'}", note=note
        )

    def _ready(self, body: events.Ready, _: events.Event) -> None:
        self._clear()
        how = "kept from before" if body.kept else f"in {clock_text(body.seconds)}"
        proved = ", ".join(fact.partition(" (")[0] for fact in body.proved)
        self._line("✔", "green", f"ready {how} · proved: {proved}")
        if body.unproved:
            self._line("·", "dim", f"asked, not proved: {', '.join(body.unproved)}")

    def _pass_started(self, body: events.PassStarted, _: events.Event) -> None:
        self._progress.update(self._bar(body.name, body.name), total=body.total, completed=0, count=f"0/{body.total}")

    def _request(self, body: events.RequestDone, _: events.Event) -> None:
        task = self._bar(body.name, body.name)
        self._progress.update(task, completed=body.done, total=body.total, count=f"{body.done}/{body.total}")

    def _pass_finished(self, body: events.PassFinished, _: events.Event) -> None:
        self._drop(body.name)
        self._line("✔", "green", f"{body.name:<16} {clock_text(body.seconds):>8}")
        if body.name == "throughput":
            for line in pass_lines(body.summary):
                self._line("·", "dim", line)

    def _warning(self, body: events.Warned, _: events.Event) -> None:
        self._line("⚠", "yellow", body.text)

    def _finished(self, body: events.ExperimentFinished, event: events.Event) -> None:
        self._clear()
        mark, style = MARKS.get(body.outcome, ("·", "dim"))
        self._progress.print(Text.assemble((f"{mark} {event.id} ", f"bold {style}"), body.verdict))
        if body.failure is not None:
            for line in body.failure["evidence"][:5]:
                self._progress.print(Text(f"    {line[:200]}", style="dim"))
            if body.failure["advice"]:
                self._progress.print(Text(f"    → {body.failure['advice']}"))

    def _run_finished(self, body: events.RunFinished, _: events.Event) -> None:
        ended = {
            "drained": "nothing more is queued",
            "paused": "the queue is paused",
            "max": "as many as were asked for",
        }
        why = ended.get(body.reason, body.reason)
        self._progress.print(Text(f"\n{why} · {body.passed} passed, {body.failed} not", style="bold"))

    # --- lines and bars

    def _line(self, mark: str, style: str, text: str) -> None:
        self._progress.print(Text.assemble((f"  {mark} ", style), text))

    def _bar(self, key: str, name: str) -> TaskID:
        if key not in self._bars:
            self._bars[key] = self._progress.add_task(name, total=None, count="", note="")
        return self._bars[key]

    def _drop(self, key: str) -> None:
        task = self._bars.pop(key, None)
        if task is not None:
            self._progress.remove_task(task)

    def _clear(self) -> None:
        for key in tuple(self._bars):
            self._drop(key)


def _cleaned(value: Any) -> Any:
    """A body's field with every text in it harmless: what follows only draws."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_cleaned, value))
    return value

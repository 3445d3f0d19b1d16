"""`ddconsole events PROFILE`: what happened and what happens, for scripts, assistants and other consoles."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from dataclasses import fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ddconsole.cli.common import cli_errors, json_option, load_profile, open_and_seed
from ddconsole.cli.report import clean
from ddconsole.core.errors import UsageError
from ddconsole.core.events import TRANSIENT, BootProgressed, Event, GpuSampled, LogLines, QueueChanged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.core.ports import Store

ON_REQUEST = (GpuSampled.kind, LogLines.kind)
"""Kinds that are left out unless they are asked for."""
PAGE = 1_000
"""Events that are read at once."""
SHORT = 160
"""Characters of a line for people."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("profile")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens, until Ctrl-C.")
@click.option("--after", type=click.IntRange(min=0), metavar="SEQ", help="Begin behind this number; 0 is all.")
@click.option("--with", "with_", default="", metavar="gpu,log", help="Also GPU samples, or log lines as they come.")
@json_option("Events as JSON lines.")
@cli_errors
def events(profile: str, follow: bool, after: int | None, with_: str, as_json: bool) -> None:
    """Show what happened on PROFILE, by default since its last run began.

    With --follow a queue_changed with the whole queue comes first and after every edit, by whichever process.
    gpu and log are the latest at each look, four times a second; the whole log is in the host's file.
    """
    kinds = _kinds(with_)
    loaded = load_profile(profile)
    with contextlib.closing(open_and_seed(loaded)) as store:
        tail = Tail(store, loaded, after, kinds)
        for event in tail.follow() if follow else tail.past():
            sys.stdout.write((event.to_line() if as_json else clean(_line(event))) + "\n")
            sys.stdout.flush()


class Tail:
    """Reads a profile's events from the store, each once."""

    def __init__(self, store: Store, loaded: LoadedProfile, after: int | None, kinds: frozenset[str]) -> None:
        self._store = store
        self._loaded = loaded
        self._name = loaded.name
        self._seq = max(store.last_run_seq(self._name) - 1, 0) if after is None else after
        self._kinds = kinds
        self._revision = -1
        self._live: dict[str, datetime] = {}

    def past(self) -> Iterator[Event]:
        """What is in the store, in the order in which it happened; then the latest of what was asked for."""
        while fresh := self._store.events(self._name, self._seq, PAGE):
            self._seq = fresh[-1].seq
            yield from fresh
        yield from self._fresh_live(self._kinds)

    def follow(self, sleep: Callable[[float], None] = time.sleep) -> Iterator[Event]:
        """What is in the store, then what is written to it, for ever."""
        from ddconsole.cli.watching import changes

        for _ in changes(self._store, sleep=sleep):
            yield from self._queue()
            yield from self.past()
            yield from self._fresh_live(frozenset({BootProgressed.kind}))

    def _queue(self) -> Iterator[Event]:
        """The queue's document when its revision is new."""
        from ddconsole.runner.outlook import Outlook

        queue = self._store.queue(self._name)
        if queue.revision != self._revision:
            self._revision = queue.revision
            now = datetime.now(UTC)
            view = Outlook(self._name, self._loaded.profile, self._store.phase_history(self._name))
            yield Event(0, now, QueueChanged(queue.revision, view.document(queue, now)))

    def _fresh_live(self, kinds: frozenset[str]) -> Iterator[Event]:
        for event in self._store.live(self._name):
            kind = event.body.kind
            if kind in kinds and self._live.get(kind) != event.t:
                self._live[kind] = event.t
                yield event


def _kinds(text: str) -> frozenset[str]:
    kinds = frozenset(kind.strip() for kind in text.split(",") if kind.strip())
    odd = sorted(kinds - set(ON_REQUEST))
    if odd:
        raise UsageError(f"--with takes {', '.join(ON_REQUEST)}; not {odd[0]}")
    return kinds & TRANSIENT


def _line(event: Event) -> str:
    """`14:02:11  E1  phase  load_target done 21.3`: what the event says, without what would fill the screen."""
    said = [_word(getattr(event.body, field.name)) for field in fields(event.body)]
    text = " ".join(word for word in said if word)
    clock = f"{event.t.astimezone():%H:%M:%S}"
    return f"{clock}  {event.id or '—':<4} {event.body.kind:<19} {text}"[:SHORT]


def _word(value: Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, dict):
        return ""
    if isinstance(value, list):
        return ", ".join(item for item in value if isinstance(item, str))
    return value if isinstance(value, str) else json.dumps(value)

"""`ddconsole connect PROFILE`: the same session as `run`, on the screen."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ddconsole.cli.asking import accept_new_option
from ddconsole.cli.common import cli_errors, load_profile, open_and_seed
from ddconsole.cli.consent import take_over_option
from ddconsole.cli.report import warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ddconsole.adapters.profile_file import LoadedProfile
    from ddconsole.runner.console import Console

NO_TERMINAL = "connect needs a terminal to draw on"


@click.command()
@click.argument("profile")
@accept_new_option()
@take_over_option()
@cli_errors
def connect(profile: str, accept_new: bool, take_over: bool) -> int:
    """Open the screen on PROFILE's host.

    Nothing is started until `s` is pressed, unless the profile says `autostart: true` (the demo does). When another
    ddconsole runs this host, its run is shown, and the queue can still be edited.
    """
    import sys

    from ddconsole.core.errors import UsageError

    loaded = load_profile(profile)
    notices = look_at_store(loaded)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError(NO_TERMINAL, advice=f"Without one: `ddconsole run {profile}`.")

    from ddconsole.adapters import queue_file
    from ddconsole.adapters.siblings import siblings
    from ddconsole.cli.wiring import make_bench, parse_edit
    from ddconsole.runner.console import Console
    from ddconsole.tui.app import ConsoleApp
    from ddconsole.tui.facts import ProfileFacts
    from ddconsole.tui.screens.ask import ScreenAsker

    asker = ScreenAsker()
    console = Console(
        make_bench(loaded, asker, accept_new=accept_new, consent=asker, take_over=take_over),
        parse_edit(loaded),
        siblings=lambda store: siblings(loaded, store),
        files=queue_file,
    )
    asker.on_waiting = lambda question: console.show_waiting(question.prompt)
    app = ConsoleApp(
        console, ProfileFacts.of(loaded.profile), opening=lambda: open_and_say(console, notices), asker=asker
    )
    return app.run() or 0


def look_at_store(loaded: LoadedProfile) -> list[str]:
    """Open the store once, before the screen; what the screen has to say of it, a line each.

    A rescue is also said on stderr, where it still stands when the screen is gone. One that cannot be written makes
    this console read-only: it shows what is there.

    Raises:
        StoreError: it cannot even be read.
    """
    from ddconsole.adapters.paths import READ_ONLY_VARIABLE

    notices: list[str] = []

    def tell(words: Sequence[str]) -> None:
        warn(words)
        notices.extend(words)

    store = open_and_seed(loaded, tell)
    if not store.can_write and not store.read_only:
        os.environ[READ_ONLY_VARIABLE] = "1"
        notices.append(f"the store {store.path} cannot be written by you: this console looks and changes nothing")
    store.close()
    return notices


async def open_and_say(console: Console, notices: Sequence[str], *, telemetry: bool = True) -> None:
    """Open what stands behind the screen, then say on it what was met before it was drawn."""
    from datetime import UTC, datetime

    from ddconsole.core.events import Event, Warned

    await console.open(telemetry=telemetry)
    for text in reversed(notices):  # the newest is shown on top
        console.feed.publish(Event(0, datetime.now(UTC), Warned(text)))

"""`ddconsole connect PROFILE`: the same session as `run`, on the screen."""

from __future__ import annotations

import click

from ddconsole.cli.asking import accept_new_option
from ddconsole.cli.common import cli_errors, load_profile, open_and_seed
from ddconsole.cli.consent import take_over_option

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
    open_and_seed(loaded).close()
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
    app = ConsoleApp(console, ProfileFacts.of(loaded.profile), opening=console.open, asker=asker)
    return app.run() or 0

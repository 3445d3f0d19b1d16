"""`ddconsole connect PROFILE`: the same session as `run`, on the screen."""

from __future__ import annotations

import click

from ddconsole.cli.common import cli_errors, load_profile, open_and_seed

NO_TERMINAL = "connect needs a terminal to draw on"


@click.command()
@click.argument("profile")
@cli_errors
def connect(profile: str) -> int:
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

    from ddconsole.cli.wiring import make_bench, parse_edit
    from ddconsole.runner.console import Console
    from ddconsole.tui.app import ConsoleApp
    from ddconsole.tui.facts import ProfileFacts

    console = Console(make_bench(loaded), parse_edit(loaded))
    app = ConsoleApp(console, ProfileFacts.of(loaded.profile), opening=console.open)
    return app.run() or 0

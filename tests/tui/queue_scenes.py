"""The queue's screens as pictures: marked rows, the form, the preview of a sweep, refusals, the question of doubles."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input
from tui.desk import Desk, console, until
from tui.story import chain, tree

from ddconsole.core.queue import Change, Hold
from ddconsole.tui.app import ConsoleApp
from ddconsole.tui.screens.command import CommandLine
from ddconsole.tui.screens.confirm import Confirm
from ddconsole.tui.screens.details import Details
from ddconsole.tui.screens.help import Help
from ddconsole.tui.screens.order import OrderScreen
from ddconsole.tui.screens.queue_form import QueueForm


def busy_desk() -> Desk:
    """A sweep whose first member runs, a chain, a held one, and an idea."""
    desk = Desk(name="demo")
    desk.run_line("sweep b=8 B=12,16,24")
    desk.add(chain(8), tree(16, 34))
    desk.run_line('idea "a drafter trained at 16?"')
    desk.edit_now(Hold(("E5",)))
    desk.begin("E1")
    return desk


def queue_app() -> ConsoleApp:
    """The console on that desk."""
    return console(busy_desk())


async def first_picture(pilot: Pilot[Any]) -> None:
    """The queue in sight; no cursor blinks in a picture."""
    await until(pilot, lambda: bool(pilot.app.screen.query("#queue")), "the dashboard")
    app = pilot.app
    assert isinstance(app, ConsoleApp)
    app.bridge.tick()
    await pilot.pause()


async def marked(pilot: Pilot[Any]) -> None:
    """The queue on the whole screen, two rows marked."""
    await first_picture(pilot)
    await pilot.press("w", "m", "m")


async def form(pilot: Pilot[Any]) -> None:
    """The form of a copy, with a value that cannot be."""
    await first_picture(pilot)
    await pilot.press("d")
    await until(pilot, lambda: isinstance(pilot.app.screen, QueueForm), "the form")
    for field in pilot.app.screen.query(Input):
        field.cursor_blink = False
    pilot.app.screen.query_one("#block_size", Input).value = "16"
    pilot.app.screen.query_one("#window", Input).value = "8"
    await pilot.pause()


async def line(pilot: Pilot[Any], text: str, shown: str) -> None:
    """A line that is typed, and what it has to say."""
    await first_picture(pilot)
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandLine), "the line")
    entry = pilot.app.screen.query_one("#line", Input)
    entry.cursor_blink = False
    entry.value = text
    said = pilot.app.screen.query_one("#said")
    await until(pilot, lambda: shown in str(said.render()), shown)


async def preview(pilot: Pilot[Any]) -> None:
    """The seed's sentence, member by member."""
    await line(pilot, "after block_size=16 budget=match", "3 experiments")


async def sweep(pilot: Pilot[Any]) -> None:
    """A grid that is larger than the screen."""
    await line(pilot, "sweep b=8..32:8 B=match,2b,3b W=512,2048", "24 experiments")


async def refusal(pilot: Pilot[Any]) -> None:
    """A value that cannot be read, after enter."""
    await line(pilot, "add b=16 B=oops", "^")
    await pilot.press("enter")
    await until(pilot, lambda: "✘" in str(pilot.app.screen.query_one("#said").render()), "the refusal")


async def doubles(pilot: Pilot[Any]) -> None:
    """Half of it is there already."""
    await line(pilot, "sweep b=8 B=16,20", "2 experiments")
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, Confirm), "the question")


async def details(pilot: Pilot[Any]) -> None:
    """All that is known of one."""
    await first_picture(pilot)
    await pilot.press("end", "up", "i")
    await until(pilot, lambda: isinstance(pilot.app.screen, Details), "the details")


async def order(pilot: Pilot[Any]) -> None:
    """Another order, and what it saves."""
    await first_picture(pilot)
    await pilot.press("colon")
    await until(pilot, lambda: isinstance(pilot.app.screen, CommandLine), "the line")
    pilot.app.screen.query_one("#line", Input).value = "order information"
    await pilot.press("enter")
    await until(pilot, lambda: isinstance(pilot.app.screen, OrderScreen), "the proposal")


async def overtaken(pilot: Pilot[Any]) -> None:
    """An edit of what another one has changed meanwhile: the text is kept, and there are two ways out."""
    await first_picture(pilot)
    await pilot.press("e")
    await until(pilot, lambda: isinstance(pilot.app.screen, QueueForm), "the form")
    form = pilot.app.screen
    field = form.query_one("#block_size", Input)
    field.cursor_blink = False
    field.value = "16"
    desk = pilot.app._controller  # type: ignore[attr-defined]
    desk.edit_now(Change("E2", tree(8, 40)))
    await pilot.press("enter")
    await until(pilot, lambda: "has changed" in str(form.query_one("#answer").render()), "the refusal")


async def dim(pilot: Pilot[Any]) -> None:
    """A key that cannot act says why, in place of the keys."""
    await first_picture(pilot)
    await pilot.press("home", "e")
    await until(pilot, lambda: pilot.app.screen.has_class("-notice"), "the reason")


async def helped(pilot: Pilot[Any]) -> None:
    """Every key, and why some cannot be used now."""
    await first_picture(pilot)
    await pilot.press("question_mark")
    await until(pilot, lambda: isinstance(pilot.app.screen, Help), "the help")


QUEUE_SCENES: dict[str, Callable[[Pilot[Any]], Awaitable[None]]] = {
    "marked": marked,
    "form": form,
    "preview": preview,
    "sweep": sweep,
    "refusal": refusal,
    "doubles": doubles,
    "details": details,
    "order": order,
    "overtaken": overtaken,
    "dim": dim,
    "help": helped,
}

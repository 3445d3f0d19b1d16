"""The app: it only wires. Theme, keys, bridge, guard, screens, and one door for what the screens ask for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from textual import events, on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.worker import Worker, WorkerState

from ddconsole.core.errors import DdconsoleError
from ddconsole.tui import theme
from ddconsole.tui.bridge import Bridge
from ddconsole.tui.burst import Burst
from ddconsole.tui.commands import ActionCommands
from ddconsole.tui.door import Door
from ddconsole.tui.draw.header import Place
from ddconsole.tui.facts import ProfileFacts
from ddconsole.tui.guard import TerminalGuard
from ddconsole.tui.messages import Accepted, Intent, LeaveConsole, Refused, StartQueue
from ddconsole.tui.screens.ask import CALL_KEY, ScreenAsker
from ddconsole.tui.screens.dashboard import Dashboard
from ddconsole.tui.text import clean
from ddconsole.tui.typing import OneKeyAtATime

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine
    from datetime import tzinfo

    from textual.notifications import SeverityLevel

    from ddconsole.runner.intents import Controller

INTENTS = "intents"
"""Group of the workers that carry intents out."""


def utc_now() -> datetime:
    """The wall clock, for times that run on the screen."""
    return datetime.now(UTC)


class ConsoleApp(OneKeyAtATime):
    """The screen of one profile. `run()` returns the exit code.

    Args:
        controller: the only way to the work; its feed is all that is shown.
        profile: what the screen knows of the profile.
        now: the clock for running times; a replay's stands still.
        zone: the time zone of times of day; None is the console's own.
        opening: what to do once the first frame stands, such as opening the controller; the queue of a profile with
            `autostart` is started behind it.
        guarded: watch signals and the terminal; off where there is none (tests, replays).
        asker: shows what a connection has to ask.
    """

    TITLE = "ddconsole"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS = App.COMMANDS | {ActionCommands}
    BINDINGS: ClassVar[list[BindingType]] = [Binding(CALL_KEY, "answer", "answer ssh", show=False, id="answer")]
    MODES: ClassVar = {"dashboard": "dashboard"}
    DEFAULT_MODE = "dashboard"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-medium"), (100, "-wide")]  # noqa: RUF012 - as Textual declares it
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-middle"), (32, "-tall")]  # noqa: RUF012

    def __init__(
        self,
        controller: Controller,
        profile: ProfileFacts | None = None,
        *,
        now: Callable[[], datetime] = utc_now,
        zone: tzinfo | None = None,
        opening: Callable[[], Awaitable[None]] | None = None,
        guarded: bool = True,
        asker: ScreenAsker | None = None,
    ) -> None:
        super().__init__()
        self._controller = controller
        self._profile = profile or ProfileFacts()
        self._door = Door(controller)
        self._guard = TerminalGuard(self._lost) if guarded else None
        self.bridge = Bridge(self, controller.feed, now, (self._guard.look,) if self._guard else ())
        self._opening = opening
        self._asker = asker or ScreenAsker()
        self._asker.attach(self)  # type: ignore[arg-type] # whatever the app's exit code is
        self._leaving = False
        self._burst = Burst()
        place = Place(clean(controller.profile_name), self._profile.engine, zone)
        self.install_screen(Dashboard(self._profile, place, lambda: controller.owns_run, self._burst), "dashboard")

    # --- wiring

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Our tokens, for themes that do not know them."""
        return theme.VARIABLE_DEFAULTS

    def on_mount(self) -> None:
        """Put the theme on, begin to show, and start the queue where the profile says so."""
        for one in theme.THEMES:
            self.register_theme(one)
        self.theme = theme.DARK.name
        self.title = clean(f"ddconsole {self._controller.profile_name}")
        if self._guard is not None and not self.is_headless:
            self._guard.watch_signals()
        self.bridge.start()
        self.call_after_refresh(lambda: self._work(self._open(), "open"))

    async def _open(self) -> None:
        """Behind the first frame: open what is shown, then start the queue where the profile says so."""
        if self._opening is not None:
            try:
                await self._opening()
            except DdconsoleError as error:
                self.notify(f"{error.what}\n{error.advice}".strip(), severity="error", timeout=60, markup=False)
                return
        self.bridge.tick()
        if self._controller.autostart:
            self.post_message(StartQueue(self.screen))

    async def on_event(self, event: events.Event) -> None:
        """Every key is noted on its way, so that a paste without brackets is told from typing."""
        if isinstance(event, events.Key) and not event.is_forwarded:
            self._burst.note(event.time)
        await super().on_event(event)

    # --- intents

    @on(Intent)
    def _intended(self, intent: Intent) -> None:
        """Carry it to the controller without making a key wait."""
        if isinstance(intent, LeaveConsole):
            self._leave(intent)
        else:
            self._work(self._fulfil(intent), type(intent).__name__)

    async def _fulfil(self, intent: Intent) -> None:
        answer = await self._door.fulfil(intent)
        target = intent.reply_to if intent.reply_to.is_running else self.screen
        target.post_message(answer)
        self.bridge.tick()

    def _work(self, work: Coroutine[None, None, None], name: str) -> None:
        self.run_worker(work, name=name, group=INTENTS, exclusive=False, exit_on_error=False)

    @on(Worker.StateChanged)
    def _worker_changed(self, event: Worker.StateChanged) -> None:
        """The one place where a worker's failure comes out; nothing falls through."""
        if event.state is WorkerState.ERROR:
            error = event.worker.error
            self.notify(
                f"{event.worker.name}: {type(error).__name__}: {clean(error)}\nThis is a bug of ddconsole.",
                severity="error",
                timeout=30,
                markup=False,
            )

    @on(Accepted)
    @on(Refused)
    def _late_answer(self, answer: Accepted | Refused) -> None:
        """An answer that no screen took."""
        if isinstance(answer, Refused):
            self.notify(answer.what, severity="error", markup=False)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """On the dashboard's own line, where it hides no panel; under a dialog it waits until that is gone."""
        board = next((screen for screen in self.screen_stack if isinstance(screen, Dashboard)), None)
        if board is not None:
            board.say(f"{title}: {message}" if title else message, severity, timeout)

    def action_answer(self) -> None:
        """Answer what the connection waits for."""
        if not self._asker.call():
            self.notify("the connection asks nothing", markup=False)

    # --- leaving

    async def action_quit(self) -> None:
        """The palette's Quit asks what the key asks."""
        screen = self.screen
        if isinstance(screen, Dashboard):
            screen.do_quit()

    def _leave(self, intent: LeaveConsole) -> None:
        """Close the controller, then go; asked again while that takes long, go at once."""
        if self._leaving:
            self.exit(0)
            return
        self._leaving = True
        self.notify("closing … (quit again to leave at once)", markup=False)
        self._work(self._close(intent), "close")

    async def _close(self, intent: LeaveConsole) -> None:
        answer = await self._door.fulfil(intent)
        if isinstance(answer, Refused):
            self.exit(1, message=answer.what)
        else:
            self.exit(0)

    def _lost(self, why: str) -> None:
        """The terminal is gone: leave the engine alone and end."""
        self.log(f"leaving: {why}")
        if not self._leaving:
            self._leaving = True
            self._work(self._close(LeaveConsole(self.screen, keep_engine=True)), "close")

"""The running experiment: its config, its phases, the weights' bars, the pass in progress, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from textual.content import Content

from ddconsole.tui import theme
from ddconsole.tui.draw import config as draw_config
from ddconsole.tui.draw.outcome import failure_lines, notice_lines, verdict_lines
from ddconsole.tui.draw.stage import PHASE_WORDS, current_phase, is_booting
from ddconsole.tui.formats import about, bar, number, percent, share, size, span
from ddconsole.tui.text import fit_content, join, styled, wrap

if TYPE_CHECKING:
    from datetime import datetime

    from ddconsole.core.events import BootProgressed
    from ddconsole.runner.feed import PassView, PhaseView, View

SILENCE_S = 10.0
"""Seconds without a line of the log before its age is shown."""

NAME_CELLS = 10
"""Cells of a bar's name: `throughput`."""

ROOMY = 9
"""Lines from which the phases of a boot that is over are still shown one by one."""

LEAST_BAR, MOST_BAR = 5, 40
"""Cells that a bar has."""


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together. `worth` decides what stays when there is no room: higher stays longer."""

    worth: int
    lines: list[Content]


def running(view: View, now: datetime, width: int, height: int) -> list[Content]:
    """The panel's lines, at most `height` of them."""
    if view.experiment is None:
        return []
    blocks = [
        Block(9, [_title(view, now, width)]),
        Block(6, _boot(view, now, width, height)),
        Block(8, _bars(view, width) if is_booting(view) else []),
        Block(7, _passes(view, width)),
        Block(10, _outcome(view, width, height)),
        Block(4, notice_lines(view, width)),
    ]
    return _settle([block for block in blocks if block.lines], view, now, height)


def _settle(blocks: list[Block], view: View, now: datetime, height: int) -> list[Content]:
    """Leave out, shorten, or give air, so that the blocks fill at most `height` lines."""
    while _count(blocks) > height and len(blocks) > 1:
        least = min(blocks, key=lambda block: block.worth)
        if len(least.lines) > 1 and least.worth != 6:
            _shorten(least)
        elif len(least.lines) > 1:
            least.lines[:] = [_one_phase(view, now)]
        else:
            blocks = [block for block in blocks if block is not least]
    gaps = len(blocks) - 1 if _count(blocks) + len(blocks) - 1 <= height else 0
    lines: list[Content] = []
    for block in blocks:
        if gaps and lines:
            lines.append(Content(""))
        lines += block.lines
    return lines[:height]


def _shorten(block: Block) -> None:
    """Take the line away that says least: what has not begun stands last."""
    block.lines.pop()


def _count(blocks: list[Block]) -> int:
    return sum(len(block.lines) for block in blocks)


def _title(view: View, now: datetime, width: int) -> Content:
    """Id and config to the left, the time to the right; the fullest wording that fits."""
    assert view.experiment is not None
    clocks = _clocks(view, now)
    wordings = [(name, clock) for name in _names(view) for clock in clocks]
    name, clock = next((pair for pair in wordings if pair[0].cell_length + pair[1].cell_length < width), (wordings[-1]))
    room = width - clock.cell_length - 1
    return fit_content(name, room) + Content(" ") + clock if room > 10 else fit_content(name, width)


def _names(view: View) -> list[Content]:
    assert view.experiment is not None
    body, id_ = view.experiment, styled(view.id or "", f"bold {theme.ACCENT}")
    if not body.config:
        return [join([id_, styled(body.label)], "  ")]
    extras = draw_config.extras(body.config)
    full = join([id_, draw_config.line(body.config, body.effective), *([extras] if extras else [])], "  ")
    shorter = [draw_config.line(body.config, body.effective, gap=" ", caps=caps) for caps in (True, False)]
    return [full, *(join([id_, line], " ") for line in shorter)]


def _clocks(view: View, now: datetime) -> list[Content]:
    """How long it has taken, of how long it should."""
    if view.started_at is None or view.experiment is None or view.finished is not None:
        return [Content("")]
    text, estimate = span((now - view.started_at).total_seconds()), view.experiment.estimate_s
    return [styled(f"{text} of {about(estimate)}" if estimate else text, theme.MUTED), styled(text, theme.MUTED)]


def _boot(view: View, now: datetime, width: int, height: int) -> list[Content]:
    """Its phases one by one; in one line when it is over and there is no room, or when there was no boot."""
    phases = _phases(view, now, width)
    if view.ready is not None and (height < ROOMY or view.ready.kept or not phases):
        return [_ready(view)]
    return phases


def _phases(view: View, now: datetime, width: int) -> list[Content]:
    shown = [(name, phase) for name, phase in view.phases.items() if not name.startswith("pass:")]
    return wrap([_phase(name, phase, now, view) for name, phase in shown], width)


def _ready(view: View) -> Content:
    """All of a boot that is over, in one part."""
    assert view.ready is not None
    how = "kept from before: this engine ran already" if view.ready.kept else f"ready in {span(view.ready.seconds)}"
    return styled("✔ ", theme.GOOD) + styled(how, theme.MUTED)


def _one_phase(view: View, now: datetime) -> Content:
    """Only where it is now, and how many are behind."""
    name = current_phase(view)
    done = sum(phase.state == "done" for key, phase in view.phases.items() if not key.startswith("pass:"))
    behind = styled(f"✔ {done} phases", theme.GOOD)
    if name is None or name.startswith("pass:"):
        return behind
    return join([behind, _phase(name, view.phases[name], now, view)], "  ")


def _phase(name: str, phase: PhaseView, now: datetime, view: View) -> Content:
    word = PHASE_WORDS.get(name, name)
    if name == "ready" and view.ready is not None:
        return _ready(view)
    if phase.state == "done":
        return styled("✔ ", theme.GOOD) + styled(word) + styled(f" {span(phase.seconds)}", theme.MUTED)
    if phase.state == "failed":
        return styled(f"✘ {word}", theme.BAD) + styled(f" {span(phase.seconds)}", theme.MUTED)
    if view.finished is not None:
        return styled(f"⊘ {word}", theme.MUTED)
    return styled(f"▶ {word}", f"bold {theme.ACCENT}") + styled(
        f" {span((now - phase.since).total_seconds())}", theme.MUTED
    )


def _bars(view: View, width: int) -> list[Content]:
    """The weights of target and drafter, and the graphs, as far as the log has shown them."""
    boot = view.boot
    if boot is None:
        return []
    lines = [
        _shard_bar(name, value, width, over=phase in view.phases and view.phases[phase].state == "done")
        for name, phase, value in (
            ("target", "load_target", boot.target),
            ("drafter", "load_draft", boot.draft),
            ("graphs", "graphs", boot.graphs),
        )
        if value is not None
    ]
    if boot.download is not None:
        lines.insert(0, _download_bar(boot.download, width))
    tail = _signs(boot)
    return [*lines, fit_content(join(tail, " · "), width)] if tail else lines


def _signs(boot: BootProgressed) -> list[Content]:
    """What else is known: bytes, memory, times, the silence and what may be behind it. The limit is last: cut first."""
    tail = []
    if boot.bytes_read:
        tail.append(styled(f"{size(boot.bytes_read)} read", theme.MUTED))
    if boot.gpu_grown_mib:
        tail.append(styled(f"GPU {boot.gpu_grown_mib / 1024:+.1f} GiB", theme.MUTED))
    if boot.phase_estimate_s:
        tail.append(styled(f"this phase usually {span(boot.phase_estimate_s)}", theme.MUTED))
    if boot.eta_s is not None:
        tail.append(styled(f"ready in about {about(boot.eta_s)}", theme.MUTED))
    if boot.silent_s > SILENCE_S:
        limit = "" if boot.stall_s is None else f" of {span(boot.stall_s)}"
        tail.append(styled(f"⏱ log silent for {span(boot.silent_s)}{limit}", theme.WARN))
    if boot.doing is not None and boot.download is None:
        tail.append(styled(boot.doing, theme.WARN))
    if boot.limit_s is not None and tail:
        tail.append(styled(f"given up after {about(boot.limit_s)}", theme.MUTED))
    return tail


def _download_bar(value: dict[str, int | None], width: int) -> Content:
    """By bytes where they are known, and by files where only those are."""
    done, total = value.get("bytes"), value.get("bytes_total")
    files = f"{value['files']}/{value['files_total'] or '?'} files" if value.get("files") is not None else ""
    fraction = share(value.get("files"), value.get("files_total")) if files else share(done, total)
    bytes_ = f"{size(done)} of {size(total)}" if done and total else size(done) if done else ""
    fullest = " ".join(part for part in (files, bytes_) if part)
    tails = [styled(f"  {text}", theme.MUTED) for text in (fullest, files or bytes_)]
    return _bar_line("download", fraction, tails, width, complete=False)


def _shard_bar(name: str, value: dict[str, Any], width: int, *, over: bool) -> Content:
    """What the engine's own bar said last; the phase being over is known better, for a last line may be lost."""
    done, total = value.get("done"), value.get("total")
    if over and total:
        done = total
    fraction = share(done, total)
    complete = fraction is not None and fraction >= 1
    eta = "" if complete or value.get("eta_s") is None else f"{span(value['eta_s'])} left"
    count = f"{done}/{total}" if total else str(done)
    whole = percent(None if fraction is None else fraction * 100)
    tails = [f"  {count:>5}  {whole:>4}  {eta:<9}", f" {count:>5} {eta:<9}", f" {whole:>4}"]
    return _bar_line(name, fraction, [styled(tail, theme.MUTED) for tail in tails], width, complete)


def _bar_line(name: str, fraction: float | None, tails: list[Content], width: int, complete: bool) -> Content:
    """A mark, a name, a bar and the fullest of the tails that leaves the bar some room."""
    mark = styled("✔ ", theme.GOOD) if complete else styled("▶ ", f"bold {theme.ACCENT}")
    head = mark + styled(name.ljust(NAME_CELLS)) + Content(" ")
    room = width - head.cell_length
    tail = next((tail for tail in tails if room - tail.cell_length >= LEAST_BAR), tails[-1])
    filled, rest = bar(fraction, min(room - tail.cell_length, MOST_BAR))
    return head + Content.styled(filled, theme.GOOD if complete else theme.ACCENT) + styled(rest, theme.TRACK) + tail


def _passes(view: View, width: int) -> list[Content]:
    """Passes that were measured, the one in progress, and the ones to come."""
    assert view.experiment is not None
    lines = [_pass(one, width) for one in view.passes.values()]
    if view.finished is None and not is_booting(view):
        planned = [name for name in view.experiment.passes if name not in view.passes]
        lines += [styled(f"▷ {name}", theme.MUTED) for name in planned]
    return lines


def _pass(one: PassView, width: int) -> Content:
    done = one.seconds is not None
    failed = styled(f" ✘{one.failed}", theme.BAD) if one.failed else Content("")
    base = styled(f"  {f'{one.done}/{one.total}':>5}", theme.MUTED) + failed
    speed = styled(f"  {number(one.tok_s_e2e):>4}") + styled(" tok/s", theme.MUTED)
    tau = styled("  τ ", theme.MUTED) + styled(f"{number(one.tau, 2):>4}")
    ended = styled(f"  {span(one.seconds) if done else '':>4}", theme.MUTED)
    close = styled(f" {one.done}/{one.total}", theme.MUTED) + failed
    close += styled(f" {number(one.tok_s_e2e)}") + styled(" t/s τ ", theme.MUTED) + styled(number(one.tau, 2))
    tails = [base + speed + tau + ended, base + speed + tau, close, base]
    return _bar_line(one.name, share(one.done, one.total), tails, width, done)


def _outcome(view: View, width: int, height: int) -> list[Content]:
    if view.finished is None:
        return []
    if view.finished.failure is not None:
        return failure_lines(view.finished.failure, width, max(3, min(6, height - 3)))
    return verdict_lines(view.finished, width)

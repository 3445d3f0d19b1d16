"""What a silent boot shows in words."""

from __future__ import annotations

import io

from rich.console import Console

from ddconsole.cli.boot_note import Silence, boot_note
from ddconsole.cli.run_view import RunView
from ddconsole.core.events import BootProgressed, Event, parse_utc

SILENT = BootProgressed(
    "load_target", elapsed_s=400.0, silent_s=42.0, stall_s=900.0, bytes_read=310_200_000_000, read_per_s=850e6,
    gpu_grown_mib=42_189, phase_estimate_s=372.0, waits_for=["TP3"],
)  # fmt: skip


def test_a_silent_stretch_has_signs_of_life_beside_its_age() -> None:
    """Age and limit, bytes read and their speed, GPU memory, what earlier boots took, who is waited for."""
    assert boot_note(SILENT) == (
        "no line for 0:42 of 15:00 · 310.2 GB read, 850 MB/s · GPU +41.2 GiB · usually 6:12 · waits for TP3"
    )
    assert boot_note(BootProgressed("init")) == ""


def test_where_nothing_is_redrawn_a_silence_is_told_once_a_minute() -> None:
    """A log of a night does not fill with it."""
    due = Silence()
    moments = [BootProgressed("load_target", elapsed_s=at, silent_s=at) for at in (5.0, 11.0, 40.0, 72.0, 90.0)]
    assert [due.is_due(moment) for moment in moments] == [False, True, False, True, False]
    assert not due.is_due(BootProgressed("load_target", elapsed_s=95.0, silent_s=0.5))
    assert due.is_due(BootProgressed("load_target", elapsed_s=106.0, silent_s=10.5))


def test_a_run_without_a_terminal_says_it_in_lines() -> None:
    """As in a systemd journal or a CI log."""
    out = io.StringIO()
    with RunView(Console(file=out, width=160)) as view:
        view.take(Event(0, parse_utc("2026-12-02T14:00:00Z"), SILENT, "E1", 1))
    assert "no line for 0:42 of 15:00" in out.getvalue()
    assert "310.2 GB read" in out.getvalue()


def test_a_download_is_told_by_files_and_bytes() -> None:
    """With a bar as its bar says; without one as the guess that it is."""
    bar = {"bytes": 118_200_000_000, "bytes_total": 590_000_000_000, "files": 16, "files_total": 64}
    assert boot_note(BootProgressed("init", download=bar, doing="downloading")) == (
        "downloading 16/64 files, 118.2 of 590.0 GB"
    )
    start = {"bytes": 0, "bytes_total": None, "files": None, "files_total": None}
    assert boot_note(BootProgressed("init", download=start, doing="downloading")) == "downloading"
    guess = BootProgressed("init", silent_s=42.0, stall_s=300.0, doing="downloading?, no progress reported")
    assert boot_note(guess) == "no line for 0:42 of 5:00 · downloading?, no progress reported"


def test_the_limit_of_the_whole_boot_is_said_when_it_is_silent() -> None:
    """How long it is waited for."""
    assert boot_note(BootProgressed("init", silent_s=42.0, limit_s=14_400.0)).endswith("given up at 4:00:00")

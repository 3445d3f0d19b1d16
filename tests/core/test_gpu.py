"""The query loop's rows, good and odd, become ticks; text in place of rows never becomes a card."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.core.gpu import (
    QUERY_FIELDS,
    GpuParser,
    GpuSample,
    GpuTick,
    parse_number,
    parse_row,
    query_command,
)
from ddconsole.core.gpu_levels import not_given_back, parse_levels
from ddconsole.core.gpu_problem import problem_of
from ddconsole.core.gpu_unified import parse_meminfo, with_host_memory

DATA = Path(__file__).parent / "data"
FOURTEEN = (*QUERY_FIELDS[:3], "pstate", "utilization.gpu", "utilization.memory", *QUERY_FIELDS[4:12])
THREE = ("index", "utilization.gpu", "power.draw")


def loop_rows() -> bytes:
    """Three ticks of eight cards, without the comment line."""
    return b"".join((DATA / "nvidia-smi-loop.csv").read_bytes().splitlines(keepends=True)[1:])


def test_three_ticks_of_eight_cards() -> None:
    """The first tick is complete when the second begins; later ones with their eighth card."""
    parser = GpuParser(fields=FOURTEEN)
    ticks = parser.feed(loop_rows())
    assert [len(tick.samples) for tick in ticks] == [8, 8, 8]
    first = ticks[0].samples[0]
    assert first.name == "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert (first.utilization_pct, first.memory_used_mib, first.memory_total_mib) == (88, 88190, 97887)
    assert (first.power_w, first.power_limit_w, first.sm_clock_mhz) == (425.98, 600.0, 2317)
    assert (first.pcie_gen, first.pcie_width, first.temperature_c) == (5, 16, 74)
    assert ticks[-1].problem is None


def test_a_known_number_of_cards_completes_the_first_tick_at_once() -> None:
    """No second of waiting when the host's cards are known."""
    parser = GpuParser(fields=THREE, expected=2)
    assert parser.feed(b"0, 5, 70.1\n") == []
    assert len(parser.feed(b"1, 6, 71.2\n")) == 1


@pytest.mark.parametrize(
    "cell",
    ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "Not Found", "",
     "[Insufficient Permissions]", "Requested functionality has been deprecated", "[anything new]", "ERR!", "nan"],
)  # fmt: skip
def test_every_spelling_of_no_value_is_unknown(cell: str) -> None:
    """Never 0, and the row's good fields stay."""
    sample = parse_row(["0", "50", cell], THREE)
    assert sample == GpuSample(0, utilization_pct=50.0, power_w=None)


def test_a_card_without_memory_of_its_own_tells_no_memory_and_divides_by_nothing() -> None:
    """GB10: memory is the host's; power and utilization are told, the power limit is not."""
    fields = ("index", "memory.total", "memory.used", "utilization.gpu", "power.draw", "power.limit", "temperature.gpu")
    sample = parse_row(["0", "[N/A]", "[N/A]", "0", "11.17", "[N/A]", "35"], fields)
    assert sample == GpuSample(0, utilization_pct=0.0, power_w=11.17, temperature_c=35)
    assert not_given_back(parse_levels("card\t0, GPU-0, [N/A]"), parse_levels("card\t0, GPU-0, [N/A]")) == []


def test_a_row_whose_cells_say_that_the_card_is_lost_is_a_lost_card() -> None:
    """It stands in the tick, without values, and says why."""
    parser = GpuParser(fields=THREE, expected=2)
    (tick,) = parser.feed(b"0, 50, 400.0\n1, [GPU is lost], [GPU is lost]\n")
    assert [card.lost for card in tick.samples] == [None, "GPU is lost"]


@pytest.mark.parametrize("domain", ["0000", "00000000"])
def test_a_lost_card_that_is_named_by_its_bus_alone_is_known_again(domain: str) -> None:
    """The bus id was read while it answered; a card never seen is a problem, and hides no other."""
    parser = GpuParser(fields=("index", "pci.bus_id"), expected=2)
    parser.feed(b"0, 00000000:01:00.0\n1, 00000000:C1:00.0\n")
    line = f"Unable to determine the device handle for GPU{domain}:C1:00.0: GPU is lost.  Reboot the system\n"
    (tick,) = parser.feed(b"0, 00000000:01:00.0\n" + line.encode())
    assert [(card.index, bool(card.lost)) for card in tick.samples] == [(0, False), (1, True)]
    (stranger,) = GpuParser(fields=THREE).feed(line.encode())
    assert stranger.problem is not None
    assert stranger.problem.code == "device-lost"


def test_cards_that_are_not_asked_any_more_stand_in_every_tick() -> None:
    """nvidia-smi ends at a lost card; the others are asked alone, and the lost one is still shown."""
    parser = GpuParser(fields=THREE, expected=1, lost=(GpuSample(1, lost="GPU is lost"),))
    (tick,) = parser.feed(b"0, 50, 400.0\n")
    assert [card.index for card in tick.samples] == [0, 1]


def test_a_card_split_by_mig_tells_no_utilization_and_says_so() -> None:
    """Memory and power are the whole card's; utilization is unknown, never 0."""
    row = parse_row(["0", "[N/A]", "36537", "81920", "87.31", "33", "Enabled"],
                    ("index", "utilization.gpu", "memory.used", "memory.total", "power.draw", "temperature.gpu",
                     "mig.mode.current"))  # fmt: skip
    assert row == GpuSample(0, None, None, None, 36537, 81920, 33.0, 87.31, mig=True)


@pytest.mark.parametrize(
    ("cell", "expected"),
    [("412.10", 412.1), ("412.10 W", 412.1), ("97 %", 97.0), ("88000 MiB", 88000.0), ("9223372036854776000", None),
     ("-5", None), ("1e3", None)],
)  # fmt: skip
def test_numbers_with_units_and_outside_the_sane_range(cell: str, expected: float | None) -> None:
    """Units are stripped; what no card can show is unknown."""
    assert parse_number(cell, 0, 1e6) == expected


def test_power_above_its_limit_is_told_as_it_is() -> None:
    """228.82 W drawn at a limit of 210 W is a true value."""
    row = parse_row(["0", "56", "228.82"], THREE)
    assert row is not None
    assert row.power_w == 228.82


def test_odd_rows_keep_their_good_fields_and_a_lost_card_hides_no_other() -> None:
    """Card 5 is lost; the seven others are told."""
    parser = GpuParser(fields=FOURTEEN)
    ticks = parser.feed((DATA / "nvidia-smi-odd.csv").read_bytes()) + parser.finish()
    assert len(ticks) == 1
    cards = ticks[0].samples
    assert [card.index for card in cards] == list(range(8))
    assert cards[1].utilization_pct is None
    assert cards[1].power_w == 412.31
    assert cards[2].power_w is None
    assert cards[4].temperature_c is None
    assert cards[5].lost is not None
    assert cards[5].utilization_pct is None
    assert cards[7].lost is None


def test_what_is_known_of_a_card_is_not_overwritten_by_an_unreadable_value() -> None:
    """Total memory is known from the first tick; utilization is of the moment and becomes unknown."""
    fields = ("index", "uuid", "utilization.gpu", "memory.total")
    parser = GpuParser(fields=fields, expected=1)
    parser.feed(b"0, GPU-a, 50, 97887\n")
    (tick,) = parser.feed(b"0, GPU-a, [N/A], [N/A]\n")
    assert tick.samples[0] == GpuSample(0, "GPU-a", memory_total_mib=97887)
    (other,) = parser.feed(b"0, GPU-b, [N/A], [N/A]\n")
    assert other.samples[0].memory_total_mib is None


def test_a_number_that_is_none_is_unknown_and_said_once_for_each_card_and_field() -> None:
    """As a split card's utilization of 2 to the power of 63; "no value" in any spelling is nothing to say."""
    fields = ("index", "utilization.gpu", "power.draw", "memory.used")
    odd: set[tuple[int, str]] = set()
    parser = GpuParser(fields=fields, expected=2, odd=odd)
    row = b"0, 9223372036854776000 %, [N/A], -1\n1, 101, 87.31, [Unknown Error]\n"
    ticks = parser.feed(row * 3)
    assert len(ticks) == 3
    assert [(card.utilization_pct, card.memory_used_mib) for card in ticks[-1].samples] == [(None, None)] * 2
    assert [text.removesuffix("; such values are shown as unknown") for text in parser.remarks] == [
        "GPU 0: nvidia-smi's utilization.gpu 9223372036854776000 % is outside 0 to 100",
        "GPU 0: nvidia-smi's memory.used -1 is outside 0 to 1e+08",
        "GPU 1: nvidia-smi's utilization.gpu 101 is outside 0 to 100",
    ]
    again = GpuParser(fields=fields, expected=2, odd=odd)
    again.feed(row)
    assert again.remarks == [], "the next run of nvidia-smi remembers"


MEMINFO = "MemTotal:       127600748 kB\nMemFree:  1 kB\nMemAvailable:   118566368 kB\n"
GB10 = GpuSample(0, "GPU-a", "NVIDIA GB10", 0.0, temperature_c=35.0)


def test_a_chip_without_memory_of_its_own_has_the_hosts() -> None:
    """GB10 tells no memory at all; used is what is not available, and the source goes along."""
    memory = parse_meminfo(MEMINFO)
    card = with_host_memory(GB10, memory)
    assert (card.memory_total_mib, card.memory_used_mib) == (124_610, 8_822)
    assert card.memory_source == "/proc/meminfo"
    assert GpuSample.from_json(card.to_json()) == card
    assert with_host_memory(GB10, None) == GB10


@pytest.mark.parametrize(
    "card",
    [
        GpuSample(0, name="NVIDIA RTX A4000"),
        GpuSample(0, name=None),
        GpuSample(0, name="NVIDIA GB100"),
        GpuSample(0, name="NVIDIA GB10", lost="GPU is lost"),
        GpuSample(0, name="NVIDIA GB10", mig=True),
        GpuSample(0, name="NVIDIA GB10", memory_total_mib=97887),
        GpuSample(0, name="NVIDIA A100-SXM4-80GB", mig=True),
    ],
)
def test_a_card_that_tells_no_memory_for_another_reason_does_not_get_the_hosts(card: GpuSample) -> None:
    """Lost, split, hidden by a container: its memory is unknown."""
    assert with_host_memory(card, parse_meminfo(MEMINFO)) == card


@pytest.mark.parametrize(
    "text",
    [
        "",
        "MemTotal: 5 kB\n",
        "MemTotal: 0 kB\nMemAvailable: 0 kB\n",
        "MemTotal: 2048 kB\nMemAvailable: 4096 kB\n",
        "MemTotal: x kB\nMemAvailable: 1 kB",
    ],
)
def test_text_that_is_no_meminfo_is_no_memory(text: str) -> None:
    """Nor is one that contradicts itself."""
    assert parse_meminfo(text) is None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Failed to initialize NVML: Driver/library version mismatch", "driver-mismatch"),
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure", "driver-down"),
        ("No devices were found", "no-gpu"),
        ("Failed to initialize NVML: Unknown Error", "nvml"),
        ("Failed to initialize NVML: No supported GPUs were found", "no-gpu"),
        ('Field "clocks_throttle_reasons.unknown" is not a valid field to query.', "bad-field"),
        ("/bin/sh: nvidia-smi: command not found", "no-nvidia-smi"),
        ("Unable to determine the device handle for GPU0000:41:00.0: Unknown Error", "device-lost"),
        ("welcome!", "unreadable"),
    ],
)
def test_error_text_is_a_named_problem(text: str, code: str) -> None:
    """The text is kept; no card is called "Failed to initialize NVML"."""
    parser = GpuParser()
    (tick,) = parser.feed(text.encode() + b"\n")
    assert tick.samples == ()
    assert tick.problem is not None
    assert tick.problem.code == code
    assert tick.problem.text == text


def test_a_driver_mismatch_says_what_to_do() -> None:
    """Both lines of the broken host's answer are taken; the first names the fault."""
    first, *_ = GpuParser().feed((DATA / "nvidia-smi-broken.txt").read_bytes())
    assert first.problem is not None
    assert "reboot" in str(first.problem)


def test_a_row_cut_by_decimal_commas_is_refused_not_shifted() -> None:
    """`412,10` makes four cells of three: left out, with a problem that names it."""
    parser = GpuParser(fields=THREE, expected=2)
    parser.feed(b"0, 50, 400.0\n")
    ticks = parser.feed(b"1, 50, 412,10\n0, 51, 401.0\n")
    assert [card.index for card in ticks[0].samples] == [0]
    assert ticks[0].problem is not None
    assert ticks[0].problem.code == "bad-row"


def test_blank_lines_and_carriage_returns_change_nothing() -> None:
    """Wrappers print blank lines between ticks."""
    parser = GpuParser(fields=THREE, expected=1)
    assert len(parser.feed(b"\r\n\n0, 1, 2\r\n\n\n0, 3, 4\n")) == 2


def test_a_card_that_appears_is_added_and_one_that_goes_is_dropped() -> None:
    """The number of cards is learned from what answers."""
    parser = GpuParser(fields=THREE, expected=1)
    ticks = parser.feed(b"0, 1, 2\n1, 1, 2\n0, 3, 4\n1, 3, 4\n0, 5, 6\n0, 7, 8\n")
    assert [len(tick.samples) for tick in ticks] == [1, 2, 2, 1, 1]


def test_an_endless_line_is_bounded_and_its_end_is_no_row() -> None:
    """The tail of a cut line must not read as a fresh row."""
    parser = GpuParser(fields=THREE, expected=1)
    assert parser.feed(b"x" * 100_000) == []
    assert parser.feed(b"0, 1, 2") == []
    assert parser.feed(b"\n") == []
    assert len(parser.feed(b"0, 1, 2\n")) == 1


def test_values_survive_json() -> None:
    """A sample is written to events and read back."""
    sample = GpuSample(3, "GPU-x", "card", 50.0, 1, 2, 3.0, 4.0, 5.0, 6, 5, 16)
    assert GpuSample.from_json(json.loads(json.dumps(sample.to_json()))) == sample
    assert GpuTick((sample,), problem_of("No devices were found")).to_json()["problem"].startswith("No devices")


def test_the_command_names_the_fields_in_the_order_in_which_they_are_read() -> None:
    """Columns are mapped by place."""
    command = query_command(500)
    assert command[2:4] == ("nvidia-smi", "--query-gpu=" + ",".join(QUERY_FIELDS))
    assert command[-2:] == ("-lms", "500")
    assert query_command(only=(0, 2))[3:5] == ("-i", "0,2")


@settings(deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=30))
def test_no_bytes_raise(pieces: list[bytes]) -> None:
    """Whatever arrives, however it is cut: ticks of unique cards and JSON without NaN."""
    parser = GpuParser(fields=THREE)
    for tick in [tick for piece in pieces for tick in parser.feed(piece)] + parser.finish():
        assert len({card.index for card in tick.samples}) == len(tick.samples)
        json.dumps(tick.to_json(), allow_nan=False)


@settings(deadline=None)
@given(st.lists(st.integers(0, 3500), max_size=12))
def test_the_cut_changes_nothing(cuts: list[int]) -> None:
    """Whole or in pieces, the same ticks."""
    rows = loop_rows()
    whole = GpuParser(fields=FOURTEEN).feed(rows)
    edges = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parser = GpuParser(fields=FOURTEEN)
    pieces = [tick for a, b in pairwise(edges) for tick in parser.feed(rows[a:b])]
    assert pieces == whole

"""The demo host's nvidia-smi: real formats, and values that follow the engines."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from ddconsole.demo import nvidia_smi
from ddconsole.demo.nvidia_smi_cards import Card, is_alive
from ddconsole.demo.nvidia_smi_fields import FIELDS

if TYPE_CHECKING:
    from pathlib import Path

CONSOLE_QUERY = (
    "index,uuid,name,pstate,utilization.gpu,utilization.memory,memory.used,memory.total,temperature.gpu,"
    "power.draw,power.limit,clocks.current.sm,pcie.link.gen.current,pcie.link.width.current"
)

Ask = "Callable[..., tuple[int, list[str]]]"


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Runs nvidia-smi in a home folder of the test's own: exit status and lines."""
    (tmp_path / "run").mkdir()
    monkeypatch.setenv("DDCONSOLE_DEMO_HOME", str(tmp_path))

    def run(*args: str) -> tuple[int, list[str]]:
        status = nvidia_smi.main(list(args))
        return status, capsys.readouterr().out.splitlines()

    return run


def engine(home: Path, **changes: Any) -> None:
    """The state file of an engine whose processes are all this one, which lives."""
    me = os.getpid()
    state = {
        "pid": me,
        "ranks": [me] * 8,
        "memory_mib": [88_000 + card for card in range(8)],
        "utilization": [90] * 8,
        "power_w": [250.0] * 8,
    }
    (home / "run" / f"engine-{me}.json").write_text(json.dumps(state | changes))


def test_eight_idle_cards(ask: Any) -> None:
    """Cool, dark, and with the memory that a driver takes."""
    status, lines = ask(f"--query-gpu={CONSOLE_QUERY}", "--format=csv,noheader,nounits")
    rows = list(csv.reader(lines, skipinitialspace=True))
    assert status == 0
    assert [row[0] for row in rows] == [str(card) for card in range(8)]
    assert {len(row) for row in rows} == {14}
    assert len({row[1] for row in rows}) == 8
    assert {row[2] for row in rows} == {"NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"}
    assert {(row[3], row[4], row[6], row[7]) for row in rows} == {("P8", "0", "2", "97887")}
    assert all(28 <= float(row[9]) <= 32 and 33 <= int(row[8]) <= 37 for row in rows)


def test_cards_follow_an_engine(ask: Any, tmp_path: Path) -> None:
    """Memory is exact; load, power and temperature carry a light noise."""
    engine(tmp_path)
    _, lines = ask(f"--query-gpu={CONSOLE_QUERY}", "--format=csv,noheader,nounits")
    rows = list(csv.reader(lines, skipinitialspace=True))
    assert [int(row[6]) for row in rows] == [88_002 + card for card in range(8)]
    assert all(85 <= int(row[4]) <= 95 and 245 <= float(row[9]) <= 255 and int(row[8]) > 60 for row in rows)
    assert {row[3] for row in rows} == {"P1"}


def test_what_a_dead_engine_said_is_ignored(ask: Any, tmp_path: Path) -> None:
    """As memory is freed when a process ends, whatever its file still says."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    engine(tmp_path, pid=child.pid)
    _, lines = ask("--query-gpu=memory.used", "--format=csv,noheader")
    assert lines == ["2 MiB"] * 8


def test_a_dead_rank_frees_its_card_alone(ask: Any, tmp_path: Path) -> None:
    """The other seven still hold theirs."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    engine(tmp_path, ranks=[os.getpid()] * 3 + [child.pid] + [os.getpid()] * 4)
    _, lines = ask("--query-gpu=memory.used", "--format=csv,noheader,nounits")
    assert [line == "2" for line in lines] == [card == 3 for card in range(8)]


def test_a_zombie_counts_as_dead() -> None:
    """It holds no memory; `kill -0` alone would call it alive."""
    child = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        child.stdout.read()
    deadline = time.monotonic() + 5
    while is_alive(child.pid):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert child.wait() == 0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": null, "ranks": 3}'])
def test_a_state_file_that_makes_no_sense_is_ignored(ask: Any, tmp_path: Path, text: str) -> None:
    """It may be half written by something else than our engine."""
    (tmp_path / "run" / "engine-1.json").write_text(text)
    assert ask("--query-gpu=memory.used", "--format=csv,noheader")[1] == ["2 MiB"] * 8


def test_units_stand_in_the_header_and_after_values(ask: Any) -> None:
    """As the real program has it, each switched by its own word."""
    query = "--query-gpu=index,memory.total,power.limit,clocks.max.sm,utilization.gpu"
    assert ask(query, "--format=csv")[1][:2] == [
        "index, memory.total [MiB], power.limit [W], clocks.max.sm [MHz], utilization.gpu [%]",
        "0, 97887 MiB, 300.00 W, 3090 MHz, 0 %",
    ]
    assert ask(query, "--format=csv,nounits")[1][1] == "0, 97887, 300.00, 3090, 0"
    assert ask(query, "--format=csv,noheader,nounits")[1][0] == "0, 97887, 300.00, 3090, 0"


def test_every_field_has_a_value_and_memory_adds_up(ask: Any, tmp_path: Path) -> None:
    """No field of the table fails; used, free and reserved are the total."""
    engine(tmp_path)
    status, lines = ask(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits")
    row = dict(zip(FIELDS, lines[0].split(", "), strict=True))
    assert status == 0
    assert all(row.values())
    parts = ("memory.used", "memory.free", "memory.reserved")
    assert sum(int(row[part]) for part in parts) == int(row["memory.total"])


def test_an_unknown_field_is_refused_in_nvidia_smis_own_words(ask: Any) -> None:
    """On stdout, where rows would be, and with status 2."""
    status, lines = ask("--query-gpu=index,clocks_throttle_reasons.unknown", "--format=csv,noheader")
    assert status == 2
    assert lines[0] == 'Field "clocks_throttle_reasons.unknown" is not a valid field to query.'


@pytest.mark.parametrize("args", [["--frobnicate"], ["--query-gpu=index"], ["-lms", "x"], ["-lms", "0"]])
def test_bad_usage_has_a_status(ask: Any, args: list[str]) -> None:
    """And a word about it."""
    status, lines = ask(*args)
    assert status == 1
    assert lines


def test_compute_apps_are_the_engines_ranks(ask: Any, tmp_path: Path) -> None:
    """One a card, with the memory that it holds; none on an idle host."""
    query = ("--query-compute-apps=pid,process_name,gpu_uuid,used_memory", "--format=csv")
    header = "pid, process_name, gpu_uuid, used_gpu_memory [MiB]"
    assert ask(*query)[1] == [header]
    engine(tmp_path)
    lines = ask(*query)[1]
    assert lines[0] == header
    assert len(lines) == 9
    assert lines[1].startswith(f"{os.getpid()}, ")
    assert lines[1].endswith("GPU-00000000-dd7e-4c0d-8e6f-0123456789ab, 88000 MiB")


def test_the_list_the_versions_and_one_card(ask: Any) -> None:
    """`-L`, `--version`, `-i`."""
    assert len(ask("-L")[1]) == 8
    assert ask("-L")[1][0].startswith("GPU 0: NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition (UUID: GPU-")
    assert "580." in ask("--version")[1][0]
    assert ask("-i", "2,3", "--query-gpu=index", "--format=csv,noheader")[1] == ["2", "3"]


def test_the_ways_between_cards(ask: Any) -> None:
    """`topo -m` and `topo -p2p r`, as the driver prints them: tabs, an underlined head, a legend."""
    status, lines = ask("topo", "-m")
    assert status == 0
    assert lines[0].startswith("\x1b[4m\tGPU0\tGPU1")
    assert lines[1].split("\t")[:6] == ["GPU0", " X ", "NODE", "NODE", "NODE", "SYS"]
    assert lines[1].split("\t")[10] == "0"
    status, lines = ask("topo", "-p2p", "r")
    assert (status, lines[1].split()) == (0, ["GPU0", "X", *["OK"] * 7])
    assert ask("topo", "-x")[0] == 1


def test_the_table_is_straight_and_names_processes(ask: Any, tmp_path: Path) -> None:
    """Every line as wide as its frame, idle and busy."""
    idle = ask()[1]
    assert "No running processes found" in "\n".join(idle)
    engine(tmp_path)
    busy = ask()[1]
    assert "88000MiB" in "\n".join(busy)
    for lines in (idle, busy):
        assert {len(line) for line in lines if line[:1] in "+|" and line} == {91}


def test_noise_is_the_same_within_a_second() -> None:
    """Two readings agree, and the next second differs."""
    one, same, later = (Card(3, 1000.0, 50.0, 200.0, second) for second in (7, 7, 8))
    assert vars(one) == vars(same)
    assert vars(one) != vars(later)


def test_a_loop_is_flushed_at_every_tick_and_ends_with_its_reader(tmp_path: Path) -> None:
    """Through a pipe, where a block buffer would hold the rows back."""
    command = [sys.executable, "-m", "ddconsole.demo.nvidia_smi", "--query-gpu=index", "--format=csv,noheader"]
    process = subprocess.Popen(
        [*command, "-lms", "20"], stdout=subprocess.PIPE, env=os.environ | {"DDCONSOLE_DEMO_HOME": str(tmp_path)}
    )
    assert process.stdout is not None
    with process.stdout:
        rows = [process.stdout.readline() for _ in range(20)]
    assert rows == [f"{number % 8}\n".encode() for number in range(20)]
    assert process.wait(5) == 141


def test_the_program_imports_nothing_heavy() -> None:
    """A console polls it: its start has to stay cheap."""
    code = (
        "import sys; import ddconsole.demo.nvidia_smi; "
        "print([m for m in ('asyncssh', 'pydantic', 'asyncio', 'dataclasses', 'subprocess') if m in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"

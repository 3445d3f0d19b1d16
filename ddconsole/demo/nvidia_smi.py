"""`nvidia-smi` of the demo host: the options that a console uses, in nvidia-smi's own formats.

Standard library only, and little of it: a console polls this program, so its start has to be cheap.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from ddconsole.demo.nvidia_smi_cards import (
    CUDA,
    DRIVER,
    MEMORY_MIB,
    NAME,
    POWER_LIMIT_W,
    App,
    Card,
    bus_id,
    process_name,
    read_cards,
    uuid,
)
from ddconsole.demo.nvidia_smi_fields import APP_FIELDS, FIELDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_HEADER_NAMES = {"used_memory": "used_gpu_memory [MiB]"}

# --- what is printed


class BadUsage(Exception):  # noqa: N818 - the text is nvidia-smi's, not an error of ours
    """Told on stdout with its exit status, as nvidia-smi does."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class Query:
    """A `--query-…` and how it is printed."""

    def __init__(self, table: Mapping[str, tuple[str, Callable[[Any], object]]], fields: str, *, of_apps: bool) -> None:
        self.table = table
        self.fields = [field.strip() for field in fields.split(",") if field.strip()]
        self.of_apps = of_apps
        for field in self.fields:
            if field not in table:
                raise BadUsage(f'Field "{field}" is not a valid field to query.\n', 2)

    def header(self) -> str:
        """The line of names, with their units."""
        return ", ".join(self._title(field) for field in self.fields)

    def _title(self, field: str) -> str:
        unit = self.table[field][0]
        return _HEADER_NAMES.get(field) or (f"{field} [{unit}]" if unit else field)

    def row(self, thing: Card | App, units: bool) -> str:
        """One line of values."""
        return ", ".join(self._cell(field, thing, units) for field in self.fields)

    def _cell(self, field: str, thing: Card | App, units: bool) -> str:
        unit, read = self.table[field]
        text = str(read(thing))
        return f"{text} {unit}" if unit and units else text


class Request:
    """The command line, understood."""

    def __init__(self) -> None:
        self.query: Query | None = None
        self.format: set[str] = set()
        self.every_s = 0.0
        self.indices: list[str] | None = None
        self.listing = False

    def selects(self, card: Card) -> bool:
        """Whether `-i` leaves this card in."""
        wanted = self.indices
        return wanted is None or bool({str(card.index), uuid(card.index), bus_id(card.index)} & set(wanted))


VALUE_OPTIONS = {
    "-i": "id",
    "--id": "id",
    "-l": "loop",
    "--loop": "loop",
    "-lms": "loop-ms",
    "--loop-ms": "loop-ms",
    "--format": "format",
    "--query-gpu": "query-gpu",
    "--query-compute-apps": "query-compute-apps",
}


def parse(args: list[str]) -> Request:
    """Read the options that consoles use; `--name=value`, `--name value` and `-lms value` alike.

    Raises:
        BadUsage: an option that this nvidia-smi does not have, or a field that no nvidia-smi has.
    """
    request, words = Request(), list(args)
    while words:
        name, equals, value = words.pop(0).partition("=")
        if name == "-L" or name == "--list-gpus":
            request.listing = True
        elif name in VALUE_OPTIONS:
            if not equals:
                value = words.pop(0) if words and not words[0].startswith("-") else _default(name)
            _set(request, VALUE_OPTIONS[name], value)
        else:
            raise BadUsage(f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n{name}", 1)
    if request.query is not None and "csv" not in request.format:
        raise BadUsage("\"--format=\" switch is missing. Please run 'nvidia-smi -h' for help.\n", 1)
    return request


def _default(name: str) -> str:
    if name in ("-l", "--loop"):
        return "5"
    raise BadUsage(f"Option {name} is missing its value. Please run 'nvidia-smi -h' for help.", 1)


def _set(request: Request, option: str, value: str) -> None:
    if option == "query-gpu":
        request.query = Query(FIELDS, value, of_apps=False)
    elif option == "query-compute-apps":
        request.query = Query(APP_FIELDS, value, of_apps=True)
    elif option == "format":
        request.format = {part.strip() for part in value.split(",")}
    elif option == "id":
        request.indices = [part.strip() for part in value.split(",")]
    else:
        request.every_s = _interval(option, value)


def _interval(option: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = 0.0
    if number <= 0:
        raise BadUsage(f"Invalid loop interval '{value}'. Please run 'nvidia-smi -h' for help.", 1)
    return number / 1000 if option == "loop-ms" else number


def print_once(request: Request, home: str, *, first: bool) -> None:
    """One answer, flushed as a whole."""
    all_cards, apps = read_cards(home, int(time.time()))
    cards = [card for card in all_cards if request.selects(card)]
    if request.listing:
        lines = [f"GPU {card.index}: {NAME} (UUID: {uuid(card.index)})" for card in cards]
    elif request.query is None:
        lines = table_lines(cards, apps)
    else:
        chosen = {card.index for card in cards}
        things = [app for app in apps if app.card in chosen] if request.query.of_apps else cards
        lines = [request.query.header()] if first and "noheader" not in request.format else []
        lines += [request.query.row(thing, "nounits" not in request.format) for thing in things]
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


def table_lines(cards: list[Card], apps: list[App]) -> list[str]:
    """The table for people."""
    rule = "+" + "-" * 41 + "+" + "-" * 24 + "+" + "-" * 22 + "+"
    versions = f"| NVIDIA-SMI {DRIVER:<18} Driver Version: {DRIVER:<14} CUDA Version: {CUDA:<6} "
    lines = [time.strftime("%a %b %e %H:%M:%S %Y"), "+" + "-" * 89 + "+", f"{versions:<90}|", rule]
    lines += [
        f"| {'GPU  Name':<26}{'Persistence-M':>13} | {'Bus-Id':<15}{'Disp.A':>7} | {'Volatile Uncorr. ECC':>20} |",
        f"| {'Fan  Temp   Perf':<21}{'Pwr:Usage/Cap':>18} | {'Memory-Usage':>22} | {'GPU-Util  Compute M.':>20} |",
        rule.replace("-", "="),
    ]
    for card in cards:
        fan = f"{30 + card.utilization // 4}%"
        state = f"{fan:>4}   {card.celsius}C    {'P1' if card.awake else 'P8'}"
        power = f"{card.power:.0f}W / {POWER_LIMIT_W:.0f}W"
        memory = f"{card.used}MiB / {MEMORY_MIB}MiB"
        lines += [
            f"| {card.index:>3}  {NAME[:28] + '...':<32}On | {bus_id(card.index):<17}{'Off':>5} | {'Off':>20} |",
            f"|{state:<22}{power:>18} | {memory:>22} | {str(card.utilization) + '%':>8} {'Default':>11} |",
            rule,
        ]
    return [*lines, "", *_process_lines(apps)]


def _process_lines(apps: list[App]) -> list[str]:
    edge = "+" + "-" * 89 + "+"
    head = f"| {'Processes:':<88}|"
    names = f"|  GPU   GI   CI        PID   Type   {'Process name':<37}{'GPU Memory':>15} |"
    if not apps:
        return [edge, head, names, edge.replace("-", "="), f"|  {'No running processes found':<87}|", edge]
    rows = [
        f"|  {index:>3}   N/A  N/A {pid:>10}     C   {process_name(pid)[-36:]:<37}{str(memory) + 'MiB':>15} |"
        for pid, index, memory in apps
    ]
    return [edge, head, names, edge.replace("-", "="), *rows, edge]


def main(args: list[str]) -> int:
    """Answer once, or every so often until nobody reads any more. Returns the exit status."""
    if args in (["--version"], ["-V"]):
        sys.stdout.write(
            f"NVIDIA-SMI version  : {DRIVER}\nDRIVER version      : {DRIVER}\nCUDA Version        : {CUDA}\n"
        )
        return 0
    if args and args[0] in ("-h", "--help"):
        sys.stdout.write(
            "nvidia-smi of ddconsole's demo host\n\n"
            + "\n".join(sorted(VALUE_OPTIONS))
            + "\n-L\n--version\ntopo -m\ntopo -p2p r\n"
        )
        return 0
    if args and args[0] == "topo":
        from ddconsole.demo.nvidia_smi_topo import topo

        status, text = topo(args[1:])
        sys.stdout.write(text)
        return status
    home = os.environ.get("DDCONSOLE_DEMO_HOME", ".")
    try:
        request = parse(args)
        print_once(request, home, first=True)
        due = time.monotonic()
        while request.every_s:
            due = max(due + request.every_s, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
            print_once(request, home, first=False)
    except BadUsage as refusal:
        sys.stdout.write(f"{refusal}\n")
        return refusal.status
    return 0


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:  # the reader has gone, which is how a console ends a loop
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 141
    sys.exit(status)

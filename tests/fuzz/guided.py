"""Coverage-guided fuzzing of every reader: `make fuzz`. Not part of `make test`; needs atheris (libFuzzer for Python).

    python -m fuzz.guided --seconds 30            every reader, 30 s each, two side by side
    python -m fuzz.guided --seconds 600 sse       one of them, longer

Each reader is a process of its own, for libFuzzer ends the process that it runs in. What it learns is kept in
`build/fuzz/corpus`; an input that makes a reader raise what it does not promise, take longer than two seconds, or hold
more than 1 GB is written to `build/fuzz/found/NAME`, and belongs, once mended, into `tests/fuzz/corpus/NAME`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from fuzz.targets import TARGETS, by_name, corpus

BUILD = Path(__file__).parents[2] / "build" / "fuzz"
MAX_BYTES = 16_384
_STATS = re.compile(r"#(\d+)\s+(?:DONE|RELOAD|pulse|NEW|REDUCE)\s+cov: (\d+) ft: (\d+)(?: corp: (\d+))?")


@dataclass(frozen=True)
class Report:
    """What the fuzzing of one reader came to. `found` are files with inputs that broke it."""

    name: str
    runs: int
    coverage: int
    inputs: int
    found: tuple[Path, ...]
    said: str


def fuzz(name: str, seconds: int) -> Report:
    """Fuzz one reader in a process of its own."""
    folder, found = BUILD / "corpus" / name, BUILD / "found" / name
    folder.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(corpus(by_name(name))):
        (folder / f"seed-{number}").write_bytes(seed[:MAX_BYTES])
    before = set(found.iterdir())
    options = [f"-max_total_time={seconds}", f"-max_len={MAX_BYTES}", "-timeout=2", "-rss_limit_mb=1024",
               f"-artifact_prefix={found}/"]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "fuzz.guided", "--inside", name, str(folder), *options],
        capture_output=True, text=True, timeout=seconds + 120, check=False,
    )  # fmt: skip
    last = _STATS.findall(done.stderr)[-1:] or [("0", "0", "0", "0")]
    runs, coverage, _, inputs = (int(word or 0) for word in last[0])
    news = tuple(sorted(set(found.iterdir()) - before))
    failed = bool(news) or done.returncode != 0
    said = f"ended with {done.returncode}\n{done.stdout[-3_000:]}{done.stderr[-1_500:]}"
    return Report(name, runs, coverage, inputs, news, said if failed else "")


def inside(name: str, arguments: Sequence[str]) -> None:
    """The process of one reader: never returns."""
    import atheris

    with atheris.instrument_imports(include=["ddconsole"]):
        for module in [each for each in sys.modules if each.split(".")[0] in ("ddconsole", "fuzz")]:
            if module != "__main__":
                del sys.modules[module]
        from fuzz.targets import attempt
        from fuzz.targets import by_name as instrumented

    target = instrumented(name)
    atheris.Setup([sys.argv[0], *arguments], lambda data: attempt(target, data))
    atheris.Fuzz()


def main() -> int:
    """Fuzz, print a table, and fail when anything was found."""
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2], sys.argv[3:])
    parser = argparse.ArgumentParser(description="coverage-guided fuzzing of every reader")
    parser.add_argument("--seconds", type=int, default=30, help="for each reader")
    parser.add_argument("--beside", type=int, default=2, help="readers side by side")
    parser.add_argument("names", nargs="*", default=[target.name for target in TARGETS])
    asked = parser.parse_args()
    print(f"{'reader':14} {'inputs run':>11} {'edges':>7} {'kept':>6}  found")
    bad = 0
    with ThreadPoolExecutor(asked.beside) as pool:
        for report in pool.map(lambda name: fuzz(name, asked.seconds), asked.names):
            words = ", ".join(path.name for path in report.found) or ("stopped" if report.said else "nothing")
            print(f"{report.name:14} {report.runs:>11,} {report.coverage:>7,} {report.inputs:>6,}  {words}", flush=True)
            if report.said:
                bad += 1
                print(report.said)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

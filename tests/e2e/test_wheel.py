"""What is installed elsewhere is whole: the stylesheets, the shipped profiles and the demo's data are in the wheel."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Files of a wheel built from this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist())


def test_every_file_of_the_package_is_in_the_wheel(names: set[str]) -> None:
    """Not only Python: a missing stylesheet or corpus would be found out by a user."""
    package = ROOT / "ddconsole"
    files = {f"ddconsole/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if path.is_file()}
    assert {name for name in files if "__pycache__" not in name} <= names


def test_the_shipped_profiles_are_in_the_wheel(names: set[str]) -> None:
    """`ddconsole run demo` needs no checkout."""
    for profile in (ROOT / "profiles").glob("*.yaml"):
        assert f"ddconsole/_profiles/{profile.name}" in names

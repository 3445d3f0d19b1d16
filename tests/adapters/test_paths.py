"""Where the console keeps its files, and in which order a profile's name is looked for."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import pytest

from ddconsole.adapters import paths
from ddconsole.core.errors import StoreError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, and an empty working directory."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv(paths.HOME_VARIABLE, str(tmp_path / "home"))
    return tmp_path / "home"


def put(folder: Path, name: str) -> Path:
    """A file that is only found, never read."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("", encoding="utf-8")
    return path


def test_one_variable_moves_every_folder(home: Path) -> None:
    """DDCONSOLE_HOME puts config, data and state below one folder."""
    found = paths.Paths.from_environment()
    assert (found.config, found.data, found.state) == (home / "config", home / "data", home / "state")
    assert found.database == home / "data" / "ddconsole.db"


def test_without_the_variable_the_systems_places_are_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On Linux these are the XDG folders, each with our name in it."""
    monkeypatch.delenv(paths.HOME_VARIABLE)
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    found = paths.Paths.from_environment()
    assert len({found.config, found.data, found.state}) == 3
    assert all(tmp_path in folder.parents and paths.APP in folder.parts for folder in (found.config, found.data))


def test_a_relative_home_does_not_move_with_the_working_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The folders are absolute, whatever was typed."""
    monkeypatch.setenv(paths.HOME_VARIABLE, "x")
    assert paths.Paths.from_environment().data == tmp_path / "here" / "x" / "data"


def test_folders_and_files_are_private(home: Path) -> None:
    """700 for every folder that we made, 600 for files."""
    folder = paths.private_dir(home / "a" / "b")
    paths.create_private_file(folder / "f")
    for path, mode in ((home, 0o700), (home / "a", 0o700), (folder, 0o700), (folder / "f", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_folder_and_a_file_that_are_there_are_left_as_they_are(home: Path) -> None:
    """Someone chose that mode."""
    path = put(home, "f")
    home.chmod(0o755)
    path.chmod(0o640)
    path.write_text("kept", encoding="utf-8")
    paths.private_dir(home)
    paths.create_private_file(path)
    assert stat.S_IMODE(home.stat().st_mode) == 0o755
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert path.read_text(encoding="utf-8") == "kept"


def test_a_folder_that_cannot_be_made_says_what_to_do(home: Path) -> None:
    """A file stands where the folder should be."""
    put(home, "data")
    with pytest.raises(StoreError, match="cannot be made") as told:
        paths.private_dir(home / "data" / "deeper")
    assert paths.HOME_VARIABLE in told.value.advice


def test_a_name_is_looked_for_here_then_in_the_users_profiles_then_in_the_shipped_ones(home: Path) -> None:
    """The first folder that has it wins."""
    assert paths.find_profile("demo") == paths.shipped_profiles() / "demo.yaml"
    own = put(home / "config" / "profiles", "demo.yml")
    assert paths.find_profile("demo") == own
    put(home.parent / "here" / "profiles", "demo.yaml")
    assert paths.find_profile("demo").resolve() == home.parent / "here" / "profiles" / "demo.yaml"


@pytest.mark.parametrize("name", ["./x.yaml", "x.yaml", "x.yml"])
def test_what_looks_like_a_path_is_one(name: str, home: Path) -> None:
    """A slash or a YAML suffix makes a path; the profile folders are not searched for it."""
    put(home / "config" / "profiles", "x.yaml")
    with pytest.raises(UsageError, match="no profile file"):
        paths.find_profile(name)
    put(home.parent / "here", name)
    assert paths.find_profile(name).name == name.removeprefix("./")


def test_an_unknown_name_names_the_nearest_and_the_places(home: Path) -> None:
    """Exit code 2, with what would have been found and where it was looked for."""
    with pytest.raises(UsageError, match="no profile named dmeo; did you mean demo") as told:
        paths.find_profile("dmeo")
    assert told.value.exit_code == 2
    assert str(home / "config" / "profiles") in told.value.advice


def test_known_profiles_are_those_that_their_names_find(home: Path) -> None:
    """A profile of the user's hides a shipped one of the same name; other files are no profiles."""
    own = put(home / "config" / "profiles", "demo.yaml")
    put(home / "config" / "profiles", "notes.txt")
    known = paths.known_profiles()
    assert known["demo"] == own
    assert {"ct200", "demo"} <= known.keys()
    assert "notes" not in known
    assert all(paths.find_profile(name) == path for name, path in known.items())

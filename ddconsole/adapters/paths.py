"""Every folder and file place of the console. Nothing else in the project asks where a home is.

`DDCONSOLE_HOME` puts everything below one folder (`config/`, `data/`, `state/`); without it the system's own
places are used (XDG on Linux, Library on macOS). Folders that we make have mode 700, files 600.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import platformdirs

import ddconsole
from ddconsole.core.errors import RefusedError, StoreError, UsageError
from ddconsole.core.nearest import nearest

APP = "ddconsole"
HOME_VARIABLE = "DDCONSOLE_HOME"
READ_ONLY_VARIABLE = "DDCONSOLE_READ_ONLY"
FOLDER_MODE = 0o700
FILE_MODE = 0o600
PROFILE_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Paths:
    """The console's folders. Nothing is made by asking.

    Attributes:
        config: the user's own files: `profiles/` and settings.
        data: the store.
        state: logs, locks, and state files of things that run.
    """

    config: Path
    data: Path
    state: Path

    @classmethod
    def from_environment(cls) -> Paths:
        """Below `DDCONSOLE_HOME` where that is set, else in the system's places."""
        home = os.environ.get(HOME_VARIABLE)
        if home:
            below = Path(home).expanduser().absolute()
            return cls(below / "config", below / "data", below / "state")
        return cls(
            platformdirs.user_config_path(APP), platformdirs.user_data_path(APP), platformdirs.user_state_path(APP)
        )

    @property
    def database(self) -> Path:
        """The store's file."""
        return self.data / "ddconsole.db"

    @property
    def profiles(self) -> Path:
        """Profiles of the user's own."""
        return self.config / "profiles"


def is_read_only() -> bool:
    """Whether this process was asked to change nothing, by `--read-only` or its variable."""
    return os.environ.get(READ_ONLY_VARIABLE, "").lower() not in ("", "0", "no", "false")


def refuse_change() -> RefusedError:
    """What every change is answered in a process that shall change nothing."""
    return RefusedError(
        "this ddconsole is read-only: nothing was changed",
        advice=f"start it without --read-only, and without {READ_ONLY_VARIABLE} in the environment",
    )


def shipped_profiles() -> Path:
    """The profiles that came with the program: in the installed package, else beside it in a checkout."""
    package = Path(ddconsole.__file__).resolve().parent
    installed = package / "_profiles"
    return installed if installed.is_dir() else package.parent / "profiles"


def private_dir(path: Path) -> Path:
    """Make a folder, and what is missing above it, for its owner alone; one that is there is left as it is.

    Raises:
        StoreError: it cannot be made.
    """
    try:
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        for folder in reversed(missing):
            with contextlib.suppress(FileExistsError):
                folder.mkdir(mode=FOLDER_MODE)
    except OSError as error:
        raise StoreError(
            f"the folder {path} cannot be made: {error.strerror or error}",
            advice=f"make it writable, or set {HOME_VARIABLE} to a folder that is",
        ) from error
    return path


def create_private_file(path: Path) -> None:
    """Make an empty file for its owner alone, unless it is there already.

    Raises:
        OSError: it cannot be made.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))


def profile_folders() -> tuple[Path, ...]:
    """Where a profile's name is looked for, in this order."""
    return (Path("profiles"), Paths.from_environment().profiles, shipped_profiles())


def is_profile_path(name: str) -> bool:
    """Whether `name` is meant as a path rather than as a profile's name."""
    return "/" in name or name.endswith(PROFILE_SUFFIXES)


def find_profile(name: str) -> Path:
    """The file of a profile: a path as it is, a name by the search order.

    Raises:
        UsageError: there is none; the error names the places and the nearest name.
    """
    if is_profile_path(name):
        path = Path(name).expanduser()
        if path.is_file():
            return path
        advice = "give a file that exists, or a name: `ddconsole profiles list`"
        raise UsageError(f"no profile file {name}", advice=advice)
    for folder in profile_folders():
        for suffix in PROFILE_SUFFIXES:
            path = folder / f"{name}{suffix}"
            with contextlib.suppress(OSError, ValueError):  # a name too long for a file, or no name at all
                if path.is_file():
                    return path
    raise _unknown_profile(name)


def known_profiles() -> dict[str, Path]:
    """Every profile that a name finds, by name; an earlier folder hides a later one."""
    found: dict[str, Path] = {}
    for folder in profile_folders():
        if not folder.is_dir():
            continue
        for path in sorted(folder.iterdir()):
            if path.suffix in PROFILE_SUFFIXES and path.is_file():
                found.setdefault(path.stem, path)
    return found


def _unknown_profile(name: str) -> UsageError:
    known = known_profiles()
    near = nearest(name, known)
    return UsageError(
        f"no profile named {name}" + (f"; did you mean {near}?" if near else ""),
        evidence=(f"known: {', '.join(known)}" if known else "no profile is known",),
        advice="looked in " + ", ".join(str(folder) for folder in profile_folders()) + "; a path works too",
    )

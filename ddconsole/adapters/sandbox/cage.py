"""The ways to hold a program on this machine, best first: bubblewrap, namespaces of our own, limits alone."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import pwd
import re
import secrets
import shutil
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ddconsole.adapters.sandbox import jail as sandbox_jail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 65534
"""The user that a root console drops to: the limit on processes does not bind root."""

OWN_USERS = range(61184, 65520)
"""Users that systemd gives to services for as long as they run (its `DynamicUser=`): none of them owns anything."""

OWN_USER_TRIES = 8

TMP_BYTES = 64 * 1024 * 1024
"""Room in the private temporary folder."""

FILE_BYTES = 16 * 1024 * 1024
"""The largest file that the program may write."""

PROCESSES = 64
"""Processes and threads that the program may have at once; its keeper counts them."""

KEEPERS = 8
"""Room in the kernel's limit for those that hold the program: the keeper has to see an excess, not to suffer it."""

INSIDE = ("telling", "keeper", "boot")
"""Modules that run inside, as text: the console's own files are not seen there."""

LOADER = """import sys, types
for name, text in {modules!r}:
    sys.modules[name] = module = types.ModuleType(name)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""

OPEN_FILES = 64

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")
HOME_FOLDERS = ("/home", "/root", "/Users")
HIDDEN_FOLDERS = ("/home", "/root", "/tmp", "/var/tmp", "/run", "/dev/shm", "/mnt", "/media")

USER_LIMITS_IN_NAMESPACES = (5, 14)
"""Since this kernel the limit on processes counts those of the user namespace, not all of the user's."""


@dataclass(frozen=True, slots=True)
class Cage:
    """One way to hold a program.

    Attributes:
        isolation: `bubblewrap`, `namespace` or `rlimits`.
        wrap: turns the argv of the program into the argv that holds it.
        uid: the user that the program becomes, or None to stay who we are.
        counts_alone: the limit on processes counts only the program's own.
        gentle_stop: TERM first, so that the reaper can end children that left their group.
    """

    isolation: str
    wrap: Callable[[list[str]], list[str]]
    uid: int | None = None
    counts_alone: bool = False
    gentle_stop: bool = False

    def argv(self, wall_s: float, memory_mb: int, report: int) -> list[str]:
        """The whole command for a program on standard input. Its keeper writes the verdict to descriptor `report`."""
        uid = None if self.uid is None else own_user()
        spec = {
            "uid": uid,
            "limits": self._limits(wall_s, memory_mb, uid),
            "report": report,
            "tasks": PROCESSES,
            "memory": memory_mb * 1024 * 1024,
            "homes": sorted({*HOME_FOLDERS, *homes()}),
            "keep": python_folders(),
            "guard": self.isolation == "rlimits",
        }
        return self.wrap([interpreter(), "-I", "-S", "-c", boot_source(), json.dumps(spec)])

    def _limits(self, wall_s: float, memory_mb: int, own: int | None) -> dict[str, int]:
        limits = {
            "RLIMIT_CPU": int(wall_s) + 1,
            "RLIMIT_AS": memory_mb * 1024 * 1024,
            "RLIMIT_FSIZE": FILE_BYTES,
            "RLIMIT_NOFILE": OPEN_FILES,
            "RLIMIT_CORE": 0,
        }
        if sys.platform.startswith("linux"):
            uid = os.getuid() if own is None else own
            limits["RLIMIT_NPROC"] = PROCESSES + KEEPERS + (0 if self.counts_alone else tasks_of(uid))
        return limits


def cages() -> Iterator[Cage]:
    """Every way that this machine might allow, best first. Whether one holds is found out by trying it."""
    root = os.geteuid() == 0
    namespaces_count = kernel() >= USER_LIMITS_IN_NAMESPACES
    if sys.platform.startswith("linux"):
        program = shutil.which("bwrap")
        if program and root:
            yield Cage("bubblewrap", lambda argv: [*bubblewrap_argv(program, own_users=False), *argv], NOBODY)
        if program:
            yield Cage(
                "bubblewrap", lambda argv: [*bubblewrap_argv(program, own_users=True), *argv], None, namespaces_count
            )
        if root:
            yield Cage("namespace", lambda argv: jail_argv(argv, namespace=True), NOBODY)
        yield Cage("namespace", lambda argv: jail_argv(argv, namespace=True), None, namespaces_count)
        if root and open_to_all(interpreter()):
            yield Cage("rlimits", lambda argv: jail_argv(argv, namespace=False), NOBODY, gentle_stop=True)
        yield Cage("rlimits", lambda argv: jail_argv(argv, namespace=False), gentle_stop=True)
    yield Cage("rlimits", lambda argv: argv)


def bubblewrap_argv(program: str, *, own_users: bool) -> list[str]:
    """bubblewrap's command line up to the program.

    `own_users` makes a user namespace; without it a root bubblewrap keeps just what dropping to another user needs.
    """
    argv = [program, "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    argv += ["--die-with-parent", "--new-session", "--cap-drop", "ALL"]
    if own_users:
        argv += ["--unshare-user", "--uid", str(NOBODY), "--gid", str(NOBODY)]
    else:
        argv += ["--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            argv += ["--ro-bind", path, path]
    for path in SYSTEM_FILES:
        argv += ["--ro-bind-try", path, path]
    for path in python_folders():
        if not sandbox_jail.is_below(path, "/usr"):
            for parent in [*reversed(Path(path).parents)][1:]:
                argv += ["--perms", "0755", "--dir", str(parent)]
            argv += ["--ro-bind", path, path]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    for path in ("/tmp", "/dev/shm"):
        argv += ["--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs", path]
    return [*argv, "--remount-ro", "/", "--chdir", "/tmp", "--"]


def jail_argv(argv: list[str], *, namespace: bool) -> list[str]:
    """Our own jail's command line around `argv`."""
    spec = {
        "namespace": namespace,
        "argv": argv,
        "hide": hidden_folders(),
        "keep": python_folders(),
        "inner_uid": os.geteuid() or NOBODY,
    }
    return [interpreter(), "-I", "-S", str(Path(sandbox_jail.__file__).resolve()), json.dumps(spec)]


@cache
def interpreter() -> str:
    """This interpreter's own file, behind every link and virtual environment."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


@cache
def python_folders() -> list[str]:
    """What the interpreter needs to start, outermost folders first."""
    wanted = {os.path.realpath(path) for path in (sys.base_prefix, sys.base_exec_prefix, os.path.dirname(os.__file__))}
    wanted.add(os.path.dirname(interpreter()))
    outermost = [p for p in wanted if not any(p != q and sandbox_jail.is_below(p, q) for q in wanted)]
    return sorted(outermost)


@cache
def boot_source() -> str:
    """The program that runs inside: our modules as text, and the call of the last one."""
    package, folder = __name__.rpartition(".")[0], Path(__file__).parent
    parents = [".".join(package.split(".")[: depth + 1]) for depth in range(package.count(".") + 1)]
    modules = [(f"{package}.{name}", (folder / f"{name}.py").read_text("utf-8")) for name in INSIDE]
    return LOADER.format(modules=[*((parent, "") for parent in parents), *modules])


@cache
def homes() -> list[str]:
    """This user's home folders: the environment's and the system's."""
    found = {os.path.realpath(Path.home())}
    with contextlib.suppress(KeyError):
        found.add(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    return sorted(path for path in found if path != "/")


def hidden_folders() -> list[str]:
    """What the program sees as empty: homes, temporary folders, sockets, other disks. Outer folders come first."""
    return sorted({*HIDDEN_FOLDERS, *homes()}, key=len)


def open_to_all(path: str) -> bool:
    """Any user can reach and read `path`."""
    folders = [*Path(path).parents]
    return all(folder.stat().st_mode & 0o001 for folder in folders) and bool(Path(path).stat().st_mode & 0o004)


def own_user() -> int:
    """A user that runs nothing else, of those that systemd hands out for a while; nobody where there are none.

    The limit on processes counts all of a user's: two programs under one user would end each other.
    """
    for _ in range(OWN_USER_TRIES):
        uid = OWN_USERS.start + secrets.randbelow(len(OWN_USERS))
        if is_mapped(uid) and not tasks_of(uid):
            return uid
    return NOBODY


def is_mapped(uid: int) -> bool:
    """A process here may become that user; in a container not every number is one."""
    with contextlib.suppress(OSError, ValueError):
        rows = [line.split() for line in Path("/proc/self/uid_map").read_text("ascii").splitlines()]
        return any(int(first) <= uid < int(first) + int(count) for first, _, count in rows)
    return False


def kernel() -> tuple[int, int]:
    """The kernel's version, (0, 0) where it says none."""
    found = re.match(r"(\d+)\.(\d+)", platform.release())
    return (int(found[1]), int(found[2])) if found else (0, 0)


def tasks_of(uid: int) -> int:
    """Processes and threads that a user has now."""
    count = 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{name}").st_uid == uid:
                    count += len(os.listdir(f"/proc/{name}/task"))
    return count

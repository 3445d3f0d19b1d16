"""Holds a program in namespaces of its own, or at least keeps hold of all its children. Run as a program on Linux.

Executed as `python -I -S sandbox_jail.py SPEC`, so: standard library only. SPEC is a JSON object:
`{"namespace": bool, "argv": […], "hide": [folders], "keep": [folders], "inner_uid": int}`.

With `namespace` the program sees no network, no home, private temporary folders, its own processes only, and a
read-only system; whoever may create user namespaces may do that, without any installed tool. Without, it is a child
whose descendants are all ended when it ends: this process is their reaper.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
from typing import Any, NoReturn

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
NAMESPACES = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
SYS_MOUNT_SETATTR = 442
"""The same number on every architecture."""
AT_FDCWD, AT_RECURSIVE = -100, 0x8000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID = 1, 2
O_PATH = 0o10000000

libc = ctypes.CDLL(None, use_errno=True)


class MountAttr(ctypes.Structure):
    """`struct mount_attr` of mount_setattr(2)."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("attr_set", "attr_clr", "propagation", "userns_fd")]


def check(result: int, what: str) -> None:
    """Raise the error of a libc call that failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    check(libc.mount(*texts, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def die_with_parent() -> None:
    """Be killed when the process that started this one dies."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def unshare(inner_uid: int) -> None:
    """Leave the namespaces of the system: as root directly, as anyone else through a user namespace."""
    uid, gid = os.geteuid(), os.getegid()
    if uid == 0 and libc.unshare(NAMESPACES) == 0:
        return
    check(libc.unshare(NAMESPACES | CLONE_NEWUSER), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{inner_uid} {uid} 1"), ("gid_map", f"{inner_uid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def arrange_files(hide: list[str], keep: list[str]) -> None:
    """A read-only system without homes, with empty temporary folders; `keep` stays where it lies in a hidden one."""
    mount("none", "/", None, MS_REC | MS_PRIVATE)
    kept = [(path, os.open(path, O_PATH)) for path in keep if any(is_below(path, folder) for folder in hide)]
    attributes = MountAttr(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID, 0, 0, 0)
    arguments = (AT_FDCWD, b"/", AT_RECURSIVE, ctypes.byref(attributes), ctypes.sizeof(attributes))
    check(libc.syscall(SYS_MOUNT_SETATTR, *arguments), "read-only system")
    for folder in hide:
        if os.path.isdir(folder) and not os.path.islink(folder):
            mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777,size=64m")
    for path, descriptor in kept:
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)
        os.close(descriptor)
    try:
        mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:
        mount("tmpfs", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=555,size=4k")
    os.chdir("/tmp")


def is_below(path: str, folder: str) -> bool:
    """`path` is `folder` or lies in it."""
    return os.path.commonpath([path, folder]) == folder


def children() -> list[int]:
    """Pids of this process's direct children, found in /proc."""
    me = str(os.getpid())
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[1].decode() == me:
                found.append(int(name))
    return found


def end_children() -> None:
    """End every descendant: orphans come to this process, which is their reaper, until none is left."""
    while True:
        pids = children()
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            for pid in pids or [-1]:
                os.waitpid(pid, 0 if pids else os.WNOHANG)
        except ChildProcessError:
            if not pids:
                return


def exit_as(status: int) -> NoReturn:
    """End with a wait status as a shell would tell it: 128 + signal."""
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def start(argv: list[str]) -> int:
    """Start the program as a child that dies with this process; returns its pid."""
    worker = os.fork()
    if worker == 0:
        die_with_parent()
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        os.execv(argv[0], argv)
    return worker


def wait_for(worker: int) -> int:
    """The wait status of `worker`; orphans that come here meanwhile are reaped."""
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == worker:
            return status


def run_and_reap(argv: list[str]) -> NoReturn:
    """Run `argv`, end all that it left behind, and end as it did. TERM ends it early."""
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def stop(_signal: int, _frame: object) -> None:
        end_children()
        os._exit(128 + signal.SIGKILL)

    signal.signal(signal.SIGTERM, stop)
    status = wait_for(start(argv))
    end_children()
    exit_as(status)


def run_in_namespace(spec: dict[str, Any]) -> NoReturn:
    """Run the program under a first process of its own, whose end is the end of all of them."""
    unshare(spec["inner_uid"])
    die_with_parent()  # again: a change of credentials clears it
    first = os.fork()
    if first == 0:
        die_with_parent()
        arrange_files(spec["hide"], spec["keep"])
        exit_as(wait_for(start(spec["argv"])))
    exit_as(wait_for(first))


def main() -> NoReturn:
    """Enter the jail that SPEC describes and run its program there."""
    spec: dict[str, Any] = json.loads(sys.argv[1])
    die_with_parent()
    if spec["namespace"]:
        run_in_namespace(spec)
    run_and_reap(spec["argv"])


if __name__ == "__main__":
    main()

"""Names what stopped a program, by the exception that it did not catch. Runs in the sandbox: stdlib only.

An `OSError` alone does not say what was wanted: EAGAIN may come from a fork or from a pipe. The interpreter's audit
events do, so the last one that matters is kept. Where nothing else holds a program (`rlimits`), the same events are
refused: that stops Python's own calls, not another program and not ctypes.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType

FORKS = {"os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "os.system", "subprocess.Popen"}
TALKS = {"socket.connect", "socket.bind", "socket.sendto", "socket.sendmsg"}
LOOK_UPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo"}
KILLS = {"os.kill", "os.killpg"}
LOOKS = {"open", "os.listdir", "os.scandir", "os.chdir", "os.remove", "os.rename", "os.mkdir", "os.rmdir"}
LOOKS |= {"os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown", "shutil.rmtree"}
WANTS = {"processes": FORKS, "network": TALKS | LOOK_UPS, "parent": KILLS}

OUT_OF_ROOM = {errno.EFBIG, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.EROFS}
CUT_OFF = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ECONNREFUSED, errno.EADDRNOTAVAIL}
DENIED = {errno.EACCES, errno.EPERM}

MAX_CAUSES = 10


class Notes:
    """What the program last asked of the system.

    Attributes:
        homes: folders that are none of its business; `keep` may lie in them, and is.
        guard: refuse the home, the network and other processes here, since no namespace does.
    """

    def __init__(self, homes: list[str], keep: list[str], *, guard: bool) -> None:
        self.homes, self.keep, self.guard = homes, keep, guard
        self.wanted = ""
        self._asked_at: tuple[CodeType | None, int] = (None, 0)

    def hear(self, event: str, args: tuple[Any, ...]) -> None:
        """The audit hook."""
        if event in LOOKS and self.guard:
            self._guard_files(event, args)
        for word, events in WANTS.items():
            if event in events:
                caller = sys._getframe(1)
                self.wanted, self._asked_at = word, (caller.f_code, caller.f_lineno)
                if self.guard and self._is_foreign(event, args):
                    raise PermissionError(errno.EACCES, f"the sandbox allows no {event}")

    def is_private(self, path: Any) -> bool:
        """`path` lies in a home, and not in what the interpreter needs of it."""
        if not isinstance(path, str | bytes) or not path:
            return False
        full = os.path.realpath(os.fsdecode(path))
        return _is_in(full, self.homes) and not _is_in(full, self.keep)

    def _guard_files(self, event: str, args: tuple[Any, ...]) -> None:
        private = next((path for path in args[:2] if self.is_private(path)), None)
        if private is not None:
            raise PermissionError(errno.EACCES, f"the sandbox allows no {event}", os.fsdecode(private))

    def _is_foreign(self, event: str, args: tuple[Any, ...]) -> bool:
        if event in KILLS:
            return args[0] not in (os.getpid(), 0) if event == "os.kill" else args[0] != os.getpgrp()
        return event in LOOK_UPS or (event in TALKS and isinstance(args[-1], tuple))

    def verdict_of(self, error: BaseException) -> str:
        """The verdict of an exception that the program did not catch; `error` where it says nothing special."""
        for cause in _causes(error):
            word = self._name(cause)
            if word is not None:
                return word
        return "error"

    def _name(self, error: BaseException) -> str | None:
        if isinstance(error, MemoryError):
            return "memory"
        if isinstance(error, RuntimeError) and str(error) == "can't start new thread":
            return "processes"
        return self._name_of_os_error(error) if isinstance(error, OSError) else None

    def _name_of_os_error(self, error: OSError) -> str | None:
        number = error.errno
        if number == errno.ENOMEM:
            return "memory"
        if number == errno.EAGAIN and self.wanted == "processes" and self._is_from_there(error):
            return "processes"
        if type(error).__name__ in ("gaierror", "herror") or number in CUT_OFF:
            return "network"
        if self.wanted == "network" and (number in DENIED or isinstance(error, TimeoutError)) and not error.filename:
            return "network"
        if number in DENIED and self.wanted == "parent" and not error.filename:
            return "parent"
        if self.is_private(error.filename):
            return "home"
        return "files" if number in OUT_OF_ROOM else None

    def _is_from_there(self, error: BaseException) -> bool:
        """It was raised where the last event came from, and not by a read or a lock since then."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is None:
            return False
        code = trace.tb_frame.f_code
        asked_in, line = self._asked_at
        return code is asked_in and (trace.tb_lineno == line or code.co_name == "_execute_child")


def _causes(error: BaseException) -> list[BaseException]:
    """The exception and those behind it, nearest first; urllib keeps its cause in `reason`."""
    found: list[BaseException] = []
    now: Any = error
    while isinstance(now, BaseException) and now not in found and len(found) < MAX_CAUSES:
        found.append(now)
        reason = getattr(now, "reason", None)
        now = reason if isinstance(reason, BaseException) else now.__cause__ or now.__context__
    return found


def _is_in(path: str, folders: list[str]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def take_notes(homes: list[str], keep: list[str], *, guard: bool) -> Notes:
    """Begin to listen to this interpreter's audit events, for good."""
    notes = Notes(homes, keep, guard=guard)
    sys.addaudithook(notes.hear)
    return notes

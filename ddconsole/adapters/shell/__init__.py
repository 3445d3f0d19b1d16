"""How an argv crosses a login shell unharmed, and how its output is told from what the shell's start-up files print.

The host gets one string. Its login shell, be it bash, dash, zsh, fish or tcsh, has only to find words in it: they are
quoted with the few forms that all of these read alike. The words start `/bin/sh` with a small guard script and the
argv as its positional parameters, so that no argument is ever parsed as shell text.

The guard frames the output by a marker that is random for each command, and ends the command when its own standard
input ends: closing an ssh channel without a terminal ends nothing on the host by itself, and after a lost connection
nobody is left to send a signal. It ends its own process group, which is that of the ssh session; whatever was put into
a session of its own (`setsid`) goes on.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from ddconsole.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_COMMAND_BYTES = 120_000
"""Linux takes at most 128 KiB in one argument, and the whole command line is one argument of the login shell."""

GRACE_S = 2
"""Seconds between TERM and KILL when the guard ends a command."""

NOISE_BYTES = 2_000
"""So much of a login shell's greeting is kept, as evidence."""

CANNOT_EXECUTE, NOT_FOUND = 126, 127
"""The statuses by which a shell says that it could not run a program at all."""

# No newline, and nothing that fish or tcsh would read differently from sh inside single quotes.
_GUARD = " ".join(
    (
        "m=$1 q=$2 e=$3; shift 3; k=;",
        # words that hold a newline came escaped, since tcsh knows no way to quote one
        'if [ "$e" = escaped ]; then n=$#; while [ "$n" -gt 0 ]; do',
        'a=$(printf %b. "$1"); shift; set -- "$@" "${a%.}"; n=$((n-1)); done; fi;',
        "exec 3<&0 </dev/null;",
        # the first sign of life, before the input is there: whoever waits for it knows that a session was opened
        'if [ "$q" = feed ]; then echo; IFS= read -r p <&3 || exit 125; fi;',
        "trap k=1 TERM;",
        "{ while read -r x; do :; done;",
        # a command that is just being forked can miss the first TERM
        f'trap "" TERM; kill -TERM 0; sleep 0.1; kill -TERM 0; sleep {GRACE_S}; kill -KILL 0; }}',
        "<&3 >/dev/null 2>&1 & w=$!;",
        "exec 3<&-;",
        'echo; echo "$m"; { echo; echo "$m"; } >&2;',
        # the input may have ended already: then there is nothing to start
        'if [ "$k" ]; then :; elif [ "$q" = feed ]; then printf %b "$p" | (exec "$@"); else (exec "$@"); fi; r=$?;',
        'if [ "$k" ]; then kill -KILL 0; fi;',
        'if [ "$q" != stream ]; then echo; echo "$m $r"; fi;',
        '{ echo; echo "$m $r"; } >&2;',
        'kill "$w"; exit "$r"',
    )
)

_SAFE = re.compile(r"[A-Za-z0-9_@%+:,./-]+")
_PIECES = re.compile(r"[\\!']|[^\\!']+")
_APART = {"\\": r"\\", "!": r"\!", "'": '"\'"'}


class Mode(Enum):
    """What the guard does with the channel. Each mode watches for the end of its input."""

    RUN = "run"
    """No input; both outputs end with the marker and the status."""
    FEED = "feed"
    """The first line of the channel's input is the command's input, escaped by `escape_bytes`."""
    STREAM = "stream"
    """No input; nothing follows the command's standard output, so that no byte has to be held back."""


def quote_word(word: str) -> str:
    r"""One word for any login shell.

    Single quotes protect everything but three characters, which stand outside of them: `\` (fish reads it inside),
    `!` (tcsh does) and `'` itself.
    """
    if not word:
        return "''"
    return "".join(_quote_piece(piece) for piece in _PIECES.findall(word))


def _quote_piece(piece: str) -> str:
    return _APART.get(piece) or (piece if _SAFE.fullmatch(piece) else f"'{piece}'")


def escape_bytes(data: bytes) -> str:
    """`data` as one line of printable ASCII that `printf %b` turns back into the same bytes."""
    return "".join(chr(byte) if 32 <= byte < 127 and byte != 92 else f"\\0{byte:03o}" for byte in data)


def _escape_newlines(word: str) -> str:
    return word.replace("\\", "\\0134").replace("\n", "\\0012")


def new_marker() -> str:
    """A word that no output holds by accident."""
    return f"ddconsole-{secrets.token_hex(12)}"


def guarded_argv(argv: Sequence[str], marker: str, mode: Mode, *, escape: bool = False) -> list[str]:
    """The argv that runs `argv` under the guard.

    Raises:
        HostError: no operating system takes these words.
    """
    _check(argv)
    words = [_escape_newlines(word) for word in argv] if escape else list(argv)
    return ["/bin/sh", "-c", _GUARD, "sh", marker, mode.value, "escaped" if escape else "plain", *words]


def wire_command(argv: Sequence[str], marker: str, mode: Mode) -> str:
    """The string that a login shell gets to run `argv` under the guard.

    Raises:
        HostError: no operating system takes these words, or they are too long for one command line.
    """
    newlines = any("\n" in word for word in argv)
    command = "exec " + " ".join(map(quote_word, guarded_argv(argv, marker, mode, escape=newlines)))
    size = len(command.encode("utf-8", "surrogateescape"))
    if size > MAX_COMMAND_BYTES:
        raise HostError(
            f"the command is too long for one ssh command line ({size:,} of at most {MAX_COMMAND_BYTES:,} bytes)",
            evidence=(command_name(argv),),
            advice="Give its long part as standard input.",
        )
    return command


def command_name(argv: Sequence[str]) -> str:
    """The command in a message: its words, cut to a line."""
    text = " ".join(argv).replace("\n", " ")
    return text if len(text) <= 100 else text[:97] + "..."


def _check(argv: Sequence[str]) -> None:
    if not argv or not argv[0] or argv[0].startswith("-") or any("\0" in word for word in argv):
        raise HostError(f"not a command that can be run: {list(argv)!r}", advice="This is a bug of ddconsole.")


@dataclass(frozen=True, slots=True)
class Framed:
    """The part of an output that the command wrote. `status` is None when the closing marker is missing."""

    data: bytes
    status: int | None


def unframe(output: bytes, marker: str) -> Framed | None:
    """What stands between the markers of `output`, or None when the command was never started."""
    mark = marker.encode()
    _, started, rest = output.partition(b"\n" + mark + b"\n")
    if not started:
        return None
    body, ended, tail = rest.rpartition(b"\n" + mark + b" ")
    if not ended:
        return Framed(rest, None)
    word = tail.split(b"\n", 1)[0]
    return Framed(body, int(word) if word.isdigit() else None)


class StartFilter:
    """Drops what a stream says before its opening marker, whatever the cuts; afterwards every byte passes at once."""

    def __init__(self, marker: str) -> None:
        self._mark = b"\n" + marker.encode() + b"\n"
        self._held = b""
        self._noise = b""
        self.started = False

    @property
    def noise(self) -> bytes:
        """The first bytes that came before the marker: a login shell's greeting, or why it ran nothing."""
        return (self._noise + self._held)[:NOISE_BYTES]

    def feed(self, data: bytes) -> bytes:
        """The command's own bytes within `data`."""
        if self.started:
            return data
        self._held += data
        before, self.started, after = self._split()
        self._noise = (self._noise + before)[:NOISE_BYTES]
        return after

    def _split(self) -> tuple[bytes, bool, bytes]:
        before, found, after = self._held.partition(self._mark)
        if found:
            self._held = b""
            return before, True, after
        cut = max(0, len(self._held) - len(self._mark) + 1)
        before, self._held = self._held[:cut], self._held[cut:]
        return before, False, b""

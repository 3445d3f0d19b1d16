"""Words cross every login shell unharmed, and the command's output is told from the shell's."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ddconsole.adapters.shell import (
    MAX_COMMAND_BYTES,
    Mode,
    StartFilter,
    escape_bytes,
    quote_word,
    unframe,
    wire_command,
)
from ddconsole.core.errors import HostError

HOSTILE = [
    "a b", "", "it's", "\\", "\\\\", "a\\'b", "$HOME", "$(id)", "`id`", "!", "a!b !!", "~", "~root", "*", "?", "[x]",
    "{a,b}", "<>&|;", "#x", '"q"', "=ls", "%1", "^a^b", "\t", "a\rb", "-n", "--", "\x01\x1b[31m", "=", "@x", "é ü 漢",
    "a\nb", "\n", "\n\nx\\0012\n", "'\n!\\", "if", "end",
]  # fmt: skip

SHELLS = ["sh", "bash", "dash", "zsh", "fish", "tcsh"]


def through(shell: str, argv: list[str], mode: Mode = Mode.RUN) -> tuple[bytes, bytes]:
    """What a login shell makes of a wire command; its input stays open until it has ended by itself."""
    process = subprocess.Popen(
        [shell, "-c", wire_command(argv, "MARK", mode)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # as sshd starts it: a watcher that outlives its command ends its own group, not ours
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdin, process.stdout, process.stderr:
        outputs = process.stdout.read(), process.stderr.read()
    process.wait(10)
    return outputs


@pytest.mark.parametrize("shell", SHELLS)
def test_hostile_words_cross_every_login_shell(shell: str) -> None:
    """Quotes, expansions, newlines and control characters arrive as they were, whatever the login shell is."""
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    out, _ = through(path, ["printf", "%s\\0", *HOSTILE])
    framed = unframe(out, "MARK")
    assert framed is not None
    assert framed.data.decode().split("\0")[:-1] == HOSTILE
    assert framed.status == 0


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
def test_quoted_words_are_read_back_by_posix_rules(words: list[str]) -> None:
    """The standard library's own reader of shell words agrees with the quoting."""
    assert shlex.split(" ".join(map(quote_word, words))) == words


def test_builtins_are_not_run_in_the_guard() -> None:
    """`exit` is a word of the shell, not a program, and must not end the guard itself."""
    framed = unframe(through("sh", ["exit", "3"])[0], "MARK")
    assert framed is not None
    assert framed.status == 127


@given(st.binary(max_size=300))
def test_escaped_input_is_one_line_that_printf_turns_back(data: bytes) -> None:
    """The escaping is the inverse of `printf %b`."""
    line = escape_bytes(data)
    assert line.isascii()
    assert "\n" not in line
    assert re.sub(rb"\\0([0-7]{3})", lambda octal: bytes([int(octal[1], 8)]), line.encode()) == data


def test_a_command_line_that_is_too_long_is_refused_with_the_remedy() -> None:
    """Linux would answer `Argument list too long` from a place that nobody can see."""
    with pytest.raises(HostError, match="too long") as caught:
        wire_command(["echo", "x" * MAX_COMMAND_BYTES], "M", Mode.RUN)
    assert "standard input" in caught.value.advice


@pytest.mark.parametrize("argv", [[], [""], ["-x"], ["a\0b"]])
def test_what_is_no_command_is_refused(argv: list[str]) -> None:
    """No operating system can run these."""
    with pytest.raises(HostError):
        wire_command(argv, "M", Mode.RUN)


def test_text_outside_of_the_frame_is_ignored() -> None:
    """A start-up file that prints does not get into the answer, not even without a newline."""
    framed = unframe(b"welcome!\x1b[31m\nMARK\nthe answer\n\nMARK 3\nbye", "MARK")
    assert framed is not None
    assert (framed.data, framed.status) == (b"the answer\n", 3)


def test_a_missing_start_is_no_answer_and_a_missing_end_has_no_status() -> None:
    """The two ways in which an output can be cut."""
    assert unframe(b"This account is not available.\n", "MARK") is None
    framed = unframe(b"\nMARK\nhalf", "MARK")
    assert framed is not None
    assert (framed.data, framed.status) == (b"half", None)


@given(st.lists(st.integers(1, 40)), st.binary(max_size=50), st.binary(max_size=50))
def test_the_start_filter_does_not_depend_on_the_cuts(cuts: list[int], noise: bytes, body: bytes) -> None:
    """Whatever pieces the network makes of it, the command's bytes come through, and only those."""
    data, wanted = noise + b"\nMARK\n" + body, body
    if b"\nMARK\n" in noise + b"\nMAR":
        return
    sieve, got, at = StartFilter("MARK"), b"", 0
    for size in [*cuts, len(data)]:
        got += sieve.feed(data[at : at + size])
        at += size
    assert got == wanted
    assert sieve.started


def test_the_start_filter_keeps_the_noise_as_evidence() -> None:
    """It is what explains a login shell that runs nothing."""
    sieve = StartFilter("MARK")
    assert sieve.feed(b"This account is currently not available.\n") == b""
    assert sieve.noise == b"This account is currently not available.\n"
    assert not sieve.started

"""This machine as the host."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.adapters.clock import SystemClock
from ddconsole.adapters.local import LocalConnector, LocalHost
from ddconsole.core.errors import HostError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path


@pytest.fixture
async def local() -> AsyncIterator[LocalHost]:
    host = await LocalConnector().connect()
    yield host
    await host.close()


async def test_a_signal_is_told_as_a_shell_tells_it(local: LocalHost) -> None:
    """128 and the signal's number."""
    assert (await local.run(["sh", "-c", "kill -9 $$"])).status == 137


async def test_without_input_a_command_sees_its_end_at_once(local: LocalHost) -> None:
    """A command that asks must not wait for ever."""
    assert (await local.run(["cat"], timeout=5)).stdout == ""


def test_hostile_words_arrive_verbatim() -> None:
    """Any text without NUL is one word and stays as it is."""
    with asyncio.Runner() as runner:
        host = LocalHost()

        @settings(max_examples=40, deadline=None)
        @given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), min_size=1))
        def holds(words: list[str]) -> None:
            done = runner.run(host.run(["printf", "%s\\0", *words]))
            assert done.stdout.split("\0")[:-1] == words

        holds()


async def test_a_stream_yields_bytes_before_the_line_ends(local: LocalHost, tmp_path: Path) -> None:
    """A progress bar has no newlines; what is there is shown."""
    go = tmp_path / "go"
    os.mkfifo(go)
    stream = await local.stream(["sh", "-c", 'printf half; read -r x < "$1"; echo " line"', "sh", str(go)])
    got = b""
    async for chunk in stream.chunks():
        got += chunk
        if got == b"half":
            await asyncio.to_thread(go.write_text, "on\n")
    assert got == b"half line\n"


async def test_closing_a_stream_ends_its_processes(
    local: LocalHost, none_left: Callable[[str], Awaitable[None]], tmp_path: Path
) -> None:
    """Also the grandchildren, and while somebody still reads."""
    word = f"stream-{tmp_path}"
    stream = await local.stream(["sh", "-c", "echo up; sleep 300 | sleep 301", word])

    async def read() -> bytes:
        return b"".join([chunk async for chunk in stream.chunks()])

    reader = asyncio.create_task(read())
    await asyncio.sleep(0)
    await stream.close()
    await none_left(word)
    assert (await reader) in (b"", b"up\n")


async def test_too_much_output_is_refused(local: LocalHost, none_left: Callable[[str], Awaitable[None]]) -> None:
    """Memory is not for a log that was asked for by mistake."""
    with pytest.raises(HostError, match="printed more than 16 MiB"):
        await local.run(["yes", "much-too-much-output"])
    await none_left("much-too-much-output")


ASCII_CONSOLE = """
import asyncio, sys
from ddconsole.adapters.local import LocalHost
async def main():
    host = LocalHost()
    done = await host.run(["printf", "%s|", "caf\\u00e9 \\u6f22", "\\udcff"])
    await host.close()
    sys.stdout.buffer.write(sys.getfilesystemencoding().encode() + b" " + ascii(done.stdout).encode())
asyncio.run(main())
"""


def test_words_are_utf_8_whatever_the_locale_is() -> None:
    """A console in the C locale must not change a path on its way, nor fail on it."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", ASCII_CONSOLE], env=os.environ | plain, capture_output=True, check=True, timeout=30
    )
    encoding, _, words = done.stdout.decode().partition(" ")
    assert encoding != "utf-8"
    assert words == ascii("caf\u00e9 \u6f22|\ufffd|")


async def test_a_forward_is_the_port_itself(local: LocalHost) -> None:
    """Nothing stands in between."""
    forward = await local.forward(30000)
    assert forward.local_port == 30000
    await forward.close()


async def test_the_clock_moves_forward() -> None:
    """Stamps are in UTC; sleeping takes at least its time by the same clock."""
    clock = SystemClock()
    before = clock.monotonic()
    await clock.sleep(0.01)
    assert clock.monotonic() - before >= 0.009
    offset = clock.now().utcoffset()
    assert offset is not None
    assert offset.total_seconds() == 0
    assert abs(clock.now().timestamp() - time.time()) < 5

"""Server-sent events out of bytes that are cut anywhere."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ddconsole.passes import sse
from ddconsole.passes.sse import EventTooLargeError, SseDecoder

STREAM = (
    b": keep-alive\n\n"
    b'data: {"a": 1}\n\n'
    b"event: x\nid: 7\nretry: 10\ndata: one\ndata:two\n\n"
    b"\r\n"
    b"data: caf\xc3\xa9\r\n\r\n"
    b"data\n\n"
    b"data: [DONE]\n\n"
)
EVENTS = ['{"a": 1}', "one\ntwo", "café", "", "[DONE]"]


def decode(parts: list[bytes]) -> list[str]:
    decoder = SseDecoder()
    found = [event for part in parts for event in decoder.feed(part)]
    return found + decoder.close()


def test_whole_stream() -> None:
    """Comments, several data lines, CRLF, other fields and an empty data field."""
    assert decode([STREAM]) == EVENTS


@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
@settings(max_examples=150, deadline=None)
def test_cut_anywhere(cuts: list[int]) -> None:
    """Where the bytes are cut changes nothing, in the middle of a character or of CRLF either."""
    places = [0, *sorted(cuts), len(STREAM)]
    parts = [STREAM[a:b] for a, b in pairwise(places)]
    assert decode(parts) == EVENTS


def test_every_byte_alone() -> None:
    """One byte at a time is the same stream."""
    assert decode([STREAM[i : i + 1] for i in range(len(STREAM))]) == EVENTS


def test_bare_carriage_returns_end_lines() -> None:
    """CR alone ends a line, also when an LF that belongs to it comes later."""
    assert decode([b"data: a\r\rdata: b\r", b"\n\r", b"\n"]) == ["a", "b"]


def test_end_mark_without_line_end_counts() -> None:
    """Some servers close right after [DONE]."""
    assert decode([b"data: x\n\ndata: [DONE]"]) == ["x", "[DONE]"]


def test_half_an_event_does_not_count() -> None:
    """What was cut in the middle of a line is no event."""
    assert decode([b'data: {"a": 1}\n\ndata: {"a": 2']) == ['{"a": 1}']


def test_endless_line_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream without line ends does not fill the memory."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    decoder = SseDecoder()
    assert decoder.feed(b"x" * 900) == []
    with pytest.raises(EventTooLargeError):
        decoder.feed(b"x" * 200)


def test_many_events_are_not_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for one event, not for the stream."""
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1000)
    decoder = SseDecoder()
    assert sum(len(decoder.feed(b"data: " + b"x" * 100 + b"\n\n")) for _ in range(50)) == 50

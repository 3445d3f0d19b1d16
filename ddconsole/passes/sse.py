"""Server-sent events out of bytes that are cut anywhere."""

from __future__ import annotations

MAX_EVENT_BYTES = 32 * 1024 * 1024
"""An event may be this big; a stream without line ends is given up rather than kept in memory."""

DONE = "[DONE]"


class EventTooLargeError(ValueError):
    """The stream never ended a line or an event."""


class SseDecoder:
    """Turns bytes into the `data` of events, by the WHATWG rules: CR, LF or CRLF, comments, several data lines.

    Only `data` matters here; `event`, `id` and `retry` are passed over. Invalid UTF-8 becomes U+FFFD.
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._after_cr = False
        self._data: list[str] = []
        self.events = 0

    def feed(self, data: bytes) -> list[str]:
        """The events that `data` completes.

        Raises:
            EventTooLargeError: more than MAX_EVENT_BYTES came without an end.
        """
        if data.endswith(b"\n\n") and data.startswith(b"data: ") and not self._parts and not self._data:
            quick = self._whole_events(data)
            if quick is not None:
                return quick
        if self._after_cr and data.startswith(b"\n"):
            data = data[1:]
            self._after_cr = False
        if not data:
            return []
        self._after_cr = data.endswith(b"\r")
        if b"\r" in data:
            data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        self._count(len(data))
        self._parts.append(data)
        if b"\n" not in data:
            return []
        lines = b"".join(self._parts).split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        return self._events_of(lines)

    def _whole_events(self, data: bytes) -> list[str] | None:
        """The events of bytes that are whole `data: …` events of one line and nothing else, which nearly all are."""
        if b"\r" in data:
            return None
        lines = data[:-2].split(b"\n\n")
        if any(not line.startswith(b"data: ") or b"\n" in line for line in lines):
            return None
        self._after_cr = False
        self.events += len(lines)
        return [line[6:].decode("utf-8", "replace") for line in lines]

    def close(self) -> list[str]:
        """What is left at the end of the stream: whole data lines, and an end mark without its line end."""
        rest = b"".join(self._parts)
        self._parts = []
        if rest.strip() == b"data: " + DONE.encode() or rest.strip() == b"data:" + DONE.encode():
            return self._events_of([rest.strip(), b""])
        return self._events_of([b""])

    def _count(self, new: int) -> None:
        self._size += new
        if self._size > MAX_EVENT_BYTES:
            raise EventTooLargeError(f"{self._size} bytes without the end of an event")

    def _events_of(self, lines: list[bytes]) -> list[str]:
        events = []
        for line in lines:
            if line.startswith(b"data:"):
                text = line[5:].decode("utf-8", "replace")
                self._data.append(text.removeprefix(" "))
            elif not line:
                self._size = 0
                if self._data:
                    events.append("\n".join(self._data))
                    self._data = []
            elif line == b"data":
                self._data.append("")
        self.events += len(events)
        return events

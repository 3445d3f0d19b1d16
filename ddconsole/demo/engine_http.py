"""A small HTTP/1.1 server on asyncio and h11: enough for an engine's API, keep-alive and streams included."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit

import h11

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ddconsole.demo.engine_log import EngineLog

LARGEST_BODY = 8 * 1024 * 1024
"""Bytes; a longer request is refused with 413."""
CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True)
class Request:
    """One request; header names are in lower case. `gone` tells whether the client has hung up."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    gone: Callable[[], bool]

    def json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            ValueError: it is none.
        """
        data = json.loads(self.body or b"{}")
        if not isinstance(data, dict):
            raise ValueError("the body must be a JSON object")
        return data


@dataclass(slots=True)
class Response:
    """An answer: `body` as bytes, or as a generator of chunks that are sent as they come."""

    status: int = 200
    body: bytes | AsyncGenerator[bytes, None] = b""
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Handler: TypeAlias = "Callable[[Request], Awaitable[Response]]"


def json_response(data: object, status: int = 200) -> Response:
    """`data` as compact JSON."""
    return Response(status, json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode())


class HttpServer:
    """Listens, parses, calls the handler, and writes access lines as uvicorn does."""

    def __init__(self, handler: Handler, log: EngineLog) -> None:
        self._handler = handler
        self._log = log
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def bind(self, host: str, port: int) -> None:
        """Start to listen.

        Raises:
            OSError: the address cannot be had.
        """
        self._server = await asyncio.start_server(self._connected, host, port)

    async def close(self) -> None:
        """Stop listening and cut what is still open."""
        if self._server:
            self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await _Connection(reader, writer, self._handler, self._log).serve()
        except (ConnectionError, h11.RemoteProtocolError, asyncio.CancelledError):
            pass  # the client is gone, or we are: there is nobody left to tell
        finally:
            self._connections.discard(task)
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()


class _Connection:
    """One client's connection, request after request."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handler: Handler, log: EngineLog
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handler = handler
        self._log = log
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=CHUNK)
        host, port = writer.get_extra_info("peername")[:2]
        self._client = f"{host}:{port}"

    async def serve(self) -> None:
        """Answer requests until the client closes or wants no more."""
        while True:
            head = await self._next_event()
            if not isinstance(head, h11.Request):
                return
            body = await self._body()
            response = await self._answer(head, body)
            await self._send(head, response)
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _answer(self, head: h11.Request, body: bytes | None) -> Response:
        if body is None:
            return json_response({"error": {"message": "The request body is too large."}}, 413)
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in head.headers}
        path = urlsplit(head.target.decode("latin-1")).path
        return await self._handler(Request(head.method.decode(), path, headers, body, self._reader.at_eof))

    async def _body(self) -> bytes | None:
        """The whole body, or None when it is too large."""
        parts: list[bytes] = []
        size = 0
        while not isinstance(event := await self._next_event(), h11.EndOfMessage):
            if not isinstance(event, h11.Data):
                raise ConnectionError("the client hung up in the middle of a request")
            size += len(event.data)
            if size > LARGEST_BODY:
                return None
            parts.append(bytes(event.data))
        return b"".join(parts)

    async def _next_event(self) -> h11.Event | None:
        """The client's next event; None when h11 pauses, which only a switch of protocols does."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await self._reader.read(CHUNK))
        return event if isinstance(event, h11.Event) else None

    async def _send(self, head: h11.Request, response: Response) -> None:
        self._access(head, response.status)
        headers = [("content-type", response.content_type), *response.headers.items()]
        if isinstance(response.body, bytes):
            headers.append(("content-length", str(len(response.body))))
        reason = HTTPStatus(response.status).phrase
        await self._write(h11.Response(status_code=response.status, headers=headers, reason=reason.encode()))
        if isinstance(response.body, bytes):
            await self._write(h11.Data(response.body))
        else:
            async with aclosing(response.body) as chunks:
                async for chunk in chunks:
                    await self._write(h11.Data(chunk))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Event) -> None:
        self._writer.write(self._http.send(event) or b"")
        await self._writer.drain()

    def _access(self, head: h11.Request, status: int) -> None:
        target = head.target.decode("latin-1").encode("unicode_escape").decode()
        self._log.access(
            self._client,
            f"{head.method.decode()} {target} HTTP/{head.http_version.decode()}",
            f"{status} {HTTPStatus(status).phrase}",
        )

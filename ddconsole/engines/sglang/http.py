"""Speaking to the engine over HTTP: is it ready, what does it say of itself, flush, abort.

Every request goes to loopback through the forwarded port; a proxy of the environment must never see it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

HEALTH_TIMEOUT_S: Final = 25.0
"""`/health` runs a real generation and answers within 20 s or never."""

FLUSH_TIMEOUT_S: Final = 30.0
ABORT_TIMEOUT_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 5.0

ANSWER_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of an answer that is read whole; SGLang's own are a few kB."""

ABSENT: Final = (404, 405)
"""Statuses of an endpoint that this version does not have."""


class EngineHttp:
    """The engine behind `base_url`. Refused and dropped connections mean that it is loading or busy."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._base_url = base_url
        self._headers = {"Accept-Encoding": "identity"} | dict(headers or {})
        self._transport = transport

    def client(self, timeout_s: float) -> httpx.AsyncClient:
        """A client that ignores the environment's proxies."""
        return httpx.AsyncClient(
            base_url=self._base_url,
            headers=self._headers,
            transport=self._transport,
            trust_env=False,
            timeout=httpx.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        )

    async def ready(self) -> bool:
        """`/ready` (0.5.20 and later) or else `/health` says 200. Anything else is "not yet"."""
        status, _, _ = await self._get("/ready")
        if status in ABSENT:
            status, _, _ = await self._get("/health")
        return status == httpx.codes.OK

    async def server_info(self) -> tuple[dict[str, Any] | None, str]:
        """(what `/server_info` tells, ""), or (None, why it could not be read)."""
        status, body, why = await self._get("/server_info")
        if status in ABSENT:
            status, body, why = await self._get("/get_server_info")
        if why or status != httpx.codes.OK:
            return None, why or f"HTTP {status}"
        try:
            info = json.loads(body)
        except (ValueError, RecursionError):
            return None, "not JSON"
        return (info, "") if isinstance(info, dict) else (None, "not an object")

    async def _get(self, path: str) -> tuple[int | None, bytes, str]:
        """(status, body, "") or (None, b"", why not). Whoever answers there, it ends in time and within bounds."""
        body = b""
        try:
            async with (
                asyncio.timeout(HEALTH_TIMEOUT_S),
                self.client(HEALTH_TIMEOUT_S) as client,
                client.stream("GET", path) as answer,
            ):
                async for chunk in answer.aiter_bytes():
                    body += chunk
                    if len(body) > ANSWER_LIMIT:
                        return None, b"", f"an answer of more than {ANSWER_LIMIT >> 20} MiB"
        except TimeoutError:
            return None, b"", f"no whole answer within {HEALTH_TIMEOUT_S:.0f} s"
        except (httpx.HTTPError, httpx.InvalidURL) as exc:
            return None, b"", f"{type(exc).__name__}: {exc}".rstrip(": ")
        return answer.status_code, body, ""

    async def flush(self) -> bool:
        """Empty the prefix cache, which also resets the engine's own acceptance counters. False when it refused."""
        try:
            async with self.client(FLUSH_TIMEOUT_S) as client:
                answer = await client.post("/flush_cache")
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def abort(self) -> None:
        """Abort all requests. What cannot be reached has none."""
        with contextlib.suppress(httpx.HTTPError):
            async with self.client(ABORT_TIMEOUT_S) as client:
                await client.post("/abort_request", json={"rid": "", "abort_all": True})

"""Speaking to the engine over HTTP: is it ready, what does it say of itself, flush, abort.

Every request goes to loopback through the forwarded port; a proxy of the environment must never see it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import httpx

if TYPE_CHECKING:
    from collections.abc import Mapping

HEALTH_TIMEOUT_S: Final = 25.0
"""`/health` runs a real generation and answers within 20 s or never."""

FLUSH_TIMEOUT_S: Final = 30.0
ABORT_TIMEOUT_S: Final = 5.0
CONNECT_TIMEOUT_S: Final = 5.0

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
        try:
            async with self.client(HEALTH_TIMEOUT_S) as client:
                answer = await client.get("/ready")
                if answer.status_code in ABSENT:
                    answer = await client.get("/health")
        except httpx.HTTPError:
            return False
        return answer.status_code == httpx.codes.OK

    async def server_info(self) -> tuple[dict[str, Any] | None, str]:
        """(what `/server_info` tells, ""), or (None, why it could not be read)."""
        try:
            async with self.client(HEALTH_TIMEOUT_S) as client:
                answer = await client.get("/server_info")
                if answer.status_code in ABSENT:
                    answer = await client.get("/get_server_info")
                if answer.status_code != httpx.codes.OK:
                    return None, f"HTTP {answer.status_code}"
                info = answer.json()
        except httpx.HTTPError as exc:
            return None, f"{type(exc).__name__}: {exc}".rstrip(": ")
        except ValueError:
            return None, "not JSON"
        return (info, "") if isinstance(info, dict) else (None, "not an object")

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

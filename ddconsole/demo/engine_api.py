"""The toy engine's endpoints, with the paths and keys of SGLang 0.5.23.

Decoding is greedy. A request that asks for what this engine does not do (a temperature above 0, stop strings, several
choices, log-probabilities) is refused with 400 rather than answered differently from what it asked.
"""

from __future__ import annotations

import hmac
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

from ddconsole.demo import engine_answers as answers
from ddconsole.demo import engine_info as info
from ddconsole.demo.engine_http import Response, json_response
from ddconsole.demo.engine_model import Ask

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from ddconsole.demo.engine_boot import Boot
    from ddconsole.demo.engine_flags import EngineArgs
    from ddconsole.demo.engine_http import Request
    from ddconsole.demo.engine_model import ToyModel
    from ddconsole.demo.engine_scheduler import Job, Scheduler, Update

OPEN_PATHS = ("/health", "/ready", "/ping", "/metrics")
"""Paths that need no key."""
GENERATE_TOKENS, CHAT_TOKENS = 128, 2048
"""Most new tokens where a request does not say."""
HEALTH = Ask("Are you there?", max_new_tokens=1)
STREAM = "text/event-stream"


class State(StrEnum):
    """What the server says of itself once the port is open."""

    WARMING = "starting"
    READY = "ready"
    DRAINING = "shutting down"


Route: TypeAlias = "Callable[[Request], Awaitable[Response]]"


class Api:
    """Answers requests. `state` is set by whoever runs the engine."""

    def __init__(self, args: EngineArgs, model: ToyModel, scheduler: Scheduler, boot: Boot) -> None:
        self.state = State.WARMING
        self._args = args
        self._model = model
        self._scheduler = scheduler
        self._boot = boot
        self._routes: dict[tuple[str, str], Route] = {}
        self._add("GET", ("/health", "/health_generate"), self._health)
        self._add("GET", ("/ready", "/ping"), self._ready)
        self._add("GET", ("/server_info", "/get_server_info"), self._server_info)
        self._add("GET", ("/model_info", "/get_model_info"), self._model_info)
        self._add("GET", ("/v1/models",), self._models)
        self._add("GET", ("/metrics",), self._metrics)
        self._add("GET", ("/flush_cache",), self._flush_cache)
        self._add("POST", ("/flush_cache",), self._flush_cache)
        self._add("POST", ("/abort_request",), self._abort_request)
        self._add("POST", ("/generate",), self._generate)
        self._add("POST", ("/v1/chat/completions",), self._chat)

    def _add(self, method: str, paths: tuple[str, ...], route: Route) -> None:
        self._routes.update(((method, path), route) for path in paths)

    async def __call__(self, request: Request) -> Response:
        """The handler of the HTTP server."""
        route = self._routes.get((request.method, request.path))
        if route is None:
            known = any(path == request.path for _, path in self._routes)
            return json_response({"detail": "Method Not Allowed" if known else "Not Found"}, 405 if known else 404)
        if not self._allowed(request):
            return json_response({"error": "Unauthorized"}, 401)
        try:
            return await route(request)
        except ValueError as error:
            return json_response(answers.bad_request(str(error)), 400)

    def _allowed(self, request: Request) -> bool:
        key = self._args.flat["api_key"]
        given = request.headers.get("authorization", "")
        return not key or request.path.startswith(OPEN_PATHS) or hmac.compare_digest(given, f"Bearer {key}")

    async def _ready(self, _: Request) -> Response:
        return Response(200 if self.state is State.READY else 503)

    async def _health(self, request: Request) -> Response:
        """As SGLang's: when nothing runs, a real generation of one token has to come back."""
        if self.state is not State.READY:
            return Response(503)
        if self._scheduler.idle:
            job = self._model.job(HEALTH)
            self._scheduler.submit(job)
            await self._finish(request, job)
        return Response(200)

    async def _server_info(self, _: Request) -> Response:
        return json_response(info.server_info(self._args, self._boot, self._scheduler, self.state.value))

    async def _model_info(self, _: Request) -> Response:
        return json_response(info.model_info(self._args))

    async def _models(self, _: Request) -> Response:
        return json_response(info.models(self._args))

    async def _metrics(self, _: Request) -> Response:
        if not self._args.flat["enable_metrics"]:
            return json_response({"detail": "Not Found"}, 404)
        text = info.metrics(self._args, self._boot, self._scheduler)
        return Response(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")

    async def _flush_cache(self, _: Request) -> Response:
        flushed = self._scheduler.flush()
        text = "Cache flushed.\n" if flushed else "Failed to flush cache: there are pending requests.\n"
        return Response(200 if flushed else 400, text.encode(), "text/plain; charset=utf-8")

    async def _abort_request(self, request: Request) -> Response:
        body = request.json()
        self._scheduler.abort(None if body.get("abort_all") else [str(body.get("rid", ""))])
        return Response(200)

    async def _generate(self, request: Request) -> Response:
        body = request.json()
        job = self._submit(_generate_ask(body))
        if body.get("stream"):
            return Response(body=self._generate_stream(request, job), content_type=STREAM)
        update = await self._finish(request, job)
        return json_response(answers.generate(self._model, job, update, metrics=self._args.flat["enable_metrics"]))

    async def _generate_stream(self, request: Request, job: Job) -> AsyncGenerator[bytes, None]:
        metrics = bool(self._args.flat["enable_metrics"])
        try:
            async for update in job.updates():
                yield _event(answers.generate(self._model, job, update, metrics=metrics))
                self._abort_if_gone(request, job)
            yield b"data: [DONE]\n\n"
        finally:
            self._abort_unfinished(job)

    async def _chat(self, request: Request) -> Response:
        body = request.json()
        job = self._submit(_chat_ask(body))
        chat = answers.Chat(self._args.model_name, job, self._model, body)
        if body.get("stream"):
            return Response(body=self._chat_stream(request, job, chat), content_type=STREAM)
        return json_response(chat.whole(await self._finish(request, job)))

    async def _chat_stream(self, request: Request, job: Job, chat: answers.Chat) -> AsyncGenerator[bytes, None]:
        try:
            yield _event(chat.opening())
            async for update in job.updates():
                for chunk in chat.chunks(update):
                    yield _event(chunk)
                self._abort_if_gone(request, job)
            yield b"data: [DONE]\n\n"
        finally:
            self._abort_unfinished(job)

    def _submit(self, ask: Ask) -> Job:
        """Queue a request.

        Raises:
            ValueError: it does not fit the context.
        """
        job = self._model.job(ask)
        longest = self._args.flat["context_length"]
        if len(job.prompt) + ask.max_new_tokens > longest:
            raise ValueError(
                f"Requested token count exceeds the model's maximum context length of {longest} tokens: "
                f"{len(job.prompt)} of the prompt and {ask.max_new_tokens} to be generated."
            )
        self._scheduler.submit(job)
        return job

    async def _finish(self, request: Request, job: Job) -> Update:
        """The last update of a request that is not streamed."""
        async for update in job.updates():
            if update.finish:
                return update
            self._abort_if_gone(request, job)
        raise AssertionError("a job's updates end with the one that finishes it")

    def _abort_if_gone(self, request: Request, job: Job) -> None:
        if request.gone():
            self._abort_unfinished(job)

    def _abort_unfinished(self, job: Job) -> None:
        if job.finished_at is None:
            self._scheduler.abort([job.rid])


def _event(data: object) -> bytes:
    """One server-sent event."""
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def _generate_ask(body: dict[str, Any]) -> Ask:
    params = body.get("sampling_params") or {}
    if not isinstance(params, dict):
        raise ValueError("sampling_params must be one object")
    _refuse_unknown({**body, **params})
    text = body.get("text")
    if not isinstance(text, str):
        raise ValueError("text must be one string; this engine takes neither batches nor input_ids")
    limit = params.get("max_new_tokens", GENERATE_TOKENS)
    return Ask(text, _limit(limit), bool(params.get("ignore_eos")), _rid(body))


def _chat_ask(body: dict[str, Any]) -> Ask:
    _refuse_unknown(body)
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or CHAT_TOKENS
    return Ask(_last_user_text(body.get("messages")), _limit(limit), bool(body.get("ignore_eos")), _rid(body))


def _last_user_text(messages: object) -> str:
    """The text of the last user message; the template around it, and parts that are no text, do not matter here."""
    for message in reversed(messages if isinstance(messages, list) else []):
        if isinstance(message, dict) and message.get("role") == "user":
            content = message.get("content")
            if isinstance(content, str):
                return content
            parts = [part.get("text", "") for part in content or [] if isinstance(part, dict)]
            return "\n".join(part for part in parts if isinstance(part, str))
    raise ValueError("messages must be a list with at least one user message")


def _refuse_unknown(params: dict[str, Any]) -> None:
    """Refuse what this engine does not do."""
    if params.get("temperature"):
        raise ValueError("temperature must be 0: this engine decodes greedily")
    for name in ("stop", "stop_token_ids", "return_logprob", "logprobs", "input_ids", "json_schema", "tools"):
        if params.get(name):
            raise ValueError(f"{name} is not supported by this engine")
    if params.get("n") not in (None, 1):
        raise ValueError("n must be 1: this engine gives one choice")


def _limit(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {value!r}")
    return value


def _rid(body: dict[str, Any]) -> str | None:
    rid = body.get("rid")
    return None if rid is None else str(rid)

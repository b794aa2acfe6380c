"""The endpoints of the service: from a request to a reply."""

from __future__ import annotations

import gzip
import hmac
import itertools
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pydantic_core

from cerebras_ext.emulator import completing, faults
from cerebras_ext.emulator.catalog import ModelCard, entry
from cerebras_ext.emulator.decoding import RefusedError, decode, encoding_of, refused
from cerebras_ext.emulator.faults import Fault, canned_body, flat, stream_parts
from cerebras_ext.emulator.frames import Head
from cerebras_ext.emulator.messages import SECRET_HEADERS, HttpRequest, ReceivedRequest, Reply

MARK = "x-cerebras-ext-emulator"
"""Response header that tells the emulator from the service."""

CHAT_PATH, COMPLETIONS_PATH = "/v1/chat/completions", "/v1/completions"
_JSON, _EVENTS = "application/json", "text/event-stream; charset=utf-8"
_GZIP_FROM = 128
"""Bytes from which a body is compressed for clients that offer it."""

_NAMESPACE = uuid.UUID("5fbf4f4e-31de-4bf9-9b1c-0f8bb8a1c5d1")
_REQUESTS_A_DAY, _TOKENS_A_MINUTE = 1_440_000, 1_000_000


class Service:
    """Answers requests. Everything in it is determined by the request, but for the counted ids and the clock."""

    def __init__(self, models: Mapping[str, ModelCard], *, api_key: str | None, clock: Callable[[], float]) -> None:
        self._models = models
        self._key = api_key
        self._clock = clock
        self._numbers: Iterator[int] = itertools.count(1)

    def reset(self) -> None:
        """Count ids from the beginning again."""
        self._numbers = itertools.count(1)

    def handle(self, request: HttpRequest, fault: Fault | None) -> tuple[ReceivedRequest, Reply]:
        """Answer a request, and return it decoded."""
        body: Any = None
        problem: RefusedError | None = None
        if request.body:
            try:
                body = decode(request.headers, request.body)
            except RefusedError as error:
                body, problem = request.body, error
        received = ReceivedRequest(
            method=request.method,
            path=request.path,
            query=request.query,
            headers={name: value for name, value in request.headers.items() if name not in SECRET_HEADERS},
            body=body,
            encoding=encoding_of(request.headers, request.body),
            size=len(request.body),
        )
        number = next(self._numbers)
        reply = self._reply(request, body, problem, fault, number)
        reply.headers = self._finish_headers(reply, number, fault)
        if not reply.stream:
            _compress(request, reply)
        reply.fault = fault if fault is not None and fault.disturbs else None
        return received, reply

    def _reply(
        self, request: HttpRequest, body: Any, problem: RefusedError | None, fault: Fault | None, number: int
    ) -> Reply:
        if fault is not None and fault.answers:
            return _canned(fault)
        try:
            self._authorize(request)
            if problem is not None:
                raise problem
            return self._route(request, body, number)
        except RefusedError as error:
            return _json_reply(error.body, error.status)
        except Exception as error:  # noqa: BLE001 - a schema that breaks the emulator must not silence the connection
            message = f"The emulator failed: {type(error).__name__}: {error}"
            return _json_reply({"message": message, "type": "server_error"}, 500)

    def _authorize(self, request: HttpRequest) -> None:
        # The service describes warming and the public list without a key.
        if request.path == "/v1/tcp_warming" or request.path.startswith("/public/"):
            return
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        wanted = self._key
        right = bool(key.strip()) if wanted is None else hmac.compare_digest(key.strip().encode(), wanted.encode())
        if scheme.lower() != "bearer" or not right:
            raise refused("Wrong API Key", "api_key", "wrong_api_key", status=401)

    def _route(self, request: HttpRequest, body: Any, number: int) -> Reply:
        path = request.path.rstrip("/")
        if path in (CHAT_PATH, COMPLETIONS_PATH):
            _allow(request, "POST")
            if not request.body:
                raise refused(": Invalid JSON: EOF while parsing a value at line 1 column 0")
            return self._complete(path, body, number)
        path = path.removeprefix("/public")
        if path == "/v1/tcp_warming":
            _allow(request, "GET", "HEAD")
            return _json_reply({})
        if path == "/v1/models":
            _allow(request, "GET", "HEAD")
            return _json_reply({"object": "list", "data": [entry(card) for card in self._models.values()]})
        if path.startswith("/v1/models/"):
            _allow(request, "GET", "HEAD")
            return self._model(path.removeprefix("/v1/models/"))
        raise RefusedError(404, flat(f"Unknown request URL: {request.method} {request.path}", "not_found_error"))

    def _model(self, name: str) -> Reply:
        if name not in self._models:
            message = f"Model {name} does not exist or you do not have access to it."
            raise RefusedError(404, flat(message, "not_found_error", "model", "model_not_found"))
        return _json_reply(entry(self._models[name]))

    def _complete(self, path: str, body: Any, number: int) -> Reply:
        now = self._clock()
        head_id = f"chatcmpl-{uuid.uuid5(_NAMESPACE, str(number))}"
        run = completing.chat if path == CHAT_PATH else completing.text
        result = run(body, self._models, lambda model: Head(head_id, int(now), model), now)
        if isinstance(result, list):
            return Reply(200, result, {"content-type": _EVENTS, "inference-id": head_id}, stream=True)
        reply = _json_reply(result)
        reply.headers["inference-id"] = head_id
        return reply

    def _finish_headers(self, reply: Reply, number: int, fault: Fault | None) -> dict[str, str]:
        """Add what the service adds; refusals name only the edge's id."""
        ray = f"{uuid.uuid5(_NAMESPACE, f'ray {number}').hex[:16]}-EMU"
        headers = {**reply.headers, "server": "cerebras-ext-emulator", "cf-ray": ray, MARK: "1"}
        if reply.status < 400:
            headers["x-request-id"] = ray
        if "inference-id" in headers:
            headers |= self._rate_limits(number)
        for name, value in (fault.headers if fault is not None else {}).items():
            headers.pop(name.lower(), None)
            if value is not None:
                headers[name.lower()] = value
        return headers

    def _rate_limits(self, number: int) -> dict[str, str]:
        now = self._clock()
        return {
            "x-ratelimit-limit-requests-day": str(_REQUESTS_A_DAY),
            "x-ratelimit-limit-tokens-minute": str(_TOKENS_A_MINUTE),
            "x-ratelimit-remaining-requests-day": str(max(0, _REQUESTS_A_DAY - number)),
            "x-ratelimit-remaining-tokens-minute": str(_TOKENS_A_MINUTE),
            "x-ratelimit-reset-requests-day": str(86_400 - now % 86_400),
            "x-ratelimit-reset-tokens-minute": str(60 - now % 60),
        }


def _allow(request: HttpRequest, *methods: str) -> None:
    if request.method not in methods:
        raise RefusedError(405, flat(f"Method {request.method} is not allowed", "invalid_request_error"))


def _json_reply(value: Any, status: int = 200) -> Reply:
    # The recorded answers came chunked.
    return Reply(status, [pydantic_core.to_json(value)], {"content-type": _JSON}, chunked=status < 400)


def _canned(fault: Fault) -> Reply:
    status = 200 if fault.status is None else fault.status
    if fault.stream is not None:
        return Reply(status, stream_parts(fault.stream), {"content-type": _EVENTS}, stream=True)
    body = faults.status_body(status) if fault.body is None else fault.body
    reply = Reply(status, [canned_body(body)], {"content-type": _JSON}, chunked=status < 400)
    if isinstance(body, str) and body.lstrip()[:1] == "<":
        reply.headers["content-type"] = "text/html; charset=utf-8"
    if status == 402:
        reply.headers["x-should-retry"] = "false"
    return reply


def _compress(request: HttpRequest, reply: Reply) -> None:
    """Compress a body for a client that offers it, as the service does, errors included."""
    disturbed = reply.headers.get("content-encoding") is not None
    if disturbed or "gzip" not in request.headers.get("accept-encoding", "") or request.method == "HEAD":
        return
    content = b"".join(reply.parts)
    if len(content) >= _GZIP_FROM:
        reply.parts = [gzip.compress(content, 1, mtime=0)]
        reply.headers["content-encoding"] = "gzip"

"""The sync and the async client: the only module that does I/O."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx
from pydantic import SecretStr

from cerebras_ext.body import single_reason
from cerebras_ext.classify import ErrorTypes
from cerebras_ext.connections import registry
from cerebras_ext.encoding import Payload
from cerebras_ext.endpoints import CHAT, COMPLETION, DeltaT, Endpoint, RequestT, ResponseT
from cerebras_ext.errors import CerebrasError, ClientClosedError
from cerebras_ext.exchange import (
    Call,
    Options,
    connection_error,
    make_request,
    prepare,
    read_json,
    read_model,
    read_response,
    refusal,
)
from cerebras_ext.retry import RetryState
from cerebras_ext.settings import ApiKey, Settings, mask_url, resolve_key, resolve_settings
from cerebras_ext.streams import (
    AsyncChatStream,
    AsyncCompletionStream,
    AsyncStream,
    ChatStream,
    CompletionStream,
    Stream,
)
from cerebras_ext.types import (
    ChatRequest,
    ChatResponse,
    CompletionRequest,
    CompletionResponse,
    ModelList,
)

logger = logging.getLogger("cerebras_ext")
logger.addHandler(logging.NullHandler())

WARM_TIMEOUT = 1.0

HttpT = TypeVar("HttpT", bound=httpx.Client | httpx.AsyncClient)
ChatInput = ChatRequest | Mapping[str, Any] | None
CompletionInput = CompletionRequest | Mapping[str, Any] | None


class _BaseClient(Generic[HttpT]):
    """Settings, key and life cycle, which both clients share. Making one opens nothing."""

    def __init__(
        self,
        *,
        api_key: ApiKey | None,
        http_client: HttpT | None,
        error_types: ErrorTypes | None,
        **settings: Any,
    ) -> None:
        self._settings: Settings = resolve_settings(**settings)
        secret, self._key_from_environment = resolve_key(api_key)
        self._secret: SecretStr | None = secret
        self._http = http_client
        self._error_types = error_types
        self._closed = False

    @property
    def base_url(self) -> str:
        """Where requests go, without `/v1`."""
        return self._settings.base_url

    def __repr__(self) -> str:
        return f"{type(self).__name__}(base_url={mask_url(self.base_url)!r}, api_key='***')"

    def __getstate__(self) -> dict[str, Any]:
        if self._http is not None:
            raise TypeError("a client with an http client of its own cannot be pickled: pass settings instead")
        state = self.__dict__.copy()
        if self._key_from_environment:
            state["_secret"] = None
        return state

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def _key(self) -> str:
        if self._closed:
            raise ClientClosedError("this client was closed; make a new one")
        if self._secret is None:
            self._secret = resolve_key(None)[0]
        return self._secret.get_secret_value()

    def _prepare(
        self,
        endpoint: Endpoint[RequestT, Any, Any],
        request: Any,
        fields: Mapping[str, Any],
        options: Options,
        stream: bool,
    ) -> Call:
        model = make_request(endpoint.request_type, request, fields)
        body = endpoint.build_body(model, stream=stream)
        return prepare(self._settings, self._key(), "POST", endpoint.path, options, body, stream=stream)

    def _get(self, path: str, options: Options) -> Call:
        return prepare(self._settings, self._key(), "GET", path, options)

    def _wants_single(self, request: Any, fields: Mapping[str, Any], unstreamable: str) -> bool:
        if unstreamable not in ("raise", "single"):
            raise ValueError(f"unstreamable: must be 'raise' or 'single', got {unstreamable!r}")
        if unstreamable == "raise":
            return False
        given = request if isinstance(request, Mapping) else {}
        if isinstance(request, (ChatRequest, CompletionRequest)):
            given = {name: getattr(request, name) for name in request.model_fields_set}
        return single_reason({**given, **fields}) is not None

    def _retry(self) -> RetryState:
        return RetryState(self._settings.retries)

    def _kept_timeout(self, call: Call) -> bool:
        """Whether a client of the user's keeps its own timeout: it set one, and we were given none."""
        return self._http is not None and not call.own_timeout and self._http.timeout != httpx.Timeout(5.0)

    def _build(self, call: Call) -> httpx.Request:
        if self._http is None:
            return call.build()
        timeout = self._http.timeout if self._kept_timeout(call) else call.timeout
        return self._http.build_request(
            call.method, call.url, headers=call.headers, content=call.content or None, timeout=timeout
        )

    @staticmethod
    def _decide(retry: RetryState, error: CerebrasError) -> float:
        """Return the seconds to wait before the next request, or raise the error."""
        delay = retry.delay(error)
        if delay is None:
            raise error
        logger.debug("attempt %d failed (%s), next in %.2f s", retry.attempts, type(error).__name__, delay)
        return delay


def _log(call: Call, status: int, started: float) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        seconds = time.monotonic() - started
        logger.debug("%s %s -> %d in %.3f s", call.method, mask_url(str(call.url)), status, seconds)


class Client(_BaseClient[httpx.Client]):
    """Sync client of both endpoints. Making one costs microseconds; equal clients share their connections.

    Args:
        api_key: The key, a `SecretStr`, or a function that returns one; default `CEREBRAS_API_KEY`.
        base_url: With or without `/v1`; default `CEREBRAS_BASE_URL`, `CEREBRAS_API_BASE`, else the public service.
        timeout: Seconds between two pieces of an answer (5 s at most to connect), or an `httpx.Timeout`; 60 s. There is
            no limit on a whole stream.
        max_retries: Repetitions after the first request, from 0; 2.
        max_retry_wait: Longest wait in seconds that is taken from `retry-after`; 60.
        default_headers: Headers of every request.
        proxy: Proxy URL; default from HTTP(S)_PROXY and NO_PROXY.
        verify: False, a CA file or folder, or an `ssl.SSLContext`.
        http2: Offer HTTP/2 (extra `http2`).
        payload: Encoding of request bodies: json, msgpack, gzip, msgpack+gzip, or auto (gzip from 16 KiB).
        queue_threshold: Longest average queue time in milliseconds, 50 to 20000, for service tiers flex and auto.
        stream_idle_timeout: Seconds without an event of a stream, comments not counted.
        http_client: Client to use as it is and never close.
        error_types: Replacements for error classes, for framework adapters.

    Raises:
        MissingAPIKeyError: No key.
        ValueError: A setting is out of range.
    """

    def __init__(
        self,
        *,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        timeout: float | httpx.Timeout | None = None,
        max_retries: int | None = None,
        max_retry_wait: float | None = None,
        default_headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        verify: bool | str | ssl.SSLContext = True,
        http2: bool = False,
        payload: Payload = "json",
        queue_threshold: int | None = None,
        stream_idle_timeout: float | None = None,
        http_client: httpx.Client | None = None,
        error_types: ErrorTypes | None = None,
    ) -> None:
        super().__init__(
            api_key=api_key, http_client=http_client, error_types=error_types, base_url=base_url, timeout=timeout,
            max_retries=max_retries, max_retry_wait=max_retry_wait, default_headers=default_headers, proxy=proxy,
            verify=verify, http2=http2, payload=payload, queue_threshold=queue_threshold,
            stream_idle_timeout=stream_idle_timeout,
        )  # fmt: skip

    def chat(
        self,
        request: ChatInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        **fields: Any,
    ) -> ChatResponse:
        """Ask for a chat answer.

        Args:
            request: A `ChatRequest` or mapping; keywords are put on top of it.
            timeout: As for the client, for this call.
            extra_headers: Headers of this call.
            queue_threshold: As for the client, for this call.
            **fields: Fields of `ChatRequest`.

        Raises:
            CerebrasError: See `cerebras_ext.errors`.
        """
        options = Options(timeout, extra_headers, queue_threshold)
        return self._ask(CHAT, self._prepare(CHAT, request, fields, options, stream=False))

    def complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        **fields: Any,
    ) -> CompletionResponse:
        """Ask for a text completion; arguments and errors as for `chat`, fields of `CompletionRequest`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return self._ask(COMPLETION, self._prepare(COMPLETION, request, fields, options, stream=False))

    def stream_chat(
        self,
        request: ChatInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        unstreamable: str = "raise",
        **fields: Any,
    ) -> ChatStream:
        """Stream a chat answer; the request is checked now and sent at the first step.

        Args:
            request: A `ChatRequest` or mapping; keywords are put on top of it.
            timeout: As for the client, for this call.
            extra_headers: Headers of this call.
            queue_threshold: As for the client, for this call.
            unstreamable: What to do with a request that cannot become one stream of one answer (json_object, n above
                1): `raise`, or `single`: make one request without a stream and yield its answer as one batch.
            **fields: Fields of `ChatRequest`.
        """
        options = Options(timeout, extra_headers, queue_threshold)
        return self._stream(CHAT, request, fields, options, unstreamable)

    def stream_complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        unstreamable: str = "raise",
        **fields: Any,
    ) -> CompletionStream:
        """Stream a text completion; arguments as for `stream_chat`, fields of `CompletionRequest`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return self._stream(COMPLETION, request, fields, options, unstreamable)

    def models(self, *, timeout: float | httpx.Timeout | None = None) -> ModelList:
        """Return the models that the key may use."""
        call = self._get("/v1/models", Options(timeout))
        content, headers = self._exchange(call, self._retry())
        return read_model(ModelList, *read_json(content, call, headers, self._error_types))

    def warm(self, *, timeout: float = WARM_TIMEOUT) -> bool:
        """Open a connection ahead of the first request; return whether the service answered. Never raises for it."""
        call = self._get("/v1/tcp_warming", Options(timeout))
        try:
            response = self._send(call)
            response.close()
        except CerebrasError:
            return False
        return True

    def close(self) -> None:
        """Close the connections, unless another client uses them too. A client of the user's is left open."""
        if not self._closed:
            self._closed = True
            registry.release_sync(self._settings.connection, self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _stream(
        self,
        endpoint: Endpoint[RequestT, ResponseT, DeltaT],
        request: Any,
        fields: Mapping[str, Any],
        options: Options,
        unstreamable: str,
    ) -> Stream[DeltaT, ResponseT]:
        single = self._wants_single(request, fields, unstreamable)
        call = self._prepare(endpoint, request, fields, options, stream=not single)
        return Stream(
            self._open,
            self._pause,
            (lambda: self._ask(endpoint, call)) if single else None,
            endpoint,
            call,
            self._retry(),
            self._error_types,
            self._settings.stream_idle_timeout,
        )

    def _ask(self, endpoint: Endpoint[RequestT, ResponseT, DeltaT], call: Call) -> ResponseT:
        retry = self._retry()
        while True:
            content, headers = self._exchange(call, retry)
            try:
                return read_response(endpoint, content, call, headers, self._error_types)
            except CerebrasError as error:
                self._pause(retry, error)

    def _exchange(self, call: Call, retry: RetryState) -> tuple[bytes, httpx.Headers]:
        """Send a request and read its whole answer, as often as it takes."""
        while True:
            try:
                response = self._send(call)
                try:
                    return response.read(), response.headers
                except httpx.HTTPError as error:
                    raise connection_error(error, call) from error
                finally:
                    response.close()
            except CerebrasError as error:
                self._pause(retry, error)

    def _open(self, call: Call, retry: RetryState) -> httpx.Response:
        """Send a request and return its open answer, as often as it takes."""
        while True:
            try:
                return self._send(call)
            except CerebrasError as error:
                self._pause(retry, error)

    def _pause(self, retry: RetryState, error: CerebrasError) -> None:
        time.sleep(self._decide(retry, error))

    def _send(self, call: Call) -> httpx.Response:
        """Send a request once; the answer is open and has a good status."""
        started = time.monotonic()
        try:
            request = self._build(call)
            if self._http is not None:
                response = self._http.send(request, stream=True)
            else:
                response = registry.sync_transport(self._settings.connection, self).handle_request(request)
                response.request = request
            if not response.is_success:
                try:
                    content = response.read()
                finally:
                    response.close()
        except httpx.HTTPError as error:
            raise connection_error(error, call) from error
        _log(call, response.status_code, started)
        if response.is_success:
            return response
        raise refusal(response.status_code, response.headers, content, call, self._error_types)


class AsyncClient(_BaseClient[httpx.AsyncClient]):
    """Async client of both endpoints: the twin of `Client`, with the same settings.

    One instance works in any number of event loops, one after the other or at once in several threads: connections
    belong to the running loop and are closed when it shuts down.
    """

    def __init__(
        self,
        *,
        api_key: ApiKey | None = None,
        base_url: str | None = None,
        timeout: float | httpx.Timeout | None = None,
        max_retries: int | None = None,
        max_retry_wait: float | None = None,
        default_headers: Mapping[str, str] | None = None,
        proxy: str | None = None,
        verify: bool | str | ssl.SSLContext = True,
        http2: bool = False,
        payload: Payload = "json",
        queue_threshold: int | None = None,
        stream_idle_timeout: float | None = None,
        http_async_client: httpx.AsyncClient | None = None,
        error_types: ErrorTypes | None = None,
    ) -> None:
        super().__init__(
            api_key=api_key, http_client=http_async_client, error_types=error_types, base_url=base_url, timeout=timeout,
            max_retries=max_retries, max_retry_wait=max_retry_wait, default_headers=default_headers, proxy=proxy,
            verify=verify, http2=http2, payload=payload, queue_threshold=queue_threshold,
            stream_idle_timeout=stream_idle_timeout,
        )  # fmt: skip

    async def chat(
        self,
        request: ChatInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        **fields: Any,
    ) -> ChatResponse:
        """Ask for a chat answer; see `Client.chat`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return await self._ask(CHAT, self._prepare(CHAT, request, fields, options, stream=False))

    async def complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        **fields: Any,
    ) -> CompletionResponse:
        """Ask for a text completion; see `Client.complete`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return await self._ask(COMPLETION, self._prepare(COMPLETION, request, fields, options, stream=False))

    def stream_chat(
        self,
        request: ChatInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        unstreamable: str = "raise",
        **fields: Any,
    ) -> AsyncChatStream:
        """Stream a chat answer (not a coroutine: use `async for` or `async with`); see `Client.stream_chat`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return self._stream(CHAT, request, fields, options, unstreamable)

    def stream_complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        timeout: float | httpx.Timeout | None = None,
        extra_headers: Mapping[str, str] | None = None,
        queue_threshold: int | None = None,
        unstreamable: str = "raise",
        **fields: Any,
    ) -> AsyncCompletionStream:
        """Stream a text completion (not a coroutine); see `Client.stream_complete`."""
        options = Options(timeout, extra_headers, queue_threshold)
        return self._stream(COMPLETION, request, fields, options, unstreamable)

    async def models(self, *, timeout: float | httpx.Timeout | None = None) -> ModelList:
        """Return the models that the key may use."""
        call = self._get("/v1/models", Options(timeout))
        content, headers = await self._exchange(call, self._retry())
        return read_model(ModelList, *read_json(content, call, headers, self._error_types))

    async def warm(self, *, timeout: float = WARM_TIMEOUT) -> bool:
        """Open a connection of this loop ahead of the first request; see `Client.warm`."""
        call = self._get("/v1/tcp_warming", Options(timeout))
        try:
            response = await self._send(call)
            await response.aclose()
        except CerebrasError:
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections of this loop, unless another client uses them too."""
        if not self._closed:
            self._closed = True
            await registry.release_async(self._settings.connection, self)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _stream(
        self,
        endpoint: Endpoint[RequestT, ResponseT, DeltaT],
        request: Any,
        fields: Mapping[str, Any],
        options: Options,
        unstreamable: str,
    ) -> AsyncStream[DeltaT, ResponseT]:
        single = self._wants_single(request, fields, unstreamable)
        call = self._prepare(endpoint, request, fields, options, stream=not single)
        return AsyncStream(
            self._open,
            self._pause,
            (lambda: self._ask(endpoint, call)) if single else None,
            endpoint,
            call,
            self._retry(),
            self._error_types,
            self._settings.stream_idle_timeout,
        )

    async def _ask(self, endpoint: Endpoint[RequestT, ResponseT, DeltaT], call: Call) -> ResponseT:
        retry = self._retry()
        while True:
            content, headers = await self._exchange(call, retry)
            try:
                return read_response(endpoint, content, call, headers, self._error_types)
            except CerebrasError as error:
                await self._pause(retry, error)

    async def _exchange(self, call: Call, retry: RetryState) -> tuple[bytes, httpx.Headers]:
        """Send a request and read its whole answer, as often as it takes."""
        while True:
            try:
                response = await self._send(call)
                try:
                    return await response.aread(), response.headers
                except httpx.HTTPError as error:
                    raise connection_error(error, call) from error
                finally:
                    await response.aclose()
            except CerebrasError as error:
                await self._pause(retry, error)

    async def _open(self, call: Call, retry: RetryState) -> httpx.Response:
        """Send a request and return its open answer, as often as it takes."""
        while True:
            try:
                return await self._send(call)
            except CerebrasError as error:
                await self._pause(retry, error)

    async def _pause(self, retry: RetryState, error: CerebrasError) -> None:
        await asyncio.sleep(self._decide(retry, error))

    async def _send(self, call: Call) -> httpx.Response:
        """Send a request once; the answer is open and has a good status."""
        started = time.monotonic()
        try:
            request = self._build(call)
            if self._http is not None:
                response = await self._http.send(request, stream=True)
            else:
                transport = await registry.async_transport(self._settings.connection, self)
                response = await transport.handle_async_request(request)
                response.request = request
            if not response.is_success:
                try:
                    content = await response.aread()
                finally:
                    await response.aclose()
        except httpx.HTTPError as error:
            raise connection_error(error, call) from error
        _log(call, response.status_code, started)
        if response.is_success:
            return response
        raise refusal(response.status_code, response.headers, content, call, self._error_types)

"""The sync and the async client: the only module that does I/O."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, Unpack

import httpx

from cerebras_ext.base_client import BaseClient, log_exchange
from cerebras_ext.connections import registry
from cerebras_ext.endpoints import CHAT, COMPLETION, DeltaT, Endpoint, RequestT, ResponseT
from cerebras_ext.errors import CerebrasError
from cerebras_ext.exchange import Call, Options, connection_error, read_json, read_model, read_response, refusal
from cerebras_ext.keywords import ChatKeywords, ClientOptions, CompletionKeywords, Unstreamable
from cerebras_ext.retry import RetryState
from cerebras_ext.settings import AsyncHTTPClient, HTTPClient, Timeout
from cerebras_ext.streams import (
    AsyncChatStream,
    AsyncCompletionStream,
    AsyncStream,
    ChatStream,
    CompletionStream,
    Stream,
)
from cerebras_ext.types import ChatRequest, ChatResponse, CompletionRequest, CompletionResponse, ModelList

WARM_TIMEOUT = 1.0

ChatInput = ChatRequest | Mapping[str, Any] | None
CompletionInput = CompletionRequest | Mapping[str, Any] | None


class Client(BaseClient[httpx.Client]):
    """Sync client of both endpoints. Making one costs microseconds; equal clients share their connections.

    Args:
        http_client: Client to use as it is and never close.
        **options: See `ClientOptions`.

    Raises:
        MissingAPIKeyError: No key.
        ValueError: A setting is out of range.
    """

    def __init__(self, *, http_client: HTTPClient | None = None, **options: Unpack[ClientOptions]) -> None:
        super().__init__(http_client, options)

    def chat(self, request: ChatInput = None, /, **keywords: Unpack[ChatKeywords]) -> ChatResponse:
        """Ask for a chat answer.

        Args:
            request: A `ChatRequest` or mapping; keywords are put on top of it.
            **keywords: Fields of `ChatRequest`, and the options of a call (`CallOptions`).

        Raises:
            CerebrasError: See `cerebras_ext.errors`.
        """
        return self._ask(CHAT, self._prepare(CHAT, request, keywords, stream=False))

    def complete(
        self, request: CompletionInput = None, /, **keywords: Unpack[CompletionKeywords]
    ) -> CompletionResponse:
        """Ask for a text completion; arguments and errors as for `chat`, fields of `CompletionRequest`."""
        return self._ask(COMPLETION, self._prepare(COMPLETION, request, keywords, stream=False))

    def stream_chat(
        self,
        request: ChatInput = None,
        /,
        *,
        unstreamable: Unstreamable = "raise",
        **keywords: Unpack[ChatKeywords],
    ) -> ChatStream:
        """Stream a chat answer; the request is checked now and sent at the first step.

        Args:
            request: A `ChatRequest` or mapping; keywords are put on top of it.
            unstreamable: What to do with a request that cannot become one stream of one answer (json_object, n above
                1): `raise`, or `single`: make one request without a stream and yield its answer as one batch.
            **keywords: Fields of `ChatRequest`, and the options of a call (`CallOptions`).
        """
        return self._stream(CHAT, request, keywords, unstreamable)

    def stream_complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        unstreamable: Unstreamable = "raise",
        **keywords: Unpack[CompletionKeywords],
    ) -> CompletionStream:
        """Stream a text completion; arguments as for `stream_chat`, fields of `CompletionRequest`."""
        return self._stream(COMPLETION, request, keywords, unstreamable)

    def models(self, *, timeout: Timeout | None = None) -> ModelList:
        """Return the models that the key may use."""
        call = self._get("/v1/models", Options(timeout))
        content, headers = self._exchange(call, self._retry())
        return read_model(ModelList, *read_json(content, call, headers, self._error_types))

    def warm(self, *, timeout: float = WARM_TIMEOUT) -> bool:
        """Open a connection ahead of the first request; return whether that worked. A failure is not raised."""
        call = self._get("/v1/tcp_warming", Options(timeout))
        try:
            self._exchange_once(call)
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
        keywords: Mapping[str, Any],
        unstreamable: Unstreamable,
    ) -> Stream[DeltaT, ResponseT]:
        call, single = self._prepare_stream(endpoint, request, keywords, unstreamable)
        return Stream(
            self._open,
            self._pause,
            (lambda: self._ask(endpoint, call)) if single else None,
            endpoint,
            call,
            self._retry(),
            self._error_types,
            self._settings.stream_idle_timeout,
            self._settings.coalesce,
        )

    def _ask(self, endpoint: Endpoint[RequestT, ResponseT, DeltaT], call: Call) -> ResponseT:
        retry = self._retry()
        while True:
            try:
                content, headers = self._exchange_once(call)
                return read_response(endpoint, content, call, headers, self._error_types)
            except CerebrasError as error:
                self._pause(retry, error)

    def _exchange(self, call: Call, retry: RetryState) -> tuple[bytes, httpx.Headers]:
        """Send a request and read its whole answer, as often as it takes."""
        while True:
            try:
                return self._exchange_once(call)
            except CerebrasError as error:
                self._pause(retry, error)

    def _exchange_once(self, call: Call) -> tuple[bytes, httpx.Headers]:
        response = self._send(call)
        # Without an encoding, `Response.read` does no more than to join, and takes a tenth of the core's time for it.
        try:
            if self._http is not None or "content-encoding" in response.headers:
                return response.read(), response.headers
            assert isinstance(response.stream, httpx.SyncByteStream)
            return b"".join(response.stream), response.headers
        except httpx.HTTPError as error:
            raise connection_error(error, call) from error
        finally:
            response.close()

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
        log_exchange(call, response.status_code, started)
        if response.is_success:
            return response
        raise refusal(response.status_code, response.headers, content, call, self._error_types)


class AsyncClient(BaseClient[httpx.AsyncClient]):
    """Async client of both endpoints: the twin of `Client`, with the same settings.

    One instance works in any number of event loops, one after the other or at once in several threads: connections
    belong to the running loop and are closed when it shuts down.
    """

    def __init__(self, *, http_async_client: AsyncHTTPClient | None = None, **options: Unpack[ClientOptions]) -> None:
        super().__init__(http_async_client, options)

    async def chat(self, request: ChatInput = None, /, **keywords: Unpack[ChatKeywords]) -> ChatResponse:
        """Ask for a chat answer; see `Client.chat`."""
        call = self._prepare(CHAT, request, keywords, stream=False)
        del request, keywords  # garbage collections walk all that calls hold while they wait
        return await self._ask(CHAT, call)

    async def complete(
        self, request: CompletionInput = None, /, **keywords: Unpack[CompletionKeywords]
    ) -> CompletionResponse:
        """Ask for a text completion; see `Client.complete`."""
        call = self._prepare(COMPLETION, request, keywords, stream=False)
        del request, keywords
        return await self._ask(COMPLETION, call)

    def stream_chat(
        self,
        request: ChatInput = None,
        /,
        *,
        unstreamable: Unstreamable = "raise",
        **keywords: Unpack[ChatKeywords],
    ) -> AsyncChatStream:
        """Stream a chat answer (not a coroutine: use `async for` or `async with`); see `Client.stream_chat`."""
        return self._stream(CHAT, request, keywords, unstreamable)

    def stream_complete(
        self,
        request: CompletionInput = None,
        /,
        *,
        unstreamable: Unstreamable = "raise",
        **keywords: Unpack[CompletionKeywords],
    ) -> AsyncCompletionStream:
        """Stream a text completion (not a coroutine); see `Client.stream_complete`."""
        return self._stream(COMPLETION, request, keywords, unstreamable)

    async def models(self, *, timeout: Timeout | None = None) -> ModelList:
        """Return the models that the key may use."""
        call = self._get("/v1/models", Options(timeout))
        content, headers = await self._exchange(call, self._retry())
        return read_model(ModelList, *read_json(content, call, headers, self._error_types))

    async def warm(self, *, timeout: float = WARM_TIMEOUT) -> bool:
        """Open a connection of this loop ahead of the first request; see `Client.warm`."""
        call = self._get("/v1/tcp_warming", Options(timeout))
        try:
            await self._exchange_once(call)
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
        keywords: Mapping[str, Any],
        unstreamable: Unstreamable,
    ) -> AsyncStream[DeltaT, ResponseT]:
        call, single = self._prepare_stream(endpoint, request, keywords, unstreamable)
        return AsyncStream(
            self._open,
            self._pause,
            (lambda: self._ask(endpoint, call)) if single else None,
            endpoint,
            call,
            self._retry(),
            self._error_types,
            self._settings.stream_idle_timeout,
            self._settings.coalesce,
        )

    async def _ask(self, endpoint: Endpoint[RequestT, ResponseT, DeltaT], call: Call) -> ResponseT:
        retry = self._retry()
        while True:
            try:
                content, headers = await self._exchange_once(call)
                return read_response(endpoint, content, call, headers, self._error_types)
            except CerebrasError as error:
                await self._pause(retry, error)

    async def _exchange(self, call: Call, retry: RetryState) -> tuple[bytes, httpx.Headers]:
        """Send a request and read its whole answer, as often as it takes."""
        while True:
            try:
                return await self._exchange_once(call)
            except CerebrasError as error:
                await self._pause(retry, error)

    async def _exchange_once(self, call: Call) -> tuple[bytes, httpx.Headers]:
        response = await self._send(call)
        try:
            if self._http is not None or "content-encoding" in response.headers:
                return await response.aread(), response.headers
            assert isinstance(response.stream, httpx.AsyncByteStream)
            return b"".join([part async for part in response.stream]), response.headers
        except httpx.HTTPError as error:
            raise connection_error(error, call) from error
        finally:
            await response.aclose()

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
        log_exchange(call, response.status_code, started)
        if response.is_success:
            return response
        raise refusal(response.status_code, response.headers, content, call, self._error_types)

"""Streams of both endpoints: iterators of deltas that end with the whole answer at `.response`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import Any, Generic, Self

import httpx

from cerebras_ext.assembly import ChatDelta, CompletionDelta
from cerebras_ext.classify import ErrorTypes
from cerebras_ext.coalesce import coalesce
from cerebras_ext.endpoints import DeltaT, Endpoint, ResponseT
from cerebras_ext.errors import CerebrasError
from cerebras_ext.exchange import Call, connection_error
from cerebras_ext.pools import close_shielded
from cerebras_ext.retry import RetryState
from cerebras_ext.stream_state import StreamState
from cerebras_ext.types import ChatResponse, CompletionResponse

DRAIN_SECONDS = 0.25
"""How long the end of a body may take after the end mark of its stream. It mostly comes with the mark or right after
it, and once it is read the connection serves the next call; a server that keeps a finished stream open is not waited
for."""


class _StreamBase(Generic[DeltaT, ResponseT]):
    """What the sync and the async stream have in common: everything but the I/O."""

    def __init__(
        self,
        endpoint: Endpoint[Any, ResponseT, DeltaT],
        call: Call,
        retry: RetryState,
        error_types: ErrorTypes | None,
        idle_timeout: float | None,
        joins: bool = False,
    ) -> None:
        self._endpoint = endpoint
        self._call = call
        self._retry = retry
        self._error_types = error_types
        self._idle_timeout = idle_timeout
        self._joins = joins
        self._opened: httpx.Response | None = None
        self._whole: ResponseT | None = None
        self._answer: ResponseT | None = None
        self._handed_out = False
        self._started = False

    @property
    def response(self) -> ResponseT:
        """The whole answer, once the stream has been read to its end.

        Raises:
            RuntimeError: The stream has not been read to its end.
        """
        if self._answer is None:
            raise RuntimeError("the stream has not been read to its end, so there is no whole answer yet")
        return self._answer

    def _start(self) -> None:
        if self._started:
            raise RuntimeError("a stream can be read once; call the client again for another answer")
        self._started = True

    def _state(self, headers: httpx.Headers) -> StreamState[DeltaT, ResponseT]:
        return StreamState(self._endpoint, self._call, headers, self._error_types, self._idle_timeout)

    def _note(self, deltas: list[DeltaT]) -> list[DeltaT]:
        self._handed_out = self._handed_out or bool(deltas)
        return coalesce(deltas) if self._joins else deltas

    def _broken(self, error: httpx.HTTPError, state: StreamState[DeltaT, ResponseT]) -> None:
        """Raise for a connection that broke, unless the answer was whole already."""
        if not state.complete:
            raise connection_error(error, self._call) from error


class Stream(_StreamBase[DeltaT, ResponseT]):
    """A stream of deltas. Iterate once; leave it early with `close()`, `with`, or by dropping the iterator.

    The request is sent by `open()`, by entering `with`, or by the first step of the iteration.
    """

    def __init__(
        self,
        opener: Callable[[Call, RetryState], httpx.Response],
        pause: Callable[[RetryState, CerebrasError], None],
        single: Callable[[], ResponseT] | None,
        endpoint: Endpoint[Any, ResponseT, DeltaT],
        call: Call,
        retry: RetryState,
        error_types: ErrorTypes | None,
        idle_timeout: float | None,
        joins: bool = False,
    ) -> None:
        super().__init__(endpoint, call, retry, error_types, idle_timeout, joins)
        self._opener = opener
        self._pause = pause
        self._single = single

    def open(self) -> Self:
        """Send the request and wait for the answer to begin; errors of the request are raised here."""
        if self._single is not None:
            if self._whole is None:
                self._whole = self._single()
        elif self._opened is None and not self._started:
            self._opened = self._opener(self._call, self._retry)
        return self

    def batches(self) -> Iterator[list[DeltaT]]:
        """Yield the deltas in the groups in which the network brought them; cheaper than one by one."""
        self.open()
        self._start()
        if self._whole is not None:
            self._answer = self._whole
            yield self._endpoint.split(self._whole)
            return
        while True:
            try:
                yield from self._attempt()
                return
            except CerebrasError as error:
                if self._handed_out:
                    raise
                self._pause(self._retry, error)
            self._opened = self._opener(self._call, self._retry)

    def _attempt(self) -> Iterator[list[DeltaT]]:
        opened = self._opened
        assert opened is not None
        state = self._state(opened.headers)
        pieces = _pieces(opened)
        try:
            try:
                for data in pieces:
                    deltas = state.feed(data)
                    if deltas:
                        yield self._note(deltas)
                    if state.done:
                        break
            except httpx.HTTPError as error:
                self._broken(error, state)
            rest = state.finish()
            if rest:
                yield self._note(rest)
                state.check_complete()
            if state.done_early:
                _drain(opened)
        finally:
            self.close()
        self._answer = state.response()

    def __iter__(self) -> Iterator[DeltaT]:
        for batch in self.batches():
            yield from batch

    def close(self) -> None:
        """Give the connection back, or drop it if the answer has not been read to its end."""
        opened, self._opened = self._opened, None
        self._started = True
        if opened is not None:
            opened.close()

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            self.close()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncStream(_StreamBase[DeltaT, ResponseT]):
    """The async twin of `Stream`. Leave it early with `aclose()`, `async with`, or by dropping the iterator."""

    def __init__(
        self,
        opener: Callable[[Call, RetryState], Awaitable[httpx.Response]],
        pause: Callable[[RetryState, CerebrasError], Awaitable[None]],
        single: Callable[[], Awaitable[ResponseT]] | None,
        endpoint: Endpoint[Any, ResponseT, DeltaT],
        call: Call,
        retry: RetryState,
        error_types: ErrorTypes | None,
        idle_timeout: float | None,
        joins: bool = False,
    ) -> None:
        super().__init__(endpoint, call, retry, error_types, idle_timeout, joins)
        self._opener = opener
        self._pause = pause
        self._single = single
        self._loop: asyncio.AbstractEventLoop | None = None

    async def open(self) -> Self:
        """Send the request and wait for the answer to begin; errors of the request are raised here."""
        if self._single is not None:
            if self._whole is None:
                self._whole = await self._single()
        elif self._opened is None and not self._started:
            self._loop = asyncio.get_running_loop()
            self._opened = await self._opener(self._call, self._retry)
        return self

    async def batches(self) -> AsyncIterator[list[DeltaT]]:
        """Yield the deltas in the groups in which the network brought them; cheaper than one by one."""
        await self.open()
        self._start()
        if self._whole is not None:
            self._answer = self._whole
            yield self._endpoint.split(self._whole)
            return
        # The sync twin has a generator for each attempt. An asynchronous one costs every piece more than a step.
        try:
            while True:
                assert self._opened is not None
                state = self._state(self._opened.headers)
                pieces = _async_pieces(self._opened)
                try:
                    try:
                        async for data in pieces:
                            deltas = state.feed(data)
                            if deltas:
                                yield self._note(deltas)
                            if state.done:
                                break
                    except httpx.HTTPError as error:
                        self._broken(error, state)
                    rest = state.finish()
                    if rest:
                        yield self._note(rest)
                        state.check_complete()
                    if state.done_early:
                        await _drain_async(pieces)
                    await self.aclose()
                    self._answer = state.response()
                    return
                except CerebrasError as error:
                    await self.aclose()
                    if self._handed_out:
                        raise
                    await self._pause(self._retry, error)
                self._opened = await self._opener(self._call, self._retry)
        finally:
            await self.aclose()

    async def __aiter__(self) -> AsyncIterator[DeltaT]:
        try:
            async for batch in self.batches():
                for delta in batch:
                    yield delta
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back, or drop it if the answer has not been read to its end."""
        opened, self._opened = self._opened, None
        self._started = True
        if opened is not None:
            await close_shielded(opened.aclose())

    def __del__(self) -> None:
        opened, loop = getattr(self, "_opened", None), getattr(self, "_loop", None)
        if opened is not None and loop is not None and not loop.is_closed():
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(lambda: loop.create_task(_close(opened)))

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


async def _close(response: httpx.Response) -> None:
    """Close what was dropped. A loop that ends may cancel this before it begins: nothing is made before that."""
    await close_shielded(response.aclose())


def _is_plain(response: httpx.Response) -> bool:
    """Whether the bytes of the network are the bytes of the body, and still to come (a replayed answer is read)."""
    return "content-encoding" not in response.headers and not response.is_stream_consumed


def _pieces(response: httpx.Response) -> Iterator[bytes]:
    assert isinstance(response.stream, httpx.SyncByteStream)
    return iter(response.stream) if _is_plain(response) else response.iter_bytes()


def _async_pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return aiter(response.stream) if _is_plain(response) else response.aiter_bytes()


def _drain(response: httpx.Response) -> None:
    """Read what is left of a body, for a short while.

    The transport takes its limit once, when the reading begins, so the reading is begun anew with a short one. Where
    the answer does not come from the network there is no connection to save.
    """
    limits = response.request.extensions.get("timeout")
    if "network_stream" not in response.extensions or not isinstance(limits, dict):
        return
    limits["read"] = DRAIN_SECONDS
    assert isinstance(response.stream, httpx.SyncByteStream)
    end = time.monotonic() + DRAIN_SECONDS
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
        for _ in response.stream:
            if time.monotonic() > end:
                break


async def _drain_async(pieces: AsyncIterator[bytes]) -> None:
    """The async twin of `_drain`."""
    with contextlib.suppress(httpx.HTTPError, httpx.StreamError, TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            async for _ in pieces:
                pass


ChatStream = Stream[ChatDelta, ChatResponse]
AsyncChatStream = AsyncStream[ChatDelta, ChatResponse]
CompletionStream = Stream[CompletionDelta, CompletionResponse]
AsyncCompletionStream = AsyncStream[CompletionDelta, CompletionResponse]

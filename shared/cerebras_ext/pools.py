"""Pools of connections that requests are spread over, and the transports that do so."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

import httpx

IDLE_SECONDS = 30.0
"""How long an unused connection is kept."""

OTHER_ORIGINS = 8
"""Where more than so many unused connections to other servers are kept, opening one gives up another."""

Origin = tuple[str, bytes, int | None]


T = TypeVar("T", bound=httpx.BaseTransport | httpx.AsyncBaseTransport)


def origin_of(url: httpx.URL) -> Origin:
    """Return scheme, host and port of a URL; a connection serves one origin."""
    return url.scheme, url.raw_host, url.port


class _Shard(Generic[T]):
    __slots__ = ("idle_since", "in_flight", "origin", "transport")

    def __init__(self, transport: T, origin: Origin) -> None:
        self.transport = transport
        self.origin = origin
        self.in_flight = 0
        self.idle_since = 0.0


class Shards(Generic[T]):
    """Spreads requests over pools of one connection each; a new one is made when all are busy.

    An httpcore pool walks its list of connections several times a request, so that with one large pool a call costs
    more the more there are; with one connection a pool the cost is flat (docs/performance.md). The pool used last is
    taken first, so that those that are not needed grow old and are given up.
    """

    def __init__(self, make: Callable[[], T], size: int) -> None:
        self._make = make
        self._size = size
        self._all: set[_Shard[T]] = set()
        self._free: list[_Shard[T]] = []
        self._next_sweep = 0.0
        self._lock = threading.Lock()

    def take(self, origin: Origin) -> tuple[_Shard[T], list[T]]:
        """Return a pool for one request to an origin, and the pools that are not needed any more, to be closed."""
        with self._lock:
            idle = self._sweep()
            shard = next((shard for shard in reversed(self._free) if shard.origin == origin), None)
            if shard is None:
                others = [shard for shard in self._free if not shard.in_flight]
                if len(others) > OTHER_ORIGINS:
                    idle += self._give_up(others[:1])
                shard = _Shard(self._make(), origin)
                self._all.add(shard)
                self._free.append(shard)
            shard.in_flight += 1
            if shard.in_flight >= self._size:
                self._free.remove(shard)
        return shard, idle

    def give(self, shard: _Shard[T]) -> T | None:
        """Note that a request is over; return the pool to be closed, if all were closed meanwhile."""
        with self._lock:
            known = shard in self._all
            if shard.in_flight >= self._size and known:
                self._free.append(shard)
            shard.in_flight -= 1
            shard.idle_since = time.monotonic()
            return None if known or shard.in_flight else shard.transport

    def drop(self, shard: _Shard[T]) -> T | None:
        """Note that a request was broken off; return the pool to be closed, if it was this request's alone.

        Where a task is cancelled at an unlucky await, or twice, httpcore keeps the connection and never uses it again.
        """
        if self._size > 1:
            return self.give(shard)
        with self._lock:
            self._all.discard(shard)
        return shard.transport

    def _sweep(self) -> list[T]:
        now = time.monotonic()
        if now < self._next_sweep:
            return []
        self._next_sweep = now + IDLE_SECONDS / 3
        idle = [shard for shard in self._free if not shard.in_flight and now - shard.idle_since > IDLE_SECONDS]
        return self._give_up(idle)

    def _give_up(self, shards: list[_Shard[T]]) -> list[T]:
        if shards:
            self._all.difference_update(shards)
            self._free = [shard for shard in self._free if shard in self._all]
        return [shard.transport for shard in shards]

    def clear(self) -> list[T]:
        """Forget all pools and return them, to be closed."""
        with self._lock:
            shards, self._all, self._free = self._all, set(), []
        return [shard.transport for shard in shards]


class _CountedStream(httpx.SyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream, done: Callable[[], None]) -> None:
        self._stream = stream
        self._done: Callable[[], None] | None = done

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def close(self) -> None:
        done, self._done = self._done, None
        try:
            self._stream.close()
        finally:
            if done is not None:
                done()


class _AsyncCountedStream(httpx.AsyncByteStream):
    """A body that says in the end whether it was read to its end."""

    def __init__(self, stream: httpx.AsyncByteStream, done: Callable[[bool], Awaitable[None]]) -> None:
        self._stream = stream
        self._done: Callable[[bool], Awaitable[None]] | None = done
        self._whole = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            yield data
        self._whole = True

    async def aclose(self) -> None:
        done, self._done = self._done, None
        if done is None:
            return
        try:
            await self._stream.aclose()
        except BaseException:
            self._whole = False
            raise
        finally:
            await done(self._whole)


_closing: set[asyncio.Future[None]] = set()


async def close_shielded(closing: Coroutine[Any, Any, None]) -> None:
    """Close something to the end, also where the task that waits for it is cancelled meanwhile."""
    task = asyncio.ensure_future(closing)
    _closing.add(task)
    task.add_done_callback(_closing.discard)
    await asyncio.shield(task)


def forget_closed_loops() -> None:
    """Forget what was being closed in event loops that have been closed themselves meanwhile."""
    _closing.difference_update([task for task in list(_closing) if task.get_loop().is_closed()])


async def _close_all(transports: list[httpx.AsyncBaseTransport]) -> None:
    for transport in transports:
        await transport.aclose()


class SharedTransport(httpx.BaseTransport):
    """The connections of all sync clients with equal settings.

    Args:
        make: Makes a pool.
        size: How many requests share one.
    """

    def __init__(self, make: Callable[[], httpx.BaseTransport], size: int) -> None:
        self._shards = Shards(make, size)
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through a pool that is not busy."""
        shard, idle = self._shards.take(origin_of(request.url))
        for transport in idle:
            transport.close()
        try:
            response = shard.transport.handle_request(request)
        except BaseException as error:
            self._done(shard, isinstance(error, httpx.HTTPError))
            raise
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _CountedStream(response.stream, partial(self._done, shard, True))
        return response

    def _done(self, shard: _Shard[httpx.BaseTransport], reusable: bool) -> None:
        unusable = self._shards.give(shard) if reusable else self._shards.drop(shard)
        if unusable is not None:
            unusable.close()

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        for transport in self._shards.clear():
            transport.close()


class SharedAsyncTransport(httpx.AsyncBaseTransport):
    """The connections of all async clients with equal settings in one event loop; arguments as for the sync ones."""

    def __init__(self, make: Callable[[], httpx.AsyncBaseTransport], size: int) -> None:
        self._shards = Shards(make, size)
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through a pool that is not busy."""
        shard, idle = self._shards.take(origin_of(request.url))
        try:
            if idle:
                await close_shielded(_close_all(idle))
            response = await shard.transport.handle_async_request(request)
        except BaseException as error:
            await self._done(shard, isinstance(error, httpx.HTTPError))
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _AsyncCountedStream(response.stream, partial(self._done, shard))
        return response

    async def _done(self, shard: _Shard[httpx.AsyncBaseTransport], reusable: bool) -> None:
        unusable = self._shards.give(shard) if reusable else self._shards.drop(shard)
        if unusable is not None:
            await close_shielded(unusable.aclose())

    async def aclose(self) -> None:
        """Close all connections; a later request opens new ones."""
        await close_shielded(_close_all(self._shards.clear()))

"""Connection pools that equal clients of a process share: made at first use, never used across loops or forks.

Pools are transports, not httpx clients: they hold no cookies and no key, so that clients with different keys can
share them, and a request does not pay for redirects, cookies and authentication flows that the service never uses.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import os
import ssl
import sys
import threading
import time
import weakref
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx

from cerebras_ext.settings import ConnectionSettings

if TYPE_CHECKING:
    import httpcore

HTTP2_STREAMS = 100
"""Requests at once on one HTTP/2 connection."""

IDLE_SECONDS = 30.0
"""How long an unused connection is kept."""

OTHER_ORIGINS = 8
"""How many unused connections to other servers are kept where one to a new server is opened."""

Origin = tuple[str, bytes, int | None]


def _limits(settings: ConnectionSettings) -> httpx.Limits:
    return httpx.Limits(
        max_connections=None,
        max_keepalive_connections=HTTP2_STREAMS if settings.http2 else 1,
        keepalive_expiry=IDLE_SECONDS,
    )


def _per_pool(settings: ConnectionSettings) -> int:
    """Return how many requests share a pool: aiohttp's does not walk lists, so there one is enough."""
    if settings.transport == "aiohttp":
        return sys.maxsize
    return HTTP2_STREAMS if settings.http2 else 1


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


class _Shards(Generic[T]):
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

    def give(self, shard: _Shard[T]) -> None:
        """Note that a request is over."""
        with self._lock:
            if shard.in_flight >= self._size and shard in self._all:
                self._free.append(shard)
            shard.in_flight -= 1
            shard.idle_since = time.monotonic()

    def drop(self, shard: _Shard[T]) -> T | None:
        """Note that a request was broken off; return the pool to be closed, if it was this request's alone.

        Where a task is cancelled at an unlucky await, or twice, httpcore keeps the connection and never uses it again.
        """
        if self._size > 1:
            self.give(shard)
            return None
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


async def _close_all(transports: list[httpx.AsyncBaseTransport]) -> None:
    for transport in transports:
        await transport.aclose()


class SharedTransport(httpx.BaseTransport):
    """The connections of all sync clients with equal settings."""

    def __init__(self, settings: ConnectionSettings) -> None:
        size = HTTP2_STREAMS if settings.http2 else 1
        self._shards: _Shards[httpx.BaseTransport] = _Shards(partial(_make_sync, settings), size)
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through a pool that is not busy."""
        shard, idle = self._shards.take(origin_of(request.url))
        for transport in idle:
            transport.close()
        try:
            response = shard.transport.handle_request(request)
        except httpx.HTTPError:
            self._shards.give(shard)
            raise
        except BaseException:
            broken = self._shards.drop(shard)
            if broken is not None:
                broken.close()
            raise
        assert isinstance(response.stream, httpx.SyncByteStream)
        response.stream = _CountedStream(response.stream, partial(self._shards.give, shard))
        return response

    def close(self) -> None:
        """Close all connections; a later request opens new ones."""
        for transport in self._shards.clear():
            transport.close()


class SharedAsyncTransport(httpx.AsyncBaseTransport):
    """The connections of all async clients with equal settings in one event loop."""

    def __init__(self, settings: ConnectionSettings) -> None:
        self._shards: _Shards[httpx.AsyncBaseTransport] = _Shards(partial(_make_async, settings), _per_pool(settings))
        self.users: weakref.WeakSet[object] = weakref.WeakSet()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request through a pool that is not busy."""
        shard, idle = self._shards.take(origin_of(request.url))
        try:
            if idle:
                await close_shielded(_close_all(idle))
            response = await shard.transport.handle_async_request(request)
        except httpx.HTTPError:
            self._shards.give(shard)
            raise
        except BaseException:
            await self._done(shard, False)
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = _AsyncCountedStream(response.stream, partial(self._done, shard))
        return response

    async def _done(self, shard: _Shard[httpx.AsyncBaseTransport], whole: bool) -> None:
        broken = None if whole else self._shards.drop(shard)
        if whole:
            self._shards.give(shard)
        elif broken is not None:
            await close_shielded(broken.aclose())

    async def aclose(self) -> None:
        """Close all connections; a later request opens new ones."""
        await close_shielded(_close_all(self._shards.clear()))


@lru_cache(maxsize=32)
def _ssl_context(
    verify: bool | str | ssl.SSLContext, http2: bool, _cert_file: str | None, _cert_dir: str | None
) -> ssl.SSLContext:
    """Return the TLS settings of a configuration, made once a process (they cost 16 ms)."""
    if isinstance(verify, ssl.SSLContext):
        return verify
    if isinstance(verify, str):
        directory = os.path.isdir(verify)
        context = ssl.create_default_context(cafile=None if directory else verify, capath=verify if directory else None)
    else:
        context = httpx.create_ssl_context(verify=verify)
    context.set_alpn_protocols(["http/1.1", "h2"] if http2 else ["http/1.1"])
    return context


def ssl_context(settings: ConnectionSettings) -> ssl.SSLContext:
    """Return the TLS settings to connect with. Without TLS no certificates are read."""
    if not settings.tls and (settings.proxy or "http:").startswith("http:"):
        return _plain_context()
    return _ssl_context(
        settings.verify, settings.http2, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    )


@lru_cache(maxsize=1)
def _plain_context() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _proxy(settings: ConnectionSettings) -> httpx.Proxy | None:
    """Return the proxy; one that is spoken to in the clear takes no TLS settings."""
    if not settings.proxy:
        return None
    secure = settings.proxy.lower().startswith("https:")
    return httpx.Proxy(settings.proxy, ssl_context=ssl_context(settings) if secure else None)


@lru_cache(maxsize=1)
def _hide_headers() -> None:
    """Take the debug lines of hpack out of all logs: they hold the headers as they are, and with them the key."""
    for name in ("hpack.hpack", "hpack.table"):
        logging.getLogger(name).addFilter(lambda record: record.levelno > logging.DEBUG)


def _make_sync(settings: ConnectionSettings) -> httpx.BaseTransport:
    if settings.transport == "httptools" and not settings.proxy:
        from cerebras_ext.httptools_transport import HttptoolsTransport

        return HttptoolsTransport(ssl_context(settings), IDLE_SECONDS)
    if settings.http2:
        _hide_headers()
    return httpx.HTTPTransport(
        verify=ssl_context(settings),
        http2=settings.http2,
        limits=_limits(settings),
        proxy=_proxy(settings),
    )


def _make_async(settings: ConnectionSettings) -> httpx.AsyncBaseTransport:
    if settings.transport == "aiohttp":
        from cerebras_ext.aiohttp_transport import AiohttpTransport

        proxy = httpx.Proxy(settings.proxy) if settings.proxy else None
        return AiohttpTransport(ssl_context(settings), proxy, IDLE_SECONDS)
    if settings.transport == "httptools" and not settings.proxy:
        from cerebras_ext.httptools_transport import AsyncHttptoolsTransport

        return AsyncHttptoolsTransport(ssl_context(settings), IDLE_SECONDS)
    if settings.http2:
        _hide_headers()
    context, limits, proxy = ssl_context(settings), _limits(settings), _proxy(settings)
    transport = httpx.AsyncHTTPTransport(verify=context, http2=settings.http2, limits=limits, proxy=proxy)
    if proxy is None:
        transport._pool = _pool(context, limits, settings.http2)
    return transport


def _pool(context: ssl.SSLContext, limits: httpx.Limits, http2: bool) -> httpcore.AsyncConnectionPool:
    """Return the pool that httpx would make, with another network layer, for which httpx has no argument."""
    import httpcore

    from cerebras_ext.asyncio_backend import AsyncioBackend

    return httpcore.AsyncConnectionPool(
        ssl_context=context,
        max_connections=limits.max_connections,
        max_keepalive_connections=limits.max_keepalive_connections,
        keepalive_expiry=limits.keepalive_expiry,
        http2=http2,
        network_backend=AsyncioBackend(),
    )


@dataclass(slots=True)
class _LoopPools:
    """The pools of one event loop, and the generator by whose end the loop closes them."""

    keeper: AsyncGenerator[None, None] | None = None
    transports: dict[ConnectionSettings, SharedAsyncTransport] = field(default_factory=dict)


class _Registry:
    """All shared pools of the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sync: dict[ConnectionSettings, SharedTransport] = {}
        self._loops: dict[asyncio.AbstractEventLoop, _LoopPools] = {}
        self._graveyard: list[object] = []

    def sync_transport(self, settings: ConnectionSettings, user: object) -> SharedTransport:
        """Return the shared sync transport, made at first use."""
        transport = self._sync.get(settings)
        if transport is None:
            with self._lock:
                transport = self._sync.setdefault(settings, SharedTransport(settings))
        transport.users.add(user)
        return transport

    async def async_transport(self, settings: ConnectionSettings, user: object) -> SharedAsyncTransport:
        """Return the transport of the running loop, made at first use and closed when the loop shuts down."""
        loop = asyncio.get_running_loop()
        pools = self._loops.get(loop)
        if pools is None:
            pools = await self._adopt(loop)
        transport = pools.transports.get(settings)
        if transport is None:
            transport = pools.transports[settings] = SharedAsyncTransport(settings)
        transport.users.add(user)
        return transport

    async def _adopt(self, loop: asyncio.AbstractEventLoop) -> _LoopPools:
        with self._lock:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]
            _closing.difference_update([task for task in list(_closing) if task.get_loop().is_closed()])
            pools = self._loops.setdefault(loop, _LoopPools())
        if pools.keeper is None:
            # An asynchronous generator that has been started is closed by loop.shutdown_asyncgens(), which asyncio.run
            # calls: the only moment at which connections can still be closed in their own loop.
            pools.keeper = self._keep(loop, pools)
            await pools.keeper.__anext__()
        return pools

    async def _keep(self, loop: asyncio.AbstractEventLoop, pools: _LoopPools) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            with self._lock:
                self._loops.pop(loop, None)
            for transport in pools.transports.values():
                await transport.aclose()

    def release_sync(self, settings: ConnectionSettings, user: object) -> None:
        """Close the shared connections, unless another client uses them too."""
        transport = self._sync.get(settings)
        if transport is not None:
            transport.users.discard(user)
            if not transport.users:
                transport.close()

    async def release_async(self, settings: ConnectionSettings, user: object) -> None:
        """Close the shared connections of the running loop, unless another client uses them too."""
        pools = self._loops.get(asyncio.get_running_loop())
        transport = pools.transports.get(settings) if pools else None
        if transport is not None:
            transport.users.discard(user)
            if not transport.users:
                await transport.aclose()

    def close_all_sync(self) -> None:
        """Close the sync connections at the end of the process."""
        for transport in list(self._sync.values()):
            transport.close()

    def forget(self) -> None:
        """Leave everything to the parent process after a fork: neither use nor close its connections."""
        self._graveyard.append((self._sync, self._loops))
        self._sync, self._loops, self._lock = {}, {}, threading.Lock()


registry = _Registry()
atexit.register(registry.close_all_sync)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=registry.forget)

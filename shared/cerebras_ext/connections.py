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
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import httpx

from cerebras_ext.pools import IDLE_SECONDS, SharedAsyncTransport, SharedTransport, forget_closed_loops
from cerebras_ext.settings import ConnectionSettings

if TYPE_CHECKING:
    import httpcore

HTTP2_STREAMS = 100
"""Requests at once on one HTTP/2 connection."""


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
                made = SharedTransport(partial(_make_sync, settings), HTTP2_STREAMS if settings.http2 else 1)
                transport = self._sync.setdefault(settings, made)
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
            transport = SharedAsyncTransport(partial(_make_async, settings), _per_pool(settings))
            pools.transports[settings] = transport
        transport.users.add(user)
        return transport

    async def _adopt(self, loop: asyncio.AbstractEventLoop) -> _LoopPools:
        with self._lock:
            for other in [other for other in self._loops if other.is_closed()]:
                del self._loops[other]
            forget_closed_loops()
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

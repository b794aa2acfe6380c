"""aiohttp as the transport of async calls (extra `aiohttp`): the same behaviour as httpx's own, for less CPU time.

It stands on httpx-aiohttp. What that leaves open is done here: no limit of connections, no cookies, and httpx's errors
for whatever aiohttp raises.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import weakref
from collections.abc import AsyncIterator
from typing import NoReturn

import aiohttp
import httpx
import httpx_aiohttp

_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (aiohttp.SocketTimeoutError, httpx.ReadTimeout),
    (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout),
    (aiohttp.ServerTimeoutError, httpx.ReadTimeout),
    (aiohttp.ClientProxyConnectionError, httpx.ProxyError),
    (aiohttp.ClientHttpProxyError, httpx.ProxyError),
    (aiohttp.ClientConnectorError, httpx.ConnectError),
    (aiohttp.ServerDisconnectedError, httpx.RemoteProtocolError),
    (aiohttp.ClientPayloadError, httpx.RemoteProtocolError),
    (aiohttp.ClientResponseError, httpx.RemoteProtocolError),
    (aiohttp.InvalidURL, httpx.UnsupportedProtocol),
    (aiohttp.ClientError, httpx.ReadError),
    (TimeoutError, httpx.ReadTimeout),
    (OSError, httpx.ReadError),
)
"""The first that fits counts. httpx-aiohttp has a table too, which takes a lost connection for a connect timeout and
lets answers that are no HTTP pass as aiohttp's error."""


def httpx_error(error: Exception) -> httpx.TransportError | None:
    """Return httpx's error for one of aiohttp, or for one that httpx-aiohttp made of it; None for any other."""
    cause = error.__cause__ if isinstance(error, httpx.TransportError) else error
    for kind, mapped in _ERRORS:
        if isinstance(cause, kind):
            return mapped(str(cause) or type(cause).__name__)
    return error if isinstance(error, httpx.TransportError) else None


def _reraise(error: Exception) -> NoReturn:
    mapped = httpx_error(error)
    seen: set[int] = set()
    chain: list[BaseException | None] = [error]
    while chain:  # aiohttp's frames hold the headers, and with them the key, which error trackers show
        inner = chain.pop()
        if inner is not None and id(inner) not in seen:  # errors may refer to each other
            seen.add(id(inner))
            inner.__traceback__ = None
            chain += inner.__cause__, inner.__context__
    if mapped is None or mapped is error:
        raise error
    raise mapped from error


UPLOAD_BYTES = 64 * 1024
"""Larger bodies are handed to aiohttp in pieces of this size; smaller ones go out at once, whoever reads them."""


class _Upload(httpx.AsyncByteStream):
    """A body whose pieces have to be taken in time; aiohttp itself has no limit for writing."""

    def __init__(self, content: bytes, limit: asyncio.Timeout, seconds: float | None) -> None:
        self._content = content
        self._limit = limit
        self._seconds = seconds

    def __repr__(self) -> str:
        return f"<{len(self._content)} bytes>"

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._content), UPLOAD_BYTES):
            self._wait(self._seconds)
            yield self._content[start : start + UPLOAD_BYTES]
        self._wait(None)

    def _wait(self, seconds: float | None) -> None:
        with contextlib.suppress(RuntimeError):  # the answer is there already, before the end of the body
            self._limit.reschedule(None if seconds is None else asyncio.get_running_loop().time() + seconds)


class _Stream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream
        self._failed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for data in self._stream:
                yield data
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            _reraise(error)
        except RuntimeError as error:  # as aiohttp says that a connection is closed already
            if self._failed:
                raise httpx.ReadError(str(error)) from None
            raise

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            _reraise(error)

    def fail(self) -> None:
        """Let the one that reads know that the connection is closed; aiohttp forgets it and its timeout."""
        self._failed = True
        response = getattr(self._stream, "_aiohttp_response", None)
        if response is not None:
            response.content.set_exception(aiohttp.ClientConnectionError("the connection was closed"))


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Connections of one event loop over aiohttp; opened at first use.

    Args:
        context: TLS settings.
        proxy: Proxy to use; the environment is not asked.
        idle_seconds: How long an unused connection is kept.
    """

    def __init__(self, context: ssl.SSLContext, proxy: httpx.Proxy | None, idle_seconds: float) -> None:
        self._context = context
        self._idle_seconds = idle_seconds
        self._closed = False
        self._streams: weakref.WeakSet[_Stream] = weakref.WeakSet()
        self._inner = httpx_aiohttp.AiohttpTransport(verify=context, proxy=proxy, client=self._session)

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=self._context, keepalive_timeout=self._idle_seconds)
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. User name and password of the URL are no credentials here, as in httpx's own transport."""
        if request.url.userinfo:
            request.url = request.url.copy_with(userinfo=b"")
        self._context.set_alpn_protocols(["http/1.1"])  # a user's may offer HTTP/2, also since the last request
        try:
            response = await self._send(request)
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            _reraise(error)
        except RuntimeError as error:  # as aiohttp says that its session or connection is closed
            if self._closed:
                raise httpx.ConnectError(str(error)) from None
            raise
        assert isinstance(response.stream, httpx.AsyncByteStream)
        response.stream = stream = _Stream(response.stream)
        self._streams.add(stream)
        if self._closed:  # in the meantime
            stream.fail()
        return response

    async def _send(self, request: httpx.Request) -> httpx.Response:
        content = request.content
        if len(content) <= UPLOAD_BYTES:
            return await self._inner.handle_async_request(request)
        try:
            async with asyncio.timeout(None) as limit:
                upload = _Upload(content, limit, request.extensions.get("timeout", {}).get("write"))
                request = httpx.Request(
                    request.method, request.url, headers=request.headers, stream=upload, extensions=request.extensions
                )
                return await self._inner.handle_async_request(request)
        except TimeoutError:
            if limit.expired():
                raise httpx.WriteTimeout("the body was not taken in time") from None
            raise

    async def aclose(self) -> None:
        """Close all connections; what is read from them fails."""
        self._closed = True
        for stream in self._streams:
            stream.fail()
        await self._inner.aclose()

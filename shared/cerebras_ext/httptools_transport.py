"""httptools as the parser of answers (extra `httptools`): what httpx's own transports do, for less time.

Each transport is one HTTP/1.1 connection. Sockets, TLS and their timeouts are httpcore's (or those of
`asyncio_backend`); the parser is llhttp, the one of Node.js. What is here is the part between the two. llhttp is
stricter than h11 with answers that are not well-formed, such as lines that end without CR.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Generic, NoReturn, TypeVar

import httpcore
import httptools
import httpx

from cerebras_ext.asyncio_backend import AsyncioBackend
from cerebras_ext.pools import Origin, origin_of

READ_BYTES = 64 * 1024
"""How much is read at once."""

HEAD_BYTES = 100 * 1024
"""How long status line and headers may be, with those of informational answers; likewise what a body is framed by."""

_ERRORS: tuple[tuple[type[Exception], type[httpx.TransportError]], ...] = (
    (httpcore.ConnectTimeout, httpx.ConnectTimeout),
    (httpcore.ReadTimeout, httpx.ReadTimeout),
    (httpcore.WriteTimeout, httpx.WriteTimeout),
    (httpcore.ConnectError, httpx.ConnectError),
    (httpcore.ReadError, httpx.ReadError),
    (httpcore.WriteError, httpx.WriteError),
)
_NETWORK = (httpcore.TimeoutException, httpcore.NetworkError)
StreamT = TypeVar("StreamT", httpcore.NetworkStream, httpcore.AsyncNetworkStream)
TransportT = TypeVar("TransportT")


def _reraise(error: Exception) -> NoReturn:
    """Raise httpx's error for one of the network, without the frames that hold the request, and with it the key."""
    error.__traceback__ = None
    mapped = next((mapped for kind, mapped in _ERRORS if isinstance(error, kind)), httpx.NetworkError)
    raise mapped(str(error)) from error


class _Answer:
    """One answer, as far as it has been read. The methods `on_...` are called by the parser.

    Args:
        last: Whether the request said that it is the last one of its connection.
    """

    def __init__(self, last: bool = False) -> None:
        self._last = last
        self.headers: list[tuple[bytes, bytes]] = []
        self.reason = b""
        self.begun = False
        self.complete = False
        self.reusable = False
        self.given_up = False
        self._pieces: list[bytes] = []
        self._size = 0
        self._framed = False
        self._parser = httptools.HttpResponseParser(self)

    @property
    def status(self) -> int:
        """The status code, once the answer has begun."""
        return int(self._parser.get_status_code())

    @property
    def http_version(self) -> bytes:
        """As httpx gives it: `HTTP/1.1`."""
        return b"HTTP/" + self._parser.get_http_version().encode("ascii")

    def feed(self, data: bytes) -> None:
        """Take the next bytes; none at the end of the connection.

        Raises:
            httpx.RemoteProtocolError: They are not what an answer goes on with.
        """
        if not data:
            self._end()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            raise httpx.RemoteProtocolError("the server changed to another protocol") from None
        except httptools.HttpParserError as error:
            self.reusable = False
            if not self.complete:  # what comes after an answer is nobody's, and ends the connection
                raise httpx.RemoteProtocolError(f"not an HTTP answer ({error})") from None
        self._size = 0 if self._pieces or self.complete else self._size + len(data)
        if self._size > HEAD_BYTES:
            raise httpx.RemoteProtocolError(f"more than {HEAD_BYTES} bytes came without a body")

    def take(self) -> bytes:
        """Return what has come of the body since the last time."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        return data

    def _end(self) -> None:
        self.reusable = False
        if not self.begun:
            raise httpx.RemoteProtocolError("Server disconnected without sending a response.")
        if self._framed and not self.complete:
            raise httpx.RemoteProtocolError("the connection ended before the body did")
        self.complete = True

    def on_message_begin(self) -> None:
        if self.complete:
            self.reusable = False

    def on_status(self, status: bytes) -> None:
        if not self.begun:
            self.reason += status

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.begun:  # later ones are trailers
            self.headers.append((name, value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        if self.complete or self.status < 200:
            return
        self.begun = True
        for name, value in self.headers:
            name = name.lower()
            if name == b"content-length" or (name == b"transfer-encoding" and value.lower().endswith(b"chunked")):
                self._framed = True

    def on_body(self, body: bytes) -> None:
        if not self.complete:
            self._pieces.append(body)

    def on_message_complete(self) -> None:
        if self.begun and not self.complete:
            self.complete = True
            self.reusable = not self._last and self._parser.should_keep_alive()
        elif not self.begun:  # an informational one, after which the answer comes
            self.headers = []
            self.reason = b""


def _message(request: httpx.Request) -> bytes:
    """Return the bytes of a request.

    Raises:
        httpx.LocalProtocolError: A header would break the request apart, or tells of another body.
        httpx.UnsupportedProtocol: Neither http nor https.
    """
    if request.url.scheme not in ("http", "https"):
        raise httpx.UnsupportedProtocol(f"Request URL has an unsupported protocol {request.url.scheme!r}.")
    headers, content = request.headers.raw, request.read()
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    if lengths not in ([], [b"%d" % len(content)]) or "transfer-encoding" in request.headers:
        raise httpx.LocalProtocolError("the headers tell of another body than the one that is sent")
    lines = [b"%s: %s" % header for header in headers]
    head = b"%s %s HTTP/1.1\r\n%s\r\n\r\n" % (request.method.encode("ascii"), request.url.raw_path, b"\r\n".join(lines))
    if head.count(b"\n") != len(headers) + 2 or head.count(b"\r") != len(headers) + 2 or b"\0" in head:
        raise httpx.LocalProtocolError("a header has a line break or a null character")
    return head + content


def _is_last(request: httpx.Request) -> bool:
    """Whether a request wants its connection closed after the answer."""
    return "close" in request.headers.get("connection", "").lower().replace(" ", "").split(",")


class _Connection(Generic[StreamT]):
    """What the sync and the async transport have in common: everything but the I/O."""

    def __init__(self, context: ssl.SSLContext, idle_seconds: float) -> None:
        self._context = context
        self._idle_seconds = idle_seconds
        self._stream: StreamT | None = None
        self._origin: Origin | None = None
        self._used = 0.0

    def _is_open(self, url: httpx.URL) -> bool:
        """Whether there is a connection to the right place that can take a request."""
        stream = self._stream
        if stream is None or self._origin != origin_of(url) or time.monotonic() - self._used > self._idle_seconds:
            return False
        # An idle connection with something to read is one that the server has closed.
        return not stream.get_extra_info("is_readable")

    def _tls(self) -> ssl.SSLContext:
        """Return the TLS settings. A context of the user's may offer HTTP/2, also since the last connection."""
        self._context.set_alpn_protocols(["http/1.1"])
        return self._context

    def _gives_up(self, answer: _Answer) -> bool:
        """Note that nobody reads an answer any more, and return whether the connection has to be closed for it."""
        if answer.given_up:
            return False
        answer.given_up = True
        self._used = time.monotonic()
        return not (answer.complete and answer.reusable)

    def _response(self, answer: _Answer, body: httpx.SyncByteStream | httpx.AsyncByteStream) -> httpx.Response:
        extensions = {
            "http_version": answer.http_version,
            "reason_phrase": answer.reason,
            "network_stream": self._stream,
        }
        return httpx.Response(answer.status, headers=answer.headers, stream=body, extensions=extensions)


def _address(url: httpx.URL) -> tuple[str, int]:
    return url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)


class _BaseBody(Generic[TransportT]):
    def __init__(self, transport: TransportT, answer: _Answer, timeouts: dict[str, Any]) -> None:
        self._transport = transport
        self._answer = answer
        self._timeouts = timeouts


class _Body(_BaseBody["HttptoolsTransport"], httpx.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        answer, timeout = self._answer, self._timeouts.get("read")
        while True:
            data = answer.take()
            if data:
                yield data
            if answer.complete:
                return
            self._transport._read(answer, timeout)

    def close(self) -> None:
        if self._transport._gives_up(self._answer):
            self._transport.close()


class HttptoolsTransport(_Connection[httpcore.NetworkStream], httpx.BaseTransport):
    """One HTTP/1.1 connection, which is opened at first use, and again where the server has closed it.

    Args:
        context: TLS settings.
        idle_seconds: How long the connection may lie idle and still be used.
    """

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the head of its answer; the connection is busy until the response is closed."""
        timeouts = request.extensions.get("timeout", {})
        answer = _Answer(_is_last(request))
        try:
            if not self._is_open(request.url):
                self._connect(request.url, timeouts.get("connect"))
            self._write(request, timeouts.get("write"))
            while not answer.begun:
                self._read(answer, timeouts.get("read"))
        except BaseException:
            self.close()
            raise
        return self._response(answer, _Body(self, answer, timeouts))

    def close(self) -> None:
        """Close the connection; a later request opens a new one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _connect(self, url: httpx.URL, timeout: float | None) -> None:
        self.close()
        host, port = _address(url)
        try:
            stream = httpcore.SyncBackend().connect_tcp(host, port, timeout)
            if url.scheme == "https":
                stream = stream.start_tls(self._tls(), host, timeout)
        except _NETWORK as error:
            _reraise(error)
        self._stream, self._origin = stream, origin_of(url)

    def _write(self, request: httpx.Request, timeout: float | None) -> None:
        if self._stream is None:
            raise httpx.WriteError("the connection was closed")
        try:
            self._stream.write(_message(request), timeout)
        except httpcore.WriteError:  # the answer may be there all the same: servers refuse bodies before their end
            pass
        except _NETWORK as error:
            _reraise(error)

    def _read(self, answer: _Answer, timeout: float | None) -> None:
        if self._stream is None or answer.given_up:
            raise httpx.ReadError("the response was closed")
        try:
            data = self._stream.read(READ_BYTES, timeout)
        except _NETWORK as error:
            _reraise(error)
        answer.feed(data)


class _AsyncBody(_BaseBody["AsyncHttptoolsTransport"], httpx.AsyncByteStream):
    async def __aiter__(self) -> AsyncIterator[bytes]:
        answer, timeout = self._answer, self._timeouts.get("read")
        while True:
            data = answer.take()
            if data:
                yield data
            if answer.complete:
                return
            await self._transport._read(answer, timeout)

    async def aclose(self) -> None:
        if self._transport._gives_up(self._answer):
            await self._transport.aclose()


class AsyncHttptoolsTransport(_Connection[httpcore.AsyncNetworkStream], httpx.AsyncBaseTransport):
    """The async twin of `HttptoolsTransport`, for one event loop."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and read the head of its answer; the connection is busy until the response is closed."""
        timeouts = request.extensions.get("timeout", {})
        answer = _Answer(_is_last(request))
        try:
            if not self._is_open(request.url):
                await self._connect(request.url, timeouts.get("connect"))
            await self._write(request, timeouts.get("write"))
            while not answer.begun:
                await self._read(answer, timeouts.get("read"))
        except BaseException:
            await self.aclose()
            raise
        return self._response(answer, _AsyncBody(self, answer, timeouts))

    async def aclose(self) -> None:
        """Close the connection; a later request opens a new one."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()

    async def _connect(self, url: httpx.URL, timeout: float | None) -> None:
        await self.aclose()
        host, port = _address(url)
        try:
            stream = await AsyncioBackend().connect_tcp(host, port, timeout)
            if url.scheme == "https":
                stream = await stream.start_tls(self._tls(), host, timeout)
        except _NETWORK as error:
            _reraise(error)
        self._stream, self._origin = stream, origin_of(url)

    async def _write(self, request: httpx.Request, timeout: float | None) -> None:
        if self._stream is None:
            raise httpx.WriteError("the connection was closed")
        try:
            await self._stream.write(_message(request), timeout)
        except httpcore.WriteError:  # the answer may be there all the same: servers refuse bodies before their end
            pass
        except _NETWORK as error:
            _reraise(error)

    async def _read(self, answer: _Answer, timeout: float | None) -> None:
        if self._stream is None or answer.given_up:
            raise httpx.ReadError("the response was closed")
        try:
            data = await self._stream.read(READ_BYTES, timeout)
        except _NETWORK as error:
            _reraise(error)
        answer.feed(data)

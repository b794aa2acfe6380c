"""The network layer below httpx's async connections: asyncio's own transports and protocols.

httpcore lets its network layer be exchanged. The one that comes with it stops and starts the reading of the socket
around every read and opens a scope for every timeout, which costs more than all that is above it where each token
comes in a read of its own (docs/performance.md). Here the loop reads ahead into a bounded buffer, and a stream has one
timer that is only moved when it rings.
"""

from __future__ import annotations

import asyncio
import select
import socket
import ssl
from collections.abc import Iterable
from typing import Any

import aiohappyeyeballs
import httpcore

HAPPY_EYEBALLS_SECONDS = 0.25
"""How long an address may take before the next one is tried beside it (RFC 8305)."""

BUFFER_BYTES = 256 * 1024
"""How much is read ahead before the loop stops reading, so that a slow consumer slows the sender down."""


class _Protocol(asyncio.Protocol):
    """Keeps what the loop has read, and wakes the one that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.lost = loop.create_future()
        self.error: Exception | None = None
        self.ended = False
        self.waiting: asyncio.Future[None] | None = None
        self.drained: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport | None = None
        self._pieces: list[bytes] = []
        self._size = 0
        self._stopped = False

    @property
    def readable(self) -> bool:
        """Whether a read returns (or fails) at once."""
        return bool(self._pieces) or self.ended

    def take(self, max_bytes: int) -> bytes:
        """Return what is there; empty at the end."""
        pieces = self._pieces
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        pieces.clear()
        if len(data) > max_bytes:
            pieces.append(data[max_bytes:])
            data = data[:max_bytes]
        self._size -= len(data)
        if self._stopped and self._size <= BUFFER_BYTES // 2 and self._transport is not None:
            self._stopped = False
            self._transport.resume_reading()
        return data

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def tls_started(self, transport: asyncio.Transport) -> None:
        """Note the transport that is to be read from now on; asyncio does not say it."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self.waiting is not None:
            self._wake()
        if self._size > BUFFER_BYTES and not self._stopped and self._transport is not None:
            self._stopped = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        self.ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.ended, self.error = True, error
        self._transport = None
        self._wake()
        self.resume_writing()
        if not self.lost.done():
            self.lost.set_result(None)

    def pause_writing(self) -> None:
        self.drained = self.loop.create_future()

    def resume_writing(self) -> None:
        drained, self.drained = self.drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


class AsyncioStream(httpcore.AsyncNetworkStream):
    """A connection of one event loop, with or without TLS."""

    def __init__(self, transport: asyncio.Transport, protocol: _Protocol) -> None:
        self._transport = transport
        self._protocol = protocol
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = 0.0
        self._closed = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return at most so many bytes as soon as any are there; empty at the end of the stream.

        Raises:
            httpcore.ReadTimeout: Nothing came in time.
            httpcore.ReadError: The connection broke, or was closed here.
        """
        protocol = self._protocol
        if not protocol.readable:
            protocol.waiting = waiting = protocol.loop.create_future()
            if timeout is not None:
                self._ring_in(timeout)
            else:
                self._stop_timer()
            try:
                await waiting
            except TimeoutError:
                raise httpcore.ReadTimeout from None
            finally:
                protocol.waiting = None
        data = protocol.take(max_bytes)
        if data:
            return data
        if protocol.error is not None:
            raise httpcore.ReadError(str(protocol.error)) from protocol.error
        if self._closed:
            raise httpcore.ReadError("the connection was closed")
        return b""

    def _ring_in(self, seconds: float) -> None:
        """Let a read that waits longer fail. A timer that rings too early is wound up again, which costs nothing."""
        loop = self._protocol.loop
        self._deadline = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._stop_timer()
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._ring)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        waiting = self._protocol.waiting
        if waiting is None or waiting.done():
            return
        if self._protocol.loop.time() < self._deadline:
            self._timer = self._protocol.loop.call_at(self._deadline, self._ring)
        else:
            waiting.set_exception(TimeoutError())

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes, and wait until the loop's buffer is not too full.

        Raises:
            httpcore.WriteTimeout: They could not be sent in time.
            httpcore.WriteError: The connection broke, or was closed here.
        """
        if self._transport.is_closing():
            raise httpcore.WriteError("the connection is closed")
        self._transport.write(buffer)
        del buffer  # it holds the key, and error trackers show the local variables of a traceback
        drained = self._protocol.drained
        if drained is not None:
            done, _ = await asyncio.wait([drained], timeout=timeout)
            if not done:
                raise httpcore.WriteTimeout
            if self._protocol.error is not None:
                raise httpcore.WriteError(str(self._protocol.error)) from self._protocol.error

    async def aclose(self) -> None:
        """Close the connection at once: nothing is waited for that the other side would have to do."""
        self._closed = True
        self._stop_timer()
        self._transport.abort()
        await asyncio.shield(self._protocol.lost)

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        """Return the connection with TLS on it.

        Raises:
            httpcore.ConnectTimeout: The handshake took too long.
            httpcore.ConnectError: It failed.
        """
        protocol = self._protocol
        try:
            async with asyncio.timeout(timeout):
                transport = await protocol.loop.start_tls(
                    self._transport, protocol, ssl_context, server_hostname=server_hostname
                )
        except BaseException as error:
            self._transport.abort()
            if isinstance(error, TimeoutError):
                raise httpcore.ConnectTimeout from error
            if isinstance(error, OSError):  # as ssl.SSLError is
                raise httpcore.ConnectError(str(error)) from error
            raise
        if transport is None:
            raise httpcore.ConnectError("the connection was lost")
        protocol.tls_started(transport)
        return AsyncioStream(transport, protocol)

    def get_extra_info(self, info: str) -> Any:
        """Return what httpcore asks for: `ssl_object`, `socket`, `client_addr`, `server_addr`, `is_readable`."""
        if info == "is_readable":
            return self._protocol.readable or is_readable(self._transport.get_extra_info("socket"))
        names = {"client_addr": "sockname", "server_addr": "peername"}
        return self._transport.get_extra_info(names.get(info, info))


def is_readable(connection: socket.socket | None) -> bool:
    """Whether a socket has something to read, which is also so where the other side has closed it."""
    number = -1 if connection is None else connection.fileno()
    if number < 0:
        return True
    if hasattr(select, "poll"):  # no limit of descriptors, unlike select, but not on every system
        poll = select.poll()
        poll.register(number, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([number], [], [], 0)[0])


async def _addresses(loop: asyncio.AbstractEventLoop, host: str, port: int) -> list[Any]:
    try:  # an address as it is needs no thread to look it up
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class AsyncioBackend(httpcore.AsyncNetworkBackend):
    """Opens connections in asyncio's loops, and in those that do the same, such as uvloop's.

    Several addresses of a host are tried beside each other by aiohappyeyeballs: asyncio's own way fails where a task
    factory starts tasks eagerly (before Python 3.12.8 and 3.13.1), and forgets sockets where it is cancelled.
    """

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Open a connection.

        Raises:
            httpcore.ConnectTimeout: It took too long.
            httpcore.ConnectError: It failed.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                local = None if local_address is None else await _addresses(loop, local_address, 0)
                connected = await aiohappyeyeballs.start_connection(
                    await _addresses(loop, host, port),
                    local_addr_infos=local,
                    happy_eyeballs_delay=HAPPY_EYEBALLS_SECONDS,
                )
                transport, protocol = await loop.create_connection(lambda: _Protocol(loop), sock=connected)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout from error
        except (OSError, UnicodeError) as error:  # the latter for names that cannot be one
            raise httpcore.ConnectError(str(error)) from error
        for option in socket_options or ():
            transport.get_extra_info("socket").setsockopt(*option)
        return AsyncioStream(transport, protocol)

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

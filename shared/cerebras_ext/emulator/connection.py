"""HTTP/1.1 over one connection: parsing requests, writing replies, disturbing them as scripted."""

from __future__ import annotations

import asyncio
import http
import re
import socket
import struct
from collections.abc import Callable
from typing import Protocol

from cerebras_ext.emulator.faults import Delivery, Fault, deliver
from cerebras_ext.emulator.messages import HttpRequest, Reply

_MAX_HEAD = 64 * 1024
_MAX_BODY = 64 * 1024 * 1024
_LENGTH = re.compile(r"[0-9]{1,18}")
_BEFORE_RESET = 0.02
"""Seconds for the client to read what came before a reset, which would discard it."""
_BETWEEN_PIECES = 0.002
"""Seconds between pieces that the client is to read separately."""


class Host(Protocol):
    """What a connection needs of the emulator."""

    pace: float

    def reply_to(self, request: HttpRequest) -> Reply:
        """Answer a request."""
        ...

    def opened(self, connection: Connection) -> None:
        """Note a new connection."""
        ...

    def closed(self, connection: Connection) -> None:
        """Note the end of a connection."""
        ...

    async def stalled(self) -> None:
        """Wait until stalled replies are released."""
        ...


class MalformedRequestError(ValueError):
    """The bytes are not HTTP/1.1."""


class Connection(asyncio.Protocol):
    """One client connection. Requests are answered one after the other."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self._continued = False
        self._drained: asyncio.Event = asyncio.Event()
        self._drained.set()

    # ---- callbacks of the event loop ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._drained.set()
        if self._task is not None:
            self._task.cancel()
        self._host.closed(self)

    def eof_received(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def pause_writing(self) -> None:
        self._drained.clear()

    def resume_writing(self) -> None:
        self._drained.set()

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._advance()

    def abort(self) -> None:
        """Drop the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    # ---- requests ----

    def _advance(self) -> None:
        while self._task is None and self._transport is not None and not self._transport.is_closing():
            try:
                request = self._parse()
            except MalformedRequestError as error:
                self._write(_head(Reply(400, chunked=False), len(str(error)), close=True) + str(error).encode())
                self._transport.close()
                return
            if request is None:
                return
            self._continued = False
            self._answer(request)

    def _parse(self) -> HttpRequest | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MAX_HEAD:
                raise MalformedRequestError("the head of the request is too long")
            return None
        request = parse_head(bytes(self._buffer[:end]))
        if request.headers.get("expect", "").lower() == "100-continue" and not self._continued:
            self._continued = True
            self._write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = _take_body(self._buffer, end + 4, request.headers)
        if body is None:
            return None
        request.body, used = body
        del self._buffer[:used]
        return request

    # ---- replies ----

    def _answer(self, request: HttpRequest) -> None:
        reply = self._host.reply_to(request)
        if reply.fault is None and not (self._host.pace and reply.stream):
            self._write(_whole(request, reply))
            self._end(request)
            return
        self._task = asyncio.get_running_loop().create_task(self._disturbed(request, reply))
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort()
            raise error
        self._advance()

    def _end(self, request: HttpRequest) -> None:
        if not request.keep_alive and self._transport is not None:
            self._transport.close()

    async def _disturbed(self, request: HttpRequest, reply: Reply) -> None:
        fault = reply.fault or Fault()
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.stall_before_headers:
            await self._host.stalled()
        delivery = deliver(reply.parts, reply.fault, stream=reply.stream)
        chunked = reply.chunked and request.chunked_reply
        length = None if chunked else sum(map(len, reply.parts if delivery.ending != "complete" else delivery.parts))
        self._write(_head(reply, length, close=not request.keep_alive or _unframed(reply, request)))
        if request.method != "HEAD":
            await self._write_body(delivery, fault, chunked=chunked, stream=reply.stream)
        if delivery.ending == "complete":
            self._end(request)
        else:
            await self._break_off(reset=delivery.ending == "reset")

    async def _write_body(self, delivery: Delivery, fault: Fault, *, chunked: bool, stream: bool) -> None:
        frame: Callable[[bytes], bytes] = _chunk if chunked else bytes
        pause = fault.chunk_delay or (self._host.pace if stream else 0.0) or (_BETWEEN_PIECES if fault.split_at else 0)
        for number, part in enumerate(delivery.parts):
            if number == fault.stall_after_chunks:
                await self._host.stalled()
            if pause:
                await asyncio.sleep(pause)
            await self._drained.wait()
            self._write(frame(part))
        if fault.stall_after_chunks is not None and fault.stall_after_chunks >= len(delivery.parts):
            await self._host.stalled()
        if chunked and delivery.ending == "complete":
            self._write(b"0\r\n\r\n")

    async def _break_off(self, *, reset: bool) -> None:
        transport = self._transport
        if transport is None:
            return
        if not reset:
            transport.close()
            return
        await asyncio.sleep(_BEFORE_RESET)
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


def parse_head(head: bytes) -> HttpRequest:
    """Parse the request line and the headers.

    Raises:
        MalformedRequestError: They are not HTTP/1.1.
    """
    lines = head.decode("latin-1").split("\r\n")
    first = lines[0].split(" ")
    if len(first) != 3 or not first[2].startswith("HTTP/1."):
        raise MalformedRequestError("not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon or name != name.strip():
            raise MalformedRequestError("malformed header")
        key = name.lower()
        headers[key] = f"{headers[key]}, {value.strip()}" if key in headers else value.strip()
    modern = first[2] != "HTTP/1.0"
    wish = headers.get("connection", "keep-alive" if modern else "close").lower()
    return HttpRequest(first[0], first[1], headers, keep_alive="close" not in wish, chunked_reply=modern)


def _take_body(buffer: bytearray, start: int, headers: dict[str, str]) -> tuple[bytes, int] | None:
    """Return the body and where it ends in the buffer, or None where it is not all there yet."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _take_chunks(buffer, start)
    text = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(text) or int(text) > _MAX_BODY:
        raise MalformedRequestError("bad content-length")
    end = start + int(text)
    return (bytes(buffer[start:end]), end) if len(buffer) >= end else None


def _take_chunks(buffer: bytearray, start: int) -> tuple[bytes, int] | None:
    body, position = bytearray(), start
    while True:
        line_end = buffer.find(b"\r\n", position)
        if line_end < 0:
            return None
        try:
            size = int(bytes(buffer[position:line_end]).split(b";")[0], 16)
        except ValueError:
            raise MalformedRequestError("bad chunk size") from None
        if size < 0 or len(body) + size > _MAX_BODY:
            raise MalformedRequestError("bad chunk size")
        position = line_end + 2
        if size == 0:
            end = buffer.find(b"\r\n", position)
            while end >= 0 and end != position:  # trailers
                position, end = end + 2, buffer.find(b"\r\n", end + 2)
            return None if end < 0 else (bytes(body), end + 2)
        if len(buffer) < position + size + 2:
            return None
        body += buffer[position : position + size]
        position += size + 2


def _unframed(reply: Reply, request: HttpRequest) -> bool:
    return reply.chunked and not request.chunked_reply


def _whole(request: HttpRequest, reply: Reply) -> bytes:
    """Return a whole reply."""
    chunked = reply.chunked and request.chunked_reply
    length = None if chunked else sum(map(len, reply.parts))
    head = _head(reply, length, close=not request.keep_alive)
    if request.method == "HEAD" or reply.status in (204, 304):
        return head
    if not chunked:
        return head + b"".join(reply.parts)
    pieces = [head]
    for part in reply.parts:
        pieces += (b"%x\r\n" % len(part), part, b"\r\n")
    pieces.append(b"0\r\n\r\n")
    return b"".join(pieces)


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(part), part)


def _head(reply: Reply, length: int | None, *, close: bool) -> bytes:
    try:
        phrase = http.HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = ""
    lines = [f"HTTP/1.1 {reply.status} {phrase}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if reply.status not in (204, 304):
        lines.append("transfer-encoding: chunked" if length is None else f"content-length: {length}")
    if close:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

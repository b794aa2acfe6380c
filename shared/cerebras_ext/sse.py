"""Incremental decoder of server-sent events: bytes in, event payloads out, no I/O."""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event of the stream."""

    data: bytes
    """The data lines, joined by LF."""
    name: bytes = b""
    """Value of the `event:` line; empty for the ordinary events of the service."""


_new = tuple.__new__
"""Half the cost of calling `Event`."""


class SSEDecoder:
    """Splits a byte stream into events, whatever way the bytes are cut.

    Lines end at CRLF, LF or CR only (not at U+2028 and the like, which are legal inside the JSON), as the
    [HTML standard](https://html.spec.whatwg.org/multipage/server-sent-events.html) says.
    """

    __slots__ = ("_bare", "_data", "_name", "_parts", "_skip_lf", "_started")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._data: list[bytes] = []
        self._name = b""
        self._bare = False
        self._skip_lf = False
        self._started = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that they complete."""
        if (
            chunk.startswith(b"data: ")
            and chunk.find(b"\n") == len(chunk) - 2
            and chunk.endswith(b"\n")
            and b"\r" not in chunk
            and self._started
            and not (self._parts or self._data or self._name or self._bare or self._skip_lf)
        ):
            return [_new(Event, (chunk[6:-2], b""))]  # one whole event, as most pieces are
        if not self._started:
            chunk = self._start(chunk)
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 10:
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._skip_lf = chunk[-1] == 13
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if b"\n" not in chunk:
            self._parts.append(chunk)
            return []
        if self._parts:
            chunk = b"".join((*self._parts, chunk))
        lines = chunk.split(b"\n")
        rest = lines.pop()
        self._parts = [rest] if rest else []
        return self._take(lines)

    def finish(self) -> list[Event]:
        """Return the event that the end of the stream completes: one without its blank line is not lost."""
        rest, self._parts = b"".join(self._parts), []
        return self._take([rest, b""])

    def _start(self, chunk: bytes) -> bytes:
        """Drop a byte order mark, which may itself come in pieces."""
        chunk = b"".join((*self._parts, chunk))
        self._parts = []
        if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
            self._parts.append(chunk)
            return b""
        self._started = True
        return chunk.removeprefix(_BOM)

    def _take(self, lines: list[bytes]) -> list[Event]:
        events: list[Event] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line[5:6] == b" " else line[5:])
            elif not line:
                if data:
                    events.append(_new(Event, (data[0] if len(data) == 1 else b"\n".join(data), self._name)))
                    data.clear()
                self._name = b""
                self._bare = False
            elif self._bare:
                data.append(line)
            elif line == b"data":
                data.append(b"")
            elif line.startswith(b"event:"):
                self._name = line[6:].strip(b" ")
            elif line.startswith(b"{"):
                # No event at all, but a bare object, as an error inside a 200 may come; indented, it
                # takes the lines that follow too.
                data.append(line)
                self._bare = True
        return events

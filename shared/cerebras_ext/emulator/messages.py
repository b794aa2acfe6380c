"""Requests and replies as the emulator's parts hand them to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.emulator.faults import Fault

SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key", "api-key"})


@dataclass(slots=True)
class HttpRequest:
    """A request as it came over the connection."""

    method: str
    target: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes = b""
    keep_alive: bool = True
    chunked_reply: bool = True
    """Whether the client understands chunked transfer (HTTP/1.1)."""

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        """What follows the question mark."""
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as tests want to see it: decoded, and without any credential.

    Attributes:
        method: HTTP method.
        path: Path without the query.
        query: What follows the question mark.
        headers: Headers, names in lower case, those that carry credentials left out.
        body: Decoded body; None without one, bytes where it could not be decoded.
        encoding: `json`, `msgpack`, `gzip` (JSON), `msgpack+gzip`, or empty without a body.
        size: Bytes of the body on the wire.
    """

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: Any = None
    encoding: str = ""
    size: int = 0


@dataclass(slots=True)
class Reply:
    """A response before it is written."""

    status: int
    parts: list[bytes] = field(default_factory=list)
    """The body, in the chunks in which it is sent."""
    headers: dict[str, str] = field(default_factory=dict)
    stream: bool = False
    chunked: bool = True
    fault: Fault | None = None
    """How delivery is to be disturbed."""

"""What can be made to go wrong, or be answered by hand, and how that changes what is written to the connection."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import pydantic_core

from cerebras_ext.emulator.json_types import JsonObject

Ending = Literal["close", "reset", "complete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One scripted deviation, for the next request (or the next `times` requests) of a path.

    Without `status`, `body` or `stream` the request is answered as usual, and only the delivery is changed.

    Attributes:
        status: HTTP status to answer with; the body defaults to the service's own for that status.
        body: Body to answer with: JSON value, or text or bytes as they are.
        headers: Headers to add; a value of None takes one away.
        stream: Event stream to answer with: raw text or bytes, or a list of them and of JSON values; each element
            is a network chunk, JSON values become `data:` events.
        path: Pattern of the paths that it is for (`*` and `?` as in file names).
        times: How many requests it is for; None for all.
        delay: Seconds before the headers are sent.
        chunk_delay: Seconds before each chunk of the body.
        stall_before_headers: Send nothing until `Emulator.release`.
        stall_after_chunks: Send this many chunks of the body, then wait for `Emulator.release`.
        cut_after_bytes: End after this many bytes of the body.
        cut_after_chunks: End after this many chunks of the body.
        cut: How it ends there: `close` the connection, `reset` it, or `complete` the response as if that was all.
        error_after_chunks: Send this many chunks of the stream, then an error event.
        error: The error event, if not the service's own.
        split_at: Positions in the body at which it is split into separate network chunks.

    Raises:
        ValueError: A value has no meaning here.
    """

    status: int | None = None
    body: Any = None
    headers: Mapping[str, str | None] = field(default_factory=dict)
    stream: Any = None
    path: str = "*"
    times: int | None = 1
    delay: float = 0.0
    chunk_delay: float = 0.0
    stall_before_headers: bool = False
    stall_after_chunks: int | None = None
    cut_after_bytes: int | None = None
    cut_after_chunks: int | None = None
    cut: Ending = "close"
    error_after_chunks: int | None = None
    error: Any = None
    split_at: Sequence[int] = ()

    def __post_init__(self) -> None:
        if self.status is not None and not (_is_whole(self.status) and 200 <= self.status <= 599):
            raise ValueError(f"status: must be an HTTP status from 200 to 599, got {self.status!r}")
        if self.times is not None and not (_is_whole(self.times) and self.times >= 1):
            raise ValueError(f"times: must be a whole number from 1, or None for all, got {self.times!r}")
        if self.cut not in get_args(Ending):
            raise ValueError(f"cut: must be one of {', '.join(get_args(Ending))}, got {self.cut!r}")
        for name in ("delay", "chunk_delay"):
            seconds = getattr(self, name)
            if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < float("inf"):
                raise ValueError(f"{name}: must be a number of seconds from 0, got {seconds!r}")
        for name in ("stall_after_chunks", "cut_after_bytes", "cut_after_chunks", "error_after_chunks"):
            count = getattr(self, name)
            if count is not None and not (_is_whole(count) and count >= 0):
                raise ValueError(f"{name}: must be a whole number from 0, got {count!r}")
        if not isinstance(self.path, str):
            raise ValueError(f"path: must be a pattern as text, got {self.path!r}")
        if not isinstance(self.headers, Mapping):
            raise ValueError(f"headers: must be a mapping of names to values, got {self.headers!r}")
        if isinstance(self.split_at, str) or not all(map(_is_whole, self.split_at)):
            raise ValueError(f"split_at: must be positions in the body, got {self.split_at!r}")

    @property
    def answers(self) -> bool:
        """Whether it replaces the answer, rather than only its delivery."""
        return self.status is not None or self.body is not None or self.stream is not None

    @property
    def disturbs(self) -> bool:
        """Whether it changes the delivery of an answer."""
        return bool(
            self.delay
            or self.chunk_delay
            or self.stall_before_headers
            or self.split_at
            or any(
                place is not None
                for place in (
                    self.stall_after_chunks,
                    self.cut_after_bytes,
                    self.cut_after_chunks,
                    self.error_after_chunks,
                )
            )
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def flat(message: str, kind: str, param: str | None = None, code: str | None = None) -> JsonObject:
    """Return an error body in the flat form of the service's 4xx."""
    return {"message": message, "type": kind, "param": param, "code": code}


_INVALID, _BUSY = "invalid_request_error", "too_many_requests_error"
STATUS_BODIES: Mapping[int, JsonObject] = {
    400: flat(
        "store: property 'store' is unsupported", _INVALID, "validation_error", "wrong_api_format"
    ),
    401: flat("Wrong API Key", _INVALID, "api_key", "wrong_api_key"),
    402: flat(
        "Payment required to access this resource. Visit your billing tab.",
        "payment_required_error", "quota", "payment_required",
    ),
    404: flat(
        "Model invalid model does not exist or you do not have access to it.",
        "not_found_error", "model", "model_not_found",
    ),
    429: flat(
        "Requests per second limit exceeded - too many requests sent.", _BUSY, "quota", "request_quota_exceeded"
    ),
    500: {"message": "Encountered a server error, please try again.", "type": "server_error"},
}  # fmt: skip

ERROR_EVENT = {
    "status_code": 500,
    "error": {
        "message": "Encountered a server error, please try again.",
        "type": "server_error",
        "param": "",
        "code": "",
        "id": "",
    },
}


def status_body(status: int) -> Any:
    """Return the body that the service has for a status, or a plausible one where none is known."""
    if status in STATUS_BODIES:
        return STATUS_BODIES[status]
    if status >= 500:
        return STATUS_BODIES[500]
    return flat(f"Request refused with status {status}.", _INVALID)


def event(value: Any) -> bytes:
    """Return a JSON value as an event of a stream."""
    return b"data: " + pydantic_core.to_json(value) + b"\n\n"


def stream_parts(stream: Any) -> list[bytes]:
    """Return the chunks of a canned stream."""
    elements = stream if isinstance(stream, (list, tuple)) else [stream]
    return [_raw(item) if isinstance(item, (str, bytes)) else event(item) for item in elements]


def _raw(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def canned_body(body: Any) -> bytes:
    """Return the bytes of a body given by hand."""
    return _raw(body) if isinstance(body, (str, bytes)) else pydantic_core.to_json(body)


class FaultQueue:
    """The scripted faults, first come first served."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, *faults: Fault) -> None:
        """Append faults."""
        self._waiting.extend(faults)

    def clear(self) -> None:
        """Forget all."""
        self._waiting.clear()

    def take(self, path: str) -> Fault | None:
        """Return the first fault that is for this path, and count it."""
        for index, fault in enumerate(self._waiting):
            if not fnmatch.fnmatch(path, fault.path):
                continue
            if fault.times is not None:
                if fault.times <= 1:
                    del self._waiting[index]
                else:
                    self._waiting[index] = replace(fault, times=fault.times - 1)
            return fault
        return None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A body as it is to be written: chunks, with how it ends."""

    parts: list[bytes]
    ending: Ending = "complete"


def deliver(parts: list[bytes], fault: Fault | None, *, stream: bool) -> Delivery:
    """Return what a fault makes of the chunks of a body."""
    if fault is None:
        return Delivery(parts)
    ending: Ending = "complete"
    if fault.error_after_chunks is not None and stream:
        parts = [*parts[: fault.error_after_chunks], event(ERROR_EVENT if fault.error is None else fault.error)]
    if fault.split_at:
        parts = _split(b"".join(parts), fault.split_at)
    if fault.cut_after_chunks is not None:
        parts, ending = parts[: fault.cut_after_chunks], fault.cut
    if fault.cut_after_bytes is not None:
        parts, ending = _split(b"".join(parts)[: fault.cut_after_bytes], ()), fault.cut
    return Delivery(parts, ending)


def _split(content: bytes, positions: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted({position for position in positions if 0 < position < len(content)}), len(content)]
    return [content[start:end] for start, end in itertools.pairwise(edges) if end > start]

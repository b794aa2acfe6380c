"""One attempt at a stream without the I/O: bytes in, deltas out, then the whole answer."""

from __future__ import annotations

import time
from typing import Any, Generic

import httpx

from cerebras_ext import errors
from cerebras_ext.body import number_of_choices
from cerebras_ext.classify import ErrorTypes, body_status, status_error
from cerebras_ext.endpoints import Assembler, DeltaT, Endpoint, ResponseT
from cerebras_ext.exchange import Call, mask_secrets, response_info
from cerebras_ext.jsontext import loads
from cerebras_ext.sse import Event, SSEDecoder


class StreamState(Generic[DeltaT, ResponseT]):
    """One attempt at a stream: bytes in, deltas out, then the whole answer. No I/O."""

    __slots__ = (
        "_assembler",
        "_call",
        "_decoder",
        "_done",
        "_error_types",
        "_failure",
        "_headers",
        "_idle",
        "_last_event",
        "_marked",
    )

    def __init__(
        self,
        endpoint: Endpoint[Any, ResponseT, DeltaT],
        call: Call,
        headers: httpx.Headers,
        error_types: ErrorTypes | None,
        idle_timeout: float | None,
    ) -> None:
        self._assembler: Assembler[DeltaT, ResponseT] = endpoint.assembler(number_of_choices(call.body))
        self._decoder = SSEDecoder()
        self._call = call
        self._headers = headers
        self._error_types = error_types
        self._idle = idle_timeout
        self._last_event: float | None = None
        self._done = False
        self._marked = False
        self._failure: errors.CerebrasError | None = None

    @property
    def done_early(self) -> bool:
        """Whether the end mark came, so that the end of the body was not waited for."""
        return self._marked

    @property
    def done(self) -> bool:
        """Whether the end mark has come, after which nothing is read."""
        return self._done

    @property
    def complete(self) -> bool:
        """Whether every answer has its finish reason."""
        return self._assembler.complete

    def feed(self, data: bytes) -> list[DeltaT]:
        """Take bytes and return what they add.

        Raises:
            APIStatusError: An error event.
            APIResponseError: An event that cannot be read.
            APITimeoutError: Only comments came for longer than the idle timeout.
        """
        events = self._decoder.feed(data)
        if self._idle is not None:
            self._check_idle(self._idle, bool(events))
        return self._take(events)

    def _check_idle(self, limit: float, active: bool) -> None:
        """Count from the first piece without an event: before it the consumer may have taken its time."""
        now = time.monotonic()
        if active:
            self._last_event = None
        elif self._last_event is None:
            self._last_event = now
        elif now - self._last_event > limit:
            raise errors.APITimeoutError(f"no event of the stream for {limit} s, only comments")

    def finish(self) -> list[DeltaT]:
        """Take the end of the bytes.

        Raises:
            StreamTruncatedError: No finish reason came.
        """
        deltas = [] if self._done else self._take(self._decoder.finish())
        self._done = True
        if not deltas:
            self.check_complete()
        return deltas

    def check_complete(self) -> None:
        """Refuse to call an answer whole that has no finish reason.

        Raises:
            StreamTruncatedError: No finish reason came.
            CerebrasError: The failure that ended the stream.
        """
        if self._failure is not None:
            raise self._failure
        if not self._assembler.complete:
            kind = self._headers.get("content-type", "text/event-stream")
            what = "" if "event-stream" in kind else f", and its content type is {kind[:80]!r}"
            raise errors.StreamTruncatedError(
                f"the stream ended without a finish reason: the answer is not complete{what}"
            )

    def _take(self, events: list[Event]) -> list[DeltaT]:
        """Take events; what came before a failing one is handed out first, and the failure is kept for `finish`."""
        deltas: list[DeltaT] = []
        try:
            for data, name in events:
                if data.startswith(b"[DONE]"):
                    self._done = self._marked = True
                    break
                self._take_event(data, name, deltas)
        except errors.CerebrasError as error:
            if not deltas:
                raise
            self._failure = error
            self._done = True
        return deltas

    def _take_event(self, data: bytes, name: bytes, deltas: list[DeltaT]) -> None:
        try:
            chunk = loads(data)
        except ValueError as error:
            if name != b"error":
                raise self._unreadable(data, str(error)) from None
            chunk = {"error": data.decode("utf-8", "replace")}
        if chunk is None:
            return
        if not isinstance(chunk, dict):
            raise self._unreadable(data, "not an object")
        if name == b"error" or chunk.get("error"):
            raise self._error(chunk)
        try:
            deltas += self._assembler.feed(chunk)
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            raise self._unreadable(data, str(error)) from error

    def _error(self, chunk: dict[str, Any]) -> errors.APIStatusError:
        body = chunk if chunk.get("error") else {**chunk, "error": chunk.get("message") or "error event"}
        return status_error(
            body_status(body) or 500,
            self._headers,
            body,
            request=self._call.body,
            secret=self._call.secret,
            error_types=self._error_types,
        )

    def _unreadable(self, data: bytes, reason: str) -> errors.APIResponseError:
        text = mask_secrets(data[:2000].decode("utf-8", "replace"), self._call.secret)
        info = response_info(200, self._headers, self._call.secret)
        return errors.APIResponseError(
            f"an event of the stream cannot be read ({reason}): {text[:200]!r}", body=text, request_id=info.request_id
        )

    def response(self) -> ResponseT:
        """Return the whole answer."""
        info = response_info(200, self._headers, self._call.secret)
        try:
            response = self._assembler.response()
        except (ValueError, TypeError) as error:
            raise errors.APIResponseError(
                f"the streamed answer cannot be read: {error}", request_id=info.request_id
            ) from None
        response._info = info
        return response

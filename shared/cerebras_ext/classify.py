"""From a refused or broken answer to an error: pure functions over status, headers and body."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from cerebras_ext import errors
from cerebras_ext.hints import hint_for
from cerebras_ext.jsontext import loads
from cerebras_ext.ratelimit import findable, parse_number, safe_headers
from cerebras_ext.types.common import ErrorBody

RETRIED_STATUSES = frozenset({408, 409, 429})
_BY_STATUS: dict[int, type[errors.APIStatusError]] = {
    cls.expected_status: cls
    for cls in (
        errors.BadRequestError,
        errors.AuthenticationError,
        errors.PaymentRequiredError,
        errors.PermissionDeniedError,
        errors.NotFoundError,
        errors.RequestTimeoutError,
        errors.ConflictError,
        errors.PayloadTooLargeError,
        errors.UnprocessableEntityError,
        errors.RateLimitError,
    )
    if cls.expected_status is not None
}
_LENGTHS = re.compile(r"length is (\d{1,18}) while limit is (\d{1,18})")
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_HTML_LIMIT = 10_000
"""Characters of a page that are looked at: tags that are never closed take the square of its length."""
_BODY_LIMIT = 2_000

ErrorTypes = Mapping[type[errors.CerebrasError], type[errors.CerebrasError]]
"""Replacements for classes of the tree, by which an adapter adds its framework's base classes."""


def decode_body(content: bytes) -> Any:
    """Return the JSON value of a body, or its text where it is not JSON."""
    try:
        return loads(content)
    except ValueError:
        return content.decode("utf-8", errors="replace")


def read_error_body(body: Any) -> ErrorBody:
    """Read what an error says from any of its envelopes.

    Flat on the wire, nested under `error` in streams and behind gateways, `detail` in FastAPI's form, or plain text or
    HTML from an edge.
    """
    inner = body.get("error") if isinstance(body, dict) else None
    if isinstance(inner, dict):
        body = inner
    elif isinstance(inner, str):
        body = {**body, "message": body.get("message") or inner}
    if not isinstance(body, dict):
        return ErrorBody(message=_plain_text(body))
    detail = body.get("detail")
    message = body.get("message")
    if message is None and detail is not None:
        message = detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False, default=str)
    fields = {name: None if body.get(name) is None else str(body[name]) for name in ("type", "param", "code", "id")}
    return ErrorBody(message=None if message is None else str(message), **fields)


def _plain_text(body: Any) -> str | None:
    if body is None:
        return None
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, default=str)
    if "<html" in text[:2000].lower() or "<!doctype" in text[:2000].lower():
        text = _TAGS.sub(" ", text[:_HTML_LIMIT])
    text = " ".join(text.split())
    return text[:500] or None


def body_status(body: Any) -> int | None:
    """Return the status of an error object that came inside a 200, or None where the body is no error."""
    if not isinstance(body, dict) or not body.get("error"):
        return None
    status = body.get("status_code")
    return status if isinstance(status, int) and not isinstance(status, bool) else 500


def parse_retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that `retry-after-ms` or `retry-after` (seconds or HTTP date) ask to wait, or None."""
    milliseconds = parse_number(headers.get("retry-after-ms"))
    if milliseconds is not None and milliseconds >= 0:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = parse_number(value)
    if seconds is not None or value is None:
        return seconds if seconds is not None and seconds >= 0 else None
    try:
        moment = email.utils.parsedate_to_datetime(value).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, moment - (time.time() if now is None else now))


def should_retry(status: int, headers: Mapping[str, str]) -> bool:
    """Whether a request that got this status may be repeated: `x-should-retry` wins, else the status decides."""
    told = headers.get("x-should-retry", "").strip().lower()
    if told in ("true", "false"):
        return told == "true"
    return status in RETRIED_STATUSES or status >= 500


def status_error(
    status: int,
    headers: Mapping[str, str],
    body: Any,
    *,
    request: Mapping[str, Any] | None = None,
    secret: str | None = None,
    error_types: ErrorTypes | None = None,
) -> errors.APIStatusError:
    """Build the error for a refused request.

    Args:
        status: HTTP status, or the one named inside a 200.
        headers: Response headers, any case.
        body: Decoded body.
        request: The body that was sent, for hints.
        secret: API key to take out of everything kept.
        error_types: Classes to use instead of the core's.
    """
    kept = safe_headers(headers.items(), secret)
    body = _redact(body, secret)
    said = read_error_body(body)
    cls = _class_of(status, said)
    cls = (error_types or {}).get(cls, cls)  # type: ignore[assignment]
    error = cls(
        said.message or "the service gave no reason",
        status_code=status,
        code=said.code or None,
        type=said.type or None,
        param=said.param or None,
        request_id=kept.get("x-request-id") or kept.get("cf-ray") or said.id or None,
        retry_after=parse_retry_after(kept),
        headers=kept,
        body=body[:_BODY_LIMIT] if isinstance(body, str) else body,
        hint=hint_for(status, said, request),
        is_retryable=should_retry(status, kept),
    )
    lengths = _LENGTHS.search(error.message)
    if isinstance(error, errors.ContextLengthExceededError) and lengths:
        error.current_length, error.limit = int(lengths[1]), int(lengths[2])
    return error


def _class_of(status: int, said: ErrorBody) -> type[errors.APIStatusError]:
    if status in (400, 413, 422) and (
        said.code == "context_length_exceeded" or "reduce the length of the messages" in (said.message or "")
    ):
        return errors.ContextLengthExceededError
    if status >= 500:
        return errors.ServerError
    return _BY_STATUS.get(status, errors.APIStatusError)


def _redact(value: Any, secret: str | None) -> Any:
    """Replace the key wherever it stands in a body (some gateways quote it back)."""
    if not findable(secret):
        return value
    assert secret is not None
    if isinstance(value, str):
        return value.replace(secret, "***")
    if isinstance(value, dict):
        return {_redact(key, secret): _redact(item, secret) for key, item in value.items()}
    if isinstance(value, list):
        return [_redact(item, secret) for item in value]
    return value

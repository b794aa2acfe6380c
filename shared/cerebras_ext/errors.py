"""Everything the library raises on purpose, in one tree.

CerebrasError
├── RequestValidationError (ValueError)      the request is wrong; nothing was sent
├── MissingAPIKeyError (ValueError)          no key was given or found in the environment
├── ClientClosedError (RuntimeError)         the client was closed before the call
├── APIConnectionError (ConnectionError)     no answer: DNS, TLS, proxy, refused, reset
│   └── StreamTruncatedError                 the stream ended without a finish reason
├── APITimeoutError (TimeoutError)           no answer, or no next event, in time
├── APIResponseError                         an answer that cannot be read (not JSON, no choices, ...)
└── APIStatusError                           the service refused, by status or by an error object in a 200
    ├── BadRequestError                      400
    │   └── ContextLengthExceededError       the prompt is longer than the model's context
    ├── AuthenticationError                  401
    ├── PaymentRequiredError                 402
    ├── PermissionDeniedError                403
    ├── NotFoundError                        404
    ├── RequestTimeoutError (TimeoutError)   408
    ├── ConflictError                        409
    ├── PayloadTooLargeError                 413
    ├── UnprocessableEntityError             422
    ├── RateLimitError                       429
    └── ServerError                          5xx
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from cerebras_ext.ratelimit import RateLimits

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError
    from pydantic_core import ErrorDetails


class CerebrasError(Exception):
    """Base of every error of this library."""

    is_retryable: bool = False
    """Whether the same request may succeed later."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(cls: type[CerebrasError], args: tuple[Any, ...], state: dict[str, Any]) -> CerebrasError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class RequestValidationError(CerebrasError, ValueError):
    """The request is wrong. Raised before anything is sent; the text names field, limit and value."""

    @classmethod
    def from_pydantic(cls, error: ValidationError, model: type[BaseModel]) -> Self:
        """Turn pydantic's report into one line per fault, with the nearest name for an unknown field."""
        lines = []
        faults = [(_path(item), item) for item in error.errors(include_url=False, include_context=True)]
        for path, item in faults:
            if _is_other_branch(path, item, faults):
                continue
            if item["type"] == "extra_forbidden":
                lines.append(unknown_field_message(path, str(item["loc"][-1]), _siblings(item["loc"], model)))
            elif item["type"] == "missing":
                lines.append(f"{path}: required, but not given")
            else:
                lines.append(f"{path}: {item['msg']} (got {_shorten(item['input'])})")
        return cls("\n".join(dict.fromkeys(lines)))


_BRANCH = re.compile(r"str|list\[.*|constrained-.*|tagged-union\[.*")
"""What pydantic calls the members of a union that have no tag."""


def _path(item: ErrorDetails) -> str:
    """Return where a fault is, without the branches of unions; the name of an unknown member is always told."""
    loc, unknown = item["loc"], item["type"] == "extra_forbidden"
    last = loc[-1:] if unknown else ()
    steps = [step for step in (loc[:-1] if unknown else loc) if isinstance(step, int) or not _BRANCH.fullmatch(step)]
    return ".".join(map(str, (*steps, *last)))


def _is_other_branch(path: str, item: ErrorDetails, faults: list[tuple[str, ErrorDetails]]) -> bool:
    """Whether a value is only told not to be of a type that it was not meant to have: another complaint says more."""
    if not item["type"].endswith("_type") or not any(_BRANCH.fullmatch(str(step)) for step in item["loc"]):
        return False
    return any(
        other.startswith(f"{path}.") or (other == path and not fault["type"].endswith("_type"))
        for other, fault in faults
    )


def _shorten(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _siblings(loc: tuple[int | str, ...], model: type[BaseModel]) -> list[str]:
    return list(model.model_fields) if len(loc) == 1 else []


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that a misspelt one is closest to, or None."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)), None)


def unknown_field_message(path: str, name: str, known: list[str]) -> str:
    """Return the complaint about an unknown field, with the nearest known name and the way around."""
    from cerebras_ext.settings import SettingsOptions

    if path in SettingsOptions.__annotations__:
        return f"{path}: a setting of the client or model; give it where that is made, and not with a call"
    near = nearest_name(name, known)
    guess = f"; did you mean {near!r}?" if near else "."
    return f"{path}: unknown field{guess} What the library does not know can be sent with extra_body."


class MissingAPIKeyError(CerebrasError, ValueError):
    """There is no API key: neither as an argument nor in the environment."""

    def __init__(self) -> None:
        super().__init__(
            "No Cerebras API key. Create one at https://cloud.cerebras.ai, then set the environment variable "
            "CEREBRAS_API_KEY or pass api_key=..."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), ()


class ClientClosedError(CerebrasError, RuntimeError):
    """The client was closed; make a new one."""


class APIConnectionError(CerebrasError, ConnectionError):
    """No answer from the service. The text names the host and the cause; the cause is in `__cause__`."""

    is_retryable = True


class StreamTruncatedError(APIConnectionError):
    """The stream ended without a finish reason, so the answer is not complete. Never retried after a first delta."""


class APITimeoutError(CerebrasError, TimeoutError):
    """No answer, or no next event of a stream, within the timeout."""

    is_retryable = True


class APIResponseError(CerebrasError):
    """The service answered with something that cannot be read as an answer.

    Attributes:
        body: What was received, as text or decoded JSON.
        request_id: Id of the request, where the service gave one.
        response_id: Id of the answer, where it had one.
        usage: Token counts as a dictionary, where the answer had them.
    """

    def __init__(
        self,
        message: str,
        *,
        body: Any = None,
        request_id: str | None = None,
        response_id: str | None = None,
        usage: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.body = body
        self.request_id = request_id
        self.response_id = response_id
        self.usage = usage


class APIStatusError(CerebrasError):
    """The service refused the request or failed.

    Attributes:
        status_code: HTTP status, or the `status_code` member of an error object inside a 200.
        message: What the service says, without the hint.
        code: Machine-readable reason, e.g. `context_length_exceeded`.
        type: Family of the error, e.g. `invalid_request_error`.
        param: What it is about, e.g. `messages` or `quota`.
        request_id: `x-request-id`, else `cf-ray`, else the body's id.
        retry_after: Seconds that the service asks to wait, or None.
        headers: Response headers that hold no secret, names in lower case.
        rate_limits: What the `x-ratelimit-*` headers say.
        body: Body as received: decoded JSON, else text.
        hint: Advice of this library, or None; part of `str(error)`.
    """

    expected_status: ClassVar[int | None] = None

    def __init__(
        self,
        message: str,
        *,
        status_code: int,
        code: str | None = None,
        type: str | None = None,
        param: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        hint: str | None = None,
        is_retryable: bool = False,
    ) -> None:
        self.message = message
        self.status_code = status_code
        self.code = code
        self.type = type
        self.param = param
        self.request_id = request_id
        self.retry_after = retry_after
        self.headers = dict(headers or {})
        self.rate_limits = RateLimits.from_headers(self.headers)
        self.body = body
        self.hint = hint
        self.is_retryable = is_retryable
        super().__init__(self._text())

    def _text(self) -> str:
        labels = [str(self.status_code), *(label for label in (self.code or self.type,) if label)]
        text = f"{' '.join(labels)}: {self.message}" if self.message else " ".join(labels)
        if self.request_id:
            text += f" (request id {self.request_id})"
        return f"{text}\nHint: {self.hint}" if self.hint else text


class BadRequestError(APIStatusError):
    """400: the service does not accept the request."""

    expected_status = 400


class ContextLengthExceededError(BadRequestError):
    """400: the prompt is longer than the model's context.

    Attributes:
        current_length: Tokens of the prompt, where the service says.
        limit: Tokens that fit, where the service says.
    """

    current_length: int | None = None
    limit: int | None = None


class AuthenticationError(APIStatusError):
    """401: the key is wrong or missing."""

    expected_status = 401


class PaymentRequiredError(APIStatusError):
    """402: the account has to be topped up; permanent until then."""

    expected_status = 402


class PermissionDeniedError(APIStatusError):
    """403: the key may not do this."""

    expected_status = 403


class NotFoundError(APIStatusError):
    """404: the model or the path does not exist, or is not open to the key."""

    expected_status = 404


class RequestTimeoutError(APIStatusError, TimeoutError):
    """408: the service gave up waiting."""

    expected_status = 408


class ConflictError(APIStatusError):
    """409: the request collides with another one."""

    expected_status = 409


class PayloadTooLargeError(APIStatusError):
    """413: the body is too large, or it has too many images."""

    expected_status = 413


class UnprocessableEntityError(APIStatusError):
    """422: the request does not validate (the status used before 2026-04-24 for what is 400 now)."""

    expected_status = 422


class RateLimitError(APIStatusError):
    """429: a quota is used up or the queue is full; see `code`, `retry_after` and `rate_limits`."""

    expected_status = 429


class ServerError(APIStatusError):
    """5xx: the service failed."""

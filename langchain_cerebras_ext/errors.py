"""The core's error tree with langchain-core's classes added: what our LangChain models raise.

Each class has the name of its class in `cerebras_ext` and is a subclass of it, so that `except` works with
either tree and with langchain-core's:

CerebrasError                            ModelError
├── RequestValidationError               ModelInvalidRequestError
│   └── SchemaError                      ModelInvalidRequestError
├── MissingAPIKeyError                   ModelAuthenticationError
├── ClientClosedError                    ModelError
├── APIConnectionError                   ModelConnectionError
│   └── StreamTruncatedError             ModelConnectionError
├── APITimeoutError                      ModelTimeoutError
├── APIResponseError                     ModelAPIError
├── RefusalError                         ModelRefusalError
├── OutputTruncatedError                 OutputParserException
└── APIStatusError                       ModelError
    ├── BadRequestError                  ModelInvalidRequestError
    │   └── ContextLengthExceededError   ContextOverflowError
    ├── AuthenticationError              ModelAuthenticationError
    ├── PaymentRequiredError             ModelPermissionDeniedError
    ├── PermissionDeniedError            ModelPermissionDeniedError
    ├── NotFoundError                    ModelNotFoundError
    ├── RequestTimeoutError              ModelTimeoutError
    ├── ConflictError                    ModelAPIError
    ├── PayloadTooLargeError             ModelInvalidRequestError
    ├── UnprocessableEntityError         ModelInvalidRequestError
    ├── RateLimitError                   ModelRateLimitError
    └── ServerError                      ModelAPIError
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

from langchain_core import exceptions as lc
from langchain_core.messages import BaseMessage

from cerebras_ext import errors as core
from cerebras_ext import strict_schema

try:
    from langchain_core.exceptions import ModelRefusalError
except ImportError:  # before langchain-core 1.7.5

    class ModelRefusalError(lc.ModelError):  # type: ignore[no-redef]
        """Stand-in for langchain-core's class of this name."""

        def __init__(self, message: str = "", *, raw_message: BaseMessage | None = None) -> None:
            self.raw_message = raw_message
            super().__init__(message)


class ErrorResponse:
    """What an answer said, without the request: langchain-core copies what it finds here into traces.

    Attributes:
        status_code: HTTP status, or the one named inside a 200.
        headers: Response headers that hold no secret, names in lower case.
    """

    __slots__ = ("_body", "headers", "status_code")

    def __init__(self, status_code: int, headers: Mapping[str, str], body: Any) -> None:
        self.status_code = status_code
        self.headers = dict(headers)
        self._body = body

    def json(self) -> Any:
        """Return the decoded body.

        Raises:
            ValueError: The body was not JSON.
        """
        if self._body is None or isinstance(self._body, str):
            raise ValueError("the body of this response is not JSON")
        return self._body

    @property
    def text(self) -> str:
        """The body as text."""
        if self._body is None or isinstance(self._body, str):
            return self._body or ""
        return json.dumps(self._body, ensure_ascii=False)


class CerebrasError(core.CerebrasError, lc.ModelError):
    """Base of every error of our LangChain models."""

    request_id: str | None = None


class RequestValidationError(CerebrasError, core.RequestValidationError, lc.ModelInvalidRequestError):
    """The request is wrong; nothing was sent."""


class SchemaError(RequestValidationError, strict_schema.SchemaError):
    """A schema has no strict form; nothing was sent."""


class MissingAPIKeyError(CerebrasError, core.MissingAPIKeyError, lc.ModelAuthenticationError):
    """There is no API key."""


class ClientClosedError(CerebrasError, core.ClientClosedError):
    """The model was closed before the call."""


class APIConnectionError(CerebrasError, core.APIConnectionError, lc.ModelConnectionError):
    """No answer from the service."""


class StreamTruncatedError(APIConnectionError, core.StreamTruncatedError):
    """The stream ended without a finish reason, so the answer is not complete."""


class APITimeoutError(CerebrasError, core.APITimeoutError, lc.ModelTimeoutError):
    """No answer, or no next event of a stream, within the timeout."""


class APIResponseError(CerebrasError, core.APIResponseError, lc.ModelAPIError):
    """The answer cannot be read."""

    @property
    def response(self) -> ErrorResponse:
        """What came, for traces."""
        return ErrorResponse(200, {}, self.body)


class RefusalError(CerebrasError, ModelRefusalError):
    """The answer was withheld (`content_filter`) where its content is needed, as in structured output.

    Attributes:
        raw_message: The message without the content.
    """


class OutputTruncatedError(CerebrasError, lc.OutputParserException):
    """The answer ended at the token limit (`length`), so that what should be parsed is not complete.

    Attributes:
        raw_message: The message that was cut off.
    """

    def __init__(self, message: str, *, raw_message: BaseMessage | None = None) -> None:
        lc.OutputParserException.__init__(self, message, llm_output=None if raw_message is None else raw_message.text)
        self.raw_message = raw_message


class APIStatusError(CerebrasError, core.APIStatusError):
    """The service refused the request or failed."""

    @property
    def response(self) -> ErrorResponse:
        """What the service answered, for traces."""
        return ErrorResponse(self.status_code, self.headers, self.body)


class BadRequestError(APIStatusError, core.BadRequestError, lc.ModelInvalidRequestError):
    """400: the service does not accept the request."""


class ContextLengthExceededError(BadRequestError, core.ContextLengthExceededError, lc.ContextOverflowError):
    """400: the prompt is longer than the model's context."""


class AuthenticationError(APIStatusError, core.AuthenticationError, lc.ModelAuthenticationError):
    """401: the key is wrong or missing."""


class PaymentRequiredError(APIStatusError, core.PaymentRequiredError, lc.ModelPermissionDeniedError):
    """402: the account has to be topped up."""


class PermissionDeniedError(APIStatusError, core.PermissionDeniedError, lc.ModelPermissionDeniedError):
    """403: the key may not do this."""


class NotFoundError(APIStatusError, core.NotFoundError, lc.ModelNotFoundError):
    """404: the model or the path does not exist, or is not open to the key."""


class RequestTimeoutError(APIStatusError, core.RequestTimeoutError, lc.ModelTimeoutError):
    """408: the service gave up waiting."""


class ConflictError(APIStatusError, core.ConflictError, lc.ModelAPIError):
    """409: the request collides with another one."""


class PayloadTooLargeError(APIStatusError, core.PayloadTooLargeError, lc.ModelInvalidRequestError):
    """413: the body is too large, or it has too many images."""


class UnprocessableEntityError(APIStatusError, core.UnprocessableEntityError, lc.ModelInvalidRequestError):
    """422: the request does not validate."""


class RateLimitError(APIStatusError, core.RateLimitError, lc.ModelRateLimitError):
    """429: a quota is used up or the queue is full."""


class ServerError(APIStatusError, core.ServerError, lc.ModelAPIError):
    """5xx: the service failed."""


def _tree(base: type[core.CerebrasError]) -> Iterator[type[core.CerebrasError]]:
    yield base
    for cls in base.__subclasses__():
        yield from _tree(cls)


ERROR_TYPES: Mapping[type[core.CerebrasError], type[core.CerebrasError]] = {
    parent: cls
    for cls in dict.fromkeys(_tree(CerebrasError))
    for parent in cls.__bases__
    if parent.__module__.startswith("cerebras_ext.") and parent.__name__ == cls.__name__
}
"""Our class for each class of the core, for `Client(error_types=...)`."""


class _LangChainErrors:
    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, core.CerebrasError):
            adopt(error)


_LANGCHAIN_ERRORS = _LangChainErrors()


def langchain_errors() -> _LangChainErrors:
    """Return a context manager: errors of the core leave its block as our classes, wherever they were raised."""
    return _LANGCHAIN_ERRORS


def adopt(error: core.CerebrasError) -> None:
    """Give an error of the core our class, which adds langchain-core's; attributes and traceback stay."""
    cls = ERROR_TYPES.get(type(error))
    if cls is not None:
        error.__class__ = cls

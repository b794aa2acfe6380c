"""One HTTP exchange without the I/O: what to send, and what an answer or a failure means."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, SecretStr, ValidationError

from cerebras_ext import errors
from cerebras_ext._version import __version__
from cerebras_ext.body import Body
from cerebras_ext.classify import ErrorTypes, body_status, decode_body, status_error
from cerebras_ext.encoding import encode_body
from cerebras_ext.endpoints import DeltaT, Endpoint, RequestT, ResponseT
from cerebras_ext.jsontext import loads
from cerebras_ext.ratelimit import ResponseInfo, findable, safe_headers
from cerebras_ext.settings import Settings, check_headers, check_queue_threshold, make_timeout, mask_url

INTEGRATION_NAME = "cerebras-ext"
ModelT = TypeVar("ModelT", bound=BaseModel)


@lru_cache(maxsize=1)
def user_agent() -> str:
    """Return who we are, for the `User-Agent` header."""
    return f"{INTEGRATION_NAME}/{__version__} httpx/{httpx.__version__} python/{platform.python_version()}"


@dataclass(slots=True)
class Options:
    """What may be given with a single call beside the request's fields."""

    timeout: float | httpx.Timeout | None = None
    extra_headers: Mapping[str, str] | None = field(default=None, repr=False)
    queue_threshold: int | None = None


def split_options(keywords: Mapping[str, Any]) -> tuple[Options, dict[str, Any]]:
    """Return the options of a call, and the fields of its request, from the keywords that hold both."""
    fields = dict(keywords)
    options = Options(
        fields.pop("timeout", None), fields.pop("extra_headers", None), fields.pop("queue_threshold", None)
    )
    return options, fields


@dataclass(slots=True)
class Call:
    """A request ready to be sent, as often as it takes: every attempt sends the same bytes. Not changed once made.

    Error trackers show the local variables of a traceback, so what holds the key is not in its `repr`.
    """

    method: str
    url: httpx.URL
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    content: bytes = field(repr=False)
    timeout: httpx.Timeout
    own_timeout: bool
    body: Body
    secret: str = field(repr=False)

    def build(self) -> httpx.Request:
        """Return a new HTTP request: what `httpx.Request` makes of the content, in a quarter of the time."""
        names = {name.lower() for name, _ in self.headers}
        headers = list(self.headers)
        if "host" not in names:
            headers.insert(0, ("Host", self.url.netloc.decode("ascii")))
        if self.content and "content-length" not in names:
            headers.append(("Content-Length", str(len(self.content))))
        request = httpx.Request(
            self.method,
            self.url,
            headers=headers,
            stream=httpx.ByteStream(self.content),
            extensions={"timeout": self.timeout.as_dict()},
        )
        request.read()
        return request


def make_headers(
    settings: Settings, key: SecretStr, options: Options, described: Mapping[str, str], *, stream: bool
) -> dict[str, str]:
    """Return the headers of a request. Later levels win, whatever the case of a name.

    Args:
        settings: Has the headers of every request.
        key: The API key.
        options: Have the headers of this request.
        described: Headers that describe the body; they win over everything.
        stream: Whether the answer is streamed.

    Raises:
        RequestValidationError: A header cannot be sent.
    """
    own = check_headers("extra_headers", options.extra_headers)
    threshold = settings.queue_threshold if options.queue_threshold is None else options.queue_threshold
    headers = {
        "Authorization": f"Bearer {key.get_secret_value()}",
        "Accept": "application/json",
        "Accept-Encoding": "identity" if stream else "gzip, deflate",
        "User-Agent": user_agent(),
        "X-Cerebras-3rd-Party-Integration": INTEGRATION_NAME,
        "Connection": "keep-alive",
    }
    if threshold is not None:
        headers["queue_threshold"] = str(threshold)
    for level in (settings.default_headers, own, tuple(described.items())):
        for name, value in level:
            for known in [known for known in headers if known.lower() == name.lower()]:
                del headers[known]
            headers[name] = value
    return headers


@lru_cache(maxsize=256)
def make_url(base_url: str, path: str) -> httpx.URL:
    """Return the URL of an endpoint."""
    return httpx.URL(base_url + path)


def prepare(
    settings: Settings,
    key: SecretStr,
    method: str,
    path: str,
    options: Options,
    body: Body | None = None,
    *,
    stream: bool = False,
) -> Call:
    """Build the request to send.

    Raises:
        RequestValidationError: The body or a header cannot be sent, or an option of the call is out of range.
    """
    content, described = b"", dict[str, str]()
    try:
        if body is not None:
            content, described = encode_body(body, settings.payload)
        timeout = settings.timeout if options.timeout is None else make_timeout(options.timeout)
        check_queue_threshold(options.queue_threshold)
    except ValueError as error:
        raise errors.RequestValidationError(str(error)) from None
    if stream and settings.stream_idle_timeout is not None:
        timeout = httpx.Timeout(
            connect=timeout.connect,
            write=timeout.write,
            pool=timeout.pool,
            read=min(timeout.read or settings.stream_idle_timeout, settings.stream_idle_timeout),
        )
    own_timeout = options.timeout is not None or not settings.timeout_is_default
    url = make_url(settings.base_url, path)
    headers = make_headers(settings, key, options, described, stream=stream)
    return Call(method, url, tuple(headers.items()), content, timeout, own_timeout, body or {}, key.get_secret_value())


def connection_error(error: httpx.HTTPError, call: Call) -> errors.CerebrasError:
    """Return the library's error for a failure of the transport: it names the host and the cause, and no secret."""
    host = call.url.netloc.decode("ascii", "replace").rpartition("@")[2]
    detail = mask_secrets(str(error), call.secret)
    cause = f"{type(error).__name__}: {detail}" if detail else type(error).__name__
    if _has_request(error):
        error.request = httpx.Request(call.method, mask_url(str(call.url)))
    if isinstance(error, httpx.TimeoutException):
        return errors.APITimeoutError(f"{host} did not answer in time ({cause})")
    if isinstance(error, httpx.DecodingError):
        return errors.APIResponseError(f"the answer of {host} cannot be decoded ({cause})")
    broke = isinstance(error, (httpx.ReadError, httpx.WriteError, httpx.CloseError, httpx.RemoteProtocolError))
    failure = errors.APIConnectionError(f"{'lost the' if broke else 'no'} connection to {host} ({cause})")
    failure.is_retryable = isinstance(error, httpx.TransportError) and not isinstance(
        error, (httpx.UnsupportedProtocol, httpx.LocalProtocolError)
    )
    return failure


def _has_request(error: httpx.HTTPError) -> bool:
    try:
        return error.request is not None
    except RuntimeError:
        return False


def mask_secrets(text: str, secret: str) -> str:
    """Return a text without the key and without user names and passwords of URLs."""
    text = text.replace(secret, "***") if findable(secret) else text
    return " ".join(mask_url(word) if "://" in word else word for word in text.split(" ")) if "://" in text else text


def refusal(
    status: int, headers: httpx.Headers, content: bytes, call: Call, error_types: ErrorTypes | None
) -> errors.APIStatusError:
    """Return the error for an HTTP status that is not 2xx."""
    return status_error(
        status, headers, decode_body(content), request=call.body, secret=call.secret, error_types=error_types
    )


def response_info(status: int, headers: httpx.Headers, secret: str) -> ResponseInfo:
    """Return what the response said beside its body, without secrets."""
    return ResponseInfo(status, safe_headers(headers.items(), secret))


def read_json(
    content: bytes, call: Call, headers: httpx.Headers, error_types: ErrorTypes | None
) -> tuple[dict[str, Any], ResponseInfo]:
    """Return the JSON object of a 200 answer.

    Raises:
        APIResponseError: Not a JSON object.
        APIStatusError: An error object inside the 200.
    """
    info = response_info(200, headers, call.secret)
    try:
        value = loads(content)
    except ValueError as error:
        text = mask_secrets(content[:2000].decode("utf-8", "replace"), call.secret)
        raise errors.APIResponseError(
            f"the service's answer is not JSON ({error}): {text[:200]!r}", body=text, request_id=info.request_id
        ) from None
    status = body_status(value)
    if status is not None:
        raise status_error(status, headers, value, request=call.body, secret=call.secret, error_types=error_types)
    if not isinstance(value, dict):
        raise errors.APIResponseError(
            f"the service's answer is no JSON object but {type(value).__name__}",
            body=value,
            request_id=info.request_id,
        )
    return value, info


def read_model(model: type[ModelT], value: dict[str, Any], info: ResponseInfo) -> ModelT:
    """Return a typed answer.

    Raises:
        APIResponseError: A member has a type that cannot be read.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise errors.APIResponseError(
            f"the service's answer cannot be read: {error.error_count()} unexpected members, first "
            f"{'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}",
            body=value,
            request_id=info.request_id,
            response_id=value.get("id") if isinstance(value.get("id"), str) else None,
        ) from None


def read_response(
    endpoint: Endpoint[RequestT, ResponseT, DeltaT],
    content: bytes,
    call: Call,
    headers: httpx.Headers,
    error_types: ErrorTypes | None,
) -> ResponseT:
    """Return the typed answer of a request that was not streamed.

    Raises:
        APIResponseError: It cannot be read, or has no choices.
        APIStatusError: An error object inside the 200.
    """
    value, info = read_json(content, call, headers, error_types)
    response = read_model(endpoint.response_type, value, info)
    if not response.choices:
        usage = value.get("usage")
        raise errors.APIResponseError(
            "the service's answer has no choices",
            body=value,
            request_id=info.request_id,
            response_id=response.id,
            usage=usage if isinstance(usage, dict) else None,
        )
    response._info = info
    return response

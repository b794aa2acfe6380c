"""What the sync and the async client have in common: everything but the I/O."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar

import httpx
from pydantic import SecretStr

from cerebras_ext.body import single_reason
from cerebras_ext.classify import ErrorTypes
from cerebras_ext.endpoints import Endpoint, RequestT
from cerebras_ext.errors import CerebrasError, ClientClosedError, RequestValidationError
from cerebras_ext.exchange import Call, Options, prepare, split_options
from cerebras_ext.keywords import ClientOptions
from cerebras_ext.request_fields import RequestFields, read_fields
from cerebras_ext.retry import RetryState
from cerebras_ext.settings import AsyncHTTPClient, HTTPClient, Settings, mask_url, resolve_key, resolve_settings
from cerebras_ext.types import ChatRequest

logger = logging.getLogger("cerebras_ext")
logger.addHandler(logging.NullHandler())

HttpT = TypeVar("HttpT", bound=HTTPClient | AsyncHTTPClient)


class BaseClient(Generic[HttpT]):
    """Settings, key and life cycle, which both clients share. Making one opens nothing."""

    def __init__(self, http_client: HttpT | None, options: ClientOptions) -> None:
        # Emptied in place: error trackers show the local variables of all frames, and the key must not be among them.
        settings: dict[str, Any] = options  # type: ignore[assignment]
        self._http = http_client
        self._error_types: ErrorTypes | None = settings.pop("error_types", None)
        self._secret: SecretStr | None
        self._secret, self._key_from_environment = resolve_key(settings.pop("api_key", None))
        self._settings: Settings = resolve_settings(**settings)
        self._closed = False

    @property
    def base_url(self) -> str:
        """Where requests go, without `/v1`."""
        return self._settings.base_url

    def __repr__(self) -> str:
        if "_settings" not in self.__dict__:
            return f"{type(self).__name__}(not made yet)"
        return f"{type(self).__name__}(base_url={mask_url(self.base_url)!r}, api_key='***')"

    def __getstate__(self) -> dict[str, Any]:
        if self._http is not None:
            raise TypeError("a client with an http client of its own cannot be pickled: pass settings instead")
        state = self.__dict__.copy()
        if self._key_from_environment:
            state["_secret"] = None
        return state

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.__copy__()

    def _key(self) -> SecretStr:
        if self._closed:
            raise ClientClosedError("this client was closed; make a new one")
        if self._secret is None:
            self._secret = resolve_key(None)[0]
        return self._secret

    def _prepare(
        self, endpoint: Endpoint[RequestT, Any, Any], request: Any, keywords: Mapping[str, Any], *, stream: bool
    ) -> Call:
        options, fields = split_options(keywords)
        found = read_fields(endpoint.request_type, request, fields)
        _check_method(endpoint, found, stream)
        return self._call(endpoint, found, options, stream)

    def _prepare_stream(
        self, endpoint: Endpoint[RequestT, Any, Any], request: Any, keywords: Mapping[str, Any], unstreamable: str
    ) -> tuple[Call, bool]:
        """Return the call, and whether it is a single request instead of a stream."""
        if unstreamable not in ("raise", "single"):
            raise ValueError(f"unstreamable: must be 'raise' or 'single', got {unstreamable!r}")
        options, fields = split_options(keywords)
        found = read_fields(endpoint.request_type, request, fields)
        _check_method(endpoint, found, True)
        single = (
            unstreamable == "single" and single_reason({**found.members, "extra_body": found.extra_body}) is not None
        )
        return self._call(endpoint, found, options, not single), single

    def _call(self, endpoint: Endpoint[Any, Any, Any], fields: RequestFields, options: Options, stream: bool) -> Call:
        body = endpoint.build_body(fields, stream=stream)
        return prepare(self._settings, self._key(), "POST", endpoint.path, options, body, stream=stream)

    def _get(self, path: str, options: Options) -> Call:
        return prepare(self._settings, self._key(), "GET", path, options)

    def _retry(self) -> RetryState:
        return RetryState(self._settings.retries)

    def _kept_timeout(self, call: Call) -> bool:
        """Whether a client of the user's keeps its own timeout: it set one, and we were given none."""
        return self._http is not None and not call.own_timeout and self._http.timeout != httpx.Timeout(5.0)

    def _build(self, call: Call) -> httpx.Request:
        if self._http is None:
            return call.build()
        timeout = self._http.timeout if self._kept_timeout(call) else call.timeout
        return self._http.build_request(
            call.method, call.url, headers=call.headers, content=call.content or None, timeout=timeout
        )

    @staticmethod
    def _decide(retry: RetryState, error: CerebrasError) -> float:
        """Return the seconds to wait before the next request, or raise the error."""
        delay = retry.delay(error)
        if delay is None:
            raise error
        logger.debug("attempt %d failed (%s), next in %.2f s", retry.attempts, type(error).__name__, delay)
        return delay


def _check_method(endpoint: Endpoint[Any, Any, Any], fields: RequestFields, stream: bool) -> None:
    """Refuse a `stream` that the method does not do, rather than to return another kind of answer than asked for."""
    asked = fields.members.get("stream")
    if asked is not None and asked is not stream:
        name = "chat" if issubclass(endpoint.request_type, ChatRequest) else "complete"
        use = name if stream else f"stream_{name}"
        raise RequestValidationError(f"stream: the method decides it; for stream={asked} call {use}")


def log_exchange(call: Call, status: int, started: float) -> None:
    if logger.isEnabledFor(logging.DEBUG):
        seconds = time.monotonic() - started
        logger.debug("%s %s -> %d in %.3f s", call.method, mask_url(str(call.url)), status, seconds)

"""Settings of a client: arguments, then environment, then defaults. Reading them opens nothing."""

from __future__ import annotations

import os
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx
from pydantic import SecretStr

from cerebras_ext.encoding import Payload, check_payload
from cerebras_ext.errors import MissingAPIKeyError
from cerebras_ext.retry import RetryPolicy

DEFAULT_BASE_URL = "https://api.cerebras.ai"
DEFAULT_TIMEOUT = 60.0
CONNECT_TIMEOUT = 5.0
DEFAULT_MAX_RETRIES = 2
DEFAULT_MAX_RETRY_WAIT = 60.0
QUEUE_THRESHOLD_RANGE = (50, 20_000)

KEY_VARIABLE = "CEREBRAS_API_KEY"
URL_VARIABLES = ("CEREBRAS_BASE_URL", "CEREBRAS_API_BASE")

ApiKey = str | SecretStr | Callable[[], str]


def normalize_base_url(url: str) -> str:
    """Return a base URL without `/v1` and without a trailing slash.

    Raises:
        ValueError: Not an http or https URL.
    """
    parts = urllib.parse.urlsplit(url.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"base_url: must be an http or https URL like {DEFAULT_BASE_URL}, got {mask_url(url)!r}")
    path = parts.path.rstrip("/")
    path = path.removesuffix("/v1").rstrip("/")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def mask_url(url: str) -> str:
    """Return a URL without user name and password, for texts and logs."""
    parts = urllib.parse.urlsplit(url)
    if "@" not in parts.netloc:
        return url
    return urllib.parse.urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))


def resolve_base_url(base_url: str | None) -> str:
    """Return the base URL from the argument, else the environment, else the public service."""
    found = base_url or next((os.environ[name] for name in URL_VARIABLES if os.environ.get(name)), DEFAULT_BASE_URL)
    return normalize_base_url(found)


def make_timeout(timeout: float | httpx.Timeout | None) -> httpx.Timeout:
    """Return limits in seconds for connecting, writing, waiting for a connection, and between two pieces of the answer.

    There is no limit on a whole answer, so a long healthy stream is never cut. None means the default: 60 s, 5 s to
    connect.

    Raises:
        ValueError: Not a positive number.
    """
    if isinstance(timeout, httpx.Timeout):
        return timeout
    seconds = DEFAULT_TIMEOUT if timeout is None else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise ValueError(f"timeout: must be a positive number of seconds or an httpx.Timeout, got {timeout!r}")
    return httpx.Timeout(float(seconds), connect=min(float(seconds), CONNECT_TIMEOUT))


def check_queue_threshold(value: int | None) -> None:
    """Refuse a queue threshold outside of 50 to 20000 milliseconds.

    Raises:
        ValueError: Out of range, or not a whole number.
    """
    low, high = QUEUE_THRESHOLD_RANGE
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
        raise ValueError(f"queue_threshold: must be {low} to {high} milliseconds, got {value!r}")


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """What two clients must have in common to share their connections."""

    tls: bool
    proxy: str | None = field(default=None, repr=False)
    verify: bool | str | ssl.SSLContext = True
    http2: bool = False


def resolve_proxy(proxy: str | None, base_url: str) -> str | None:
    """Return the proxy for a base URL: the argument, else HTTP(S)_PROXY and ALL_PROXY unless NO_PROXY excludes it."""
    if proxy is not None:
        return proxy
    parts = urllib.parse.urlsplit(base_url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    found = urllib.request.getproxies()
    chosen = found.get(parts.scheme) or found.get("all")
    if chosen and "://" not in chosen:
        chosen = f"http://{chosen}"
    return chosen


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a client knows. Equal settings make equal clients.

    `api_key` is None where the key is to be read from the environment again (after unpickling elsewhere).
    """

    base_url: str
    timeout: httpx.Timeout
    retries: RetryPolicy
    connection: ConnectionSettings
    default_headers: tuple[tuple[str, str], ...] = ()
    payload: Payload = "json"
    queue_threshold: int | None = None
    stream_idle_timeout: float | None = None
    timeout_is_default: bool = True


def resolve_key(api_key: ApiKey | None) -> tuple[SecretStr, bool]:
    """Return the key and whether it came from the environment.

    Raises:
        MissingAPIKeyError: Neither an argument nor the environment has one.
    """
    value = api_key() if callable(api_key) else api_key
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    from_environment = not value
    if from_environment:
        value = os.environ.get(KEY_VARIABLE, "")
    value = (value or "").strip()
    if not value:
        raise MissingAPIKeyError
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("api_key: has characters that an HTTP header cannot hold; was it copied with something else?")
    return SecretStr(value), from_environment


def resolve_settings(
    *,
    base_url: str | None = None,
    timeout: float | httpx.Timeout | None = None,
    max_retries: int | None = None,
    max_retry_wait: float | None = None,
    default_headers: Mapping[str, str] | None = None,
    proxy: str | None = None,
    verify: bool | str | ssl.SSLContext = True,
    http2: bool = False,
    payload: Payload = "json",
    queue_threshold: int | None = None,
    stream_idle_timeout: float | None = None,
) -> Settings:
    """Check the arguments and fill in environment and defaults; see `cerebras_ext.Client` for their meaning."""
    retries = DEFAULT_MAX_RETRIES if max_retries is None else max_retries
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ValueError(f"max_retries: must be a whole number from 0, got {max_retries!r}")
    if stream_idle_timeout is not None and not stream_idle_timeout > 0:
        raise ValueError(f"stream_idle_timeout: must be a positive number of seconds, got {stream_idle_timeout!r}")
    check_payload(payload)
    check_queue_threshold(queue_threshold)
    url = resolve_base_url(base_url)
    return Settings(
        base_url=url,
        timeout=make_timeout(timeout),
        retries=RetryPolicy(retries, DEFAULT_MAX_RETRY_WAIT if max_retry_wait is None else max_retry_wait),
        connection=ConnectionSettings(url.startswith("https"), resolve_proxy(proxy, url), verify, http2),
        default_headers=tuple((default_headers or {}).items()),
        payload=payload,
        queue_threshold=queue_threshold,
        stream_idle_timeout=stream_idle_timeout,
        timeout_is_default=timeout is None,
    )

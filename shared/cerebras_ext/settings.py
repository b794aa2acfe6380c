"""Settings of a client: arguments, then environment, then defaults. Reading them opens nothing."""

from __future__ import annotations

import os
import re
import ssl
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Literal, TypedDict, Unpack, get_args

import httpx
from pydantic import SecretStr

from cerebras_ext.encoding import Payload, check_payload
from cerebras_ext.errors import MissingAPIKeyError, RequestValidationError, nearest_name
from cerebras_ext.retry import RetryPolicy

Transport = Literal["httpx", "aiohttp", "httptools"]

DEFAULT_BASE_URL = "https://api.cerebras.ai"
DEFAULT_TIMEOUT = 60.0
CONNECT_TIMEOUT = 5.0
DEFAULT_MAX_RETRIES = 2
DEFAULT_MAX_RETRY_WAIT = 60.0
QUEUE_THRESHOLD_RANGE = (50, 20_000)
DEFAULT_TRANSPORT: Transport = "httpx"

KEY_VARIABLE = "CEREBRAS_API_KEY"
URL_VARIABLES = ("CEREBRAS_BASE_URL", "CEREBRAS_API_BASE")

ApiKey = str | SecretStr | Callable[[], str]
HTTPClient = httpx.Client
AsyncHTTPClient = httpx.AsyncClient
Timeout = float | httpx.Timeout
"""These names are for adapters, which see no HTTP library."""


class SettingsOptions(TypedDict, total=False):
    """What a client can be told, by argument. None counts as not given.

    Attributes:
        base_url: With or without `/v1`; default `CEREBRAS_BASE_URL`, `CEREBRAS_API_BASE`, else the public service.
        timeout: Seconds between two pieces of an answer (5 s at most to connect), or an `httpx.Timeout`; 60 s. There is
            no limit on a whole stream.
        max_retries: Repetitions after the first request, from 0; 2.
        max_retry_wait: Longest wait in seconds that is taken from `retry-after`; 60.
        default_headers: Headers of every request.
        proxy: Proxy URL, empty for none; default from HTTP(S)_PROXY and NO_PROXY.
        verify: False, a CA file or folder, or an `ssl.SSLContext`.
        http2: Offer HTTP/2 (extra `http2`; over httpx only).
        payload: Encoding of request bodies: json, msgpack, gzip, msgpack+gzip, or auto (gzip from 4 KiB).
        queue_threshold: Longest average queue time in milliseconds, 50 to 20000, for service tiers flex and auto.
        stream_idle_timeout: Seconds without an event of a stream, comments not counted.
        transport: What carries the calls: httpx; for less CPU time httptools (extra `httptools`; without a proxy), or
            aiohttp (extra `aiohttp`; async calls only).
        coalesce: Join text and reasoning that one read of the network brought; default False. Nothing waits for it.
    """

    base_url: str | None
    timeout: Timeout | None
    max_retries: int | None
    max_retry_wait: float | None
    default_headers: Mapping[str, str] | None
    proxy: str | None
    verify: bool | str | os.PathLike[str] | ssl.SSLContext | None
    http2: bool | None
    payload: Payload | None
    queue_threshold: int | None
    stream_idle_timeout: float | None
    transport: Transport | None
    coalesce: bool | None


def normalize_base_url(url: str, name: str = "base_url") -> str:
    """Return a base URL without `/v1` and without a trailing slash.

    Args:
        url: The URL as it was given.
        name: Name of the setting, for the error.

    Raises:
        ValueError: Not an http or https URL.
    """
    if not isinstance(url, str):
        raise ValueError(f"{name}: must be an http or https URL like {DEFAULT_BASE_URL}, got {url!r}")
    return _normalized(url, name)


@lru_cache(maxsize=256)
def _normalized(url: str, name: str) -> str:
    try:
        url = url.strip()
        parts = urllib.parse.urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known or " " in url or not url.isprintable():
        shown = mask_url(url)
        raise ValueError(f"{name}: must be an http or https URL like {DEFAULT_BASE_URL}, got {shown!r}")
    path = parts.path.rstrip("/")
    path = path.removesuffix("/v1").rstrip("/")
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def mask_url(url: str) -> str:
    """Return a URL without user name and password, for texts and logs."""
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        return "***" if "@" in url else url
    if "@" not in parts.netloc:
        return url
    return urllib.parse.urlunsplit(parts._replace(netloc="***@" + parts.netloc.rpartition("@")[2]))


def resolve_base_url(base_url: str | None) -> str:
    """Return the base URL from the argument, else the environment, else the public service."""
    found = base_url or next((os.environ[name] for name in URL_VARIABLES if os.environ.get(name)), DEFAULT_BASE_URL)
    return normalize_base_url(found)


def make_timeout(timeout: float | httpx.Timeout | Mapping[str, float | None] | None) -> httpx.Timeout:
    """Return limits in seconds for connecting, writing, waiting for a connection, and between two pieces of the answer.

    There is no limit on a whole answer, so a long healthy stream is never cut. None means the default: 60 s, 5 s to
    connect. A mapping is what `httpx.Timeout.as_dict()` returns, which is how dumps hold limits.

    Raises:
        ValueError: Not a positive number.
    """
    if isinstance(timeout, httpx.Timeout):
        return timeout
    if isinstance(timeout, Mapping):
        if timeout.keys() != {"connect", "read", "write", "pool"}:
            raise ValueError(f"timeout: a mapping needs connect, read, write and pool, got {sorted(timeout)}")
        return httpx.Timeout(**timeout)
    seconds = DEFAULT_TIMEOUT if timeout is None else timeout
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds < float("inf"):
        raise ValueError(f"timeout: must be a positive number of seconds or an httpx.Timeout, got {timeout!r}")
    return httpx.Timeout(float(seconds), connect=min(float(seconds), CONNECT_TIMEOUT))


_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")


def check_headers(setting: str, headers: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    """Return headers as pairs. A value that cannot be sent is not told, since it may be a secret.

    Raises:
        RequestValidationError: Not a mapping of text, or a name or value that HTTP has no form for.
    """
    if headers is None:
        return ()
    if not isinstance(headers, Mapping):
        raise RequestValidationError(f"{setting}: must be a mapping of names to values, got {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise RequestValidationError(f"{setting}: names and values must be text, and {name!r} or its value is none")
        if not _HEADER_NAME.fullmatch(name):
            raise RequestValidationError(f"{setting}: {name!r} is no name of a header")
        if not _HEADER_VALUE.fullmatch(value):
            raise RequestValidationError(
                f"{setting}: the value of {name!r} has a line break, a control character, spaces around it or "
                "characters outside of ASCII"
            )
    return tuple(headers.items())


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
    transport: Transport = "httpx"


_PACKAGES = {"aiohttp": "httpx-aiohttp", "httptools": "httptools", "http2": "h2"}
"""What the extras of these names install."""


def check_transport(transport: str, http2: bool) -> None:
    """Refuse an unknown transport, or one that is not installed, before anything is sent.

    Raises:
        ValueError: Not a known one, or HTTP/2 over one that has none.
        ImportError: What it needs is not installed.
    """
    if transport not in get_args(Transport):
        raise ValueError(f"transport: must be one of {', '.join(get_args(Transport))}, got {transport!r}")
    if http2 and transport != "httpx":
        raise ValueError(f"http2: not with transport {transport!r}, which speaks HTTP/1.1 only")
    if transport != "httpx":
        _check_installed(transport, f"transport {transport!r}")
    if http2:
        _check_installed("http2", "http2")


def _check_installed(extra: str, what: str) -> None:
    package = _PACKAGES[extra]
    if find_spec(package.replace("-", "_")) is None:
        raise ImportError(f'{what} needs the package {package}: pip install "cerebras-ext[{extra}]"')


_PROXY_SCHEMES = ("http", "https", "socks5", "socks5h")


def check_verify(verify: bool | str | os.PathLike[str] | ssl.SSLContext | None) -> bool | str | ssl.SSLContext:
    """Return what certificates are checked against: True, False, a path that exists, or a context.

    Raises:
        ValueError: No such file or folder.
    """
    if isinstance(verify, (str, os.PathLike)):
        verify = os.fspath(verify)
        if not os.path.exists(verify):
            raise ValueError(f"verify: no such file or folder, got {verify!r}")
    return True if verify is None else verify


def _is_proxy(url: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(url)
        return parts.scheme in _PROXY_SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def resolve_proxy(proxy: str | None, base_url: str) -> str | None:
    """Return the proxy for a base URL: the argument, else HTTP(S)_PROXY and ALL_PROXY unless NO_PROXY excludes it.

    Raises:
        ValueError: No proxy URL.
    """
    if proxy is not None:
        if not isinstance(proxy, str):
            raise ValueError(f"proxy: must be a URL as text, got {type(proxy).__name__}")
        if proxy and not _is_proxy(proxy):
            raise ValueError(f"proxy: must be a URL with http, https or socks5, got {mask_url(proxy)!r}")
        return proxy or None
    parts = urllib.parse.urlsplit(base_url)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    found = urllib.request.getproxies()
    chosen = found.get(parts.scheme) or found.get("all")
    if chosen and "://" not in chosen:
        chosen = f"http://{chosen}"
    if chosen and not _is_proxy(chosen):
        raise ValueError(
            f"proxy: the environment's {mask_url(chosen)!r} is no URL with http, https or socks5; proxy='' takes none"
        )
    return chosen


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything a client knows. Equal settings make equal clients.

    `api_key` is None where the key is to be read from the environment again (after unpickling elsewhere).
    """

    base_url: str = field(repr=False)
    timeout: httpx.Timeout
    retries: RetryPolicy
    connection: ConnectionSettings
    default_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    payload: Payload = "json"
    queue_threshold: int | None = None
    stream_idle_timeout: float | None = None
    timeout_is_default: bool = True
    coalesce: bool = False


def resolve_key(api_key: ApiKey | None) -> tuple[SecretStr, bool]:
    """Return the key and whether it came from the environment.

    Raises:
        MissingAPIKeyError: Neither an argument nor the environment has one.
    """
    value = api_key() if callable(api_key) else api_key
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if value is not None and not isinstance(value, str):
        raise ValueError(f"api_key: must be text, got {type(value).__name__}")
    from_environment = not value
    if from_environment:
        value = os.environ.get(KEY_VARIABLE, "")
    value = (value or "").strip()
    if not value:
        raise MissingAPIKeyError
    if not value.isascii() or not value.isprintable() or " " in value:
        del api_key, value  # a traceback with local variables would show them
        raise ValueError("api_key: has characters that an HTTP header cannot hold; was it copied with something else?")
    return SecretStr(value), from_environment


def hide_keys(options: dict[str, Any], names: Iterable[str]) -> None:
    """Put keys that are plain text into `SecretStr`, in place: error trackers show the local variables of all frames.

    Args:
        options: Arguments of a constructor.
        names: Which of them may be a key.
    """
    for name in names:
        if isinstance(options.get(name), str):
            options[name] = SecretStr(options[name])


def resolve_settings(**given: Unpack[SettingsOptions]) -> Settings:
    """Check the arguments and fill in environment and defaults; see `SettingsOptions` for their meaning.

    Raises:
        TypeError: An argument is unknown.
        ValueError: A setting is out of range.
    """
    _check_names(given)
    payload: Payload = given.get("payload") or "json"
    check_payload(payload)
    check_queue_threshold(given.get("queue_threshold"))
    http2, transport = bool(given.get("http2")), given.get("transport") or DEFAULT_TRANSPORT
    check_transport(transport, http2)
    url = resolve_base_url(given.get("base_url"))
    return Settings(
        base_url=url,
        timeout=make_timeout(given.get("timeout")),
        retries=_retry_policy(given.get("max_retries"), given.get("max_retry_wait")),
        connection=ConnectionSettings(
            url.startswith("https"),
            resolve_proxy(given.get("proxy"), url),
            check_verify(given.get("verify")),
            http2,
            transport,
        ),
        default_headers=check_headers("default_headers", given.get("default_headers")),
        payload=payload,
        queue_threshold=given.get("queue_threshold"),
        stream_idle_timeout=_positive("stream_idle_timeout", given.get("stream_idle_timeout")),
        timeout_is_default=given.get("timeout") is None,
        coalesce=bool(given.get("coalesce")),
    )


def _check_names(given: Mapping[str, object]) -> None:
    for name in given.keys() - SettingsOptions.__annotations__.keys():
        near = nearest_name(name, SettingsOptions.__annotations__)
        raise TypeError(f"unknown setting {name!r}" + (f"; did you mean {near!r}?" if near else ""))


def _retry_policy(max_retries: int | None, max_retry_wait: float | None) -> RetryPolicy:
    retries = DEFAULT_MAX_RETRIES if max_retries is None else max_retries
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise ValueError(f"max_retries: must be a whole number from 0, got {max_retries!r}")
    wait = DEFAULT_MAX_RETRY_WAIT if max_retry_wait is None else max_retry_wait
    if isinstance(wait, bool) or not isinstance(wait, (int, float)) or not wait >= 0:
        raise ValueError(f"max_retry_wait: must be a number of seconds from 0, got {max_retry_wait!r}")
    return RetryPolicy(retries, wait)


def _positive(name: str, value: float | None) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ValueError(f"{name}: must be a positive number of seconds, got {value!r}")
    return value

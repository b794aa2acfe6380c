"""Settings as plain JSON values without secrets: for what is shown, stored and compared."""

from __future__ import annotations

import re
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Any

import httpx

from cerebras_ext.settings import Timeout

_SECRET_HEADER = re.compile("auth|key|token|secret|cookie|password|credential", re.IGNORECASE)


def plain_url(url: str | None) -> str | None:
    """Return a URL without user name and password."""
    if url is None or "@" not in url:
        return url
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def plain_headers(headers: Mapping[str, str] | None) -> dict[str, str] | None:
    """Return the headers without those whose name says that they hold a secret."""
    if headers is None:
        return None
    return {name: value for name, value in headers.items() if not _SECRET_HEADER.search(name)}


def plain_verify(verify: bool | str | ssl.SSLContext | None) -> bool | str:
    """Return the setting, or the default (the strictest value) for a context, which has no plain form."""
    return verify if isinstance(verify, (bool, str)) else True


def plain_timeout(timeout: Timeout | None) -> Any:
    """Return a number of seconds as it is, and an `httpx.Timeout` as the mapping of its four limits."""
    return timeout.as_dict() if isinstance(timeout, httpx.Timeout) else timeout


def read_timeout(value: Any) -> Any:
    """Return what `plain_timeout` was given; anything but a mapping passes through."""
    return httpx.Timeout(**value) if isinstance(value, Mapping) else value

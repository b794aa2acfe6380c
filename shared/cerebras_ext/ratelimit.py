"""What response headers say: rate limits, request ids, and which headers are safe to keep."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

Resource = Literal["requests", "tokens"]
Window = Literal["minute", "hour", "day"]

_NAME = re.compile(r"x-ratelimit-(limit|remaining|reset)-(requests|tokens)-(minute|hour|day)")
_SECRET_NAMES = frozenset(
    {"set-cookie", "set-cookie2", "cookie", "authorization", "proxy-authorization", "proxy-authenticate",
     "www-authenticate", "x-api-key", "api-key"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RateLimit:
    """One quota: how much is allowed in a window, how much is left, and when it is full again.

    The service's token counters lag behind the real use.
    """

    resource: Resource
    window: Window
    limit: int | None = None
    remaining: int | None = None
    reset: float | None = None
    """Seconds until the quota is full again."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """All quotas that a response told. Empty where it told none (errors often do not)."""

    quotas: tuple[RateLimit, ...] = ()

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> RateLimits:
        """Read the `x-ratelimit-*` headers; names in any case, values that are no numbers are left out."""
        found: dict[tuple[Resource, Window], dict[str, float]] = {}
        for name, value in headers.items():
            match = _NAME.fullmatch(name.lower())
            if match is None:
                continue
            number = parse_number(value)
            if number is None:
                continue
            key = cast("tuple[Resource, Window]", (match[2], match[3]))
            found.setdefault(key, {})[match[1]] = number
        return cls(tuple(_quota(key, values) for key, values in found.items()))

    def get(self, resource: Resource, window: Window) -> RateLimit | None:
        """Return one quota, or None where the response did not tell it."""
        return next((quota for quota in self.quotas if (quota.resource, quota.window) == (resource, window)), None)

    def __bool__(self) -> bool:
        return bool(self.quotas)


def parse_number(value: str | None) -> float | None:
    """Return a header's number, or None where it is none, or not finite."""
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and math.isfinite(number) else None


def _quota(key: tuple[Resource, Window], values: Mapping[str, float]) -> RateLimit:
    limit, remaining = values.get("limit"), values.get("remaining")
    return RateLimit(
        resource=key[0],
        window=key[1],
        limit=None if limit is None else int(limit),
        remaining=None if remaining is None else int(remaining),
        reset=values.get("reset"),
    )


SHORTEST_SECRET = 8
"""Shorter keys (of tests and local servers) are not looked for in texts: they would match by chance."""


def findable(secret: str | None) -> str | None:
    """Return a key that is long enough to be looked for in texts, else None."""
    return secret if secret and len(secret) >= SHORTEST_SECRET else None


def safe_headers(items: Iterable[tuple[str, str]], secret: str | None = None) -> dict[str, str]:
    """Return headers that hold no cookie and no credential, names in lower case.

    Args:
        items: Header names and values.
        secret: The API key; a header whose value contains it is left out too.
    """
    secret = findable(secret)
    return {
        lower: value
        for name, value in items
        if (lower := name.lower()) not in _SECRET_NAMES and not (secret and secret in value)
    }


@dataclass(frozen=True, slots=True)
class ResponseInfo:
    """What the HTTP response said beside its body."""

    status_code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    """Safe headers, names in lower case."""

    @property
    def request_id(self) -> str | None:
        """Id to quote to the vendor: `x-request-id`, else `cf-ray`."""
        return self.headers.get("x-request-id") or self.headers.get("cf-ray")

    @property
    def inference_id(self) -> str | None:
        """Id of the answer, equal to its `id`."""
        return self.headers.get("inference-id")

    @property
    def rate_limits(self) -> RateLimits:
        """Quotas that the response told."""
        return RateLimits.from_headers(self.headers)

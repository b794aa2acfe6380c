"""Rate-limit headers and ids on answers and errors, and which headers are kept."""

from __future__ import annotations

from typing import Any

import pytest

from cerebras_ext import RateLimit, RateLimits, ResponseInfo
from cerebras_ext.errors import RateLimitError
from cerebras_ext.ratelimit import safe_headers
from tests.support import KEY, WAYS, Answer, Server, Way

HEADERS = {
    "x-request-id": "req",
    "inference-id": "chatcmpl-1",
    "X-RateLimit-Limit-Requests-Day": "14400",
    "x-ratelimit-remaining-requests-day": "41",
    "x-ratelimit-reset-requests-day": "24481.88",
    "x-ratelimit-remaining-tokens-minute": "5000",
    "x-ratelimit-limit-tokens-hour": "many",
    "x-ratelimit-limit-apples-minute": "1",
}
QUOTAS = (
    RateLimit("requests", "day", 14400, 41, 24481.88),
    RateLimit("tokens", "minute", None, 5000, None),
)


def test_headers_become_quotas_whatever_their_case() -> None:
    limits = RateLimits.from_headers(HEADERS)
    assert limits.quotas == QUOTAS
    assert limits.get("requests", "day") == QUOTAS[0]
    assert limits.get("tokens", "day") is None
    assert limits
    assert not RateLimits.from_headers({})


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "", "1,2", "1e999"])
def test_values_that_are_no_numbers_are_left_out(value: str) -> None:
    assert RateLimits.from_headers({"x-ratelimit-limit-requests-day": value}).quotas == ()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_way_of_asking_tells_ids_and_quotas(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer(headers={**HEADERS, "set-cookie": "__cf_bm=1", "x-odd": f"Bearer {KEY}"})]
    info = way.ask(options).response.info
    assert (info.request_id, info.inference_id, info.rate_limits.quotas) == ("req", "chatcmpl-1", QUOTAS)
    assert info.headers["x-ratelimit-remaining-requests-day"] == "41"
    assert not {"set-cookie", "x-odd"} & info.headers.keys()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_429_tells_which_quota_and_when_to_come_back(server: Server, options: dict[str, Any], way: Way) -> None:
    body = b'{"message":"Requests per minute limit exceeded","type":"too_many_requests_error","param":"quota","code":"request_quota_exceeded"}'  # noqa: E501
    server.script = [Answer((body,), 429, {**HEADERS, "retry-after": "2"})]
    with pytest.raises(RateLimitError) as caught:
        way.ask({**options, "max_retries": 0})
    error = caught.value
    assert (error.status_code, error.code, error.type, error.param, error.message, error.retry_after) == (
        429,
        "request_quota_exceeded",
        "too_many_requests_error",
        "quota",
        "Requests per minute limit exceeded",
        2.0,
    )
    assert (error.request_id, error.rate_limits.quotas) == ("req", QUOTAS)


def test_the_edge_id_stands_in_for_a_request_id() -> None:
    assert ResponseInfo(headers={"cf-ray": "ray"}).request_id == "ray"
    assert ResponseInfo().request_id is None


@pytest.mark.parametrize(
    "name",
    ["Set-Cookie", "set-cookie2", "Cookie", "Authorization", "Proxy-Authorization", "WWW-Authenticate", "X-API-Key"],
)
def test_headers_with_secrets_are_never_kept(name: str) -> None:
    assert safe_headers([(name, "x"), ("Fine", "y"), ("quoted", f"a {KEY} b")], KEY) == {"fine": "y"}

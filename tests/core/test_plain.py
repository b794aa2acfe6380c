"""Settings as plain values: no secret in them, and read again as they were."""

from __future__ import annotations

import json
import ssl
from typing import Any

import httpx
import pytest

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.plain import plain_headers, plain_timeout, plain_url, plain_verify, read_timeout
from cerebras_ext.types import ChatRequest, CompletionRequest


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        (None, None),
        ("https://host:1/v1?a=b", "https://host:1/v1?a=b"),
        ("http://user:secret@host:1/v1", "http://host:1/v1"),
        ("http://token@host", "http://host"),
        ("http://user:p@ss@[::1]:3/x", "http://[::1]:3/x"),
    ],
)
def test_urls_lose_user_and_password(url: str | None, plain: str | None) -> None:
    assert plain_url(url) == plain


def test_headers_whose_name_says_secret_are_left_out() -> None:
    secret = ["Authorization", "X-API-Key", "cookie", "Proxy-Authorization", "x-auth-token", "X-Client-Secret"]
    given = {**dict.fromkeys(secret, "s"), "user-agent": "me", "X-Trace": "1"}
    assert plain_headers(given) == {"user-agent": "me", "X-Trace": "1"}
    assert plain_headers(None) is None
    assert len(given) == len(secret) + 2


@pytest.mark.parametrize("verify", [True, False, "/ca.pem"])
def test_plain_tls_settings_stay(verify: Any) -> None:
    assert plain_verify(verify) == verify


def test_a_tls_context_becomes_the_strictest_setting() -> None:
    assert plain_verify(ssl.create_default_context()) is True
    assert plain_verify(None) is True


@pytest.mark.parametrize("timeout", [None, 3, 2.5, httpx.Timeout(9, connect=1), httpx.Timeout(None)])
def test_timeouts_are_plain_json_and_read_again(timeout: Any) -> None:
    assert read_timeout(json.loads(json.dumps(plain_timeout(timeout)))) == timeout


@pytest.mark.parametrize("request_type", [ChatRequest, CompletionRequest])
def test_fields_of_an_unfinished_request_can_be_checked(request_type: Any) -> None:
    request_type.check_fields({"temperature": 0.5, "stop": ["a"]})
    with pytest.raises(RequestValidationError, match=r"temperature: .*less than or equal to 2 \(got 3\)"):
        request_type.check_fields({"temperature": 3})
    with pytest.raises(RequestValidationError, match="seeed: unknown field; did you mean 'seed'"):
        request_type.check_fields({"seeed": 1})

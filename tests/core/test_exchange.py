"""The HTTP request of a call is the one that httpx makes of the same content."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from cerebras_ext.exchange import Options, prepare
from cerebras_ext.settings import resolve_settings


@pytest.mark.parametrize("base_url", ["http://h:80", "https://user:pass@example.com:8443/x", "http://[::1]:8000"])
@pytest.mark.parametrize(
    "extra",
    [None, {"host": "other"}, {"Content-Length": "7"}, {"X-Own": "a"}],
    ids=["no-headers", "own-host", "own-length", "own-header"],
)
@pytest.mark.parametrize("body", [None, {"model": "m", "text": "\u00e4" * 100}], ids=["get", "post"])
def test_a_request_is_what_httpx_makes_of_it(base_url: str, extra: Any, body: dict[str, Any] | None) -> None:
    settings = resolve_settings(base_url=base_url)
    method = "GET" if body is None else "POST"
    call = prepare(settings, SecretStr("csk-test"), method, "/v1/x", Options(extra_headers=extra), body)

    made = call.build()

    wanted = httpx.Request(method, call.url, headers=call.headers, content=call.content or None)
    assert (made.method, made.url, made.content) == (wanted.method, wanted.url, wanted.content)
    assert made.headers.raw == wanted.headers.raw
    assert made.extensions == {"timeout": call.timeout.as_dict()}
    assert b"".join(made.stream) == call.content  # type: ignore[arg-type]

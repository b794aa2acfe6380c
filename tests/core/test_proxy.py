"""Proxies from arguments and the environment, own HTTP clients, CA files; no password shown."""

from __future__ import annotations

import asyncio
import pathlib
from typing import Any

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.connections import _make_async, _make_sync
from cerebras_ext.errors import APIConnectionError
from cerebras_ext.settings import resolve_proxy, resolve_settings
from tests.support import KEY, WAYS, Server, Way

NAMES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def no_proxy_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("source", ["argument", "http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_requests_go_through_the_proxy(server: Server, monkeypatch: pytest.MonkeyPatch, way: Way, source: str) -> None:
    options: dict[str, Any] = {"api_key": KEY, "base_url": "http://service.invalid"}
    if source == "argument":
        options["proxy"] = server.url
    else:
        monkeypatch.setenv(source, server.url)
    server.script = [way.answer()]
    assert way.ask(options).response.text == "ok"
    assert server.requests[0].path == f"http://service.invalid{way.path}"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_no_proxy_is_honoured(server: Server, monkeypatch: pytest.MonkeyPatch, way: Way) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "other.host,127.0.0.1")
    server.script = [way.answer()]
    assert way.ask({"api_key": KEY, "base_url": server.url}).response.text == "ok"


@pytest.mark.parametrize(
    ("environment", "url", "expected"),
    [
        ({}, "https://h", None),
        ({"https_proxy": "http://p:1"}, "https://h", "http://p:1"),
        ({"https_proxy": "http://p:1"}, "http://h", None),
        ({"all_proxy": "http://p:1"}, "https://h", "http://p:1"),
        ({"https_proxy": "p:1"}, "https://h", "http://p:1"),
        ({"https_proxy": "http://p:1", "no_proxy": "*"}, "https://h", None),
        ({"https_proxy": "http://p:1", "no_proxy": ".x.org"}, "https://a.x.org", None),
        ({"https_proxy": "http://p:1", "no_proxy": "h:8443"}, "https://h:8443", None),
        ({"https_proxy": "http://p:1", "no_proxy": "u"}, "https://u@h", "http://p:1"),
    ],
)
def test_which_proxy_the_environment_means(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], url: str, expected: str | None
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert resolve_proxy(None, url) == expected
    assert resolve_proxy("http://arg:2", url) == "http://arg:2"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_the_password_of_a_proxy_is_never_shown(way: Way) -> None:
    proxy = "http://user:pa55w0rd@127.0.0.1:9"
    options = {"api_key": KEY, "base_url": "http://service.invalid", "proxy": proxy, "max_retries": 0}
    with pytest.raises(APIConnectionError) as caught:
        way.ask(options)
    client = Client(**options)  # type: ignore[arg-type]
    for text in (str(caught.value), repr(caught.value.__cause__), repr(client), repr(resolve_settings(proxy=proxy))):
        assert "pa55w0rd" not in text


def handler(request: httpx.Request) -> httpx.Response:
    choices = [{"index": 0, "finish_reason": "stop", "message": {"content": request.headers["authorization"]}}]
    return httpx.Response(200, json={"choices": choices})


MESSAGES = [{"role": "user", "content": "q"}]


def test_a_client_of_the_users_is_used_and_never_closed() -> None:
    with httpx.Client(transport=httpx.MockTransport(handler), headers={"x-own": "1"}) as http:
        with Client(api_key=KEY, http_client=http) as client:
            assert client.chat(model="m", messages=MESSAGES).text == f"Bearer {KEY}"
        assert not http.is_closed
        assert Client(api_key="other", http_client=http).chat(model="m", messages=MESSAGES).text == "Bearer other"


async def test_an_async_client_of_the_users_is_used_and_never_closed() -> None:
    async with httpx.AsyncClient(transport=httpx.MockTransport(handler)) as http:
        async with AsyncClient(api_key=KEY, http_async_client=http) as client:
            assert (await client.chat(model="m", messages=MESSAGES)).text == f"Bearer {KEY}"
        assert not http.is_closed


@pytest.mark.parametrize(
    ("own", "options", "expected"),
    [
        (None, {}, {"connect": 5.0, "read": 60.0, "write": 60.0, "pool": 60.0}),
        (None, {"timeout": 9}, {"connect": 5.0, "read": 9.0, "write": 9.0, "pool": 9.0}),
        (httpx.Timeout(7), {}, {"connect": 7, "read": 7, "write": 7, "pool": 7}),
        (httpx.Timeout(7), {"timeout": 9}, {"connect": 5.0, "read": 9.0, "write": 9.0, "pool": 9.0}),
    ],
)
def test_whose_timeout_holds_with_a_client_of_the_users(
    own: httpx.Timeout | None, options: dict[str, Any], expected: dict[str, float]
) -> None:
    seen: list[Any] = []

    def note(request: httpx.Request) -> httpx.Response:
        seen.append(request.extensions["timeout"])
        return handler(request)

    given: dict[str, Any] = {} if own is None else {"timeout": own}
    with httpx.Client(transport=httpx.MockTransport(note), **given) as http:
        Client(api_key=KEY, http_client=http, **options).chat(model="m", messages=MESSAGES)
    assert seen == [expected]


def test_streams_work_over_a_client_of_the_users(server: Server) -> None:
    way = next(way for way in WAYS if way.stream and not way.is_async)
    server.script = [way.answer()]
    with httpx.Client(limits=httpx.Limits(max_connections=1)) as http:
        client = Client(api_key=KEY, base_url=server.url, http_client=http)
        for _ in range(3):
            assert way.ask_sync(client, way.fields).response.text == "ok"
    assert server.connections == 1

    async def main() -> None:
        async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1)) as http:
            client = AsyncClient(api_key=KEY, base_url=server.url, http_async_client=http)
            for _ in range(3):
                assert (await way.ask_async(client, way.fields)).response.text == "ok"

    asyncio.run(main())
    assert server.connections == 2


@pytest.mark.parametrize("make", [Client, AsyncClient])
def test_a_ca_file_that_is_missing_is_named_when_the_client_is_made(make: type[Client], tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"verify: no such file or folder, got '/no/such/ca\.pem'"):
        make(api_key=KEY, verify="/no/such/ca.pem")
    assert make(api_key=KEY, verify=tmp_path) is not None


@pytest.mark.parametrize("bad", ["proxy:3128", "ftp://user:pa55w0rd@h", "x"])
def test_a_proxy_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="proxy: must be a URL with http, https or socks5") as caught:
        Client(api_key=KEY, proxy=bad)
    assert "pa55w0rd" not in str(caught.value)


def test_an_empty_proxy_is_none_at_all(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server.script = [WAYS[0].answer()]
    assert WAYS[0].ask({"api_key": KEY, "base_url": server.url, "proxy": ""}).response.text == "ok"


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("target", ["http", "https"])
async def test_transports_are_made_for_every_kind_of_proxy(scheme: str, target: str) -> None:
    settings = resolve_settings(base_url=f"{target}://h", proxy=f"{scheme}://p:1").connection
    _make_sync(settings).close()
    await _make_async(settings).aclose()

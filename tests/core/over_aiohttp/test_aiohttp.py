"""What is special about aiohttp as a transport: its errors, its limits, its end."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client, errors
from tests.core.test_lifecycle import EXIT
from tests.support import KEY, MESSAGES, WAYS, Answer, Server, raw_server

httpx = pytest.importorskip("httpx")
aiohttp = pytest.importorskip("aiohttp")
pytest.importorskip("httpx_aiohttp")

from cerebras_ext.aiohttp_transport import AiohttpTransport, _reraise, httpx_error  # noqa: E402
from cerebras_ext.connections import registry  # noqa: E402

CHAT = next(way for way in WAYS if way.is_async and not way.stream and way.endpoint == "chat")


def test_async_calls_go_over_aiohttp(server: Server, options: dict[str, Any]) -> None:
    server.script = [CHAT.answer()]

    async def kinds() -> set[type]:
        client = AsyncClient(**options)
        await client.chat(model="m", messages=MESSAGES)
        shared = await registry.async_transport(client._settings.connection, client)
        return {type(shard.transport) for shard in shared._shards._all}

    assert asyncio.run(kinds()) == {AiohttpTransport}


@pytest.mark.parametrize(
    "answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}", b"HTTP/1.1 2x0 OK\r\n\r\n"]
)
def test_answer_that_is_no_http_is_a_connection_error(answer: bytes) -> None:
    async def ask(url: str) -> None:
        await AsyncClient(api_key=KEY, base_url=url, max_retries=0).chat(model="m", messages=MESSAGES)

    with raw_server(answer, answer) as url:
        with pytest.raises(errors.APIConnectionError):
            asyncio.run(ask(url))
        with pytest.raises(errors.APIConnectionError):
            Client(api_key=KEY, base_url=url, max_retries=0).chat(model="m", messages=MESSAGES)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (aiohttp.ServerDisconnectedError(), httpx.RemoteProtocolError),
        (aiohttp.ClientPayloadError("short"), httpx.RemoteProtocolError),
        (aiohttp.ClientOSError("reset"), httpx.ReadError),
        (aiohttp.SocketTimeoutError(), httpx.ReadTimeout),
        (aiohttp.ConnectionTimeoutError(), httpx.ConnectTimeout),
        (aiohttp.InvalidURL("x"), httpx.UnsupportedProtocol),
        (TimeoutError(), httpx.ReadTimeout),
        (BrokenPipeError(), httpx.ReadError),
    ],
)
def test_errors_become_those_of_httpx(error: Exception, kind: type[Exception]) -> None:
    assert type(httpx_error(error)) is kind
    wrapped = httpx.ConnectTimeout("what httpx-aiohttp made of it")
    wrapped.__cause__ = error
    assert type(httpx_error(wrapped)) is kind


def test_other_errors_are_left_alone() -> None:
    own = httpx.ReadError("x")
    assert httpx_error(own) is own
    assert httpx_error(ValueError("x")) is None


def test_errors_that_refer_to_each_other_are_told_like_others() -> None:
    one, other = aiohttp.ServerDisconnectedError(), ValueError("x")
    one.__context__, other.__cause__ = other, one
    with pytest.raises(httpx.RemoteProtocolError):
        _reraise(one)
    assert one.__traceback__ is None


def test_cookies_are_not_kept(server: Server, options: dict[str, Any]) -> None:
    server.script = [Answer(CHAT.answer().pieces, headers={"set-cookie": "a=b; Path=/"})]

    async def ask() -> None:
        client = AsyncClient(**options)
        for _ in range(2):
            await client.chat(model="m", messages=MESSAGES)

    asyncio.run(ask())
    assert ["cookie" in request.headers for request in server.requests] == [False, False]


@pytest.mark.parametrize("kind", ["plain", "open-loop", "abandoned"])
def test_a_program_ends_in_silence_over_aiohttp(server: Server, kind: str) -> None:
    streamed = next(way for way in WAYS if way.stream and way.endpoint == "chat")
    server.script = [streamed.answer() if kind == "abandoned" else CHAT.answer()]
    code = EXIT.replace('AsyncClient(api_key="k"', 'AsyncClient(transport="aiohttp", api_key="k"')
    assert code != EXIT
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code, server.url, kind],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", "", 0)


def test_loop_that_is_closed_without_a_shutdown_leaves_no_warning(server: Server, options: dict[str, Any]) -> None:
    server.script = [CHAT.answer()]

    async def ask() -> None:
        await AsyncClient(**options).chat(model="m", messages=MESSAGES)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(ask())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.close()
    asyncio.run(ask())
    assert loop not in registry._loops


def test_http2_and_an_unknown_transport_are_refused() -> None:
    with pytest.raises(ValueError, match="http2: not with transport 'aiohttp'"):
        AsyncClient(api_key=KEY, http2=True, transport="aiohttp")
    with pytest.raises(ValueError, match="transport: must be one of httpx, aiohttp, httptools, got 'curl'"):
        AsyncClient(api_key=KEY, transport="curl")  # type: ignore[arg-type]


def test_missing_package_is_named_at_construction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cerebras_ext.settings.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "cerebras-ext\[aiohttp\]"'):
        AsyncClient(api_key=KEY, transport="aiohttp")

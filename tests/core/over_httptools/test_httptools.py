"""What is special about httptools as a transport: answers in any shape and cut, and when a connection is used again."""

from __future__ import annotations

import asyncio
import ssl
import threading
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client, errors
from tests.support import KEY, MESSAGES, STREAMS, WAYS, WHOLE, Answer, Server, Wait, Way, raw_server

httpx = pytest.importorskip("httpx")
pytest.importorskip("httptools")

from cerebras_ext.connections import registry  # noqa: E402
from cerebras_ext.httptools_transport import (  # noqa: E402
    HEAD_BYTES,
    AsyncHttptoolsTransport,
    HttptoolsTransport,
    _Answer,
    _message,
)

CHAT = next(way for way in WAYS if not way.is_async and not way.stream and way.endpoint == "chat")
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"
BODIES = {
    "length": HEAD + b"Content-Length: 10\r\n\r\nhelloworld",
    "chunked": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n",
    "trailers": HEAD + b"Transfer-Encoding: chunked\r\n\r\na;x=y\r\nhelloworld\r\n0\r\nX-Late: 1\r\n\r\n",
    "informational": b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n"
    + HEAD
    + b"Content-Length: 10\r\n\r\nhelloworld",
}


def read(raw: bytes, step: int) -> tuple[_Answer, bytes]:
    answer, body = _Answer(), b""
    for start in range(0, len(raw), step):
        answer.feed(raw[start : start + step])
        body += answer.take()
    return answer, body


@pytest.mark.parametrize("raw", BODIES.values(), ids=list(BODIES))
def test_an_answer_is_the_same_however_it_is_cut(raw: bytes) -> None:
    for step in range(1, len(raw) + 1):
        answer, body = read(raw, step)
        assert (answer.status, answer.reason, body) == (200, b"OK", b"helloworld")
        assert answer.complete
        assert answer.reusable
        names = [name for name, _ in answer.headers]
        assert names[0] == b"content-type"
        assert len(names) == 2
        assert answer.http_version == b"HTTP/1.1"


@pytest.mark.parametrize(
    ("raw", "complete"),
    [
        (HEAD + b"\r\nhello", True),
        (HEAD + b"connection: close\r\n\r\nhello", True),
        (HEAD + b"content-length: 9\r\n\r\nhello", False),
        (HEAD + b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", False),
        (b"", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n", False),
        (HEAD, False),
    ],
)
def test_the_end_of_the_connection_ends_only_a_body_without_a_length(raw: bytes, complete: bool) -> None:
    answer = read(raw, 7)[0]
    if complete:
        answer.feed(b"")
        assert answer.complete
    else:
        with pytest.raises(httpx.RemoteProtocolError):
            answer.feed(b"")
    assert not answer.reusable


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        HEAD + b"content-length: 5\r\ncontent-length: 6\r\n\r\n",
        HEAD + b"content-length: x\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
        HEAD + b"x: " + b"y" * HEAD_BYTES + b"\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * (HEAD_BYTES // 20),
        b"\x16\x03\x01\x02\x00",
        HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * (HEAD_BYTES // 5),
        HEAD + b"transfer-encoding: chunked\r\n\r\n1;" + b"x" * 2 * HEAD_BYTES,
    ],
)
def test_what_is_no_answer_is_a_protocol_error(raw: bytes) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        read(raw, 4096)


@pytest.mark.parametrize("extra", [b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b"garbage", b"\0"])
def test_bytes_after_an_answer_end_its_connection_and_nothing_else(extra: bytes) -> None:
    answer, body = read(BODIES["length"] + extra, 4096)
    assert (answer.status, body, answer.complete, answer.reusable) == (200, b"helloworld", True, False)


@pytest.mark.parametrize(
    ("raw", "reusable"),
    [
        (HEAD + b"content-length: 0\r\n\r\n", True),
        (HEAD + b"content-length: 0\r\nconnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 0\r\n\r\n", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", True),
        (HEAD + b"content-length: 0\r\nconnection: Upgrade\r\nupgrade: h2c\r\n\r\n", True),
    ],
)
def test_which_connections_can_be_used_again(raw: bytes, reusable: bool) -> None:
    answer = read(raw, 4096)[0]
    assert (answer.complete, answer.reusable) == (True, reusable)


@pytest.mark.parametrize("said", ["close", "foo, Close"])
def test_a_request_that_is_the_last_of_its_connection_closes_it(server: Server, said: str) -> None:
    server.script = [Answer((b"{}",))]
    transport = HttptoolsTransport(ssl.create_default_context(), 30)
    request = httpx.Request("POST", server.url, headers={"Connection": said}, content=b"{}")
    for count in (1, 2):
        response = transport.handle_request(request)
        response.read()
        response.close()
        assert server.connections == count


def test_a_header_with_spaces_behind_its_value_means_the_same() -> None:
    raw = HEAD + b"X-A: \t b \t \r\nTransfer-Encoding: chunked \r\n\r\n5\r\nhello\r\n"
    answer, body = read(raw, 4096)
    assert dict(answer.headers)[b"X-A"] == b"b"
    assert body == b"hello"
    with pytest.raises(httpx.RemoteProtocolError):
        answer.feed(b"")


@pytest.mark.parametrize("header", [("Content-Length", "1"), ("content-length", "3"), ("Transfer-Encoding", "chunked")])
def test_a_header_cannot_tell_of_another_body(header: tuple[str, str]) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        _message(httpx.Request("POST", "http://h/v1", headers=[header], content=b"{}"))


@pytest.mark.parametrize("header", [("x", "a\r\nb: c"), ("x", "a\nb"), ("x\r\n", "a"), ("x", "a\0b"), ("x", "a\rb")])
def test_a_header_cannot_break_a_request_apart(header: tuple[str, str]) -> None:
    with pytest.raises(httpx.LocalProtocolError):
        _message(httpx.Request("POST", "http://h/v1", headers=[header], content=b"{}"))


def test_a_request_is_what_it_says() -> None:
    request = httpx.Request("POST", "http://user:word@h:81/v1?a=b", headers=[("X-A", "1")], content=b"{}")
    head, _, body = _message(request).partition(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v1?a=b HTTP/1.1"
    assert set(head.split(b"\r\n")[1:]) == {b"Host: h:81", b"X-A: 1", b"Content-Length: 2"}
    assert body == b"{}"
    with pytest.raises(httpx.UnsupportedProtocol):
        _message(httpx.Request("GET", "ftp://h/"))


def test_calls_go_over_httptools(server: Server, options: dict[str, Any]) -> None:
    server.script = [CHAT.answer()]
    client = Client(**options)
    client.chat(model="m", messages=MESSAGES)
    shared = registry.sync_transport(client._settings.connection, client)
    assert {type(shard.transport) for shard in shared._shards._all} == {HttptoolsTransport}

    async def kinds() -> set[type]:
        client = AsyncClient(**options)
        await client.chat(model="m", messages=MESSAGES)
        shared = await registry.async_transport(client._settings.connection, client)
        return {type(shard.transport) for shard in shared._shards._all}

    assert asyncio.run(kinds()) == {AsyncHttptoolsTransport}


@pytest.mark.parametrize("way", WHOLE, ids=str)
@pytest.mark.parametrize(
    "raw", [b"", b"garbage\r\n\r\n", HEAD + b"content-length: 50\r\n\r\n{}", b"HTTP/1.1 2x0 OK\r\n\r\n"]
)
def test_answer_that_is_no_http_is_a_connection_error(way: Way, raw: bytes) -> None:
    with raw_server(raw) as url, pytest.raises(errors.APIConnectionError):
        way.ask({"api_key": KEY, "base_url": url, "max_retries": 0})


@pytest.mark.parametrize("way", WHOLE, ids=str)
def test_a_connection_that_the_server_closed_is_not_used_again(way: Way) -> None:
    body = b"".join(piece for piece in way.answer().pieces if isinstance(piece, bytes))
    answer = HEAD + b"content-length: %d\r\n\r\n%s" % (len(body), body)
    with raw_server(answer, answer, answer) as url:
        options = {"api_key": KEY, "base_url": url, "max_retries": 0}

        async def ask() -> None:
            client = AsyncClient(**options)  # type: ignore[arg-type]
            for _ in range(3):
                assert (await way.ask_async(client, way.fields)).response.text == "ok"
                await asyncio.sleep(0.02)

        if way.is_async:
            asyncio.run(ask())
        else:
            client = Client(**options)  # type: ignore[arg-type]
            for _ in range(3):
                assert way.ask_sync(client, way.fields).response.text == "ok"
                threading.Event().wait(0.02)


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_two_servers_do_not_share_a_connection(server: Server, options: dict[str, Any], way: Way) -> None:
    other = Server()
    try:
        server.script, other.script = [way.answer()], [Answer((way.piece("other"), way.end), framing="chunked")]
        for _ in range(2):
            assert way.ask(options).response.text == "ok"
            assert way.ask({**options, "base_url": other.url}).response.text == "other"
    finally:
        other.close()


def test_a_transport_connects_anew_for_another_origin(server: Server) -> None:
    other = Server()
    server.script, other.script = [Answer((b"one",))], [Answer((b"two",))]
    transport = HttptoolsTransport(ssl.create_default_context(), 30)
    with httpx.Client(transport=transport) as http:
        said = [http.post(url).text for url in (server.url, other.url, server.url, server.url)]
    other.close()
    assert said == ["one", "two", "one", "one"]
    assert (server.connections, other.connections) == (2, 1)


def test_a_response_that_was_given_up_does_not_read_the_next_one(server: Server) -> None:
    server.script = [Answer((b"a", Wait(0.2), b"b"), framing="chunked"), Answer((b"next",))]
    transport = HttptoolsTransport(ssl.create_default_context(), 30)
    request = httpx.Request("POST", server.url, content=b"{}")
    first = transport.handle_request(request)
    pieces = iter(first.stream)
    next(pieces)
    first.close()
    second = transport.handle_request(request)
    with pytest.raises(httpx.ReadError, match="the response was closed"):
        next(pieces)
    assert second.read() == b"next"
    first.stream.close()
    assert transport.handle_request(request).read() == b"next"
    transport.close()


def test_a_long_body_in_long_pieces_is_no_long_head() -> None:
    piece = b"%x\r\n%s\r\n" % (3 * HEAD_BYTES, b"a" * 3 * HEAD_BYTES)
    answer, body = read(HEAD + b"transfer-encoding: chunked\r\n\r\n" + 3 * piece + b"0\r\n\r\n", 4096)
    assert (len(body), answer.complete) == (9 * HEAD_BYTES, True)


def test_http2_and_a_missing_package_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="http2: not with transport 'httptools'"):
        Client(api_key=KEY, http2=True, transport="httptools")
    monkeypatch.setattr("cerebras_ext.settings.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "cerebras-ext\[httptools\]"'):
        AsyncClient(api_key=KEY, transport="httptools")

"""TLS over every transport: trust, names, handshakes that fail or never end, and the end of connections."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cerebras_ext import AsyncClient
from cerebras_ext.errors import APIConnectionError, APITimeoutError, StreamTruncatedError
from tests.support import KEY, MESSAGES, STREAMS, TRANSPORTS, WAYS, Answer, Cut, Server, Stall, Way, wait_for

trustme = pytest.importorskip("trustme", reason="trustme is not installed")

authority = trustme.CA()


def server_for(*names: str) -> Server:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return Server(context)


@pytest.fixture
def tls_server() -> Iterator[Server]:
    server = server_for("127.0.0.1", "localhost")
    yield server
    server.close()


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


@pytest.fixture(params=TRANSPORTS)
def options(request: pytest.FixtureRequest, tls_server: Server, ca_file: Path) -> dict[str, Any]:
    url = tls_server.url
    return {"api_key": KEY, "base_url": url, "verify": ca_file, "max_retries": 0, "transport": request.param}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_calls_work(tls_server: Server, options: dict[str, Any], way: Way, host: str) -> None:
    tls_server.script = [way.answer()]
    options["base_url"] = options["base_url"].replace("127.0.0.1", host)
    assert way.ask(options).response.text == "ok"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_large_bodies_arrive_whole(tls_server: Server, options: dict[str, Any], way: Way) -> None:
    tls_server.script = [way.answer()]
    way.ask(options, user="x" * 3_000_000)
    assert tls_server.requests[0].json["user"] == "x" * 3_000_000


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_async], ids=str)
def test_one_connection_serves_many_calls(tls_server: Server, options: dict[str, Any], way: Way) -> None:
    tls_server.script = [way.answer()]

    async def ask() -> None:
        async with AsyncClient(**options) as client:
            for _ in range(5):
                await way.ask_async(client, way.fields)

    asyncio.run(ask())
    assert tls_server.connections == 1
    asyncio.run(ask())
    assert tls_server.connections == 2


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_unknown_authority_is_refused(tls_server: Server, options: dict[str, Any], way: Way) -> None:
    del options["verify"]
    with pytest.raises(APIConnectionError, match=r"(?i)certificate"):
        way.ask(options)
    assert not tls_server.requests
    tls_server.script = [way.answer()]
    assert way.ask({**options, "verify": False}).response.text == "ok"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_context_that_offers_http2_does_not_bring_it(options: dict[str, Any], way: Way) -> None:
    """A context of the user's, which may serve other clients too."""
    spoken = set()

    class Connection(ssl.SSLSocket):
        def read(self, *args: Any) -> Any:
            data = super().read(*args)
            spoken.add(self.selected_alpn_protocol())
            return data

    ours, theirs = ssl.create_default_context(cafile=options["verify"]), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(theirs)
    theirs.sslsocket_class = Connection
    for context in (ours, theirs):
        context.set_alpn_protocols(["h2", "http/1.1"])
    server = Server(theirs)
    try:
        server.script = [way.answer()]
        assert way.ask({**options, "base_url": server.url, "verify": ours}).response.text == "ok"
    finally:
        server.close()
    assert spoken == {"http/1.1"}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_certificate_for_another_name_is_refused(options: dict[str, Any], way: Way) -> None:
    server = server_for("other.invalid")
    try:
        with pytest.raises(APIConnectionError, match=r"(?i)certificate"):
            way.ask({**options, "base_url": server.url})
        assert not server.requests
    finally:
        server.close()


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_server_without_tls_is_a_connection_error(server: Server, options: dict[str, Any], way: Way) -> None:
    with pytest.raises(APIConnectionError):
        way.ask({**options, "base_url": server.url.replace("http:", "https:")})


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_handshake_that_never_ends_is_a_timeout(options: dict[str, Any], way: Way) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"https://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(APITimeoutError):
            way.ask({**options, "base_url": url, "timeout": 0.2})


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_a_stream_that_is_cut_is_an_error(tls_server: Server, options: dict[str, Any], way: Way) -> None:
    tls_server.script = [Answer((way.piece("a"), Cut()), framing="chunked")]
    with pytest.raises((APIConnectionError, StreamTruncatedError)):
        way.ask(options)


@pytest.mark.parametrize("way", [way for way in STREAMS if way.is_async], ids=str)
def test_a_stream_left_early_closes_its_connection(tls_server: Server, options: dict[str, Any], way: Way) -> None:
    stall = Stall()
    tls_server.script = [Answer((way.piece("a"), stall, way.end), framing="chunked")]

    async def leave() -> None:
        client = AsyncClient(**options)
        make: Any = client.stream_chat if way.endpoint == "chat" else client.stream_complete
        async with make(**way.fields) as stream:
            async for _ in stream:
                break
        await asyncio.to_thread(wait_for, stall.gone.is_set)

    asyncio.run(leave())
    assert stall.gone.is_set()


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.003, 0.01])
def test_a_cancelled_call_leaves_nothing_behind(tls_server: Server, options: dict[str, Any], delay: float) -> None:
    """Whenever the cancellation comes: while connecting, in the handshake, or while waiting for the answer."""
    stall = Stall()
    tls_server.script = [Answer((b"{", stall), framing="chunked")]

    async def cancel() -> None:
        client = AsyncClient(**options)
        for _ in range(10):
            task = asyncio.create_task(client.chat(model="m", messages=MESSAGES))
            await asyncio.sleep(delay)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.to_thread(wait_for, lambda: tls_server.open_connections == 0)

    asyncio.run(cancel())

"""The network layer of async connections: reading ahead, timeouts, faults, and loops that are not asyncio's own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib.util import find_spec
from typing import Any

import httpcore
import pytest

from cerebras_ext import AsyncClient
from cerebras_ext.asyncio_backend import BUFFER_BYTES, AsyncioBackend, AsyncioStream
from cerebras_ext.connections import registry
from tests.support import KEY, TRANSPORTS, WAYS, Server, Way

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]
ASYNC = [way for way in WAYS if way.is_async]


@contextlib.asynccontextmanager
async def connected(buffer: int | None = None) -> AsyncIterator[tuple[AsyncioStream, Peer]]:
    """A connection, and its other side."""
    peers: asyncio.Queue[Peer] = asyncio.Queue()
    listener = socket.create_server(("127.0.0.1", 0))
    if buffer:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    server = await asyncio.start_server(lambda *peer: peers.put_nowait(peer), sock=listener)
    port = server.sockets[0].getsockname()[1]
    options = [(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)] if buffer else None
    stream = await AsyncioBackend().connect_tcp("127.0.0.1", port, socket_options=options)
    assert isinstance(stream, AsyncioStream)
    peer = await peers.get()
    try:
        yield stream, peer
    finally:
        await stream.aclose()
        peer[1].transport.abort()
        server.close()
        await server.wait_closed()


async def test_bytes_arrive_in_order_and_at_most_so_many_at_once() -> None:
    sent = bytes(range(256)) * 100
    async with connected() as (stream, (_, writer)):
        writer.write(sent)
        writer.close()
        read = []
        while piece := await stream.read(1000):
            read.append(piece)
        assert b"".join(read) == sent
        assert max(map(len, read)) <= 1000
        assert await stream.read(1000) == b""


async def test_a_slow_reader_slows_the_sender_down_and_loses_nothing() -> None:
    size = 20_000_000
    async with connected() as (stream, (_, writer)):
        writer.write(b"x" * size)
        read = 0
        for _ in range(3):
            await asyncio.sleep(0.05)
            assert stream._protocol._size <= BUFFER_BYTES + 256 * 1024  # at most one read of the loop more
            read += len(await stream.read(1000))
        writer.write_eof()
        while piece := await stream.read(65536, timeout=5):
            read += len(piece)
        assert read == size


async def seconds(waiting: Awaitable[Any], error: type[Exception]) -> float:
    started = time.monotonic()
    with pytest.raises(error):
        await waiting
    return time.monotonic() - started


async def test_a_read_has_its_own_timeout_whatever_the_one_before_had() -> None:
    async with connected() as (stream, (_, writer)):
        for limit in (0.1, 0.05, 0.1):
            assert limit <= await seconds(stream.read(10, timeout=limit), httpcore.ReadTimeout) < limit + 0.4
        writer.write(b"a")
        assert await stream.read(10, timeout=30) == b"a"  # whose timer is still there
        assert await seconds(stream.read(10, timeout=0.05), httpcore.ReadTimeout) < 0.5
        writer.write(b"b")
        assert await stream.read(10) == b"b"


async def test_a_read_without_a_limit_does_not_have_that_of_the_one_before() -> None:
    async with connected() as (stream, (_, writer)):
        writer.write(b"a")
        await asyncio.sleep(0.02)
        assert await stream.read(10, timeout=0.05) == b"a"
        reading = asyncio.create_task(stream.read(10, timeout=0.05))
        await asyncio.sleep(0.01)
        writer.write(b"b")
        assert await reading == b"b"
        asyncio.get_running_loop().call_later(0.2, writer.write, b"c")
        assert await stream.read(10, timeout=None) == b"c"


async def test_a_timer_that_rings_between_two_pieces_does_no_harm() -> None:
    async with connected() as (stream, (_, writer)):

        async def send() -> None:
            for _ in range(8):
                await asyncio.sleep(0.05)
                writer.write(b"a")

        sending = asyncio.create_task(send())
        for _ in range(8):
            assert await stream.read(10, timeout=0.2) == b"a"
        await sending


async def test_a_cancelled_read_loses_nothing() -> None:
    async with connected() as (stream, (_, writer)):
        reading = asyncio.create_task(stream.read(10, timeout=5))
        await asyncio.sleep(0.01)
        writer.write(b"a")
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
        assert await stream.read(10, timeout=5) == b"a"


async def test_what_came_before_a_reset_is_read_before_the_error() -> None:
    async with connected() as (stream, (_, writer)):
        writer.write(b"abc")
        await asyncio.sleep(0.02)
        sock = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        await asyncio.sleep(0.02)
        assert stream.get_extra_info("is_readable")
        assert await stream.read(10) == b"abc"
        with pytest.raises(httpcore.ReadError):
            await stream.read(10)
        with pytest.raises(httpcore.WriteError):
            await stream.write(b"x")


async def test_closing_wakes_the_one_that_reads() -> None:
    async with connected() as (stream, _):
        reading = asyncio.create_task(stream.read(10))
        await asyncio.sleep(0.01)
        await stream.aclose()
        with pytest.raises(httpcore.ReadError, match="closed"):
            await reading
        with pytest.raises(httpcore.ReadError, match="closed"):
            await stream.read(10)
        with pytest.raises(httpcore.WriteError, match="closed"):
            await stream.write(b"x")
        await stream.aclose()


async def test_writing_waits_for_the_other_side_until_its_timeout() -> None:
    async with connected(buffer=8192) as (stream, (reader, _)):
        assert await seconds(stream.write(b"x" * 5_000_000, timeout=0.1), httpcore.WriteTimeout) < 1
        reading = asyncio.create_task(reader.readexactly(5_000_000 + 1))
        await stream.write(b"y", timeout=5)
        assert (await reading)[-1:] == b"y"


async def test_a_writer_is_told_when_the_connection_breaks() -> None:
    async with connected(buffer=8192) as (stream, (_, writer)):
        writing = asyncio.create_task(stream.write(b"x" * 5_000_000, timeout=5))
        await asyncio.sleep(0.02)
        writer.transport.abort()
        with pytest.raises(httpcore.WriteError):
            await writing


async def test_an_idle_connection_that_the_server_closed_is_readable_at_once() -> None:
    """Also where the loop has not had a turn since."""
    async with connected() as (stream, (_, writer)):
        assert not stream.get_extra_info("is_readable")
        writer.get_extra_info("socket")._sock.shutdown(socket.SHUT_RDWR)
        assert stream.get_extra_info("is_readable")


async def test_a_refused_connection_and_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(httpcore.ConnectError):
        await AsyncioBackend().connect_tcp("127.0.0.1", port)

    async def hang(*args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(60)

    monkeypatch.setattr(asyncio.get_running_loop(), "sock_connect", hang)
    waiting = AsyncioBackend().connect_tcp("127.0.0.1", port, timeout=0.05)
    assert await seconds(waiting, httpcore.ConnectTimeout) < 1


async def test_another_address_is_tried_where_the_first_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        loop = asyncio.get_running_loop()
        real = loop.sock_connect
        tried = []

        async def resolve(host: str, port: int, **options: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in ("127.0.0.9", "127.0.0.1")]

        async def connect(sock: socket.socket, address: Any) -> None:
            tried.append(address[0])
            await (asyncio.sleep(60) if address[0] == "127.0.0.9" else real(sock, address))

        monkeypatch.setattr(loop, "getaddrinfo", resolve)
        monkeypatch.setattr(loop, "sock_connect", connect)
        stream = await AsyncioBackend().connect_tcp("host.invalid", port, timeout=10)
        assert stream.get_extra_info("server_addr") == ("127.0.0.1", port)
        assert tried == ["127.0.0.9", "127.0.0.1"]
        await stream.aclose()


@pytest.mark.parametrize("name", ["host.invalid", "a" * 64 + ".com", "a..b"])
async def test_a_name_that_leads_nowhere_is_a_connection_error(name: str) -> None:
    with pytest.raises(httpcore.ConnectError):
        await AsyncioBackend().connect_tcp(name, 80, timeout=10)


async def kinds_of_streams(client: AsyncClient) -> set[str]:
    shared = await registry.async_transport(client._settings.connection, client)
    connections: list[Any] = [one for shard in shared._shards._all for one in shard.transport._pool.connections]  # type: ignore[attr-defined]
    return {type(one._connection._network_stream).__name__ for one in connections}


@pytest.mark.parametrize("way", ASYNC, ids=str)
def test_httpx_connections_stand_on_it(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]

    async def ask() -> set[str]:
        client = AsyncClient(**options)
        await way.ask_async(client, way.fields)
        return await kinds_of_streams(client)

    assert asyncio.run(ask()) == {"AsyncioStream"}


def loop_with_task_factory() -> asyncio.AbstractEventLoop:
    """Tasks are started eagerly where Python can."""
    loop = asyncio.new_event_loop()
    eager = getattr(asyncio, "eager_task_factory", None)
    loop.set_task_factory(eager or (lambda loop, coro, **options: asyncio.Task(coro, loop=loop, **options)))
    return loop


def loop_of_uvloop() -> asyncio.AbstractEventLoop:
    import uvloop

    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


OTHER_LOOPS = [
    pytest.param(loop_with_task_factory, id="task factory"),
    pytest.param(
        loop_of_uvloop, id="uvloop", marks=pytest.mark.skipif(not find_spec("uvloop"), reason="uvloop is not installed")
    ),
]


@pytest.mark.parametrize("way", ASYNC, ids=str)
@pytest.mark.parametrize("make_loop", OTHER_LOOPS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_other_loops_work_too(
    server: Server, options: dict[str, Any], way: Way, make_loop: Callable[[], Any], transport: str, host: str
) -> None:
    server.script = [way.answer()]
    options["base_url"] = server.url.replace("127.0.0.1", host)

    async def ask() -> list[str]:
        async with AsyncClient(transport=transport, **options) as client:  # type: ignore[misc]
            texts = [(await way.ask_async(client, way.fields)).response.text for _ in range(3)]
            if transport == "httpx":
                assert await kinds_of_streams(client) == {"AsyncioStream"}
            return texts

    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(ask()) == ["ok"] * 3
    assert server.connections == 1


def test_the_key_is_not_kept() -> None:
    """What was written is in no variable of the connection."""

    async def ask() -> str:
        async with connected() as (stream, _):
            await stream.write(KEY.encode())
            return repr(vars(stream)) + repr(vars(stream._protocol))

    assert KEY not in asyncio.run(ask())

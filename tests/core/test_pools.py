"""Shared pools: many calls at once, and how pools are chosen, given back and given up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.connections import HTTP2_STREAMS, registry
from cerebras_ext.errors import APIConnectionError
from cerebras_ext.pools import IDLE_SECONDS, OTHER_ORIGINS, Shards
from tests.support import KEY, MESSAGES, STREAMS, TRANSPORTS, WAYS, Answer, Server, Stall, Way, wait_for

ANSWER = json.dumps({"choices": [{"index": 0, "message": {"content": "ok"}, "finish_reason": "stop"}]}).encode()


HERE = ("https", b"here", None)


class Pool:
    """Stands for a transport."""


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("cerebras_ext.pools.time.monotonic", lambda: now[0])
    return now


def shards(size: int = 1) -> Any:
    made: Any = Shards(Pool, size)
    return made


def test_a_pool_that_was_given_back_is_used_again() -> None:
    pools = shards()
    first, _ = pools.take(HERE)
    second, _ = pools.take(HERE)
    assert first is not second
    pools.give(first)
    assert pools.take(HERE)[0] is first


def test_the_pool_used_last_is_taken_first() -> None:
    pools = shards()
    taken = [pools.take(HERE)[0] for _ in range(3)]
    for shard in (taken[1], taken[0], taken[2]):
        pools.give(shard)
    assert [pools.take(HERE)[0] for _ in range(3)] == [taken[2], taken[0], taken[1]]


def test_a_pool_of_many_streams_is_filled_before_another_is_made() -> None:
    pools = shards(HTTP2_STREAMS)
    taken = [pools.take(HERE)[0] for _ in range(HTTP2_STREAMS + 1)]
    assert len(set(taken)) == 2
    pools.give(taken[0])
    pools.give(taken[-1])
    assert {pools.take(HERE)[0] for _ in range(HTTP2_STREAMS)} == set(taken)


def test_pools_that_nobody_uses_are_given_up(clock: list[float]) -> None:
    pools = shards()
    busy, old, fresh = [pools.take(HERE)[0] for _ in range(3)]
    pools.give(old)
    clock[0] += IDLE_SECONDS
    pools.give(fresh)
    clock[0] += 1
    taken, idle = pools.take(HERE)
    assert taken is fresh
    assert idle == [old.transport]
    pools.give(busy)
    assert pools.take(HERE)[0] is busy


def test_a_pool_of_before_a_close_does_not_come_back() -> None:
    pools = shards()
    busy, _ = pools.take(HERE)
    assert pools.clear() == [busy.transport]
    pools.give(busy)
    assert pools.take(HERE)[0] is not busy


@pytest.mark.parametrize("size", [1, HTTP2_STREAMS])
def test_a_pool_that_was_closed_in_use_is_closed_again_after_its_last_request(size: int) -> None:
    """Its connection may have been opened only since."""
    pools = shards(size)
    taken = [pools.take(HERE)[0] for _ in range(2)]
    pools.clear()
    fresh, _ = pools.take(HERE)
    ended = [pools.give(shard) for shard in taken]
    assert ended == ([shard.transport for shard in taken] if size == 1 else [None, taken[0].transport])
    assert pools.give(fresh) is None


@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_calls_during_a_close_leave_no_connection_open(server: Server, options: dict[str, Any], transport: Any) -> None:
    """Whenever the close comes."""
    server.script = [next(way for way in WAYS if not way.stream).answer()]

    async def ask() -> None:
        client = AsyncClient(transport=transport, max_retries=0, **options)
        shared = await registry.async_transport(client._settings.connection, client)
        for steps in range(60):
            call = asyncio.create_task(client.chat(model="m", messages=MESSAGES))
            for _ in range(steps):
                await asyncio.sleep(0)
            await shared.aclose()
            with suppress(APIConnectionError):
                await asyncio.wait_for(call, 10)
        await shared.aclose()
        await asyncio.to_thread(wait_for, lambda: server.open_connections == 0)

    asyncio.run(ask())
    assert server.open_connections == 0


@pytest.mark.parametrize("way", [way for way in STREAMS if way.is_async], ids=str)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_stream_whose_connections_are_closed_ends_with_an_error(
    server: Server, options: dict[str, Any], way: Way, transport: Any
) -> None:
    stall = Stall()
    server.script = [Answer((way.piece("a"), stall), framing="chunked")]

    async def ask() -> None:
        client = AsyncClient(transport=transport, max_retries=0, **options)
        shared = await registry.async_transport(client._settings.connection, client)
        call = asyncio.create_task(way.ask_async(client, way.fields))
        await asyncio.to_thread(stall.reached.wait)
        await asyncio.sleep(0.02)
        await shared.aclose()
        with pytest.raises(APIConnectionError):
            await asyncio.wait_for(call, 10)

    asyncio.run(ask())


def test_a_pool_serves_one_origin() -> None:
    pools = shards()
    there = ("https", b"there", None)
    first, second = pools.take(HERE)[0], pools.take(there)[0]
    pools.give(first)
    pools.give(second)
    assert pools.take(HERE)[0] is first
    assert pools.take(there)[0] is second


def test_few_unused_pools_of_other_origins_are_kept() -> None:
    pools = shards()
    given_up = []
    for number in range(3 * OTHER_ORIGINS):
        shard, idle = pools.take(("https", b"host-%d" % number, None))
        given_up += idle
        pools.give(shard)
    assert len(pools._all) == OTHER_ORIGINS + 1
    assert len(given_up) == 2 * OTHER_ORIGINS - 1


@asynccontextmanager
async def patient_server(count: int) -> AsyncIterator[str]:
    """A server that answers nobody until `count` requests are there."""
    here = 0
    everybody = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal here
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        await reader.readexactly(length)
        here += 1
        if here >= count:
            everybody.set()
        await everybody.wait()
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=count)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_500_calls_are_in_flight_at_once(transport: Any) -> None:
    async def ask() -> list[str]:
        async with patient_server(500) as url, AsyncClient(api_key=KEY, base_url=url, transport=transport) as client:
            calls = [client.chat(model="m", messages=MESSAGES, timeout=60) for _ in range(500)]
            return [answer.text for answer in await asyncio.gather(*calls)]

    assert asyncio.run(ask()) == ["ok"] * 500


def test_50_threads_share_a_client(server: Server, options: dict[str, Any]) -> None:
    server.script = [next(way for way in WAYS if not way.stream and not way.is_async).answer()]
    with Client(**options) as client, ThreadPoolExecutor(50) as threads:
        answers = list(threads.map(lambda _: client.chat(model="m", messages=MESSAGES).text, range(200)))
    assert answers == ["ok"] * 200
    assert server.connections <= 50

"""Streams that are not read to their end, over real sockets: the connection is closed at once, none is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import time
import warnings
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from tests.support import DONE, STREAMS, WAYS, Answer, Server, Stall, Wait, Way, wait_for

SYNC = [way for way in STREAMS if not way.is_async]
ASYNC = [way for way in STREAMS if way.is_async]


def text(delta: Any) -> str:
    return getattr(delta, "content", None) or getattr(delta, "text", "") or ""


def start(client: Any, way: Way, **fields: Any) -> Any:
    return getattr(client, "stream_chat" if way.endpoint == "chat" else "stream_complete")(**way.fields, **fields)


def whole(way: Way) -> Way:
    return next(w for w in WAYS if (w.endpoint, w.stream, w.is_async) == (way.endpoint, False, way.is_async))


def pool_of_one() -> httpx.Client:
    return httpx.Client(limits=httpx.Limits(max_connections=1), timeout=httpx.Timeout(2.0))


# ---- leaving early, sync ----


def leave_by_break(stream: Any) -> None:
    for _ in stream:
        break


def leave_by_close(stream: Any) -> None:
    iterator = iter(stream)
    next(iterator)
    stream.close()


def leave_by_closing_the_iterator(stream: Any) -> None:
    iterator = iter(stream)
    next(iterator)
    iterator.close()


def leave_by_with(stream: Any) -> None:
    with stream as opened:
        iterator = iter(opened)
        next(iterator)


def leave_by_an_exception(stream: Any) -> None:
    with contextlib.suppress(KeyError):
        for _ in stream:
            raise KeyError


def leave_before_the_first(stream: Any) -> None:
    with stream:
        pass


def leave_by_dropping_it_opened(stream: Any) -> None:
    stream.open()


SYNC_EXITS = [
    leave_by_break, leave_by_close, leave_by_closing_the_iterator, leave_by_with, leave_by_an_exception,
    leave_before_the_first, leave_by_dropping_it_opened,
]  # fmt: skip


@pytest.mark.parametrize("way", SYNC, ids=str)
@pytest.mark.parametrize("leave", SYNC_EXITS)
def test_leaving_early_closes_the_connection_at_once(
    server: Server, options: dict[str, Any], way: Way, leave: Callable[[Any], None]
) -> None:
    stall = Stall()
    server.script = [Answer((way.piece("a"), stall, way.end), framing="chunked"), whole(way).answer()]
    with pool_of_one() as http:
        client = Client(**options, http_client=http)
        leave(start(client, way))
        assert stall.gone.wait(5)
        assert whole(way).ask_sync(client, way.fields).response.text == "ok"


@pytest.mark.parametrize("way", SYNC, ids=str)
def test_many_streams_left_early_leave_nothing_behind(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((way.piece("a"), way.piece("b"), way.end, DONE), framing="chunked")]
    with pool_of_one() as http:
        client = Client(**options, http_client=http)
        for _ in range(5):
            leave_by_break(start(client, way))
        assert way.ask_sync(client, way.fields).response.text == "ab"


# ---- leaving early, async ----


async def leave_async_by_break(stream: Any) -> None:
    async for _ in stream:
        break


async def leave_async_by_aclose(stream: Any) -> None:
    iterator = aiter(stream)
    await anext(iterator)
    await stream.aclose()


async def leave_async_by_closing_the_iterator(stream: Any) -> None:
    iterator = aiter(stream)
    await anext(iterator)
    await iterator.aclose()


async def leave_async_by_with(stream: Any) -> None:
    async with stream as opened:
        iterator = aiter(opened)
        await anext(iterator)


async def leave_async_by_an_exception(stream: Any) -> None:
    with contextlib.suppress(KeyError):
        async for _ in stream:
            raise KeyError


async def leave_async_before_the_first(stream: Any) -> None:
    async with stream:
        pass


async def leave_async_by_dropping_it_opened(stream: Any) -> None:
    await stream.open()


async def leave_async_by_cancelling(stream: Any) -> None:
    async def consume() -> None:
        async for _ in stream:
            pass

    task = asyncio.create_task(consume())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leave_async_by_a_deadline(stream: Any) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.05):
            async for _ in stream:
                pass


ASYNC_EXITS = [
    leave_async_by_break, leave_async_by_aclose, leave_async_by_closing_the_iterator, leave_async_by_with,
    leave_async_by_an_exception, leave_async_before_the_first, leave_async_by_dropping_it_opened,
    leave_async_by_cancelling, leave_async_by_a_deadline,
]  # fmt: skip


@pytest.mark.parametrize("way", ASYNC, ids=str)
@pytest.mark.parametrize("leave", ASYNC_EXITS)
async def test_leaving_early_closes_the_connection_at_once_async(
    server: Server, options: dict[str, Any], way: Way, leave: Callable[[Any], Any]
) -> None:
    stall = Stall()
    server.script = [Answer((way.piece("a"), stall, way.end), framing="chunked"), whole(way).answer()]
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=1), timeout=httpx.Timeout(2.0)) as http:
        client = AsyncClient(**options, http_async_client=http)
        await leave(start(client, way))
        assert (await whole(way).ask_async(client, way.fields)).response.text == "ok"
        assert stall.gone.wait(5)


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_async], ids=str)
@pytest.mark.parametrize("times", [1, 2])
def test_cancelling_at_any_await_leaves_no_connection_behind(
    server: Server, options: dict[str, Any], way: Way, times: int
) -> None:
    pieces = (way.piece("a"), Wait(0.002), way.piece("b"), way.end, DONE) if way.stream else way.answer().pieces
    server.script = [Answer(pieces, framing="chunked")]

    async def main() -> None:
        client = AsyncClient(**options)
        for steps in range(40):
            task = asyncio.create_task(way.ask_async(client, way.fields))
            for _ in range(steps):
                await asyncio.sleep(0)
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            with contextlib.suppress(asyncio.CancelledError):
                await task
            outcome = await way.ask_async(client, way.fields)
            assert outcome.response.text == ("ab" if way.stream else "ok")
        await asyncio.to_thread(wait_for, lambda: server.open_connections <= 1)

    asyncio.run(main())


@pytest.mark.parametrize("way", ASYNC, ids=str)
async def test_cancelling_twice_still_closes(server: Server, options: dict[str, Any], way: Way) -> None:
    stall = Stall()
    server.script = [Answer((way.piece("a"), stall, way.end), framing="chunked")]
    client = AsyncClient(**options)
    task = asyncio.create_task(way.ask_async(client, way.fields))
    await asyncio.to_thread(stall.reached.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(stall.gone.wait, 5)


@pytest.mark.parametrize("way", ASYNC, ids=str)
def test_a_stream_that_is_dropped_as_its_loop_ends_warns_of_nothing(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [Answer((way.piece("a"), Stall()), framing="chunked")]
    client = AsyncClient(**options)

    async def leave() -> None:
        await start(client, way).open()

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        asyncio.run(leave())
        gc.collect()
    assert [str(warning.message) for warning in warned] == []
    wait_for(lambda: server.open_connections == 0)


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_what_never_ends_after_the_end_is_not_waited_for(server: Server, options: dict[str, Any], way: Way) -> None:
    comments = [piece for _ in range(60) for piece in (Wait(0.05), b": still here\n\n")]
    server.script = [Answer((way.piece("a"), way.end, DONE, *comments), framing="chunked")]
    started = time.monotonic()
    assert way.ask(options).response.text == "a"
    assert time.monotonic() - started < 2

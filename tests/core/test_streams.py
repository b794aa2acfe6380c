"""Streams over real sockets: how they end, cut connections, idle limits, batches, and what is left afterwards."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from typing import Any

import httpx
import pytest

from cerebras_ext import AsyncClient, Client, errors
from cerebras_ext.streams import DRAIN_SECONDS
from tests.support import DONE, STREAMS, WAYS, Answer, Cut, Server, Stall, Wait, Way, wait_for

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


# ---- the end ----


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("tail", [(DONE,), ()], ids=["done", "no-done"])
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_a_stream_is_whole_with_and_without_its_end_mark(
    server: Server, options: dict[str, Any], way: Way, tail: tuple[bytes, ...], framing: str
) -> None:
    server.script = [Answer((way.piece("a"), way.piece("b"), way.end, *tail), framing=framing)]
    outcome = way.ask(options)
    assert [text(delta) for delta in outcome.deltas] == ["a", "b", ""]
    assert (outcome.response.text, outcome.response.finish_reason) == ("ab", "stop")
    assert outcome.response.usage.total_tokens == 3


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("tail", [(DONE,), (), (b"data: {",), (Cut(), b"x")], ids=["done", "end", "half", "cut"])
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_stream_without_a_finish_reason_is_never_a_success(
    server: Server, options: dict[str, Any], way: Way, tail: tuple[Any, ...], framing: str
) -> None:
    server.script = [Answer((way.piece("a"), *tail), framing=framing)]
    expected = errors.APIResponseError if tail == (b"data: {",) else errors.APIConnectionError
    with pytest.raises(expected) as caught:
        way.ask(options)
    if tail in ((DONE,), ()):
        assert type(caught.value) is errors.StreamTruncatedError
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("tail", [(Cut(), b"x"), (b"", Cut(), b"x")], ids=["cut", "later"])
def test_a_cut_after_the_finish_reason_does_no_harm(
    server: Server, options: dict[str, Any], way: Way, tail: tuple[Any, ...]
) -> None:
    server.script = [Answer((way.piece("a"), way.end, Wait(0.02), *tail), framing="chunked")]
    assert way.ask(options).response.text == "a"


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_the_connection_of_a_finished_stream_serves_the_next_call(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [
        Answer((way.piece("a"), way.end, DONE, *late), framing="chunked") for late in ((), (Wait(0.03),), (), ())
    ]

    async def several() -> None:
        client = AsyncClient(**options)
        for _ in range(3):
            await way.ask_async(client, way.fields)

    if way.is_async:
        asyncio.run(several())
    else:
        with Client(**options, verify=False) as client:
            for _ in range(3):
                way.ask_sync(client, way.fields)
    assert server.connections == 1


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("framing", ["chunked", "close"])
def test_a_server_that_keeps_a_finished_stream_open_is_not_waited_for(
    server: Server, options: dict[str, Any], way: Way, framing: str
) -> None:
    stall = Stall()
    server.script = [Answer((way.piece("a"), way.end, DONE, stall, b"x"), framing=framing)]
    started = time.monotonic()
    assert way.ask(options).response.text == "a"
    assert time.monotonic() - started < DRAIN_SECONDS + 1
    assert stall.gone.wait(5)


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_what_follows_the_end_mark_is_ignored(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((way.piece("a"), way.end + DONE + way.piece("b") + b"data: {", way.piece("c")))]
    assert way.ask(options).response.text == "a"


# ---- limits ----

PING: tuple[Wait | bytes, ...] = (Wait(0.02), b": ping\n\n")


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_comments_do_not_keep_a_stream_alive_for_ever(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((way.piece("a"), *PING * 200), framing="chunked")]
    started = time.monotonic()
    with pytest.raises(errors.APITimeoutError, match="only comments"):
        way.ask({**options, "stream_idle_timeout": 0.1})
    assert time.monotonic() - started < 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_silence_is_a_timeout(server: Server, options: dict[str, Any], way: Way) -> None:
    for setting in ("stream_idle_timeout", "timeout"):
        stall = Stall()
        server.script = [Answer((way.piece("a"), stall, way.end), framing="chunked")]
        with pytest.raises(errors.APITimeoutError) as caught:
            way.ask({**options, setting: 0.1})
        assert isinstance(caught.value, TimeoutError)
        assert isinstance(caught.value.__cause__, httpx.ReadTimeout)
        assert stall.gone.wait(5)


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("setting", ["timeout", "stream_idle_timeout"])
def test_a_long_healthy_stream_has_no_total_limit(
    server: Server, options: dict[str, Any], way: Way, setting: str
) -> None:
    server.script = [
        Answer(
            (*[piece for _ in range(12) for piece in (way.piece("a"), *PING, Wait(0.1))], way.end), framing="chunked"
        )
    ]
    assert way.ask({**options, setting: 1.0}).response.text == "a" * 12


def test_a_slow_consumer_is_not_a_silent_service(server: Server, options: dict[str, Any]) -> None:
    way = SYNC[0]
    server.script = [Answer((way.piece("a"), *PING * 5, way.piece("b"), way.end), framing="chunked")]
    seen = []
    for delta in Client(**options, stream_idle_timeout=0.15).stream_chat(**way.fields):
        seen.append(delta.content)
        time.sleep(0.2 if delta.content == "a" else 0)
    assert seen == ["a", "b", ""]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_service_that_does_not_answer_is_a_timeout(server: Server, options: dict[str, Any], way: Way) -> None:
    stall = Stall()
    server.script = [Answer((stall, *way.answer().pieces), framing="chunked")]
    with pytest.raises(errors.APITimeoutError, match=r"127\.0\.0\.1"):
        way.ask({**options, "max_retries": 0}, timeout=0.1)
    assert stall.gone.wait(5)


# ---- the object ----


@pytest.mark.parametrize("way", SYNC, ids=str)
def test_nothing_is_sent_before_the_first_step(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    stream = start(Client(**options), way)
    assert server.requests == []
    with pytest.raises(RuntimeError, match="not been read to its end"):
        _ = stream.response
    assert [text(delta) for delta in stream] == ["ok", ""]
    assert stream.response.text == "ok"
    with pytest.raises(RuntimeError, match="can be read once"):
        list(stream)
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", ASYNC, ids=str)
async def test_nothing_is_sent_before_the_first_step_async(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    stream = start(AsyncClient(**options), way)
    assert server.requests == []
    with pytest.raises(RuntimeError, match="not been read to its end"):
        _ = stream.response
    assert [text(delta) async for delta in stream] == ["ok", ""]
    assert stream.response.text == "ok"
    with pytest.raises(RuntimeError, match="can be read once"):
        _ = [delta async for delta in stream]
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", SYNC, ids=str)
def test_errors_of_the_request_are_raised_when_it_is_opened(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b"{}",), 401)]
    with pytest.raises(errors.AuthenticationError):
        start(Client(**options), way).open()
    with pytest.raises(errors.AuthenticationError), start(Client(**options), way):
        pass


@pytest.mark.parametrize("way", ASYNC, ids=str)
async def test_errors_of_the_request_are_raised_when_it_is_opened_async(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [Answer((b"{}",), 401)]
    with pytest.raises(errors.AuthenticationError):
        await start(AsyncClient(**options), way).open()
    with pytest.raises(errors.AuthenticationError):
        async with start(AsyncClient(**options), way):
            pass


@pytest.mark.parametrize("way", SYNC, ids=str)
def test_opening_twice_sends_once(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    with start(Client(**options), way).open() as stream:
        assert [text(delta) for batch in stream.batches() for delta in batch] == ["ok", ""]
    stream.close()
    stream.close()
    assert len(server.requests) == 1
    assert stream.response.text == "ok"


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_what_one_read_brings_is_one_batch(server: Server, options: dict[str, Any], way: Way) -> None:
    events = b"".join(way.piece(letter) for letter in "abc")
    server.script = [Answer((events + way.piece("d")[:20], Wait(0.05), way.piece("d")[20:] + way.end + DONE))]

    async def collect() -> list[list[Any]]:
        return [batch async for batch in start(AsyncClient(**options), way).batches()]

    batches = asyncio.run(collect()) if way.is_async else list(start(Client(**options), way).batches())
    assert [[text(delta) for delta in batch] for batch in batches] == [["a", "b", "c"], ["d", ""]]


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("read", [True, False], ids=["read", "unread"])
def test_streams_and_clients_go_without_the_collector(
    server: Server, options: dict[str, Any], way: Way, read: bool
) -> None:
    server.script = [way.answer()]

    async def consume(stream: Any) -> None:
        async for _ in stream:
            pass

    gc.disable()
    try:
        client: Any = AsyncClient(**options) if way.is_async else Client(**options)
        stream = start(client, way)
        if read and way.is_async:
            asyncio.run(consume(stream))
        elif read:
            list(stream)
        seen = weakref.ref(stream), weakref.ref(client)
        del stream, client
        assert [ref() for ref in seen] == [None, None]
    finally:
        gc.enable()


def test_streams_in_threads_do_not_mix(server: Server, options: dict[str, Any]) -> None:
    way = SYNC[0]
    server.script = [
        Answer(
            (*[piece for _ in range(20) for piece in (way.piece("a"), Wait(0.001))], way.end, DONE), framing="chunked"
        )
    ]
    client = Client(**options)

    async def main() -> list[Any]:
        return list(await asyncio.gather(*(asyncio.to_thread(way.ask_sync, client, way.fields) for _ in range(12))))

    assert [outcome.response.text for outcome in asyncio.run(main())] == ["a" * 20] * 12
    wait_for(lambda: len(server.requests) == 12)

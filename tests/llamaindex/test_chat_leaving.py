"""Streams that are left early: the connection is given back, and the end is told once."""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import httpx
import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.observers import Events, Legacy, observed_fixture  # noqa: F401
from tests.llamaindex.scripted import (
    STREAMS,
    ask,
    chunk,
)
from tests.llamaindex.tooling import NOW


class Body(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that tells when it is closed."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = pieces
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        yield from self.pieces

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        for piece in self.pieces:
            await asyncio.sleep(0)
            yield piece

    def close(self) -> None:
        self.closed += 1

    async def aclose(self) -> None:
        self.closed += 1


def endless() -> tuple[Cerebras, Body]:
    body = Body([f"data: {json.dumps(chunk({'content': 'a'}))}\n\n".encode()] * 1000)
    transport = httpx.MockTransport(
        lambda request: httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=body)
    )
    llm = Cerebras(
        model="m",
        api_key="k",
        max_retries=0,
        http_client=httpx.Client(transport=transport),
        async_http_client=httpx.AsyncClient(transport=transport),
    )
    return llm, body


async def settled() -> None:
    """Let the loop run what the end of an async generator has scheduled."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_stream_that_is_dropped_gives_its_connection_back(steps: int) -> None:
    llm, body = endless()
    gen = llm.stream_chat(ask())
    for _ in range(steps):
        next(gen)
    assert body.closed == 0
    del gen
    gc.collect()
    assert body.closed == 1


@pytest.mark.parametrize("steps", [0, 1, 3])
async def test_async_stream_that_is_dropped_gives_its_connection_back(steps: int) -> None:
    llm, body = endless()
    gen = await llm.astream_chat(ask())
    for _ in range(steps):
        await anext(gen)
    assert body.closed == 0
    del gen
    gc.collect()
    await settled()
    assert body.closed == 1


@pytest.mark.parametrize("path", STREAMS)
async def test_early_close_is_told_once(
    path: str, observed: tuple[Events, SimpleSpanHandler], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Handlers here keep no exception: its traceback would hold core's frame, and with it the stream.
    llm, body = endless()
    told: list[str] = []
    monkeypatch.setattr(Legacy, "on_event_end", lambda self, *args, **kwargs: told.append("end"))
    monkeypatch.setattr(Events, "handle", lambda self, event, **kwargs: told.append(event.class_name()))
    llm.callback_manager = CallbackManager([Legacy()])
    if path == "astream_chat":
        stream = await llm.astream_chat(ask())
        await anext(stream)
        await stream.aclose()
        await settled()
    else:
        gen = llm.stream_chat(ask())
        next(gen)
        gen.close()
    assert body.closed == 1
    assert told == ["LLMChatStartEvent", "LLMChatInProgressEvent", "end", "ExceptionEvent"]


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "dropped"])
async def test_handler_that_keeps_exceptions_does_not_keep_the_connection(path: str, closes: bool) -> None:
    llm, body = endless()
    llm.callback_manager = CallbackManager([LlamaDebugHandler(print_trace_on_end=False)])
    gen: Any = await llm.astream_chat(ask()) if path == "astream_chat" else llm.stream_chat(ask())
    if path == "astream_chat":
        await anext(gen)
        if closes:
            await gen.aclose()
    else:
        next(gen)
        if closes:
            gen.close()
    if not closes:
        del gen
        gc.collect()
    await settled()
    assert body.closed == 1


async def test_cancelling_a_task_in_mid_stream_propagates_and_closes() -> None:
    llm, body = endless()
    begun = asyncio.Event()

    async def consume() -> None:
        async for _ in await llm.astream_chat(ask()):
            begun.set()

    task = asyncio.create_task(consume())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await settled()
    assert body.closed == 1


def test_stream_that_is_left_over_when_its_loop_ends_is_closed_in_silence(caplog: pytest.LogCaptureFixture) -> None:
    left: list[tuple[Any, Body]] = []

    async def begin() -> None:
        llm, body = endless()
        for gen in (await llm.astream_chat(ask()), await llm.astream_chat_with_tools([NOW], user_msg="q")):
            await anext(gen)
            left.append((gen, body))

    asyncio.run(begin())
    assert [body.closed for _, body in left] == [2, 2]
    assert caplog.records == []

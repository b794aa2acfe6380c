"""A stand-in for the chat endpoint inside the process, and every way to ask a LangChain model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_cerebras_ext import ChatCerebras

KEY = "csk-PLANTED-0123456789"
HEAD = {"id": "chatcmpl-1", "created": 1, "model": "m-1", "system_fingerprint": "fp_1"}
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


class Bytes(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes piece by piece, and notes that it was closed."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self.closed = False

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    def close(self) -> None:
        self.closed = True

    async def aclose(self) -> None:
        self.closed = True


def event(value: dict[str, Any]) -> bytes:
    """An event of a stream."""
    return b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def delta(_index: int = 0, **members: Any) -> dict[str, Any]:
    """An event that adds something to an answer."""
    return {**HEAD, "object": "chat.completion.chunk", "choices": [{"index": _index, "delta": members}]}


def tool_delta(index: int | None, id_: str | None = None, name: str | None = None, arguments: Any = "") -> Any:
    """A piece of a tool call inside `delta(tool_calls=[...])`."""
    call: dict[str, Any] = {"type": "function", "function": {"arguments": arguments}}
    if index is not None:
        call["index"] = index
    if id_ is not None:
        call["id"] = id_
    if name is not None:
        call["function"]["name"] = name
    return call


def end(finish_reason: str = "stop", *, choice: dict[str, Any] | None = None, **top: Any) -> dict[str, Any]:
    """The last event: finish reason, usage and timing together, as the service sends it."""
    found: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": finish_reason, **(choice or {})}
    return {
        **HEAD,
        "object": "chat.completion.chunk",
        "choices": [found],
        "usage": USAGE,
        "time_info": {"queue_time": 0.25, "total_time": 0.5},
        **top,
    }


def whole(*messages: dict[str, Any], finish_reason: str = "stop", **top: Any) -> dict[str, Any]:
    """An answer that is not streamed, with one choice for each message."""
    choices = [
        {"index": number, "finish_reason": finish_reason, "message": {"role": "assistant", **message}}
        for number, message in enumerate(messages or ({"content": "ok"},))
    ]
    times = {"queue_time": 0.25, "total_time": 0.5}
    return {**HEAD, "object": "chat.completion", "choices": choices, "usage": USAGE, "time_info": times, **top}


class Service:
    """Answers with `answer`, or with `events` where a stream is asked for, and keeps what it was asked.

    Attributes:
        events: Events of a stream, or ready bytes.
        answer: The answer without a stream, or a whole HTTP response for both.
        headers: Headers of the answers.
        requests: What came, in order.
    """

    def __init__(
        self,
        events: list[dict[str, Any]] | bytes | None = None,
        answer: dict[str, Any] | Callable[[], httpx.Response] | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.events = events if events is not None else [delta(content="ok"), end()]
        self.answer = answer if answer is not None else whole()
        self.headers = headers or {}
        self.requests: list[httpx.Request] = []
        self.streams: list[Bytes] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    @property
    def body(self) -> dict[str, Any]:
        """The body of the only request."""
        assert len(self.requests) == 1
        return self.bodies[0]

    def clients(self) -> dict[str, Any]:
        transport = httpx.MockTransport(self._handle)
        return {
            "http_client": httpx.Client(transport=transport),
            "http_async_client": httpx.AsyncClient(transport=transport),
        }

    def model(self, **fields: Any) -> ChatCerebras:
        """A model that asks this service."""
        return ChatCerebras(**{"model": "m", "api_key": KEY, "max_retries": 0, **self.clients(), **fields})

    def _handle(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if callable(self.answer):
            return self.answer()
        if json.loads(request.content).get("stream"):
            pieces = [self.events] if isinstance(self.events, bytes) else [event(value) for value in self.events]
            stream = Bytes([*pieces, b"data: [DONE]\n\n"])
            self.streams.append(stream)
            return httpx.Response(200, stream=stream, headers={"content-type": "text/event-stream", **self.headers})
        return httpx.Response(200, json=self.answer, headers=self.headers)


def merged(chunks: list[Any]) -> AIMessage:
    """The merge of the chunks of a stream, one by one as applications do it."""
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert isinstance(total, AIMessageChunk)
    return total


async def _invoke(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return model.invoke(prompt, **options)


async def _ainvoke(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return await model.ainvoke(prompt, **options)


async def _stream(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return merged(list(model.stream(prompt, **options)))


async def _astream(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return merged([chunk async for chunk in model.astream(prompt, **options)])


async def _batch(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return model.batch([prompt], **options)[0]


async def _abatch(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return (await model.abatch([prompt], **options))[0]


async def _stream_events_v3(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return model.stream_events(prompt, version="v3", **options).output


async def _astream_events_v3(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    stream = await model.astream_events(prompt, version="v3", **options)
    try:
        return await stream.output
    finally:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        if rest:  # langchain-core tells its reader before its handlers
            await asyncio.wait(rest, timeout=5)


async def _astream_events_v2(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    events = [event async for event in model.astream_events(prompt, version="v2", **options)]
    assert events[0]["event"] == "on_chat_model_start"
    chunks = [event["data"]["chunk"] for event in events if event["event"] == "on_chat_model_stream"]
    return merged(chunks)


async def _implicit(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return model.invoke(prompt, stream=True, **options)


async def _aimplicit(model: Any, prompt: Any, /, **options: Any) -> AIMessage:
    return await model.ainvoke(prompt, stream=True, **options)


Ask = Callable[..., Any]

PATHS: dict[str, Ask] = {"invoke": _invoke, "ainvoke": _ainvoke, "stream": _stream, "astream": _astream}
"""The four ways that every behaviour is tested over."""

ALL_PATHS: dict[str, Ask] = {
    **PATHS,
    "batch": _batch,
    "abatch": _abatch,
    "stream_events v3": _stream_events_v3,
    "astream_events v3": _astream_events_v3,
    "astream_events v2": _astream_events_v2,
    "streaming invoke": _implicit,
    "streaming ainvoke": _aimplicit,
}


def reasoning_of(message: AIMessage) -> str:
    """The reasoning as a reader of content blocks finds it."""
    return "".join(block["reasoning"] for block in message.content_blocks if block["type"] == "reasoning")


async def chunks_of(model: Any, is_async: bool, **options: Any) -> list[AIMessageChunk]:
    if is_async:
        return [chunk async for chunk in model.astream("hi", **options)]
    return list(model.stream("hi", **options))


both = pytest.mark.parametrize("is_async", [False, True], ids=["stream", "astream"])
RICH = [
    delta(role="assistant"),
    delta(reasoning="be"),
    delta(reasoning="cause", content="A"),
    delta(content="nswer"),
    delta(tool_calls=[tool_delta(0, "c1", "f", "")]),
    delta(content=" and", tool_calls=[tool_delta(0, arguments='{"a"'), tool_delta(1, "c2", "g", "{}")]),
    delta(tool_calls=[tool_delta(0, arguments=":1}")]),
    end("tool_calls", service_tier="flex", service_tier_used="default"),
]
"""A stream of every kind of content."""

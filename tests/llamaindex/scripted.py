"""A scripted service below our own clients, and the four ways to ask for a chat answer. No network, no patches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ThinkingBlock

from llamaindex_cerebras_ext import Cerebras

Json = dict[str, Any]

USAGE: Json = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
TIME: Json = {"queue_time": 0.25, "prompt_time": 0.5, "completion_time": 0.125, "total_time": 0.875, "created": 1.5}


def whole(message: Json, *, finish_reason: str = "stop", usage: Json | None = USAGE, **choice: Any) -> Json:
    """An answer that is not streamed."""
    answer: Json = {
        "id": "chatcmpl-1",
        "choices": [
            {"finish_reason": finish_reason, "index": 0, "message": {"role": "assistant", **message}, **choice}
        ],
        "created": 1,
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "object": "chat.completion",
        "time_info": TIME,
    }
    return {**answer, "usage": usage} if usage is not None else answer


def chunk(delta: Json, **choice: Any) -> Json:
    """One event of a stream."""
    return {
        "id": "chatcmpl-1",
        "choices": [{"index": 0, "delta": delta, **choice}],
        "created": 1,
        "model": "served-model",
        "system_fingerprint": "fp_1",
        "object": "chat.completion.chunk",
    }


def streamed(*deltas: Json, finish_reason: str | None = "stop", usage: Json | None = USAGE) -> list[Json]:
    """The events of a stream: the role, the deltas, and the end as the service writes it."""
    events = [chunk({"role": "assistant"}), *(chunk(delta) for delta in deltas)]
    if finish_reason is not None:
        end = {**chunk({}, finish_reason=finish_reason), "time_info": TIME}
        events.append({**end, "usage": usage} if usage is not None else end)
    return events


def call(index: int | None, call_id: str | None = None, name: str | None = None, arguments: str | None = None) -> Json:
    """A fragment of a tool call, with what is not None."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    entry: Json = {"function": function, "type": "function"}
    entry.update({key: value for key, value in (("id", call_id), ("index", index)) if value is not None})
    return entry


def events_text(events: Sequence[Json | str]) -> str:
    lines = [event if isinstance(event, str) else f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join(lines) + "data: [DONE]\n\n"


Answer = Json | list[Json] | httpx.Response | Callable[[Json], "Json | list[Json]"]


@dataclass
class Wire:
    """Answers requests in order (the last answer again and again) and keeps the bodies that came in."""

    answers: list[Answer]
    bodies: list[Json] = field(default_factory=list)
    requests: list[httpx.Request] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        body: Json = json.loads(request.content)
        answer = self.answers[min(len(self.bodies), len(self.answers) - 1)]
        self.bodies.append(body)
        self.requests.append(request)
        if callable(answer):
            answer = answer(body)
        if isinstance(answer, httpx.Response):
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)
        if isinstance(answer, list):
            return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=events_text(answer))
        return httpx.Response(200, json=answer)

    @property
    def body(self) -> Json:
        """The body of the only request."""
        assert len(self.bodies) == 1
        return self.bodies[0]


def scripted(*answers: Answer, **fields: Any) -> tuple[Cerebras, Wire]:
    """An LLM whose requests are answered by the script."""
    wire = Wire(list(answers))
    transport = httpx.MockTransport(wire.handle)
    fields = {"model": "some-model", "api_key": "csk-test", "max_retries": 0, **fields}
    llm = Cerebras(
        http_client=httpx.Client(transport=transport),
        async_http_client=httpx.AsyncClient(transport=transport),
        **fields,
    )
    return llm, wire


ESTIMATES_BLOCKS = hasattr(ThinkingBlock, "estimate_tokens")
"""Whether core is one that estimates tokens by block; the oldest that we support do not."""

PATHS = ("chat", "achat", "stream_chat", "astream_chat")
STREAMS = ("stream_chat", "astream_chat")
COMPLETE_PATHS = ("complete", "acomplete", "stream_complete", "astream_complete")


async def responses(llm: Any, path: str, argument: Any, **kwargs: Any) -> list[Any]:
    """What a public method gives: one response, or all chunks of a stream."""
    method = getattr(llm, path)
    if path.startswith("astream"):
        return [response async for response in await method(argument, **kwargs)]
    if path.startswith("stream"):
        return list(method(argument, **kwargs))
    if path.startswith("a"):
        return [await method(argument, **kwargs)]
    return [method(argument, **kwargs)]


async def last(llm: Any, path: str, argument: Any, **kwargs: Any) -> Any:
    """The response, or the last chunk."""
    return (await responses(llm, path, argument, **kwargs))[-1]


def ask(text: str = "q") -> list[ChatMessage]:
    return [ChatMessage(role="user", content=text)]


def sent_key(llm: Any) -> str:
    """The key that a call of an LLM of either class sends."""
    wire = Wire([{**whole({"content": "a"}), "choices": [{"index": 0, "text": "a", "message": {"content": "a"}}]}])
    llm.http_client = httpx.Client(transport=httpx.MockTransport(wire.handle))
    llm.complete("q")
    llm.http_client = None
    return str(wire.requests[0].headers["authorization"]).removeprefix("Bearer ")


def both(
    message: Json, *deltas: Json, finish_reason: str = "stop", usage: Json | None = USAGE
) -> Callable[[Json], Any]:
    """The same answer, streamed where the request asks for a stream."""

    def answer(body: Json) -> Json | list[Json]:
        if body.get("stream"):
            return streamed(*deltas, finish_reason=finish_reason, usage=usage)
        return whole(message, finish_reason=finish_reason, usage=usage)

    return answer


def texts(chunks: Sequence[ChatResponse]) -> list[str | None]:
    return [response.message.content for response in chunks]

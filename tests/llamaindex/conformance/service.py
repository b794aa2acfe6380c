"""Answers that the emulator gives by script, in the form of the subject's endpoint, and the ways to ask for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from llama_index.core.base.llms.types import ChatMessage

from cerebras_ext.emulator import Emulator, Fault
from tests.llamaindex.conformance.subjects import Subject

Json = dict[str, Any]

CHAT_PATHS = ("chat", "achat", "stream_chat", "astream_chat")
COMPLETE_PATHS = ("complete", "acomplete", "stream_complete", "astream_complete")
PATHS = (*CHAT_PATHS, *COMPLETE_PATHS)
STREAMS = tuple(path for path in PATHS if "stream" in path)
WHOLE = tuple(path for path in PATHS if "stream" not in path)

USAGE: Json = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
HEAD: Json = {"id": "chatcmpl-1", "created": 1, "model": "served-model", "system_fingerprint": "fp"}


class Service:
    """The emulator as the subject's service."""

    def __init__(self, emulator: Emulator, subject: Subject) -> None:
        self.emulator = emulator
        self.subject = subject

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.emulator.requests]

    @property
    def body(self) -> Json:
        """The body of the only request."""
        (body,) = self.bodies
        return body

    def make(self, **fields: Any) -> Any:
        return self.subject.make(self.emulator.base_url, **fields)

    # ---- answers ----

    def says(self, path: str, *pieces: str, finish_reason: str = "stop", usage: Json | None = USAGE, times: int = 1,
             reasoning: str = "", tool_calls: list[Json] | None = None) -> None:  # fmt: skip
        """Answer the next requests with a text, as the path needs it: whole, or in these pieces."""
        if "stream" in path:
            deltas = [{"content": piece} for piece in pieces]
            if reasoning:
                deltas.insert(0, {"reasoning": reasoning})
            for index, call in enumerate(tool_calls or ()):
                deltas += self._call_deltas(index, call)
            self.streams(*deltas, finish_reason=finish_reason, usage=usage, times=times)
            return
        message: Json = {"role": "assistant"}
        if pieces:
            message["content"] = "".join(pieces)
        if reasoning:
            message["reasoning"] = reasoning
        if tool_calls:
            message["tool_calls"] = tool_calls
        choice: Json = {"index": 0, "finish_reason": finish_reason}
        choice |= {"message": message} if self.subject.endpoint == "chat" else {"text": "".join(pieces)}
        kind = "chat.completion" if self.subject.endpoint == "chat" else "text_completion"
        body = {**HEAD, "object": kind, "choices": [choice], **({"usage": usage} if usage else {})}
        self.emulator.respond(body, times=times)

    @staticmethod
    def _call_deltas(index: int, call: Json) -> Iterator[Json]:
        arguments = call["function"]["arguments"]
        first = {**call, "index": index, "function": {**call["function"], "arguments": ""}}
        yield {"tool_calls": [first]}
        for start in range(0, len(arguments), 5):
            piece = {"index": index, "function": {"arguments": arguments[start : start + 5]}}
            yield {"tool_calls": [piece]}

    def streams(
        self, *deltas: Json, finish_reason: str | None = "stop", usage: Json | None = USAGE, times: int = 1
    ) -> None:
        """Answer the next requests with these deltas; without an end where `finish_reason` is None."""
        self.emulator.respond(stream=list(self.events(*deltas, finish_reason=finish_reason, usage=usage)), times=times)

    def events(self, *deltas: Json, finish_reason: str | None = "stop", usage: Json | None = USAGE) -> Iterator[str]:
        if self.subject.endpoint == "chat":
            yield self._event({"delta": {"role": "assistant"}})
        for delta in deltas:
            yield self._event(self._part(delta))
        if finish_reason is not None:
            yield self._event({**self._part({}), "finish_reason": finish_reason}, **({"usage": usage} if usage else {}))
            yield "data: [DONE]\n\n"

    def _part(self, delta: Json) -> Json:
        return {"delta": delta} if self.subject.endpoint == "chat" else {"text": delta.get("content", "")}

    def _event(self, choice: Json, **more: Any) -> str:
        kind = "chat.completion.chunk" if self.subject.endpoint == "chat" else "text_completion"
        event = {**HEAD, "object": kind, "choices": [{"index": 0, **choice}], **more}
        return f"data: {json.dumps(event)}\n\n"

    def breaks(self, *deltas: Json) -> None:
        """Answer the next request with these deltas, then an error event."""
        events = list(self.events(*deltas, finish_reason=None))
        error = {"status_code": 500, "error": {"message": "Encountered a server error", "type": "server_error"}}
        self.emulator.script(Fault(stream=[*events, f"data: {json.dumps(error)}\n\n"]))


def question(path: str, text: str = "q") -> Any:
    """What a path is asked with."""
    return text if "complete" in path else [ChatMessage(role="user", content=text)]


async def ask(llm: Any, path: str, *arguments: Any, **options: Any) -> list[Any]:
    """All that a path returns: one response, or its chunks."""
    given = arguments or (question(path),)
    if "stream" not in path:
        result = getattr(llm, path)(*given, **options)
        return [await result if path.startswith("a") else result]
    return [chunk async for chunk in chunks(llm, path, *given, **options)]


async def chunks(llm: Any, path: str, *arguments: Any, **options: Any) -> AsyncIterator[Any]:
    """The chunks of a stream, sync or async."""
    if path.startswith("a"):
        async for chunk in await getattr(llm, path)(*arguments, **options):
            yield chunk
    else:
        for chunk in getattr(llm, path)(*arguments, **options):
            yield chunk
            await asyncio.sleep(0)


def text_of(response: Any) -> Any:
    return response.message.content if hasattr(response, "message") else response.text

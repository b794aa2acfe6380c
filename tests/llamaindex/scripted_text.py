"""Answers of the completions endpoint for `tests.llamaindex.scripted`, and the paths of a completions LLM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import httpx
from llama_index.core.base.llms.types import ChatMessage

from llamaindex_cerebras_ext import CerebrasCompletion
from tests.llamaindex.scripted import TIME, USAGE, Answer, Json, Wire

HEAD: Json = {
    "id": "chatcmpl-1",
    "created": 1,
    "model": "served-model",
    "system_fingerprint": "fp_1",
    "object": "text_completion",
}
COMPLETE_PATHS = ("complete", "acomplete", "stream_complete", "astream_complete")
CHAT_PATHS = ("chat", "achat", "stream_chat", "astream_chat")
ALL_PATHS = (*COMPLETE_PATHS, *CHAT_PATHS)
STREAMS = tuple(path for path in ALL_PATHS if "stream" in path)


def whole(*texts: str, usage: Json | None = USAGE, **choice: Any) -> Json:
    """An answer that is not streamed, with a choice a text."""
    choices = [
        {"index": index, "finish_reason": "stop", "text": text, "tokens": None, **choice}
        for index, text in enumerate(texts)
    ]
    answer = {**HEAD, "choices": choices, "time_info": TIME}
    return {**answer, "usage": usage} if usage is not None else answer


def event(text: str = "", **choice: Any) -> Json:
    return {**HEAD, "choices": [{"index": 0, "text": text, **choice}]}


def streamed(*texts: str, finish_reason: str | None = "stop", usage: Json | None = USAGE) -> list[Json]:
    """The events of a stream: the texts, and the end with everything in one event."""
    events = [event(text) for text in texts]
    if finish_reason is not None:
        end = {**event(finish_reason=finish_reason), "time_info": TIME}
        events.append({**end, "usage": usage} if usage is not None else end)
    return events


def both(*texts: str, **options: Any) -> Callable[[Json], Json | list[Json]]:
    """The same answer, streamed where the request asks for a stream."""

    def answer(body: Json) -> Json | list[Json]:
        return streamed(*texts, **options) if body.get("stream") else whole("".join(texts), **options)

    return answer


def scripted_text(*answers: Answer, **fields: Any) -> tuple[CerebrasCompletion, Wire]:
    """A completions LLM whose requests are answered by the script."""
    wire = Wire(list(answers))
    transport = httpx.MockTransport(wire.handle)
    llm = CerebrasCompletion(
        http_client=httpx.Client(transport=transport),
        async_http_client=httpx.AsyncClient(transport=transport),
        **{"model": "some-model", "api_key": "csk-test", "max_retries": 0, **fields},
    )
    return llm, wire


def argument(path: str, text: str = "q") -> str | Sequence[ChatMessage]:
    """What a path is asked with."""
    return text if "complete" in path else [ChatMessage(role="user", content=text)]


def text_of(response: Any) -> Any:
    """The text of a response of either kind."""
    return response.message.content if hasattr(response, "message") else response.text

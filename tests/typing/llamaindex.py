"""How an application's type checker sees the classes for LlamaIndex.

The decorators of llama-index-core hide what the methods behind them return, so those are annotated here, not asserted.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, assert_type

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, CompletionResponse, LLMMetadata
from llama_index.core.llms.llm import ToolSelection
from pydantic import BaseModel

from cerebras_ext import errors
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from llamaindex_cerebras_ext import NoSuchName as _  # type: ignore[attr-defined]  # noqa: F401


class Place(BaseModel):
    name: str


def chat_paths(llm: Cerebras, messages: list[ChatMessage], prompt: Any) -> None:
    answer: ChatResponse = llm.chat(messages)
    chunks: Generator[ChatResponse, None, None] = llm.stream_chat(messages)
    assert_type(llm.get_tool_calls_from_response(answer), list[ToolSelection])
    for chunk in chunks:
        assert_type(llm.get_tool_calls_from_response(chunk, error_on_no_tool_call=False), list[ToolSelection])
    assert_type(llm.structured_predict(Place, prompt), Place)
    assert_type(llm.metadata, LLMMetadata)
    Cerebras(model="m", temperature=0.5, reasoning_effort="low", replay_reasoning="think_tags")


def text_paths(llm: CerebrasCompletion) -> None:
    answer: CompletionResponse = llm.complete([1, 2])
    chunks: Generator[CompletionResponse, None, None] = llm.stream_complete("q")
    assert_type([answer.text, *(chunk.delta for chunk in chunks)], list[str | None])
    assert_type(llm.complete_batch(["a", [1, 2]]), list[CompletionResponse])
    assert_type(CerebrasCompletion.from_config("m"), CerebrasCompletion)


async def async_paths(llm: Cerebras, text: CerebrasCompletion, messages: list[ChatMessage], prompt: Any) -> None:
    try:
        answer: ChatResponse = await llm.achat(messages)
        assert_type(answer.message, ChatMessage)
    except errors.RateLimitError as error:
        assert_type(error.retry_after, float | None)
    chunks: AsyncGenerator[ChatResponse, None] = await llm.astream_chat(messages)
    async for chunk in chunks:
        assert_type(chunk.delta, str | None)
    assert_type(await llm.astructured_predict(Place, prompt), Place)
    assert_type(await text.acomplete_batch(["a", "b"]), list[CompletionResponse])
    assert_type(await llm.aclose(), None)

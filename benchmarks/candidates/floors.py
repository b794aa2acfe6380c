"""The frameworks alone: the smallest models whose streams build fresh chunks, by the normal constructors, without I/O.

The number of chunks comes from the URL's scenario, so that floors take part in every section.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from benchmarks.candidates import Library, Setup
from benchmarks.candidates.models import LangChainModel, LlamaIndexModel
from benchmarks.scenarios import Scenario, read_path

WORD = " alpha"


def _scenario(setup: Setup) -> Scenario:
    return read_path(urlsplit(setup.url).path)[0]


def langchain() -> Library:
    """A minimal LangChain chat model."""
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

    class Floor(BaseChatModel):
        count: int = 1000
        tools: bool = False

        @property
        def _llm_type(self) -> str:
            return "floor"

        def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
            return self

        def _chunks(self) -> Iterator[ChatGenerationChunk]:
            if not self.tools:
                for _ in range(self.count):
                    yield ChatGenerationChunk(message=AIMessageChunk(content=WORD))
                return
            for number in range(self.count):
                call = {"index": 0, "id": None, "name": None, "args": WORD, "type": "tool_call_chunk"}
                if number == 0:
                    call |= {"id": "call_7d1c", "name": "write_report"}
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))

        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=WORD))])

        async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            return self._generate(messages)

        def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
            yield from self._chunks()

        async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
            for chunk in self._chunks():
                yield chunk

    def make(setup: Setup) -> LangChainModel:
        return LangChainModel(Floor(count=_scenario(setup).tokens, tools=setup.tools), setup)

    return Library("langchain-core alone", make)


def llamaindex() -> Library:
    """A minimal LlamaIndex model."""
    from llama_index.core.base.llms.types import (
        ChatMessage,
        ChatResponse,
        CompletionResponse,
        LLMMetadata,
        MessageRole,
    )
    from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
    from llama_index.core.llms.custom import CustomLLM

    class Floor(CustomLLM):
        count: int = 1000

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(is_chat_model=True)

        def _responses(self) -> Iterator[ChatResponse]:
            text = ""
            for _ in range(self.count):
                text += WORD
                yield ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=text), delta=WORD)

        def _completions(self) -> Iterator[CompletionResponse]:
            text = ""
            for _ in range(self.count):
                text += WORD
                yield CompletionResponse(text=text, delta=WORD)

        @llm_chat_callback()
        def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=WORD))

        @llm_chat_callback()
        async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
            return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, content=WORD))

        @llm_chat_callback()
        def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
            def responses() -> Iterator[ChatResponse]:
                yield from self._responses()

            return responses()

        @llm_chat_callback()
        async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
            async def responses() -> AsyncIterator[ChatResponse]:
                for response in self._responses():
                    yield response

            return responses()

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            return CompletionResponse(text=WORD)

        @llm_completion_callback()
        async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
            return CompletionResponse(text=WORD)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            def responses() -> Iterator[CompletionResponse]:
                yield from self._completions()

            return responses()

        @llm_completion_callback()
        async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
            async def responses() -> AsyncIterator[CompletionResponse]:
                for response in self._completions():
                    yield response

            return responses()

    def make(setup: Setup) -> LlamaIndexModel:
        return LlamaIndexModel(Floor(count=_scenario(setup).tokens), setup)

    return Library("llama-index-core alone", make)

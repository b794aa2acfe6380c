"""This project: the core's clients, and the models of both adapters."""

from __future__ import annotations

from typing import Any

from benchmarks.candidates import KEY, MODEL, Library, Setup
from benchmarks.candidates.models import LangChainModel, LlamaIndexModel
from benchmarks.candidates.plain import wire_body


def core() -> Library:
    """The core's `Client` and `AsyncClient`."""
    from cerebras_ext import AsyncClient, Client

    class Core:
        def __init__(self, setup: Setup) -> None:
            client = Client(api_key=KEY, base_url=setup.url, **setup.options)
            async_client = AsyncClient(api_key=KEY, base_url=setup.url, **setup.options)
            self.fields = wire_body(setup, stream=False)
            chat = setup.prompt is None
            self._call: Any = client.chat if chat else client.complete
            self._acall: Any = async_client.chat if chat else async_client.complete
            self._stream: Any = client.stream_chat if chat else client.stream_complete
            self._astream: Any = async_client.stream_chat if chat else async_client.stream_complete

        def stream(self) -> int:
            return sum(len(batch) for batch in self._stream(**self.fields).batches())

        async def astream(self) -> int:
            count = 0
            async for batch in self._astream(**self.fields).batches():
                count += len(batch)
            return count

        def call(self) -> int:
            self._call(**self.fields)
            return 1

        async def acall(self) -> int:
            await self._acall(**self.fields)
            return 1

    return Library("core", Core)


def langchain() -> Library:
    """`ChatCerebras` and `CerebrasLLM`."""
    from langchain_cerebras_ext import CerebrasLLM, ChatCerebras

    def make(setup: Setup) -> LangChainModel:
        kind: Any = ChatCerebras if setup.prompt is None else CerebrasLLM
        return LangChainModel(kind(model=MODEL, api_key=KEY, base_url=setup.url, **setup.options), setup)

    return Library("langchain_cerebras_ext", make)


def llamaindex() -> Library:
    """`Cerebras` and `CerebrasCompletion`."""
    from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion

    def make(setup: Setup) -> LlamaIndexModel:
        kind: Any = Cerebras if setup.prompt is None else CerebrasCompletion
        return LlamaIndexModel(kind(model=MODEL, api_key=KEY, api_base=setup.url, **setup.options), setup)

    return Library("llamaindex_cerebras_ext", make)

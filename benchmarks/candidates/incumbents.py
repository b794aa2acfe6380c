"""The packages that users have today, where they are installed (extra `bench`)."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from benchmarks.candidates import KEY, MODEL, Library, Setup
from benchmarks.candidates.models import LangChainModel, LlamaIndexModel


def langchain() -> Library:
    """`langchain-cerebras`."""
    from langchain_cerebras import ChatCerebras  # type: ignore[import-not-found,unused-ignore]

    def make(setup: Setup) -> LangChainModel:
        keywords: dict[str, Any] = {"model": MODEL, "api_key": KEY, "base_url": setup.url + "/v1/"}
        return LangChainModel(ChatCerebras(**keywords), setup)

    return Library(f"langchain-cerebras {version('langchain-cerebras')}", make)


def llamaindex() -> Library:
    """`llama-index-llms-cerebras`."""
    from llama_index.llms.cerebras import Cerebras  # type: ignore[import-untyped,unused-ignore]

    def make(setup: Setup) -> LlamaIndexModel:
        keywords: dict[str, Any] = {"is_function_calling_model": True, "context_window": 131072}
        if setup.prompt is not None:
            keywords["is_chat_model"] = False
        return LlamaIndexModel(Cerebras(model=MODEL, api_key=KEY, api_base=setup.url + "/v1/", **keywords), setup)

    return Library(f"llama-index-llms-cerebras {version('llama-index-llms-cerebras')}", make)

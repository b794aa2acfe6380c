"""What a type checker knows about the models for LangChain."""

from typing import assert_type

from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import LLMResult

from langchain_cerebras_ext import CerebrasLLM, ChatCerebras, register
from langchain_cerebras_ext import NoSuchName as _  # type: ignore[attr-defined]  # noqa: F401


def chat_paths(chat: ChatCerebras) -> None:
    assert_type(chat.invoke("q"), AIMessage)
    for chunk in chat.stream("q"):
        assert_type(chunk, AIMessageChunk)
    assert_type(chat.bind(temperature=0).invoke("q"), AIMessage)
    assert_type(chat.model_copy(), ChatCerebras)
    assert_type(chat.get_num_tokens("q"), int)
    with chat as entered:
        assert_type(entered, ChatCerebras)


def text_paths(llm: CerebrasLLM) -> None:
    assert_type(llm.invoke("q"), str)
    for piece in llm.stream("q"):
        assert_type(piece, str)
    assert_type(llm.generate_token_ids([[1, 2]]), LLMResult)


async def async_paths(llm: CerebrasLLM, chat: ChatCerebras) -> None:
    assert_type(await llm.ainvoke("q"), str)
    assert_type(await chat.ainvoke("q"), AIMessage)
    assert_type(await llm.agenerate_token_ids([[1, 2]]), LLMResult)


assert_type(register(), bool)

"""How an application's type checker sees `ChatCerebras`."""

from __future__ import annotations

from typing import assert_type

from langchain_core.messages import AIMessage, AIMessageChunk

from langchain_cerebras_ext import ChatCerebras, errors


def check(model: ChatCerebras) -> None:
    assert_type(model.invoke("hi"), AIMessage)
    for chunk in model.stream("hi"):
        assert_type(chunk, AIMessageChunk)
    assert_type(model.model_name, str)
    assert_type(model.bind_tools([]).invoke("hi"), AIMessage)
    ChatCerebras(model="m", temperature=0.5, reasoning_effort="low", replay_reasoning="think_tags")


async def check_async(model: ChatCerebras) -> None:
    try:
        assert_type(await model.ainvoke("hi"), AIMessage)
    except errors.RateLimitError as error:
        assert_type(error.retry_after, float | None)
        assert_type(error.response.status_code, int)
    async for chunk in model.astream("hi"):
        assert_type(chunk, AIMessageChunk)

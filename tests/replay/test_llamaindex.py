"""LlamaIndex over cassettes: both models on their paths, tools, structured output and reasoning."""

from __future__ import annotations

from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ThinkingBlock
from llama_index.core.prompts import PromptTemplate
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel, Field

from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from tests.replay.cassettes import service_key, service_url

pytestmark = pytest.mark.vcr

MODEL = "gpt-oss-120b"
QUESTION = [ChatMessage(role="user", content="Say in one sentence what a wafer is.")]


class City(BaseModel):
    """A city and its country."""

    name: str = Field(description="Name of the city")
    country: str = Field(description="Country that the city is in")


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"It is sunny in {city}."


def make_chat(**settings: Any) -> Cerebras:
    return Cerebras(model=MODEL, api_key=service_key(), api_base=service_url(), max_retries=0, **settings)


def make_completion(**settings: Any) -> CerebrasCompletion:
    return CerebrasCompletion(model=MODEL, api_key=service_key(), api_base=service_url(), max_retries=0, **settings)


def assert_complete(response: ChatResponse) -> None:
    assert response.message.content
    assert isinstance(response.raw, dict)
    assert response.raw["usage"]["completion_tokens"] > 0


def test_chat() -> None:
    assert_complete(make_chat().chat(QUESTION))


async def test_achat() -> None:
    assert_complete(await make_chat().achat(QUESTION))


def test_stream_chat() -> None:
    responses = list(make_chat().stream_chat(QUESTION))

    assert_complete(responses[-1])
    assert "".join(each.delta or "" for each in responses) == responses[-1].message.content


async def test_astream_chat() -> None:
    assert_complete([each async for each in await make_chat().astream_chat(QUESTION)][-1])


def test_reasoning() -> None:
    message = make_chat(reasoning_effort="low").chat(QUESTION).message

    assert [block for block in message.blocks if isinstance(block, ThinkingBlock)]


def test_tool_call_and_answer() -> None:
    llm, tool = make_chat(), FunctionTool.from_defaults(weather)

    response = llm.predict_and_call([tool], user_msg="What is the weather in Paris?")

    assert "sunny in Paris" in str(response)


def test_structured_predict() -> None:
    city = make_chat().structured_predict(
        City, PromptTemplate("Paris is the capital of {country}. Which city is it?"), country="France"
    )

    assert isinstance(city, City)


def test_complete_and_stream_complete() -> None:
    llm = make_completion(max_tokens=20)

    whole = llm.complete("A wafer is")
    streamed = list(llm.stream_complete("A wafer is"))

    assert whole.text
    assert streamed[-1].text == "".join(each.delta or "" for each in streamed)


async def test_acomplete() -> None:
    assert (await make_completion(max_tokens=20).acomplete("A wafer is")).text

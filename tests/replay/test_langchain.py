"""LangChain over cassettes: both models on their four paths, tools, structured output and reasoning."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from pydantic import BaseModel, Field

from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from tests.replay.cassettes import service_key, service_url

pytestmark = pytest.mark.vcr

MODEL = "gpt-oss-120b"
QUESTION = "Say in one sentence what a wafer is."


class City(BaseModel):
    """A city and its country."""

    name: str = Field(description="Name of the city")
    country: str = Field(description="Country that the city is in")


def weather(city: str) -> str:
    """Return the weather of a city."""
    return f"It is sunny in {city}."


def make_chat(**settings: Any) -> ChatCerebras:
    return ChatCerebras(model=MODEL, api_key=service_key(), base_url=service_url(), max_retries=0, **settings)


def make_llm(**settings: Any) -> CerebrasLLM:
    return CerebrasLLM(model=MODEL, api_key=service_key(), base_url=service_url(), max_retries=0, **settings)


def merged(chunks: list[Any]) -> AIMessageChunk:
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert isinstance(whole, AIMessageChunk)
    return whole


def assert_complete(message: AIMessage) -> None:
    assert message.text
    assert message.usage_metadata is not None
    assert message.usage_metadata["output_tokens"] > 0
    assert message.response_metadata["finish_reason"] == "stop"


def test_invoke() -> None:
    assert_complete(make_chat().invoke(QUESTION))


async def test_ainvoke() -> None:
    assert_complete(await make_chat().ainvoke(QUESTION))


def test_stream() -> None:
    assert_complete(merged(list(make_chat().stream(QUESTION))))


async def test_astream() -> None:
    assert_complete(merged([chunk async for chunk in make_chat().astream(QUESTION)]))


def test_reasoning() -> None:
    message = make_chat(reasoning_effort="low").invoke(QUESTION)

    assert message.additional_kwargs["reasoning_content"]


def test_tool_call_and_answer() -> None:
    model = make_chat().bind_tools([weather])
    question = HumanMessage("What is the weather in Paris?")

    call = model.invoke([question])
    (asked,) = call.tool_calls
    result = ToolMessage(weather(**asked["args"]), tool_call_id=asked["id"])
    answer = model.invoke([question, call, result])

    assert "Paris" in asked["args"]["city"]
    assert "sunny" in answer.text


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_output(method: Any) -> None:
    question = "Paris is the capital of France. Give its name and country as JSON with the keys name and country."

    city = make_chat().with_structured_output(City, method=method).invoke(question)

    assert isinstance(city, City)


def test_llm_on_several_prompts() -> None:
    result = make_llm(max_tokens=20).generate(["A wafer is", "A plate is"])

    assert [bool(generations[0].text) for generations in result.generations] == [True, True]


async def test_llm_stream() -> None:
    assert "".join([text async for text in make_llm(max_tokens=20).astream("A wafer is")])

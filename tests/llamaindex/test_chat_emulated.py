"""The chat class over real connections, to the emulator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from llama_index.core.program import LLMTextCompletionProgram
from pydantic import BaseModel

from cerebras_ext.emulator import Emulator
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from tests.llamaindex.scripted import PATHS, ask, last
from tests.llamaindex.tooling import WEATHER


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


def test_streams_that_are_left_do_not_use_up_the_pool(emulator: Emulator) -> None:
    with httpx.Client(limits=httpx.Limits(max_connections=1), timeout=httpx.Timeout(10, pool=0.5)) as http:
        llm = Cerebras(model="gpt-oss-120b", api_key="k", api_base=emulator.base_url, http_client=http, max_retries=0)
        for _ in range(5):
            for _chunk in llm.stream_chat(ask()):
                break
        assert llm.chat(ask()).message.content


async def test_async_streams_that_are_left_do_not_use_up_the_pool(emulator: Emulator) -> None:
    limits, timeout = httpx.Limits(max_connections=1), httpx.Timeout(10, pool=0.5)
    async with httpx.AsyncClient(limits=limits, timeout=timeout) as http:
        llm = Cerebras(
            model="gpt-oss-120b", api_key="k", api_base=emulator.base_url, async_http_client=http, max_retries=0
        )
        for _ in range(5):
            stream = await llm.astream_chat(ask())
            await anext(stream)
            await stream.aclose()
        assert (await llm.achat(ask())).message.content


@pytest.mark.parametrize("path", PATHS)
async def test_answers_of_the_emulator_have_what_observers_read(emulator: Emulator, path: str) -> None:
    llm = Cerebras(model="gpt-oss-120b", api_key="k", api_base=emulator.base_url)
    response = await last(llm, path, ask())
    assert response.message.content
    assert response.raw["choices"][0]["finish_reason"]
    assert response.additional_kwargs["total_tokens"] == response.raw["usage"]["total_tokens"] > 0


async def test_forced_tool_is_called_on_every_path(emulator: Emulator) -> None:
    llm = Cerebras(model="gpt-oss-120b", api_key="k", api_base=emulator.base_url)
    options = {"user_msg": "How is the weather in Bern?", "tool_required": True}
    answers = [
        llm.chat_with_tools([WEATHER], **options),
        await llm.achat_with_tools([WEATHER], **options),
        list(llm.stream_chat_with_tools([WEATHER], **options))[-1],
        [item async for item in await llm.astream_chat_with_tools([WEATHER], **options)][-1],
    ]
    for response in answers:
        (selection,) = llm.get_tool_calls_from_response(response)
        assert selection.tool_name == "weather"
        assert "city" in selection.tool_kwargs


def test_one_instance_serves_one_loop_after_the_other(emulator: Emulator) -> None:
    llm = Cerebras(model="gpt-oss-120b", api_key="k", api_base=emulator.base_url)

    async def once() -> str:
        return (await llm.achat(ask())).message.content or ""

    assert all(asyncio.run(once()) for _ in range(3))


class Place(BaseModel):
    """A place."""

    name: str
    country: str


@pytest.mark.parametrize("cls", [Cerebras, CerebrasCompletion])
def test_a_schema_in_the_prompt_is_followed(emulator: Emulator, cls: type[Cerebras | CerebrasCompletion]) -> None:
    llm = cls(model="gpt-oss-120b", api_key="k", api_base=emulator.base_url)
    program = LLMTextCompletionProgram.from_defaults(
        output_cls=Place, prompt_template_str="Extract the place: {text}", llm=llm
    )
    assert program(text="Bern in Switzerland") == Place(name="Bern", country="Switzerland")

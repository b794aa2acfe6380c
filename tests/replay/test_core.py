"""The core over cassettes: each operation of both clients, in each encoding."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from cerebras_ext import AsyncClient, Client
from tests.replay.cassettes import service_key, service_url

pytestmark = pytest.mark.vcr

MODEL = "gpt-oss-120b"
QUESTION: dict[str, Any] = {
    "model": MODEL,
    "messages": [{"role": "user", "content": "Say in one sentence what a wafer is."}],
    "max_completion_tokens": 200,
    "seed": 7,
}
PROMPT: dict[str, Any] = {"model": MODEL, "prompt": "A wafer is", "max_tokens": 40, "seed": 7}


def make_client(**settings: Any) -> Client:
    return Client(api_key=service_key(), base_url=service_url(), max_retries=0, **settings)


def make_async_client(**settings: Any) -> AsyncClient:
    return AsyncClient(api_key=service_key(), base_url=service_url(), max_retries=0, **settings)


@pytest.mark.parametrize("payload", ["json", "msgpack", "gzip", "msgpack+gzip", "auto"])
def test_chat_in_every_encoding(payload: Literal["json", "msgpack", "gzip", "msgpack+gzip", "auto"]) -> None:
    response = make_client(payload=payload).chat(**QUESTION)

    assert response.text
    assert response.finish_reason in ("stop", "length")
    assert response.usage is not None
    assert response.usage.total_tokens


def test_stream_chat() -> None:
    with make_client().stream_chat(**QUESTION) as stream:
        text = "".join(delta.content or "" for delta in stream)

    assert text
    assert stream.response.text == text
    assert stream.response.usage is not None


async def test_async_chat_and_stream() -> None:
    async with make_async_client() as client:
        whole = await client.chat(**QUESTION)
        stream = client.stream_chat(**QUESTION)
        text = "".join([delta.content or "" async for delta in stream])

    assert whole.text
    assert stream.response.text == text


def test_complete_and_stream_complete() -> None:
    client = make_client()

    whole = client.complete(**PROMPT)
    stream = client.stream_complete(**PROMPT)
    text = "".join(delta.text or "" for delta in stream)

    assert whole.text
    assert stream.response.text == text


async def test_async_complete_and_stream() -> None:
    async with make_async_client() as client:
        whole = await client.complete(**PROMPT)
        stream = client.stream_complete(**PROMPT)
        text = "".join([delta.text or "" async for delta in stream])

    assert whole.text
    assert stream.response.text == text


def test_models() -> None:
    assert MODEL in [model.id for model in make_client().models().data]

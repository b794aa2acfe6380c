"""What a type checker knows about the public names."""

from typing import Any, assert_type

from cerebras_ext import AsyncClient, ChatDelta, ChatResponse, Client, CompletionDelta, CompletionResponse
from cerebras_ext.strict_schema import NoSuchName as _  # type: ignore[attr-defined]  # noqa: F401
from cerebras_ext.types import UserMessage


def sync_paths(client: Client) -> None:
    assert_type(client.chat(model="m", messages=[]), ChatResponse)
    assert_type(client.complete(model="m", prompt="p"), CompletionResponse)
    stream = client.stream_chat(model="m", messages=[])
    for delta in stream:
        assert_type(delta, ChatDelta)
    assert_type(stream.response, ChatResponse)
    for text in client.stream_complete(model="m", prompt="p"):
        assert_type(text, CompletionDelta)


async def async_paths(client: AsyncClient) -> None:
    assert_type(await client.chat(model="m", messages=[]), ChatResponse)
    async for delta in client.stream_chat(model="m", messages=[]):
        assert_type(delta, ChatDelta)


def typed_keywords(client: Client, given: dict[str, Any]) -> None:
    client.chat(
        model="m",
        messages=[{"role": "user", "content": "q"}, UserMessage(content="q")],
        response_format={"type": "json_object"},
        tools=[{"type": "function", "function": {"name": "f"}}],
        stop=["a"],
        temperature=0.5,
        timeout=3,
        extra_headers={"a": "b"},
    )
    client.chat({"model": "m"}, **given)
    client.stream_complete(model="m", prompt=[1, 2], unstreamable="single")
    client.chat(temprature=1)  # type: ignore[call-arg]
    client.chat(temperature="hot")  # type: ignore[arg-type]
    client.complete(messages=[])  # type: ignore[call-arg]
    client.stream_chat(unstreamable="maybe")  # type: ignore[arg-type]
    Client(max_retry=1)  # type: ignore[call-arg]
    AsyncClient(payload="zip")  # type: ignore[arg-type]

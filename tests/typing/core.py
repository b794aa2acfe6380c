"""What a type checker knows about the public names."""

from typing import assert_type

from cerebras_ext import AsyncClient, ChatDelta, ChatResponse, Client, CompletionDelta, CompletionResponse


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

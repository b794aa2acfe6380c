"""Every recorded exchange through the core's clients: nothing is lost, sync and async."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from cerebras_ext import AsyncClient, ChatResponse, Client
from cerebras_ext.assembly import ChatAssembler
from cerebras_ext.endpoints import CHAT
from cerebras_ext.errors import APIStatusError
from cerebras_ext.exchange import Options, prepare
from cerebras_ext.settings import resolve_settings
from cerebras_ext.stream_state import StreamState
from cerebras_ext.types import ChatRequest
from tests.conformance import recordings

pytestmark = pytest.mark.recordings

REQUEST: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


def transport(exchange: dict[str, Any]) -> httpx.MockTransport:
    answer = exchange["response"]
    headers = {name: value for name, value in answer["headers"].items() if name != "content-encoding"}
    return httpx.MockTransport(
        lambda request: httpx.Response(answer["status"], headers=headers, content=recordings.body(exchange))
    )


async def both(exchange: dict[str, Any]) -> tuple[ChatResponse, ChatResponse]:
    """The answer of the sync and of the async client, streamed where it was."""
    with httpx.Client(transport=transport(exchange)) as http:
        client = Client(api_key="k", max_retries=0, http_client=http)
        if recordings.is_stream(exchange):
            stream = client.stream_chat(REQUEST)
            assert list(stream)
            first = stream.response
        else:
            first = client.chat(REQUEST)
    async with httpx.AsyncClient(transport=transport(exchange)) as http_async:
        twin = AsyncClient(api_key="k", max_retries=0, http_async_client=http_async)
        if recordings.is_stream(exchange):
            async_stream = twin.stream_chat(REQUEST)
            assert [delta async for delta in async_stream]
            return first, async_stream.response
        return first, await twin.chat(REQUEST)


def expected_of_stream(events: list[dict[str, Any]]) -> dict[str, Any]:
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for call in delta.get("tool_calls", []):
            entry = calls.setdefault(call["index"], ["", "", ""])
            entry[0] = entry[0] or call.get("id", "")
            entry[1] = entry[1] or call["function"].get("name", "")
            entry[2] += call["function"].get("arguments", "")
    last = events[-1]
    return {
        "content": "".join(delta.get("content", "") for delta in deltas),
        "reasoning": "".join(delta.get("reasoning", "") for delta in deltas),
        "calls": list(calls.values()),
        "finish_reason": last["choices"][0]["finish_reason"],
        **{name: last.get(name) for name in ("usage", "time_info", "id", "model", "created", "system_fingerprint")},
    }


def seen(response: ChatResponse) -> dict[str, Any]:
    whole = response.to_dict()
    return {
        "content": response.text,
        "reasoning": response.reasoning,
        "calls": [[call.id, call.name, call.arguments] for call in response.tool_calls],
        "finish_reason": response.finish_reason,
        **{name: whole.get(name) for name in ("usage", "time_info", "id", "model", "created", "system_fingerprint")},
    }


@pytest.mark.parametrize("number", recordings.numbers())
async def test_recorded_chat_loses_nothing(number: str) -> None:
    exchange = recordings.load(number)
    if "/models" in (exchange["request"] or {}).get("url", ""):
        with httpx.Client(transport=transport(exchange)) as http:
            models = Client(api_key="k", http_client=http).models()
        assert models.ids
        return
    if exchange["response"]["status"] != 200:
        with pytest.raises(APIStatusError) as caught:
            await both(exchange)
        said = json.loads(recordings.body(exchange))
        assert caught.value.status_code == exchange["response"]["status"]
        assert (caught.value.message, caught.value.type) == (said["message"], said["type"])
        assert caught.value.code == said.get("code")
        return
    for response in await both(exchange):
        if recordings.is_stream(exchange):
            assert seen(response) == expected_of_stream(recordings.events(exchange))
        else:
            assert response.to_dict() == json.loads(recordings.body(exchange))


@pytest.mark.parametrize("number", recordings.numbers())
def test_recorded_request_round_trips(number: str) -> None:
    request = (recordings.load(number)["request"] or {}).get("json")
    if request is not None:
        assert ChatRequest.model_validate(request).model_dump(mode="json", exclude_unset=True, by_alias=True) == request


@pytest.mark.parametrize("number", recordings.numbers())
def test_recorded_stream_is_the_same_however_it_is_split(number: str) -> None:
    exchange = recordings.load(number)
    if not recordings.is_stream(exchange):
        return
    data = recordings.body(exchange)
    whole = ChatAssembler()
    for event in recordings.events(exchange):
        whole.feed(event)
    expected = whole.response().to_dict()
    call = prepare(resolve_settings(), SecretStr("k"), "POST", "/", Options(), {}, stream=True)
    rng = random.Random(number)
    positions = range(1, len(data)) if len(data) < 3000 else [rng.randrange(1, len(data)) for _ in range(60)]
    for position in positions:
        state = StreamState(CHAT, call, httpx.Headers(), None, None)
        state.feed(data[:position])
        state.feed(data[position:])
        state.finish()
        assert state.response().to_dict() == expected


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that comes in given pieces, sync or async."""

    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        yield from self._pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece


@pytest.mark.parametrize("number", recordings.numbers())
async def test_recorded_stream_in_random_pieces_through_both_clients(number: str) -> None:
    exchange = recordings.load(number)
    if not recordings.is_stream(exchange):
        return
    data, rng = recordings.body(exchange), random.Random(number)
    expected = expected_of_stream(recordings.events(exchange))
    for _ in range(3):
        cuts = sorted(rng.randrange(len(data)) for _ in range(rng.randrange(1, 40)))
        pieces = [data[a:b] for a, b in itertools.pairwise([0, *cuts, len(data)])]
        transport = httpx.MockTransport(lambda request, pieces=pieces: httpx.Response(200, stream=Pieces(pieces)))
        with httpx.Client(transport=transport) as http:
            stream = Client(api_key="k", http_client=http).stream_chat(REQUEST)
            text = "".join(delta.content for delta in stream)
        assert (seen(stream.response), text) == (expected, expected["content"])
        async with httpx.AsyncClient(transport=transport) as http_async:
            twin = AsyncClient(api_key="k", http_async_client=http_async).stream_chat(REQUEST)
            text = "".join([delta.content async for delta in twin])
        assert (seen(twin.response), text) == (expected, expected["content"])

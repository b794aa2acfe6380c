"""Every recorded exchange of the real service through the four chat paths: nothing is lost, and all of them agree.

What is expected is read from the recording by the few lines here, without any help of the library.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import ChatResponse, ThinkingBlock, ToolCallBlock

from cerebras_ext.errors import APIStatusError
from llamaindex_cerebras_ext import Cerebras
from llamaindex_cerebras_ext.to_wire import to_wire
from tests.conformance import recordings
from tests.llamaindex.scripted import ask, responses

pytestmark = pytest.mark.recordings


def llm_for(exchange: dict[str, Any]) -> Cerebras:
    answer = exchange["response"]
    headers = {name: value for name, value in answer["headers"].items() if name != "content-encoding"}
    transport = httpx.MockTransport(
        lambda request: httpx.Response(answer["status"], headers=headers, content=recordings.body(exchange))
    )
    return Cerebras(
        model="m",
        api_key="k",
        max_retries=0,
        http_client=httpx.Client(transport=transport),
        async_http_client=httpx.AsyncClient(transport=transport),
    )


def read_whole(answer: dict[str, Any]) -> dict[str, Any]:
    message = answer["choices"][0]["message"]
    return {
        "text": message.get("content") or "",
        "thinking": message.get("reasoning") or "",
        "calls": message.get("tool_calls") or [],
        "finish_reason": answer["choices"][0]["finish_reason"],
        **{name: answer.get(name) for name in ("id", "model", "usage", "time_info", "created", "system_fingerprint")},
    }


def read_stream(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"content": "", "reasoning": ""}
    calls: dict[int, dict[str, Any]] = {}
    for event in events:
        delta = event["choices"][0]["delta"]
        for name in ("content", "reasoning"):
            message[name] += delta.get(name) or ""
        for piece in delta.get("tool_calls", []):
            entry = calls.setdefault(
                piece["index"], {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
            )
            entry["id"] = entry["id"] or piece.get("id", "")
            for name in ("name", "arguments"):
                entry["function"][name] += piece["function"].get(name, "")
    finish_reason = events[-1]["choices"][0]["finish_reason"]
    whole = {"choices": [{"message": {**message, "tool_calls": list(calls.values())}, "finish_reason": finish_reason}]}
    return read_whole({**events[-1], **whole})


def seen(response: ChatResponse) -> dict[str, Any]:
    message, raw = response.message, response.raw
    assert type(raw) is dict
    assert [block.block_type for block in message.blocks] == sorted(
        (block.block_type for block in message.blocks), key=["thinking", "text", "tool_call"].index
    )
    blocks = [block for block in message.blocks if isinstance(block, ToolCallBlock)]
    calls = message.additional_kwargs.get("tool_calls", [])
    assert [(block.tool_call_id, block.tool_name) for block in blocks] == [
        (call["id"], call["function"]["name"]) for call in calls
    ]
    assert [block.tool_kwargs for block in blocks] == [json.loads(call["function"]["arguments"]) for call in calls]
    return {
        "text": message.content,
        "thinking": "".join(block.content or "" for block in message.blocks if isinstance(block, ThinkingBlock)),
        "calls": calls,
        "finish_reason": raw["choices"][0]["finish_reason"],
        **{name: raw.get(name) for name in ("id", "model", "usage", "time_info", "created", "system_fingerprint")},
    }


def check_counts(response: ChatResponse, usage: dict[str, Any]) -> None:
    counts = response.additional_kwargs
    for name in ("prompt_tokens", "completion_tokens", "total_tokens"):
        assert counts[name] == usage[name]
    assert counts.get("cached_tokens") == usage.get("prompt_tokens_details", {}).get("cached_tokens")
    spent = usage.get("completion_tokens_details", {}).get("reasoning_tokens")
    assert counts.get("reasoning_tokens") == spent
    for block in response.message.blocks:
        if isinstance(block, ThinkingBlock):
            assert block.num_tokens == spent


def check_chunks(chunks: list[ChatResponse], expected: dict[str, Any]) -> None:
    assert "".join(chunk.delta or "" for chunk in chunks) == expected["text"]
    assert "".join(chunk.additional_kwargs.get("thinking_delta", "") for chunk in chunks) == expected["thinking"]
    text = ""
    for chunk in chunks:
        assert chunk.delta is not None
        text += chunk.delta
        assert chunk.message.content == text


async def check(exchange: dict[str, Any], path: str, expected: dict[str, Any]) -> None:
    llm = llm_for(exchange)
    found = await responses(llm, path, ask())
    assert seen(found[-1]) == expected
    check_counts(found[-1], expected["usage"])
    selections = llm.get_tool_calls_from_response(found[-1], error_on_no_tool_call=False)
    assert [(item.tool_id, item.tool_name, item.tool_kwargs) for item in selections] == [
        (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in expected["calls"]
    ]
    if "stream" in path:
        check_chunks(found, expected)


@pytest.mark.parametrize("number", recordings.numbers())
async def test_recorded_answer_loses_nothing(number: str) -> None:
    exchange = recordings.load(number)
    if "/models" in (exchange["request"] or {}).get("url", ""):
        return
    streamed = recordings.is_stream(exchange)
    paths = ("stream_chat", "astream_chat") if streamed else ("chat", "achat")
    if exchange["response"]["status"] != 200:
        said = json.loads(recordings.body(exchange))
        for path in ("chat", "achat", "stream_chat", "astream_chat"):
            with pytest.raises(APIStatusError) as caught:
                await responses(llm_for(exchange), path, ask())
            assert (caught.value.status_code, caught.value.message) == (exchange["response"]["status"], said["message"])
        return
    expected = (
        read_stream(recordings.events(exchange)) if streamed else read_whole(json.loads(recordings.body(exchange)))
    )
    for path in paths:
        await check(exchange, path, expected)


@pytest.mark.parametrize("number", recordings.numbers())
async def test_recorded_answer_can_be_sent_back(number: str) -> None:
    exchange = recordings.load(number)
    if "/models" in (exchange["request"] or {}).get("url", "") or exchange["response"]["status"] != 200:
        return
    streamed = recordings.is_stream(exchange)
    expected = (
        read_stream(recordings.events(exchange)) if streamed else read_whole(json.loads(recordings.body(exchange)))
    )
    answer = (await responses(llm_for(exchange), "stream_chat" if streamed else "chat", ask()))[-1]
    (sent,) = to_wire([answer.message])
    assert sent.pop("role") == "assistant"
    assert sent.pop("content", "") == expected["text"]
    assert sent.pop("reasoning", "") == expected["thinking"]
    assert sent.pop("tool_calls", []) == expected["calls"]
    assert sent == {}

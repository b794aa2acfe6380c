"""Every recorded answer of the real service, through the four chat methods, against what its own JSON says."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from llama_index.core.base.llms.types import TextBlock, ThinkingBlock, ToolCallBlock

from tests.conformance.recordings import body, events, is_stream, load, numbers
from tests.llamaindex.conformance.service import CHAT_PATHS, Service, ask
from tests.llamaindex.conformance.subjects import Subject

pytestmark = [pytest.mark.recordings, pytest.mark.needs("chat", "reasoning", "tools")]


class Expected(NamedTuple):
    """What a recording says, read without any help of a library."""

    text: str
    thinking: str
    calls: list[tuple[str, str, Any]]
    finish_reason: str
    usage: dict[str, Any]


def expected(exchange: dict[str, Any]) -> Expected:
    """Read the first choice of a recorded answer."""
    if not is_stream(exchange):
        answer = exchange["response"]["json"]
        message = answer["choices"][0]["message"]
        calls = [
            (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
            for call in message.get("tool_calls", ())
        ]
        reason = answer["choices"][0]["finish_reason"]
        return Expected(message.get("content") or "", message.get("reasoning") or "", calls, reason, answer["usage"])
    text = thinking = reason = ""
    usage: dict[str, Any] = {}
    growing: dict[int, list[str]] = {}
    for event in events(exchange):
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            reason = choice.get("finish_reason") or reason
            text += choice["delta"].get("content") or ""
            thinking += choice["delta"].get("reasoning") or ""
            for call in choice["delta"].get("tool_calls", ()):
                slot = growing.setdefault(call["index"], ["", "", ""])
                slot[0] += call.get("id") or ""
                slot[1] += call["function"].get("name") or ""
                slot[2] += call["function"].get("arguments") or ""
    calls = [(slot[0], slot[1], json.loads(slot[2])) for slot in growing.values()]
    return Expected(text, thinking, calls, reason, usage)


def cases() -> list[tuple[str, str]]:
    """The recordings that hold a good chat answer, each with the methods that can meet it."""
    found = []
    for number in numbers():
        if number == "absent":
            return [(number, "chat")]
        exchange = load(number)
        streamed = is_stream(exchange)
        if exchange["response"]["status"] == 200 and (streamed or "choices" in exchange["response"].get("json", {})):
            found += [(number, path) for path in CHAT_PATHS if ("stream" in path) == streamed]
    return found


@pytest.mark.parametrize(("number", "path"), cases())
async def test_recorded_answer(service: Service, subject: Subject, number: str, path: str) -> None:
    exchange = load(number)
    wanted = expected(exchange)
    if is_stream(exchange):
        service.emulator.respond(stream=body(exchange))
    else:
        service.emulator.respond(body(exchange))
    found = await ask(service.make(), path)
    last = found[-1]
    blocks = last.message.blocks
    assert "".join(block.text for block in blocks if isinstance(block, TextBlock)) == wanted.text
    assert "".join(block.content or "" for block in blocks if isinstance(block, ThinkingBlock)) == wanted.thinking
    calls = [
        (block.tool_call_id, block.tool_name, block.tool_kwargs) for block in blocks if isinstance(block, ToolCallBlock)
    ]
    assert calls == wanted.calls
    assert last.raw["choices"][0]["finish_reason"] == wanted.finish_reason
    assert last.raw["usage"]["total_tokens"] == wanted.usage["total_tokens"]
    assert last.additional_kwargs["completion_tokens"] == wanted.usage["completion_tokens"]
    if is_stream(exchange):
        assert "".join(chunk.delta for chunk in found) == wanted.text
        assert "".join(chunk.additional_kwargs.get("thinking_delta") or "" for chunk in found) == wanted.thinking

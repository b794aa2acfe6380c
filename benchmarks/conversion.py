"""Conversion of a message history to the wire, written out by hand: the least that the work can cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Convert = Callable[[Sequence[Any]], list[dict[str, Any]]]


def langchain_by_hand(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Convert plain text messages and tool calls of LangChain."""
    roles = {"human": "user", "system": "system"}
    made: list[dict[str, Any]] = []
    for message in messages:
        kind = message.type
        if kind == "ai":
            entry: dict[str, Any] = {"role": "assistant", "content": message.content}
            if message.tool_calls:
                entry["tool_calls"] = [
                    {
                        "id": call["id"],
                        "type": "function",
                        "function": {"name": call["name"], "arguments": json.dumps(call["args"])},
                    }
                    for call in message.tool_calls
                ]
            made.append(entry)
        elif kind == "tool":
            made.append({"role": "tool", "content": message.content, "tool_call_id": message.tool_call_id})
        else:
            made.append({"role": roles[kind], "content": message.content})
    return made


def llamaindex_by_hand(messages: Sequence[Any]) -> list[dict[str, Any]]:
    """Convert text and tool-call blocks of LlamaIndex."""
    made: list[dict[str, Any]] = []
    for message in messages:
        entry: dict[str, Any] = {"role": message.role.value}
        texts, calls = [], []
        for block in message.blocks:
            if block.block_type == "text":
                texts.append(block.text)
            else:
                function = {"name": block.tool_name, "arguments": json.dumps(block.tool_kwargs)}
                calls.append({"id": block.tool_call_id, "type": "function", "function": function})
        entry["content"] = "".join(texts)
        if calls:
            entry["tool_calls"] = calls
        if "tool_call_id" in message.additional_kwargs:
            entry["tool_call_id"] = message.additional_kwargs["tool_call_id"]
        made.append(entry)
    return made


def converters(framework: str) -> tuple[Convert, Convert]:
    """Return our conversion of a framework's messages, and the one by hand.

    Raises:
        ImportError: The adapter is not there.
    """
    if framework == "langchain":
        from langchain_cerebras_ext.to_wire import messages_to_wire

        return messages_to_wire, langchain_by_hand
    from llamaindex_cerebras_ext.to_wire import to_wire

    return to_wire, llamaindex_by_hand

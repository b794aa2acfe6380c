"""Estimates of token counts, without a tokenizer and without a network.

The service publishes no tokenizer interface, and each of its models has another vocabulary. Text is cut the way byte
pair encodings cut it and each piece is counted by its length, which is within about a third of the real number for
prose and code in European languages, and counts too much rather than too little elsewhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

IMAGE_TOKENS = 256
"""Tokens of one image, whatever its size: what models of the Gemma family spend on one."""

MESSAGE_TOKENS = 4
"""Tokens around a message: role and separators."""

_PIECES = re.compile(r"[A-Za-z]+|\d{1,3}|\s+|[^\sA-Za-z\d]")
_CHARACTERS_A_TOKEN = 6
"""Of a word. Words are one token up to about this length, and longer ones are cut."""

CountText = Callable[[str], int]


def estimate_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    count = 0
    for piece in _PIECES.findall(text):
        if piece.isspace():
            count += piece != " " and len(piece) > 1  # a single blank belongs to the next word
        elif piece.isascii():
            count += -(-len(piece) // _CHARACTERS_A_TOKEN) if piece.isalpha() else 1
        else:
            count += 1 if len(piece.encode("utf-8", "replace")) < 4 else 2
    return count


def count_messages(
    messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None, *, count: CountText = estimate_tokens
) -> int:
    """Return about how many tokens messages and tools have; images cost `IMAGE_TOKENS` each.

    Args:
        messages: Messages in any form of content.
        tools: Tools in every form that `bind_tools` takes.
        count: Counts the tokens of a text.
    """
    total = sum(_message(message, count) for message in messages)
    for tool in tools or ():
        schema = tool if isinstance(tool, Mapping) and "function" in tool else convert_to_openai_tool(tool)
        total += count(json.dumps(schema, ensure_ascii=False, default=str)) + MESSAGE_TOKENS
    return total


def _message(message: BaseMessage, count: CountText) -> int:
    total = MESSAGE_TOKENS + _content(message.content, count)
    if message.name:
        total += count(message.name)
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            total += count(call["name"]) + count(json.dumps(call["args"], ensure_ascii=False, default=str))
        for invalid in message.invalid_tool_calls:
            total += count(invalid.get("name") or "") + count(invalid.get("args") or "")
        reasoning = message.additional_kwargs.get("reasoning_content")
        total += count(reasoning) if isinstance(reasoning, str) else 0
    elif isinstance(message, ToolMessage):
        total += count(message.tool_call_id)
    return total


def _content(content: Any, count: CountText) -> int:
    if isinstance(content, str):
        return count(content)
    return sum(count(block) if isinstance(block, str) else _block(block, count) for block in content)


def _block(block: Mapping[str, Any], count: CountText) -> int:
    """Count one block. Of media only the number counts, never the length of what encodes it."""
    kind = block.get("type")
    for member in ("text", "reasoning", "thinking"):
        if isinstance(block.get(member), str):
            return count(block[member])
    if kind in ("image", "image_url", "input_image"):
        return IMAGE_TOKENS
    if kind in ("audio", "video", "file", "input_audio"):
        return IMAGE_TOKENS
    if kind in ("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call"):
        return 0  # counted by the message's tool calls
    return count(json.dumps(block, ensure_ascii=False, default=str))

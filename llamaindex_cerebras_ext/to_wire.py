"""Chat messages of LlamaIndex as messages of the chat endpoint. Pure: nothing of the caller's is changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ThinkingBlock, ToolCallBlock

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.names import wire_name
from cerebras_ext.reasoning import ReplayReasoning, replayed_turn
from cerebras_ext.toolcalls import replayed_arguments
from llamaindex_cerebras_ext.blocks import assistant_text, text_of, user_content
from llamaindex_cerebras_ext.calls import CallIds, wire_calls_of

WireMessage = dict[str, Any]

_ROLES: dict[str, str] = {
    MessageRole.SYSTEM: "system",
    MessageRole.DEVELOPER: "developer",
    MessageRole.USER: "user",
    MessageRole.ASSISTANT: "assistant",
    MessageRole.CHATBOT: "assistant",
    MessageRole.MODEL: "assistant",
    MessageRole.TOOL: "tool",
    MessageRole.FUNCTION: "tool",
}

_CONTENT_ONLY = frozenset({"system", "developer", "user", "assistant"})

_PROVIDER_KEYS = ("model_provider", "provider", "provider_name", "llm_provider")


def to_wire(messages: Sequence[ChatMessage], replay_reasoning: ReplayReasoning = "reasoning") -> list[WireMessage]:
    """Return the messages as the service takes them.

    Args:
        messages: The conversation.
        replay_reasoning: How thinking of earlier turns is sent.

    Raises:
        RequestValidationError: A message has something that the service cannot take; the text says which.
    """
    ids = CallIds()
    return [_message(index, message, replay_reasoning, ids) for index, message in enumerate(messages)]


def _message(index: int, message: ChatMessage, mode: ReplayReasoning, ids: CallIds) -> WireMessage:
    role = _ROLES.get(message.role)
    blocks, kwargs = message.blocks, message.additional_kwargs
    if len(blocks) == 1 and not kwargs and blocks[0].__class__ is TextBlock and role in _CONTENT_ONLY:
        return {"role": role, "content": blocks[0].text}
    if role == "user":
        wire: WireMessage = {"role": role, "content": user_content(blocks, index)}
    elif role == "assistant":
        wire = _assistant(index, message, mode, ids)
    elif role == "tool":
        # No name: the service's own document has none on tool messages, and agents set one that nobody asked for.
        call_id = ids.answer(kwargs.get("tool_call_id"), index)
        return {"role": role, "content": text_of(blocks, index, role), "tool_call_id": call_id}
    elif role is not None:
        wire = {"role": role, "content": text_of(blocks, index, role)}
    else:
        raise RequestValidationError(f"message {index}: unknown role {message.role!r}")
    if kwargs and kwargs.get("name") is not None:
        wire["name"] = kwargs["name"]
    return wire


def _assistant(index: int, message: ChatMessage, mode: ReplayReasoning, ids: CallIds) -> WireMessage:
    wire: WireMessage = {"role": "assistant"}
    plain = None if message.additional_kwargs else _plain_turn(message.blocks)
    if plain is not None:
        content, found = plain
        reasoning = None
    else:
        found = wire_calls_of(message, f"message {index}")
        content, reasoning = replayed_turn(assistant_text(message.blocks, index), _own_reasoning(message), mode)
    calls = [
        {"id": call_id, "type": "function", "function": {"name": wire_name(name), "arguments": arguments}}
        for call_id, (_, name, arguments) in ids.open(index, found)
    ]
    if content or not (calls or reasoning):
        wire["content"] = content
    if reasoning:
        wire["reasoning"] = reasoning
    if calls:
        wire["tool_calls"] = calls
    return wire


def _plain_turn(blocks: Sequence[Any]) -> tuple[str | None, list[tuple[str | None, str, str]]] | None:
    """Return text and calls of a turn that has one text at most and calls: what most have, in one pass."""
    text: str | None = None
    calls: list[tuple[str | None, str, str]] = []
    for block in blocks:
        kind = block.__class__
        if kind is ToolCallBlock:
            name = block.tool_name
            calls.append((block.tool_call_id or None, name, replayed_arguments(block.tool_kwargs, name)))
        elif kind is TextBlock and text is None:
            text = block.text
        else:
            return None
    return text or "", calls


def _own_reasoning(message: ChatMessage) -> str:
    """Return the thinking that may go back to the service: not what another provider signed or claims."""
    blocks: list[Any] = [block for block in message.blocks if block.block_type == "thinking"]
    if blocks:
        return "\n".join([block.content for block in blocks if block.content and not _is_foreign(block)])
    for key in ("reasoning", "reasoning_content"):
        value = message.additional_kwargs.get(key)
        if isinstance(value, str):
            return value
    return ""


def _is_foreign(block: ThinkingBlock) -> bool:
    about = block.additional_information
    if not about:
        return False
    if "encrypted_content" in about or any("signature" in key.lower() and value for key, value in about.items()):
        return True
    providers = (about.get(key) for key in _PROVIDER_KEYS)
    return any(isinstance(name, str) and name.lower() != "cerebras" for name in providers)

"""From LangChain messages to the messages of a chat request. The caller's messages are only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.reasoning import ReplayReasoning, replayed_turn
from cerebras_ext.toolcalls import replayed_arguments
from langchain_cerebras_ext.base import PROVIDER
from langchain_cerebras_ext.content import assistant_text, text_content, tool_content, user_content

WireMessage = dict[str, Any]

_ROLES = {"human": "user", "ai": "assistant"}


def messages_to_wire(
    messages: Sequence[BaseMessage], replay_reasoning: ReplayReasoning = "reasoning"
) -> list[WireMessage]:
    """Return the `messages` of a chat request.

    Only what the service knows of is written. Order and number of messages stay, and nothing is repaired.

    Args:
        messages: LangChain messages, of our models or of others'.
        replay_reasoning: How the reasoning of our earlier answers is sent.

    Raises:
        RequestValidationError: A message or block that the service has no form for; the text names it.
    """
    return [_message(index, message, replay_reasoning) for index, message in enumerate(messages)]


def _message(index: int, message: BaseMessage, mode: ReplayReasoning) -> WireMessage:
    if isinstance(message, AIMessage):
        return _assistant(index, message, mode)
    content = message.content
    if isinstance(message, HumanMessage):
        found = content if isinstance(content, str) else user_content(content, _place(index))
        wire = {"role": "user", "content": found}
        return _named(wire, message) if message.name else wire
    if isinstance(message, ToolMessage):
        # No `name`: agents always set it, and it says nothing that the call with this id does not say.
        result = content if isinstance(content, str) else tool_content(content, _place(index))
        return {"role": "tool", "content": result, "tool_call_id": message.tool_call_id}
    if isinstance(message, SystemMessage):
        # langchain-core notes here that a message was given with role "developer".
        developer = message.additional_kwargs.get("__openai_role__") == "developer"
        role = "developer" if developer else "system"
        return _named({"role": role, "content": text_content(content, _place(index))}, message)
    if isinstance(message, ChatMessage):
        return _by_role(_place(index), message)
    raise RequestValidationError(f"{_place(index)}: the service has no role for a {type(message).__name__}")


def _place(index: int) -> str:
    return f"messages.{index}"


def _by_role(where: str, message: ChatMessage) -> WireMessage:
    """Return a message whose role is given by name."""
    role = _ROLES.get(message.role, message.role)
    if role == "user":
        return _named({"role": role, "content": user_content(message.content, where)}, message)
    if role in ("system", "developer"):
        return _named({"role": role, "content": text_content(message.content, where)}, message)
    if role == "assistant":
        return _named({"role": role, "content": assistant_text(message.content)}, message)
    raise RequestValidationError(f"{where}: unknown role {message.role!r}; a tool result is a ToolMessage")


def _named(wire: WireMessage, message: BaseMessage) -> WireMessage:
    if message.name:
        wire["name"] = message.name
    return wire


def _assistant(index: int, message: AIMessage, mode: ReplayReasoning) -> WireMessage:
    """Return an earlier answer: text, reasoning of ours, and each tool call once, malformed ones included."""
    content = message.content
    text: str | None = content if isinstance(content, str) else assistant_text(content)
    reasoning = None
    if mode != "off" and (message.additional_kwargs or text is not content):
        text, reasoning = replayed_turn(text, reasoning_of(message), mode)
    wire: WireMessage = {"role": "assistant"}
    made = message.tool_calls
    if message.invalid_tool_calls:
        made = [*made, *message.invalid_tool_calls]  # type: ignore[list-item] # both have what is read here
    calls = [_tool_call(index, number, call) for number, call in enumerate(made)] if made else None
    if text or not (calls or reasoning):
        # The member is left out of a turn without text, as the service does itself.
        wire["content"] = text or ""
    if reasoning:
        wire["reasoning"] = reasoning
    if calls:
        wire["tool_calls"] = calls
    return _named(wire, message) if message.name else wire


def _tool_call(index: int, number: int, call: Mapping[str, Any]) -> dict[str, Any]:
    name = call["name"]
    function = {"name": name or "", "arguments": replayed_arguments(call["args"], name)}
    return {"id": call["id"] or f"call_{index}_{number}", "type": "function", "function": function}


def reasoning_of(message: AIMessage) -> str | None:
    """Return the reasoning that came with an answer of ours, or None: other providers' is not for our service.

    A message without a provider (written by hand, or from a store that keeps no metadata) counts as ours.
    """
    if message.response_metadata.get("model_provider") not in (None, PROVIDER):
        return None
    for name in ("reasoning_content", "reasoning"):
        found = message.additional_kwargs.get(name)
        if isinstance(found, str):
            return found or None
    if isinstance(message.content, str):
        return None
    return "".join(_reasoning_text(block) for block in message.content) or None


def _reasoning_text(block: Any) -> str:
    """Return the text of a standard reasoning block; one with a signature was written by another provider."""
    if not isinstance(block, dict) or block.get("type") != "reasoning":
        return ""
    extras = block.get("extras")
    foreign = isinstance(extras, dict) and ("signature" in extras or "encrypted_content" in extras)
    text = block.get("reasoning")
    return text if isinstance(text, str) and not foreign else ""

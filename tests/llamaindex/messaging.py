"""Messages to send, and how they are sent."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    TextBlock,
    ToolCallBlock,
)

from cerebras_ext.types import ChatRequest
from llamaindex_cerebras_ext.to_wire import to_wire


def wire(*messages: ChatMessage, **options: Any) -> list[dict[str, Any]]:
    """The messages as they are sent: what we build, through the request model that is the last to see them."""
    built = to_wire(messages, **options)
    sent = ChatRequest(model="m", messages=built).model_dump(exclude_none=True)["messages"]
    assert sent == built
    return built


def called(*calls: ToolCallBlock, text: str = "", **kwargs: Any) -> ChatMessage:
    return ChatMessage(role="assistant", blocks=[TextBlock(text=text), *calls], **kwargs)


def result(text: str, call_id: str | None = None, role: str = "tool", **kwargs: Any) -> ChatMessage:
    ids = {} if call_id is None else {"tool_call_id": call_id}
    return ChatMessage(role=role, content=text, additional_kwargs={**ids, **kwargs})

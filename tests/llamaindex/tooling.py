"""Two tools, and answers that call them."""

from __future__ import annotations

from typing import Any

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.tools import FunctionTool

from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.scripted import both, responses


def weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    return f"{city}: sun for {days}"


def now() -> str:
    """The time."""
    return "noon"


WEATHER = FunctionTool.from_defaults(weather)
NOW = FunctionTool.from_defaults(now)

TOOL_PATHS = ("chat_with_tools", "achat_with_tools", "stream_chat_with_tools", "astream_chat_with_tools")
TOOL_STREAMS = TOOL_PATHS[2:]


async def with_tools(llm: Cerebras, path: str, given: list[Any], **kwargs: Any) -> list[ChatResponse]:
    kwargs.setdefault("user_msg", "q")
    return await responses(llm, path, given, **kwargs)


def entry(call_id: str, name: str, arguments: str | None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def calling(*entries: dict[str, Any], finish_reason: str = "tool_calls") -> Any:
    """An answer that calls tools; streamed, each call is one delta."""
    deltas = [{"tool_calls": [{**item, "index": index}]} for index, item in enumerate(entries)]
    return both({"tool_calls": list(entries)}, *deltas, finish_reason=finish_reason)


ONE = calling(entry("c1", "weather", '{"city": "Bern"}'))
TWO = calling(entry("c1", "weather", '{"city": "Bern"}'), entry("c2", "weather", '{"city": "Rome"}'))

"""How a model of each framework is driven, whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.candidates import TOOL, Setup


def langchain_messages(messages: list[dict[str, Any]]) -> list[Any]:
    """Return LangChain messages from messages of the wire."""
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    kinds: dict[str, Any] = {"user": HumanMessage, "system": SystemMessage}
    made: list[Any] = []
    for message in messages:
        content = message.get("content") or ""
        if message["role"] == "tool":
            made.append(ToolMessage(content, tool_call_id=message["tool_call_id"]))
        elif message["role"] == "assistant":
            calls = [
                {
                    "id": call["id"],
                    "name": call["function"]["name"],
                    "args": json.loads(call["function"]["arguments"]),
                    "type": "tool_call",
                }
                for call in message.get("tool_calls", ())
            ]
            made.append(AIMessage(content, tool_calls=calls))
        else:
            made.append(kinds[message["role"]](content))
    return made


class LangChainModel:
    """A LangChain chat model or LLM under the operations of a subject."""

    def __init__(self, model: Any, setup: Setup) -> None:
        self.model = model.bind_tools([TOOL]) if setup.tools else model
        self.input: Any = langchain_messages(setup.messages) if setup.prompt is None else setup.prompt
        self.token_ids = isinstance(setup.prompt, list)

    def stream(self) -> int:
        """Read a whole stream."""
        count = 0
        for _ in self.model.stream(self.input):
            count += 1
        return count

    async def astream(self) -> int:
        """Read a whole stream, async."""
        count = 0
        async for _ in self.model.astream(self.input):
            count += 1
        return count

    def call(self) -> int:
        """Ask once."""
        if self.token_ids:
            self.model.generate_token_ids([self.input])
        else:
            self.model.invoke(self.input)
        return 1

    async def acall(self) -> int:
        """Ask once, async."""
        if self.token_ids:
            await self.model.agenerate_token_ids([self.input])
        else:
            await self.model.ainvoke(self.input)
        return 1


def llamaindex_messages(messages: list[dict[str, Any]]) -> list[Any]:
    """Return LlamaIndex messages from messages of the wire, tool calls as their blocks."""
    from llama_index.core.base.llms.types import ChatMessage, MessageRole, TextBlock, ToolCallBlock

    made = []
    for message in messages:
        blocks: list[Any] = [TextBlock(text=message["content"])] if message.get("content") else []
        for call in message.get("tool_calls", ()):
            function = call["function"]
            blocks.append(
                ToolCallBlock(
                    tool_call_id=call["id"], tool_name=function["name"], tool_kwargs=json.loads(function["arguments"])
                )
            )
        extra = {"tool_call_id": message["tool_call_id"]} if message["role"] == "tool" else {}
        made.append(ChatMessage(role=MessageRole(message["role"]), blocks=blocks, additional_kwargs=extra))
    return made


def llamaindex_tool() -> Any:
    """Return the tool of the benchmarks as LlamaIndex knows it."""
    from llama_index.core.tools import FunctionTool

    def write_report(text: str) -> str:
        """Write a report."""
        return text

    return FunctionTool.from_defaults(write_report)


class LlamaIndexModel:
    """A LlamaIndex model under the operations of a subject."""

    def __init__(self, model: Any, setup: Setup) -> None:
        self.model = model
        chat = setup.prompt is None
        self.input: Any = llamaindex_messages(setup.messages) if chat else setup.prompt
        names = ("chat", "achat", "stream_chat", "astream_chat")
        if not chat:
            names = ("complete", "acomplete", "stream_complete", "astream_complete")
        self._call, self._acall, self._stream, self._astream = (getattr(model, name) for name in names)
        self.options: dict[str, Any] = {}
        if setup.tools:
            self.options = {"tools": [TOOL]}

    def stream(self) -> int:
        """Read a whole stream."""
        count = 0
        for _ in self._stream(self.input, **self.options):
            count += 1
        return count

    async def astream(self) -> int:
        """Read a whole stream, async."""
        count = 0
        async for _ in await self._astream(self.input, **self.options):
            count += 1
        return count

    def call(self) -> int:
        """Ask once."""
        self._call(self.input, **self.options)
        return 1

    async def acall(self) -> int:
        """Ask once, async."""
        await self._acall(self.input, **self.options)
        return 1

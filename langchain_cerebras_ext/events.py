"""Protocol events (`stream_events` version 3) straight from the core's deltas, without a message chunk for each."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.callbacks.base import LLMManagerMixin
from langchain_core.utils.utils import LC_ID_PREFIX
from langchain_core.version import VERSION

from cerebras_ext import AsyncChatStream, ChatDelta, ChatResponse, ChatStream, ToolCallDelta
from cerebras_ext.reasoning import ThinkSplitter
from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments
from langchain_cerebras_ext.base import PROVIDER
from langchain_cerebras_ext.errors import langchain_errors
from langchain_cerebras_ext.from_wire import (
    REASONING_KEY,
    ChunkBuilder,
    Style,
    generation_info,
    response_metadata,
    usage_metadata,
)

if TYPE_CHECKING:
    from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun

Event: TypeAlias = dict[str, Any]
"""An event of the protocol as plain data; langchain-core types it loosely too."""

_Kind: TypeAlias = Literal["text", "reasoning"] | int
_DELTAS = {"text": "text-delta", "reasoning": "reasoning-delta"}

# Cores before 1.8 know a growing call only as a snapshot.
_SNAPSHOTS = tuple(int(part) for part in VERSION.split(".")[:2]) < (1, 8)


class EventBuilder:
    """Turns the deltas of one answer into events.

    Text, reasoning and each tool call are a block of their own, numbered in the order of first appearance. Blocks stay
    open to the end, since a service may go back to reasoning after text.
    """

    __slots__ = ("_blocks", "_kinds", "_splitter", "_style")

    def __init__(self, style: Style) -> None:
        self._style = style
        self._splitter = ThinkSplitter() if style.split_think else None
        self._kinds: dict[_Kind, int] = {}
        self._blocks: list[_Block] = []

    @staticmethod
    def start(run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None = None) -> Event:
        """Return the first event; its id is that of the run, or left to core, which then takes it."""
        name = "" if run_manager is None else f"{LC_ID_PREFIX}-{run_manager.run_id}"
        return {"event": "message-start", "role": "ai", "id": name, "metadata": {"provider": PROVIDER}}

    def feed(self, delta: ChatDelta) -> list[Event]:
        """Return the events of a delta; only the first answer has events."""
        if delta.index:
            return []
        reasoning, text = delta.reasoning, delta.content
        if self._splitter is not None and text:
            thoughts, text = self._splitter.feed(text)
            reasoning += thoughts
        events: list[Event] = []
        if reasoning:
            self._grow("reasoning", reasoning, events)
        if text:
            self._grow("text", text, events)
        for call in delta.tool_calls:
            self._call(call, events)
        return events

    def finish(self, response: ChatResponse) -> Iterator[Event]:
        """Return what was held back, and the events that end the blocks and the answer.

        Args:
            response: The whole answer.
        """
        if self._splitter is not None:
            reasoning, text = self._splitter.finish()
            self._splitter = None
            yield from self.feed(ChatDelta(0, text, reasoning, [], None, None, None, {}))
        for number, block in enumerate(self._blocks):
            yield {"event": "content-block-finish", "index": number, "content": block.whole()}
        last: Event = {"event": "message-finish", "metadata": response_metadata(response, headers=self._style.headers)}
        if response.choices:
            last["metadata"].update(generation_info(response.choices[0]))
        usage = usage_metadata(response.usage)
        if usage is not None:
            last["usage"] = usage
        if "reasoning" in self._kinds:
            reasoning = "".join(self._blocks[self._kinds["reasoning"]].parts)
            last["additional_kwargs"] = {REASONING_KEY: reasoning}
        yield last

    def _grow(self, kind: Literal["text", "reasoning"], text: str, events: list[Event]) -> None:
        number = self._kinds.get(kind)
        if number is None:
            number = self._open(kind, _Block(kind))
            events.append({"event": "content-block-start", "index": number, "content": {"type": kind, kind: ""}})
        self._blocks[number].parts.append(text)
        delta = {"type": _DELTAS[kind], kind: text}
        events.append({"event": "content-block-delta", "index": number, "delta": delta})

    def _call(self, call: ToolCallDelta, events: list[Event]) -> None:
        number = self._kinds.get(call.index)
        if number is None:
            block = _Block("tool_call", call.index, call.id, call.name)
            number = self._open(call.index, block)
            events.append({"event": "content-block-start", "index": number, "content": block.chunk("")})
        block = self._blocks[number]
        if call.name and not block.name:
            block.name = call.name
        if block.parts or call.arguments.strip() not in ("", "null"):  # both mean: no arguments
            block.parts.append(call.arguments)
            events.append({"event": "content-block-delta", "index": number, "delta": block.delta(call.arguments)})

    def _open(self, kind: _Kind, block: _Block) -> int:
        number = self._kinds[kind] = len(self._blocks)
        self._blocks.append(block)
        return number


class _Block:
    __slots__ = ("call_id", "index", "kind", "name", "parts")

    def __init__(self, kind: str, index: int = 0, call_id: str | None = None, name: str | None = None) -> None:
        self.kind = kind
        self.index = index
        self.call_id = call_id
        self.name = name
        self.parts: list[str] = []

    def chunk(self, arguments: str) -> Event:
        return {
            "type": "tool_call_chunk",
            "id": self.call_id,
            "name": self.name,
            "args": arguments,
            "index": self.index,
        }

    def delta(self, arguments: str) -> Event:
        if _SNAPSHOTS:
            return {"type": "block-delta", "fields": self.chunk("".join(self.parts))}
        return {"type": "tool-call-delta", "args": arguments}

    def whole(self) -> Event:
        """Return the block when nothing more comes; arguments are read strictly."""
        text = "".join(self.parts)
        if self.kind != "tool_call":
            return {"type": self.kind, self.kind: text}
        call: Event = {"type": "tool_call", "id": self.call_id, "name": self.name or ""}
        try:
            call["args"] = parse_arguments(text)
        except InvalidArgumentsError:
            call.update(type="invalid_tool_call", args=text, error=None)
        return call


_IGNORES_TOKENS = frozenset((
    LLMManagerMixin.on_llm_new_token,
    BaseCallbackHandler.on_llm_new_token,
    AsyncCallbackHandler.on_llm_new_token,
))  # fmt: skip


def wants_tokens(run_manager: CallbackManagerForLLMRun | AsyncCallbackManagerForLLMRun | None) -> bool:
    """Whether a callback handler listens to the tokens of a stream of chunks, which then have to be made for it."""
    if run_manager is None:
        return False
    return any(_listens(handler) for handler in run_manager.handlers)


def _listens(handler: BaseCallbackHandler) -> bool:
    method = getattr(handler, "on_llm_new_token", None)  # of its class, or set on the handler alone
    return method is not None and getattr(method, "__func__", method) not in _IGNORES_TOKENS and not handler.ignore_llm


def events_of(
    make: Callable[[], tuple[ChatStream, ChunkBuilder]],
    style: Style,
    run_manager: CallbackManagerForLLMRun | None = None,
) -> Iterator[Event]:
    """Yield the events of a stream of the core.

    Args:
        make: Makes the stream and the maker of chunks; called at the first event, so that errors come there.
        style: How the model wants its answers.
        run_manager: Is told of tokens, where one of its handlers listens to them.
    """
    events = EventBuilder(style)
    listener = run_manager if wants_tokens(run_manager) else None
    with langchain_errors():
        stream, chunks = make()
        with stream:
            yield events.start(run_manager)
            for deltas in stream.batches():
                for delta in deltas:
                    if listener is not None:
                        for chunk in chunks.feed_all((delta,)):
                            listener.on_llm_new_token(chunk.text, chunk=chunk)
                    yield from events.feed(delta)
        if listener is not None:
            for chunk in chunks.finish(stream.response):
                listener.on_llm_new_token(chunk.text, chunk=chunk)
        yield from events.finish(stream.response)


async def aevents_of(
    make: Callable[[], tuple[AsyncChatStream, ChunkBuilder]],
    style: Style,
    run_manager: AsyncCallbackManagerForLLMRun | None = None,
) -> AsyncIterator[Event]:
    """The async twin of `events_of`."""
    events = EventBuilder(style)
    listener = run_manager if wants_tokens(run_manager) else None
    with langchain_errors():
        stream, chunks = make()
        async with stream:
            yield events.start(run_manager)
            async for deltas in stream.batches():
                for delta in deltas:
                    if listener is not None:
                        for chunk in chunks.feed_all((delta,)):
                            await listener.on_llm_new_token(chunk.text, chunk=chunk)
                    for event in events.feed(delta):
                        yield event
        if listener is not None:
            for chunk in chunks.finish(stream.response):
                await listener.on_llm_new_token(chunk.text, chunk=chunk)
        for event in events.finish(stream.response):
            yield event

"""From answers and deltas of the core to LangChain messages, chunks and results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from langchain_core.messages import AIMessageChunk, InvalidToolCall, ToolCall, ToolCallChunk
from langchain_core.messages.ai import InputTokenDetails, OutputTokenDetails, UsageMetadata
from langchain_core.messages.tool import tool_call
from langchain_core.outputs import ChatGenerationChunk, ChatResult

from cerebras_ext import ChatDelta, ChatResponse, ToolCallDelta
from cerebras_ext.reasoning import ThinkSplitter, split_think
from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments, whole_tool_calls
from cerebras_ext.types import ChatChoice, Usage
from cerebras_ext.types._base import OpenModel
from langchain_cerebras_ext.base import PROVIDER
from langchain_cerebras_ext.chunks import Answer, light_chunk, light_result, tool_call_chunk
from langchain_cerebras_ext.partial_json import breaking_suffix

REASONING_KEY = "reasoning_content"
"""Where langchain-core looks for reasoning in `additional_kwargs`, with or without this package being imported."""

REASONING_INDEX, TEXT_INDEX, TOOL_INDEX = "lc_reasoning", "lc_text", "lc_tc_"
"""Index names of blocks in output version v1. With numbers, tool call 0 would be merged into reasoning block 0."""


@dataclass(frozen=True, slots=True)
class Style:
    """How a model wants its answers.

    Attributes:
        headers: Whether the response headers go into the metadata.
        split_think: Whether a leading `<think>` block is moved from the content to the reasoning.
        blocks: Whether chunks hold content blocks (output version v1) and not text.
    """

    headers: bool = False
    split_think: bool = False
    blocks: bool = False


@cache
def style_of(headers: bool, split_think: bool, blocks: bool) -> Style:
    """Return a style, made once; arguments as the attributes of `Style`."""
    return Style(headers=headers, split_think=split_think, blocks=blocks)


def usage_metadata(usage: Usage | None) -> UsageMetadata | None:
    """Return token counts in LangChain's form, or None where the service gave none."""
    if usage is None or (usage.prompt_tokens is None and usage.completion_tokens is None):
        return None
    prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
    result = UsageMetadata(
        input_tokens=prompt,
        output_tokens=completion,
        total_tokens=prompt + completion if usage.total_tokens is None else usage.total_tokens,
    )
    inputs: dict[str, int] = {}
    if usage.cached_tokens is not None:
        inputs["cache_read"] = usage.cached_tokens
    if usage.total_image_tokens is not None:
        inputs["image"] = usage.total_image_tokens
    if inputs:
        result["input_token_details"] = InputTokenDetails(**inputs)  # type: ignore[typeddict-item]
    if usage.reasoning_tokens is not None:
        result["output_token_details"] = OutputTokenDetails(reasoning=usage.reasoning_tokens)
    return result


def _members(model: OpenModel) -> dict[str, Any]:
    """Return what `to_dict` returns for a model of numbers, which need no conversion, in a fraction of the time."""
    given = model.__pydantic_fields_set__
    members = {
        name: _members(value) if isinstance(value, OpenModel) else value
        for name, value in model.__dict__.items()
        if name in given
    }
    extra = model.__pydantic_extra__
    return {**members, **extra} if extra else members


def response_metadata(response: ChatResponse, *, headers: bool = False) -> dict[str, Any]:
    """Return what an answer says about itself as a whole; members that the service left out are left out here."""
    metadata: dict[str, Any] = {
        **(response.model_extra or {}),
        "id": response.id,
        "created": response.created,
        "model_name": response.model,
        "model_provider": PROVIDER,
        "system_fingerprint": response.system_fingerprint,
        "service_tier": response.service_tier,
        "service_tier_used": response.service_tier_used,
        "time_info": _members(response.time_info) if response.time_info else None,
        "token_usage": _members(response.usage) if response.usage else None,
        "headers": dict(response.info.headers) if headers and response.info else None,
    }
    return {name: value for name, value in metadata.items() if value is not None}


def generation_info(choice: ChatChoice) -> dict[str, Any]:
    """Return what a choice says about itself."""
    info = {
        "finish_reason": choice.finish_reason,
        "logprobs": choice.logprobs.to_dict() if choice.logprobs else None,
        "reasoning_logprobs": choice.reasoning_logprobs.to_dict() if choice.reasoning_logprobs else None,
    }
    return {name: value for name, value in info.items() if value is not None}


def tool_calls(calls: Iterable[Any] | None) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Return valid and invalid calls. Arguments are parsed strictly, so a call that was cut off is never valid.

    Args:
        calls: Calls as the service writes them in an answer.
    """
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for slot in whole_tool_calls(calls):
        try:
            arguments = parse_arguments(slot.arguments)
        except InvalidArgumentsError:
            # `error` stays None, as it does when langchain-core merges the chunks of a stream.
            invalid.append(
                InvalidToolCall(type="invalid_tool_call", id=slot.id, name=slot.name, args=slot.arguments, error=None)
            )
        else:
            valid.append(tool_call(name=slot.name, args=arguments, id=slot.id))
    return valid, invalid


def _parts(choice: ChatChoice, style: Style) -> tuple[str, str, list[Any]]:
    """Return reasoning, text and raw tool calls of a choice."""
    message = choice.message
    if message is None:
        return "", "", []
    reasoning, text = message.reasoning_text, message.content or ""
    if style.split_think:
        thoughts, text = split_think(text)
        reasoning += thoughts
    return reasoning, text, [call.to_dict() for call in message.tool_calls or ()]


def chat_result(response: ChatResponse, style: Style) -> ChatResult:
    """Return all answers of a response. Usage is that of the whole request and stands on the first one only."""
    whole = metadata = response_metadata(response, headers=style.headers)
    usage = usage_metadata(response.usage)
    answers = []
    for number, choice in enumerate(response.choices):
        if number == 1:
            usage = None
            metadata = {name: value for name, value in metadata.items() if name != "token_usage"}
        reasoning, text, calls = _parts(choice, style)
        valid, invalid = tool_calls(calls) if calls else ([], [])
        kwargs = {REASONING_KEY: reasoning} if reasoning else {}
        info = generation_info(choice)
        answers.append(Answer(text, kwargs, {**metadata, **info}, usage, valid, invalid, info))
    return light_result(answers, whole)


def whole_chunk(response: ChatResponse, style: Style) -> ChatGenerationChunk:
    """Return an answer that was not streamed as the one chunk of a stream."""
    choice = response.choices[0]
    reasoning, text, calls = _parts(choice, style)
    pieces = [
        tool_call_chunk(slot.index, slot.id, slot.name, _whole_arguments(slot.arguments))
        for slot in whole_tool_calls(calls)
    ]
    return last_chunk(reasoning, text, pieces, response, style)


def _whole_arguments(arguments: str) -> str:
    blank = not arguments.strip() or arguments.strip() == "null"
    return "" if blank else arguments + breaking_suffix(arguments)


class ChunkBuilder:
    """Makes the chunks of one stream: one kind of content a chunk, and everything else on the last one.

    A chunk of one kind has one content block, at position 0, so that langchain-core's bridge to events can tell which
    blocks belong together. Strings of the metadata would be concatenated, and floats refused, when chunks are merged;
    so they are on the last chunk only.

    Args:
        style: How the model wants its answers.
        whole: Whether the answer is not streamed, and becomes one chunk.
    """

    __slots__ = ("_arguments", "_metadata", "_splitter", "_style", "_whole")

    def __init__(self, style: Style, *, whole: bool = False) -> None:
        self._style = style
        self._whole = whole
        self._metadata = common_metadata(style)
        self._splitter = ThinkSplitter() if style.split_think else None
        self._arguments: dict[int, list[str]] = {}

    def feed_all(self, deltas: Iterable[ChatDelta]) -> list[ChatGenerationChunk]:
        """Return the chunks of some deltas of the first answer; a stream of LangChain has no others."""
        chunks: list[ChatGenerationChunk] = []
        if self._whole:
            return chunks
        for delta in deltas:
            if delta.index:
                continue
            reasoning, text = delta.reasoning, delta.content
            if self._splitter is not None and text:
                thoughts, text = self._splitter.feed(text)
                reasoning += thoughts
            self._light(reasoning, text, chunks)
            if delta.tool_calls:
                chunks.append(self._calls([self._piece(call) for call in delta.tool_calls]))
        return chunks

    def finish(self, response: ChatResponse) -> list[ChatGenerationChunk]:
        """Return what was held back, then the last chunk.

        Args:
            response: The whole answer.
        """
        if self._whole:
            return [whole_chunk(response, self._style)]
        chunks: list[ChatGenerationChunk] = []
        if self._splitter is not None:
            self._light(*self._splitter.finish(), chunks)
        broken = [
            tool_call_chunk(index, None, None, suffix)
            for index, pieces in self._arguments.items()
            if (suffix := breaking_suffix("".join(pieces)))
        ]
        if broken:
            chunks.append(self._calls(broken))
        chunks.append(last_chunk("", "", [], response, self._style))
        return chunks

    def _light(self, reasoning: str, text: str, chunks: list[ChatGenerationChunk]) -> None:
        """Add the chunks for reasoning and text, one each."""
        if reasoning:
            content: Any = [_reasoning_block(reasoning)] if self._style.blocks else ""
            chunks.append(light_chunk(content, "", {REASONING_KEY: reasoning}, self._metadata.copy()))
        if text:
            content = [_text_block(text)] if self._style.blocks else text
            chunks.append(light_chunk(content, text, {}, self._metadata.copy()))

    def _piece(self, call: ToolCallDelta) -> ToolCallChunk:
        """Return a piece of a tool call; blanks or null for no arguments at all are left out, as `{}` is meant."""
        arguments = call.arguments
        before = self._arguments.setdefault(call.index, [])
        if not before and (not arguments.strip() or arguments.strip() == "null"):
            arguments = ""
        if arguments:
            before.append(arguments)
        return tool_call_chunk(call.index, call.id, call.name, arguments)

    def _calls(self, calls: list[ToolCallChunk]) -> ChatGenerationChunk:
        """Return a chunk of pieces of tool calls."""
        content: Any = _blocks("", "", calls) if self._style.blocks else ""
        return light_chunk(content, "", {}, self._metadata.copy(), calls)


def last_chunk(
    reasoning: str, text: str, calls: list[ToolCallChunk], whole: ChatResponse, style: Style
) -> ChatGenerationChunk:
    """Return the last chunk, with what the whole answer says about itself."""
    info = generation_info(whole.choices[0]) if whole.choices else {}
    metadata = {**common_metadata(style), **response_metadata(whole, headers=style.headers), **info}
    content: Any = _blocks(reasoning, text, calls) if style.blocks else text
    message = AIMessageChunk(
        content=content,
        additional_kwargs={REASONING_KEY: reasoning} if reasoning else {},
        tool_call_chunks=calls,
        response_metadata=metadata,
        usage_metadata=usage_metadata(whole.usage),
        chunk_position="last",
    )
    return ChatGenerationChunk(message=message, generation_info=info)


def common_metadata(style: Style) -> dict[str, Any]:
    """Return the metadata that is on every chunk."""
    return {"model_provider": PROVIDER, **({"output_version": "v1"} if style.blocks else {})}


def _reasoning_block(reasoning: str) -> dict[str, Any]:
    return {"type": "reasoning", "reasoning": reasoning, "index": REASONING_INDEX}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "index": TEXT_INDEX}


def _blocks(reasoning: str, text: str, calls: Iterable[ToolCallChunk]) -> list[dict[str, Any]]:
    blocks = [_reasoning_block(reasoning)] if reasoning else []
    if text:
        blocks.append(_text_block(text))
    blocks += [{**call, "index": f"{TOOL_INDEX}{call['index']}"} for call in calls]
    return blocks

"""Answers of the chat endpoint as chat responses of LlamaIndex. Pure, and one way for streams and whole answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatResponse,
    CompletionResponse,
    ContentBlock,
    LogProb,
    MessageRole,
    ThinkingBlock,
    ToolCallBlock,
)

from cerebras_ext import ChatDelta
from cerebras_ext import ChatResponse as Answer
from cerebras_ext.reasoning import ThinkSplitter, split_think
from cerebras_ext.toolcalls import InvalidArgumentsError, ToolCallSlot, parse_arguments, whole_tool_calls
from cerebras_ext.types import Usage
from llamaindex_cerebras_ext import objects

LogProbs = list[list[LogProb]]

_ASSISTANT = MessageRole.ASSISTANT


def to_chat_response(answer: Answer, *, split_think_tags: bool = False) -> ChatResponse:
    """Return a whole answer.

    Its message has blocks in the order thinking, text (always one, so that `content` is a string), tool calls.

    Args:
        answer: What the service sent, or what a stream was assembled to.
        split_think_tags: Move a leading `<think>` block of the text into the thinking.
    """
    raw = answer.to_dict()
    raw.setdefault("usage", None)
    text, reasoning = answer.text, answer.reasoning
    if split_think_tags:
        inner, text = split_think(text)
        reasoning += inner
    blocks: list[ContentBlock] = []
    if reasoning:
        blocks.append(
            ThinkingBlock(content=reasoning, num_tokens=answer.usage.reasoning_tokens if answer.usage else None)
        )
    blocks.append(objects.text_block({"text": text}))
    slots = whole_tool_calls(_raw_tool_calls(raw))
    blocks += [finished_call(slot.id, slot.name, slot.arguments) for slot in slots]
    return objects.whole_response(
        {
            "message": objects.chat_message(
                {"role": _ASSISTANT, "additional_kwargs": _tool_call_dicts(slots), "blocks": blocks}
            ),
            "raw": raw,
            "logprobs": to_logprobs(_first_choice(raw).get("logprobs")),
            "additional_kwargs": token_counts(answer.usage),
        }
    )


def to_completion_response(response: ChatResponse) -> CompletionResponse:
    """Return a chat response as the answer to a prompt, with everything that it carries."""
    return CompletionResponse(
        text=response.message.content or "",
        delta=response.delta,
        raw=response.raw,
        logprobs=response.logprobs,
        additional_kwargs={**response.message.additional_kwargs, **response.additional_kwargs},
    )


class ChunkBuilder:
    """Turns the deltas of one stream into chat responses, each with everything so far; the cost of a chunk is its own.

    Blocks that a delta does not touch are shared between the messages; what a message shows never changes later.
    """

    __slots__ = (
        "_calls",
        "_kwargs",
        "_late",
        "_late_thinking",
        "_parts",
        "_splitter",
        "_text",
        "_thinking",
        "_thought",
    )

    def __init__(self, *, split_think_tags: bool = False) -> None:
        self._splitter = ThinkSplitter() if split_think_tags else None
        self._text = ""
        self._thinking = ""
        self._thought: ThinkingBlock | None = None
        self._parts: list[_GrowingCall] = []
        self._calls: list[ToolCallBlock] = []
        self._kwargs: list[dict[str, Any]] = []
        self._late = ""
        self._late_thinking = ""

    def chunk(self, delta: ChatDelta) -> ChatResponse | None:
        """Return the chunk of a delta, or None where it shows nothing yet.

        What comes together with the finish reason is left to the last chunk, so that an answer which came as a whole
        is one chunk.
        """
        if delta.index:
            return None
        text, thinking = delta.content, delta.reasoning
        if self._splitter is not None and text:
            inner, text = self._splitter.feed(text)
            thinking += inner
        if delta.finish_reason is not None:
            self._late, self._late_thinking = text, thinking
            return None
        if not (text or thinking or delta.tool_calls):
            return None
        if text:
            self._text += text
        if thinking:
            self._thinking += thinking
            self._thought = objects.thinking_block({"content": self._thinking, "additional_information": {}})
        for call in delta.tool_calls:
            self._grow(call.index, call.id, call.name, call.arguments)
        blocks: list[ContentBlock] = [objects.text_block({"text": self._text})]
        if self._thought is not None:
            blocks.insert(0, self._thought)
        kwargs: dict[str, Any] = {}
        if self._calls:
            blocks += self._calls
            kwargs["tool_calls"] = self._kwargs[:]
        return objects.chat_response(
            {
                "message": objects.chat_message({"role": _ASSISTANT, "additional_kwargs": kwargs, "blocks": blocks}),
                "raw": delta.raw,
                "delta": text,
                "logprobs": to_logprobs(delta.logprobs) if delta.logprobs else None,
                "additional_kwargs": {"thinking_delta": thinking} if thinking else {},
            }
        )

    def last(self, answer: Answer) -> ChatResponse:
        """Return the chunk that ends the stream: the whole answer, with what no chunk showed yet as its delta."""
        text, thinking = self._late, self._late_thinking
        if self._splitter is not None:
            inner, rest = self._splitter.finish()
            text, thinking = text + rest, thinking + inner
        response = to_chat_response(answer, split_think_tags=self._splitter is not None)
        response.delta = text
        if thinking:
            response.additional_kwargs["thinking_delta"] = thinking
        return response

    def _grow(self, index: int, call_id: str | None, name: str | None, arguments: str) -> None:
        while index >= len(self._parts):
            self._parts.append(_GrowingCall())
            self._calls.append(ToolCallBlock(tool_name=""))
            self._kwargs.append({})
        call = self._parts[index]
        call.id = call_id or call.id
        call.name = name or call.name
        call.arguments += arguments
        self._calls[index] = objects.tool_call_block(
            {"tool_call_id": call.id, "tool_name": call.name, "tool_kwargs": call.arguments}
        )
        self._kwargs[index] = _call_dict(call.id, call.name, call.arguments)


class _GrowingCall:
    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments = ""


def finished_call(call_id: str, name: str, arguments: str) -> ToolCallBlock:
    """Return a finished call: arguments as an object, or as they came where they are not one."""
    try:
        return ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=parse_arguments(arguments))
    except InvalidArgumentsError:
        return ToolCallBlock(tool_call_id=call_id, tool_name=name, tool_kwargs=arguments)


def _call_dict(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _tool_call_dicts(slots: Sequence[ToolCallSlot]) -> dict[str, Any]:
    """Return the calls in the form that older parts of LlamaIndex read; no key where there are none."""
    if not slots:
        return {}
    return {"tool_calls": [_call_dict(slot.id, slot.name, slot.arguments) for slot in slots]}


def _first_choice(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = raw.get("choices")
    return choices[0] if choices else {}


def _raw_tool_calls(raw: Mapping[str, Any]) -> list[Any]:
    return (_first_choice(raw).get("message") or {}).get("tool_calls") or []


def token_counts(usage: Usage | None) -> dict[str, Any]:
    """Return the token counts that the service told, under the names that LlamaIndex and tracers read."""
    if usage is None:
        return {}
    counts: dict[str, Any] = {
        name: value
        for name in ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
        if (value := getattr(usage, name)) is not None
    }
    if usage.total_image_tokens is not None:
        counts["image_tokens"] = usage.total_image_tokens
    for name in ("prompt_tokens_details", "completion_tokens_details"):
        details = getattr(usage, name)
        if details is not None:
            counts[name] = details.to_dict()
    return counts


def to_logprobs(logprobs: Mapping[str, Any] | None) -> LogProbs | None:
    """Return for each token a list: the token itself, then the other most likely ones at its place."""
    content = (logprobs or {}).get("content")
    if not isinstance(content, list):
        return None
    return [_position(entry) for entry in content if isinstance(entry, dict)]


def _position(entry: Mapping[str, Any]) -> list[LogProb]:
    others = [other for other in entry.get("top_logprobs") or () if other.get("token") != entry.get("token")]
    return [
        LogProb(token=item.get("token") or "", logprob=item.get("logprob") or 0.0, bytes=item.get("bytes") or [])
        for item in (entry, *others)
    ]

"""Answers in the shapes of the recordings: whole objects, and the events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pydantic_core

from cerebras_ext.emulator.generation import Call, Generated, chat_logprobs, text_logprobs
from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.tokens import groups, token_id, tokenize

FINGERPRINT = "fp_emulator0000000000"
DONE = b"data: [DONE]\n\n"

_to_json = pydantic_core.to_json


@dataclass(frozen=True, slots=True)
class Head:
    """What every chunk of an answer repeats."""

    id: str
    created: int
    model: str

    def ending(self, kind: str) -> JsonObject:
        """Return the members that follow the choices."""
        return {
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
            "object": kind,
        }


@dataclass(frozen=True, slots=True)
class ChatStyle:
    """How the choices of a chat are shown."""

    reasoning_shown: bool = True
    logprobs: bool = False
    top: int = 0
    piecewise_calls: bool = False


@dataclass(slots=True)
class ChatChoiceData:
    """One choice with the ids of its tool calls."""

    generated: Generated
    call_ids: list[str]


def chat_object(
    head: Head, choices: Sequence[ChatChoiceData], style: ChatStyle, usage: JsonObject, times: JsonObject
) -> JsonObject:
    """Return a whole chat completion."""
    shown = [_chat_choice(index, choice, style) for index, choice in enumerate(choices)]
    return {
        "id": head.id,
        "choices": shown,
        **head.ending("chat.completion"),
        "usage": usage,
        "time_info": times,
    }


def _chat_choice(index: int, data: ChatChoiceData, style: ChatStyle) -> JsonObject:
    generated = data.generated
    message: JsonObject = {}
    # A member without a value is absent, never null; an answer cut off inside its reasoning is
    # the exception: its content is empty.
    if generated.content or not generated.calls:
        message["content"] = "".join(generated.content)
    if generated.reasoning and style.reasoning_shown:
        message["reasoning"] = "".join(generated.reasoning)
    if generated.calls:
        message["tool_calls"] = [
            {"function": {"name": call.name, "arguments": call.arguments}, "type": "function", "id": call_id}
            for call, call_id in zip(generated.calls, data.call_ids, strict=True)
        ]
    message["role"] = "assistant"
    choice: JsonObject = {"finish_reason": generated.finish_reason, "index": index, "message": message}
    if style.logprobs:
        choice["logprobs"] = chat_logprobs(generated.content, style.top)
        if generated.reasoning and style.reasoning_shown:
            choice["reasoning_logprobs"] = chat_logprobs(generated.reasoning, style.top)
    return choice


def chat_events(
    head: Head, choices: Sequence[ChatChoiceData], style: ChatStyle, usage: JsonObject, times: JsonObject
) -> list[bytes]:
    """Return the events of a streamed chat completion, each one a `data:` line with its blank line."""
    start = b'data: {"id":' + _to_json(head.id) + b',"choices":[{"delta":'
    tail = b"}]," + _to_json(head.ending("chat.completion.chunk"))[1:-1]
    events: list[bytes] = []
    for index, choice in enumerate(choices):
        position = b',"index":%d' % index
        plain = position + tail + b"}\n\n"
        events.append(start + b'{"role":"assistant"}' + plain)
        events += [start + delta + extra + plain for delta, extra in _deltas(choice, style)]
        reason = b',"finish_reason":' + _to_json(choice.generated.finish_reason)
        end = b"}\n\n"
        if index == len(choices) - 1:
            end = b"," + _to_json({"usage": usage, "time_info": times})[1:] + b"\n\n"
        events.append(start + b"{}" + reason + position + tail + end)
    events.append(DONE)
    return events


def _deltas(choice: ChatChoiceData, style: ChatStyle) -> Iterator[tuple[bytes, bytes]]:
    generated = choice.generated
    if style.reasoning_shown:
        yield from _text_deltas(b"reasoning", generated.reasoning, style, b"reasoning_logprobs")
    yield from _text_deltas(b"content", generated.content, style, b"logprobs")
    for number, (call, call_id) in enumerate(zip(generated.calls, choice.call_ids, strict=True)):
        for delta in _call_deltas(number, call, call_id, piecewise=style.piecewise_calls):
            yield _to_json({"tool_calls": [delta]}), b""


def _text_deltas(name: bytes, tokens: Sequence[str], style: ChatStyle, extra: bytes) -> Iterator[tuple[bytes, bytes]]:
    for start, end in groups(tokens):
        piece = tokens[start:end]
        logprobs = b""
        if style.logprobs:
            logprobs = b',"' + extra + b'":' + _to_json(chat_logprobs(piece, style.top, start))
        yield b'{"' + name + b'":' + _to_json("".join(piece)) + b"}", logprobs


def _call_deltas(number: int, call: Call, call_id: str, *, piecewise: bool) -> Iterator[JsonObject]:
    first = "" if piecewise else call.arguments
    yield {
        "function": {"name": call.name, "arguments": first},
        "type": "function",
        "id": call_id,
        "index": number,
    }
    tokens = tokenize(call.arguments) if piecewise else []
    for start, end in groups(tokens):
        yield {"function": {"arguments": "".join(tokens[start:end])}, "type": "function", "index": number}


@dataclass(frozen=True, slots=True)
class TextStyle:
    """How the choices of a completion are shown."""

    logprobs: int | None = None
    raw_tokens: bool = False


@dataclass(slots=True)
class TextChoiceData:
    """One completion: tokens of the echoed prompt, generated tokens, where they start in the text."""

    echoed: list[str]
    generated: list[str]
    prompt_length: int
    finish_reason: str


def completion_object(
    head: Head, choices: Sequence[TextChoiceData], style: TextStyle, usage: JsonObject, times: JsonObject
) -> JsonObject:
    """Return a whole text completion."""
    shown = [
        {
            "finish_reason": choice.finish_reason,
            "index": index,
            **_text_members(choice, style, 0, len(choice.echoed) + len(choice.generated)),
        }
        for index, choice in enumerate(choices)
    ]
    return {"id": head.id, "choices": shown, **head.ending("text_completion"), "usage": usage, "time_info": times}


def completion_events(
    head: Head, choices: Sequence[TextChoiceData], style: TextStyle, usage: JsonObject, times: JsonObject
) -> list[bytes]:
    """Return the events of a streamed text completion."""
    start = b'data: {"id":' + _to_json(head.id) + b',"choices":['
    tail = b"]," + _to_json(head.ending("text_completion"))[1:-1]
    events: list[bytes] = []
    for index, choice in enumerate(choices):
        tokens = choice.echoed + choice.generated
        for begin, end in groups(tokens):
            shown = {"index": index, **_text_members(choice, style, begin, end)}
            events.append(start + _to_json(shown) + tail + b"}\n\n")
        empty = {"finish_reason": choice.finish_reason, "index": index, "text": "", "tokens": None}
        closing = b"}\n\n"
        if index == len(choices) - 1:
            closing = b"," + _to_json({"usage": usage, "time_info": times})[1:] + b"\n\n"
        events.append(start + _to_json(empty) + tail + closing)
    events.append(DONE)
    return events


def _text_members(choice: TextChoiceData, style: TextStyle, begin: int, end: int) -> JsonObject:
    """Return text, tokens and log probabilities of a range of a completion's tokens."""
    tokens = choice.echoed + choice.generated
    piece = tokens[begin:end]
    members: JsonObject = {
        "text": None if style.raw_tokens else "".join(piece),
        "tokens": [token_id(token) for token in piece] if style.raw_tokens else None,
    }
    if style.logprobs is not None:
        before = 0 if choice.echoed else choice.prompt_length
        offset = before + sum(len(token) for token in tokens[:begin])
        members["logprobs"] = text_logprobs(piece, style.logprobs, offset, begin)
    return members

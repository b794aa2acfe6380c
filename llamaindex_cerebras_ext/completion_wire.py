"""Between LlamaIndex and the completions endpoint: prompts from messages, responses from answers and deltas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LogProb,
    MessageRole,
    TextBlock,
)

from cerebras_ext import CompletionDelta, types
from llamaindex_cerebras_ext.blocks import assistant_text, text_of
from llamaindex_cerebras_ext.calls import wire_calls_of
from llamaindex_cerebras_ext.from_wire import token_counts

_LABELS = {
    MessageRole.SYSTEM: "System",
    MessageRole.DEVELOPER: "System",
    MessageRole.USER: "User",
    MessageRole.ASSISTANT: "Assistant",
    MessageRole.CHATBOT: "Assistant",
    MessageRole.MODEL: "Assistant",
    MessageRole.TOOL: "Tool",
    MessageRole.FUNCTION: "Tool",
}


def messages_to_prompt(messages: Sequence[ChatMessage]) -> str:
    """Write a conversation as text that a completion continues: one labelled paragraph a turn, and an open last one.

    Reasoning of earlier turns is left out; tool calls are written as text.

    Raises:
        RequestValidationError: A block (an image, audio, ...) that text has no form for.
    """
    turns = [
        f"{_LABELS[message.role]}: {_turn_text(index, message)}".rstrip() for index, message in enumerate(messages)
    ]
    return "\n\n".join([*turns, f"{_LABELS[MessageRole.ASSISTANT]}:"])


def _turn_text(index: int, message: ChatMessage) -> str:
    if _LABELS[message.role] != _LABELS[MessageRole.ASSISTANT]:
        return text_of(message.blocks, index, message.role.value)
    calls = [f"[calls {name} with {text}]" for _, name, text in wire_calls_of(message, f"message {index}")]
    return "\n".join([part for part in (assistant_text(message.blocks, index), *calls) if part])


def logprob_lists(logprobs: Mapping[str, Any] | None) -> list[list[LogProb]] | None:
    """Return one list a token: the sampled token first, then the other likely ones.

    The list of a token without a probability (the first one of an echoed prompt) is empty.
    """
    if not logprobs or not logprobs.get("tokens"):
        return None
    tokens = logprobs["tokens"]
    own = logprobs.get("token_logprobs") or []
    others = logprobs.get("top_logprobs") or []
    lists = []
    for number, token in enumerate(tokens):
        value = own[number] if number < len(own) else None
        likely = others[number] if number < len(others) else None
        entries = [] if value is None else [LogProb(token=token, logprob=value)]
        entries += [LogProb(token=text, logprob=number) for text, number in (likely or {}).items() if text != token]
        lists.append(entries)
    return lists


def raw_answer(response: types.CompletionResponse) -> dict[str, Any]:
    """Return the answer as a plain dictionary, with `usage` always there: token counters look for the key."""
    raw = response.to_dict()
    raw.setdefault("usage", None)
    return raw


def completion_response(
    response: types.CompletionResponse, *, number: int = 0, delta: str | None = None
) -> CompletionResponse:
    """Return the LlamaIndex form of an answer's choice.

    Args:
        response: The whole answer.
        number: Which of its choices.
        delta: New text, on the last chunk of a stream.
    """
    raw = raw_answer(response)
    choice = response.choices[number] if response.choices else types.CompletionChoice()
    extra = token_counts(response.usage)
    if choice.finish_reason is not None:
        extra["finish_reason"] = choice.finish_reason
    if choice.tokens is not None:
        extra["tokens"] = choice.tokens
    logprobs = choice.logprobs.model_dump() if choice.logprobs else None
    return CompletionResponse(
        text=choice.text, delta=delta, raw=raw, additional_kwargs=extra, logprobs=logprob_lists(logprobs)
    )


def batch_responses(response: types.CompletionResponse) -> list[CompletionResponse]:
    """Return one response a choice, in the order of prompts; each has its own choice in `raw`.

    Token counts are those of the whole request and stand in `raw["usage"]`, not in `additional_kwargs`, where they
    would be added up.
    """
    whole = raw_answer(response)
    responses = []
    order = sorted(range(len(response.choices)), key=lambda number: response.choices[number].index)
    for number in order:
        single = completion_response(response, number=number)
        single.raw = {**whole, "choices": [whole["choices"][number]]}
        for name in token_counts(response.usage):
            single.additional_kwargs.pop(name, None)
        responses.append(single)
    return responses


class CompletionChunks:
    """Turns deltas of one completion into LlamaIndex chunks: `text` so far, `delta` new."""

    def __init__(self) -> None:
        self._text = ""

    def feed(self, deltas: Sequence[CompletionDelta]) -> Iterator[CompletionResponse]:
        """Yield a chunk for each delta of the first completion that has something new."""
        for delta in deltas:
            if delta.index != 0 or not (delta.text or delta.tokens or delta.logprobs):
                continue
            self._text += delta.text
            extra: dict[str, Any] = {"tokens": delta.tokens} if delta.tokens else {}
            yield CompletionResponse(
                text=self._text,
                delta=delta.text,
                raw=delta.raw,
                additional_kwargs=extra,
                logprobs=logprob_lists(delta.logprobs),
            )

    def finish(self, response: types.CompletionResponse) -> CompletionResponse:
        """Return the last chunk: no new text, and all that is known at the end."""
        return completion_response(response, delta="")


def as_chat(response: CompletionResponse) -> ChatResponse:
    """Return a completion as a chat answer; nothing of it is lost."""
    return ChatResponse(
        message=ChatMessage(role=MessageRole.ASSISTANT, blocks=[TextBlock(text=response.text)]),
        delta=response.delta,
        raw=response.raw,
        additional_kwargs=response.additional_kwargs,
        logprobs=response.logprobs,
    )

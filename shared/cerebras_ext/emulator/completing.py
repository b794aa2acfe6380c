"""Both endpoints' requests from the checked body to the object or the events of the answer."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from cerebras_ext.emulator import frames
from cerebras_ext.emulator.answers import answer_chat, answer_text
from cerebras_ext.emulator.catalog import ModelCard
from cerebras_ext.emulator.frames import ChatChoiceData, ChatStyle, Head, TextChoiceData, TextStyle
from cerebras_ext.emulator.generation import Answer, Generated, Limits, generate
from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.tokens import count, token_text, tokenize
from cerebras_ext.emulator.validation import check_chat, check_completion, count_messages, prompts

HeadOf = Callable[[str], Head]
Result = JsonObject | list[bytes]

_TOKENS_A_SECOND = 3_000.0
_PROMPT_TOKENS_A_SECOND = 60_000.0
_QUEUE_TIME = 0.0005
_CACHE_BLOCK = 128
_IMAGE_TOKENS = 256


def chat(body: Any, models: Mapping[str, ModelCard], head_of: HeadOf, now: float) -> Result:
    """Answer a chat request.

    Raises:
        RefusedError: The request is refused.
    """
    body, card = check_chat(body, models)
    head = head_of(card.id)
    style = _chat_style(body, card)
    limits = Limits.of(body)
    form = body.get("reasoning_format") or "none"
    choices = []
    for index in range(body.get("n") or 1):
        answer = answer_chat(body, effort=effort_of(body, card), variant=variant_of(body, index))
        generated = _shown_raw(answer, limits, card) if form == "raw" else generate(answer, limits)
        ids = [_call_id(head.id, index, number) for number in range(len(generated.calls))]
        choices.append(ChatChoiceData(generated, ids))
    usage = _chat_usage(body, card, [choice.generated for choice in choices])
    times = _times(usage, now)
    if body.get("stream"):
        return frames.chat_events(head, choices, style, usage, times)
    return frames.chat_object(head, choices, style, usage, times)


def effort_of(body: Mapping[str, Any], card: ModelCard) -> str:
    """Return how much is to be reasoned."""
    if body.get("disable_reasoning"):
        return "none"
    return body.get("reasoning_effort") or card.default_effort


def variant_of(body: Mapping[str, Any], index: int) -> int:
    """Return which wording a choice gets: the first by default; another for further choices and for other seeds."""
    if body.get("temperature") == 0:
        return 0
    return index + (body.get("seed") or 0)


def _chat_style(body: Mapping[str, Any], card: ModelCard) -> ChatStyle:
    return ChatStyle(
        reasoning_shown=body.get("reasoning_format") != "hidden",
        # Models that cannot answer without them, not with an error.
        logprobs=bool(body.get("logprobs")) and card.logprobs,
        top=body.get("top_logprobs") or 0,
        piecewise_calls=card.piecewise_calls,
    )


def _shown_raw(answer: Answer, limits: Limits, card: ModelCard) -> Generated:
    """Generate an answer whose reasoning stands inside its content."""
    thought = answer.reasoning
    if thought and card.think_tags:
        thought = f"<think>{thought}</think>\n\n"
    generated = generate(Answer(answer.content, thought, answer.calls), limits)
    generated.content, generated.reasoning = generated.reasoning + generated.content, []
    return generated


def _call_id(head_id: str, index: int, number: int) -> str:
    """Return an id as the service's look: nine hexadecimal digits."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{head_id}/{index}/{number}").hex[:9]


def _chat_usage(body: Mapping[str, Any], card: ModelCard, made: list[Generated]) -> JsonObject:
    images = _IMAGE_TOKENS * _count_images(body["messages"])
    prompt = count_messages(body) + images
    details: dict[str, int] = {}
    if card.prediction_counts:
        accepted, rejected = _prediction(body, made)
        details = {"accepted_prediction_tokens": accepted, "rejected_prediction_tokens": rejected}
    details["reasoning_tokens"] = sum(generated.hidden for generated in made)
    return _usage(
        prompt,
        sum(generated.tokens for generated in made),
        details,
        {"cached_tokens": _cached(body["messages"])} | ({"image_tokens": images} if card.images else {}),
    )


def _usage(prompt: int, completion: int, details: dict[str, int], prompt_details: dict[str, int]) -> JsonObject:
    return {
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "completion_tokens_details": details,
        "prompt_tokens": prompt,
        "prompt_tokens_details": prompt_details,
    }


def _count_images(messages: list[JsonObject]) -> int:
    contents = [message.get("content") for message in messages]
    return sum(part.get("type") != "text" for content in contents if isinstance(content, list) for part in content)


def _prediction(body: Mapping[str, Any], made: list[Generated]) -> tuple[int, int]:
    """Return how many predicted tokens stand in the answers, and how many do not."""
    if not body.get("prediction"):
        return 0, 0
    content = body["prediction"]["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    said = {token for generated in made for token in generated.content}
    accepted = sum(token in said for token in tokenize(text))
    return accepted, len(tokenize(text)) - accepted


def _cached(messages: list[JsonObject]) -> int:
    """Return the prompt tokens that a previous turn of this conversation would have left in the cache."""
    last = max((index for index, message in enumerate(messages) if message["role"] == "assistant"), default=0)
    return count([message.get("content") for message in messages[:last]]) // _CACHE_BLOCK * _CACHE_BLOCK


def _times(usage: Mapping[str, Any], now: float) -> JsonObject:
    prompt = 0.0005 + usage["prompt_tokens"] / _PROMPT_TOKENS_A_SECOND
    completion = 0.0002 + usage["completion_tokens"] / _TOKENS_A_SECOND
    return {
        "created": float(now),
        "queue_time": _QUEUE_TIME,
        "prompt_time": prompt,
        "completion_time": completion,
        "total_time": _QUEUE_TIME + prompt + completion + 0.0005,
    }


def text(body: Any, models: Mapping[str, ModelCard], head_of: HeadOf, now: float) -> Result:
    """Answer a completions request.

    Raises:
        RefusedError: The request is refused.
    """
    body, card = check_completion(body, models)
    head = head_of(card.id)
    choices: list[TextChoiceData] = []
    prompt_tokens = completion_tokens = 0
    for prompt in prompts(body["prompt"]):
        tokens = [token_text(number) for number in prompt] if isinstance(prompt, list) else tokenize(prompt)
        prompt_tokens += len(tokens)
        made = [_text_choice(body, tokens, index) for index in range(body.get("n") or 1)]
        choices += made
        completion_tokens += sum(len(choice.generated) for choice in made)
        # Candidates that are not returned are paid for as well.
        completion_tokens += max(0, (body.get("best_of") or 0) - len(made)) * len(made[0].generated)
    usage = _usage(prompt_tokens, completion_tokens, {"reasoning_tokens": 0}, {"cached_tokens": 0})
    style = TextStyle(logprobs=body.get("logprobs"), raw_tokens=bool(body.get("return_raw_tokens")))
    times = _times(usage, now)
    if body.get("stream"):
        return frames.completion_events(head, choices, style, usage, times)
    return frames.completion_object(head, choices, style, usage, times)


def _text_choice(body: Mapping[str, Any], tokens: list[str], index: int) -> TextChoiceData:
    prompt = "".join(tokens)
    generated = generate(Answer(answer_text(prompt, variant_of(body, index))), Limits.of(body))
    echoed = tokens if body.get("echo") else []
    return TextChoiceData(echoed, generated.content, len(prompt), generated.finish_reason)

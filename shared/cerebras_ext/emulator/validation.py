"""Refuses requests as the service does: unknown members, wrong types, fields that exclude each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from cerebras_ext.emulator.catalog import ARCHIVED, ModelCard
from cerebras_ext.emulator.decoding import RefusedError, refused
from cerebras_ext.emulator.faults import flat
from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.schema_rules import check_schema
from cerebras_ext.emulator.tokens import count
from cerebras_ext.types import ChatRequest, CompletionRequest

_MAX_CHOICES = 128
_MAX_BIASES = 100
_MAX_IMAGES = 10


class _Chat(ChatRequest):
    # pydantic's own report names paths as the service does; the library's request types reword it.
    __init__ = BaseModel.__init__


class _Completion(CompletionRequest):
    __init__ = BaseModel.__init__


def check_chat(body: Any, models: Mapping[str, ModelCard]) -> tuple[JsonObject, ModelCard]:
    """Check the body of a chat request; return it with values of the declared types, and its model.

    Raises:
        RefusedError: The service would refuse it.
    """
    body = _typed(body, _Chat, "ChatCompletionServerRequest")
    card = _model(body["model"], models)
    _check_limits(body)
    _check_conflicts(body)
    _check_reasoning(body, card)
    _check_tools(body, card)
    _check_format(body)
    _check_history(body["messages"])
    _check_images(body["messages"], card)
    _check_length(count_messages(body), card, "messages")
    return body, card


def check_completion(body: Any, models: Mapping[str, ModelCard]) -> tuple[JsonObject, ModelCard]:
    """Check the body of a completions request; return it with values of the declared types, and its model.

    Raises:
        RefusedError: The service would refuse it.
    """
    body = _typed(body, _Completion, "CompletionServerRequest")
    card = _model(body["model"], models)
    _check_limits(body)
    if body["prompt"] == []:
        raise refused("prompt: must not be empty")
    best_of, choices = body.get("best_of"), body.get("n") or 1
    if best_of is not None and body.get("stream"):
        raise refused("best_of: results cannot be streamed")
    if best_of is not None and best_of <= choices:
        raise refused(f"best_of: must be greater than n ({choices})")
    for prompt in prompts(body["prompt"]):
        _check_length(len(prompt) if isinstance(prompt, list) else count(prompt), card, "prompt")
    return body, card


def prompts(value: Any) -> list[str | list[int]]:
    """Return the prompts of a request, each a text or token ids."""
    if isinstance(value, str) or (value and isinstance(value[0], int)):
        return [value]
    return list(value)


def count_messages(body: Mapping[str, Any]) -> int:
    """Return how many tokens the prompt of a chat has, with what the roles and tools cost."""
    total = sum(4 + count(_countable(message)) for message in body["messages"])
    return 3 + total + count(body.get("tools")) + count(body.get("response_format"))


def _countable(message: Mapping[str, Any]) -> Any:
    content = message.get("content")
    texts = [part.get("text") for part in content] if isinstance(content, list) else [content]
    return [texts, message.get("reasoning"), message.get("tool_calls")]


def _typed(body: Any, model: type[BaseModel], name: str) -> JsonObject:
    if not isinstance(body, dict):
        raise refused(f"1 validation error for {name}\n  Input should be a valid object")
    if "extra_body" in body:  # a member of the library's own types, not of the wire's
        raise refused("extra_body: property 'extra_body' is unsupported")
    try:
        return model.__pydantic_validator__.validate_python(body).model_dump(  # type: ignore[no-any-return]
            exclude_unset=True, by_alias=True
        )
    except ValidationError as error:
        items = error.errors(include_url=False, include_context=False)
    unknown = [_path(item["loc"]) for item in items if item["type"] == "extra_forbidden"]
    if unknown:
        raise refused("\n".join(f"{path}: property '{path}' is unsupported" for path in dict.fromkeys(unknown)))
    report = [f"{_path(item['loc'])}\n  {item['msg']} [type={item['type']}]" for item in items]
    noun = "error" if len(report) == 1 else "errors"
    raise refused("\n".join([f"{len(report)} validation {noun} for {name}", *report]))


def _path(location: Iterable[int | str]) -> str:
    """Return a path without the names of union members, which are no part of the body."""
    return ".".join(str(step) for step in location if not (isinstance(step, str) and ("[" in step or step == "str")))


def _model(name: str, models: Mapping[str, ModelCard]) -> ModelCard:
    if name in models:
        return models[name]
    code = "model_archived" if name in ARCHIVED else "model_not_found"
    message = f"Model {name} does not exist or you do not have access to it."
    raise RefusedError(404, flat(message, "not_found_error", "model", code))


def _check_limits(body: Mapping[str, Any]) -> None:
    if (body.get("n") or 1) > _MAX_CHOICES:
        raise refused(f"n: must be at most {_MAX_CHOICES}")
    bias = body.get("logit_bias") or {}
    if len(bias) > _MAX_BIASES:
        raise refused(f"logit_bias: at most {_MAX_BIASES} entries are supported, got {len(bias)}")
    if any(isinstance(value, float) and not math.isfinite(value) for value in body.values()):
        raise refused(": numbers must be finite")


def _check_conflicts(body: Mapping[str, Any]) -> None:
    kind = (body.get("response_format") or {}).get("type")
    if body.get("tools") and kind not in (None, "text"):
        raise refused('"tools" is incompatible with "response_format"', None)
    if body.get("tool_choice") is not None and not body.get("tools"):
        raise refused("tool_choice: only allowed when 'tools' are specified", "tool_choice")
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise refused("top_logprobs: 'logprobs' must be true when 'top_logprobs' is set", "top_logprobs")
    if body.get("max_tokens") is not None and body.get("max_completion_tokens") is not None:
        raise refused("max_tokens and max_completion_tokens cannot both be set")
    if kind == "json_object" and body.get("stream"):
        raise refused("\"stream=true\" is not supported with response_format 'json_object'", "response_format")
    if kind in ("json_object", "json_schema") and body.get("reasoning_format") == "raw":
        raise refused("reasoning_format 'raw' is not supported with response_format", "reasoning_format")


def _check_reasoning(body: Mapping[str, Any], card: ModelCard) -> None:
    effort = body.get("reasoning_effort")
    if effort is not None and effort not in card.efforts:
        quoted = [f"'{name}'" for name in card.efforts]
        listed = f"{', '.join(quoted[:-1])}, and {quoted[-1]}"
        raise refused(f"Unsupported reasoning effort: {effort}. Supported values are {listed}.", None, None)
    if body.get("reasoning_format") in ("raw", "hidden") and not card.raw_reasoning:
        form = body["reasoning_format"]
        raise refused(f"reasoning_format '{form}' is not supported by the selected model", "reasoning_format")


def _check_tools(body: Mapping[str, Any], card: ModelCard) -> None:
    functions = [tool["function"] for tool in body.get("tools") or ()]
    strict = [bool(function.get("strict")) for function in functions]
    if card.uniform_strict and len(set(strict)) > 1:
        raise refused(
            "Tools with mixed values for 'strict' are not allowed. "
            "Please set all tools to 'strict: true' or 'strict: false'",
            "tools",
        )
    for function in functions:
        if function.get("strict") and function.get("parameters"):
            check_schema(function["parameters"], "tools")
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        name = choice["function"]["name"]
        if name not in [function["name"] for function in functions]:
            raise refused(f"tool_choice: function '{name}' is not among the tools", "tool_choice")


def _check_format(body: Mapping[str, Any]) -> None:
    schema = (body.get("response_format") or {}).get("json_schema") or {}
    if schema.get("strict") and schema.get("schema") is not None:
        check_schema(schema["schema"], "response_format")


def _check_history(messages: list[JsonObject]) -> None:
    """Check that tool calls are answered right after their turn and tool results answer a call."""
    open_ids: list[str] = []
    seen: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_ids:
                raise refused(
                    f"messages.{index}.tool.tool_call_id: no preceding tool call has the id "
                    f"'{message['tool_call_id']}'",
                    "messages",
                )
            open_ids.remove(message["tool_call_id"])
            continue
        _check_answered(open_ids)
        open_ids = [call["id"] for call in message.get("tool_calls") or ()]
        if seen & set(open_ids) or len(set(open_ids)) < len(open_ids):
            raise refused(f"messages.{index}.assistant.tool_calls: ids must be unique", "messages")
        seen.update(open_ids)
    _check_answered(open_ids)


def _check_answered(open_ids: list[str]) -> None:
    if open_ids:
        raise refused(f"messages: tool call '{open_ids[0]}' is not followed by a tool message", "messages")


def _check_images(messages: list[JsonObject], card: ModelCard) -> None:
    parts = [part for message in messages if isinstance(message.get("content"), list) for part in message["content"]]
    images = [part for part in parts if part.get("type") in ("image_url", "image")]
    if images and not card.images:
        kind = images[0]["type"]
        raise refused(f"Content type '{kind}' is not supported by selected model", None, None)
    if len(images) > _MAX_IMAGES:
        raise refused(f"At most {_MAX_IMAGES} images are allowed in a request", None, status=413)
    for part in images:
        url = part["image_url"]["url"] if part["type"] == "image_url" else part["image"]
        if not url.startswith(("data:image/png;base64,", "data:image/jpeg;base64,", "data:image/jpg;base64,")):
            raise refused("Images must be data URIs with PNG or JPEG content; URLs are not supported")


def _check_length(length: int, card: ModelCard, param: str) -> None:
    if length > card.context:
        raise refused(
            f"Please reduce the length of the messages or completion. Current length is {length} "
            f"while limit is {card.context}",
            param,
            "context_length_exceeded",
        )

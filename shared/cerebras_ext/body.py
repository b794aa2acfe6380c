"""From settings of several levels to the body that is sent: merging, the rules between fields, what is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.request_fields import RequestFields

Body = dict[str, Any]

_SAME_FIELD = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


def merge_levels(*levels: Mapping[str, Any]) -> dict[str, Any]:
    """Merge request fields of several levels (constructor, bind, call), the later one winning.

    Within a level its `extra_body` comes last; a later level's field beats an earlier level's `extra_body`. None means
    that a level says nothing. `max_tokens` and `max_completion_tokens` are one field.

    Returns:
        Keywords for a request, with one merged `extra_body` where any level had one.

    Raises:
        RequestValidationError: One level gives both names of the token limit with different values.
    """
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for level in levels:
        _check_same_limit(level)
        for name, value in level.items():
            if value is None or name == "extra_body":
                continue
            for key in (name, _SAME_FIELD.get(name)):
                fields.pop(key, None)  # type: ignore[arg-type]
                extra.pop(key, None)  # type: ignore[arg-type]
            fields[name] = value
        extra.update(level.get("extra_body") or {})
    if extra:
        fields["extra_body"] = extra
    return fields


def _check_same_limit(level: Mapping[str, Any]) -> None:
    old, new = level.get("max_tokens"), level.get("max_completion_tokens")
    if old is not None and new is not None and old != new:
        raise RequestValidationError(
            f"max_tokens and max_completion_tokens are one limit, but differ ({old!r} and {new!r}): give one of them"
        )


def chat_body(fields: RequestFields, *, stream: bool) -> Body:
    """Return the JSON object to send for the fields of a chat request.

    Raises:
        RequestValidationError: Two fields contradict each other.
    """
    body = fields.members.copy()
    _check_same_limit(body)
    if "max_tokens" in body:
        limit = body.pop("max_tokens")
        body.setdefault("max_completion_tokens", limit)
    body = _finish(body, fields.extra_body, stream)
    _check_tools(body)
    if body.get("top_logprobs") is not None and not body.get("logprobs"):
        raise RequestValidationError("top_logprobs: needs logprobs=True")
    if stream and is_json_object(body):
        raise RequestValidationError(
            "response_format: json_object cannot be streamed; send the request without a stream, or use json_schema"
        )
    return body


def completion_body(fields: RequestFields, *, stream: bool) -> Body:
    """Return the JSON object to send for the fields of a completions request.

    Raises:
        RequestValidationError: Two fields contradict each other.
    """
    body = _finish(fields.members.copy(), fields.extra_body, stream)
    best_of, count = body.get("best_of"), _count(body.get("n"))
    if best_of is not None:
        if stream:
            raise RequestValidationError("best_of: cannot be streamed; send the request without a stream")
        if isinstance(best_of, int) and best_of <= count:
            raise RequestValidationError(f"best_of: must be greater than n ({count}), got {best_of}")
    return body


def _count(n: Any) -> int:
    """Return how many answers a prompt gets. What `extra_body` gives as `n` may be anything."""
    return n if isinstance(n, int) and n > 0 else 1


def _finish(body: Body, extra: Mapping[str, Any] | None, stream: bool) -> Body:
    body.pop("stream", None)
    if stream:
        body["stream"] = True
    else:
        body.pop("stream_options", None)
    if extra:
        if not isinstance(extra.get("stream", stream), bool) or extra.get("stream", stream) != stream:
            raise RequestValidationError("extra_body.stream: choose streaming by the method that is called")
        if "max_tokens" in extra or "max_completion_tokens" in extra:
            body.pop("max_completion_tokens", None)
        body.update(extra)
    return body


def _check_tools(body: Body) -> None:
    """Leave out an empty list of tools and what depends on it; refuse to force a call without tools."""
    if body.get("tools"):
        return
    body.pop("tools", None)
    body.pop("parallel_tool_calls", None)
    choice = body.pop("tool_choice", None)
    if choice not in (None, "auto", "none"):
        raise RequestValidationError(f"tool_choice: {choice!r} needs tools, and none are given")


def is_json_object(body: Mapping[str, Any]) -> bool:
    """Whether the body asks for legacy JSON mode, which the service does not stream."""
    format_ = body.get("response_format")
    return isinstance(format_, Mapping) and format_.get("type") == "json_object"


def number_of_choices(body: Mapping[str, Any]) -> int:
    """Return how many answers a request asks for: `n`, times the number of prompts."""
    return _count(body.get("n")) * number_of_prompts(body.get("prompt"))


def number_of_prompts(prompt: Any) -> int:
    """Return how many prompts a `prompt` holds: a text and a list of token ids are one."""
    if isinstance(prompt, (list, tuple)) and prompt and not isinstance(prompt[0], int):
        return len(prompt)
    return 1


def single_reason(fields: Mapping[str, Any]) -> str | None:
    """Return why a request cannot become one stream of one answer, or None where it can.

    Args:
        fields: Keywords of the request, `extra_body` included.
    """
    merged = {**fields, **(fields.get("extra_body") or {})}
    format_ = merged.get("response_format")
    kind = format_.get("type") if isinstance(format_, Mapping) else getattr(format_, "type", None)
    if kind == "json_object":
        return "response_format json_object is not streamed by the service"
    if merged.get("best_of") is not None:
        return "best_of is not streamed by the service"
    if _count(merged.get("n")) > 1:
        return "n is above 1"
    return None

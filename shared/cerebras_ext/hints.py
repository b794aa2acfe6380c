"""Advice for refusals whose own text does not say what to do: pure functions over the error and the request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cerebras_ext.types.common import ErrorBody


def hint_for(status: int, said: ErrorBody, request: Mapping[str, Any] | None) -> str | None:
    """Return what the user can do about a refusal, or None where the service's text is enough.

    Args:
        status: HTTP status.
        said: What the service said.
        request: The body that was sent.
    """
    request = request or {}
    message = (said.message or "").lower()
    if status == 404:
        return _model_hint(said, request)
    if status == 401:
        return "check CEREBRAS_API_KEY or api_key; keys are made at https://cloud.cerebras.ai"
    if status not in (400, 422):
        return None
    found = (
        _format_hint(message, said, request),
        history_fault(request.get("messages")),
        _image_hint(message, request),
    )
    return "; ".join(text for text in found if text) or None


def _model_hint(said: ErrorBody, request: Mapping[str, Any]) -> str | None:
    if said.param == "model" or (said.code or "").startswith("model_"):
        model = request.get("model")
        return f"model {model!r} may be retired or not open to this key; GET /v1/models (Client.models()) lists yours"
    return None


def _format_hint(message: str, said: ErrorBody, request: Mapping[str, Any]) -> str | None:
    if request.get("tools") and request.get("response_format"):
        return "the service refuses tools together with response_format: use one of them in a request"
    kind = _format_type(request)
    if kind and "input should be 'text'" in message:
        return f"this model does not take response_format {kind!r}: try another method (json_object, or a tool call)"
    if said.param == "tool_choice" or ("tool_choice" in message and request.get("tool_choice") is not None):
        return "this model may not take a forced tool_choice: for structured output use response_format json_schema"
    if kind == "json_schema" and said.param == "response_format":
        return (
            "strict schemas want closed objects and no pattern, format or length keywords; "
            "cerebras_ext.strict_schema makes them"
        )
    return None


def _format_type(request: Mapping[str, Any]) -> str | None:
    format_ = request.get("response_format")
    return format_.get("type") if isinstance(format_, Mapping) else None


def _image_hint(message: str, request: Mapping[str, Any]) -> str | None:
    if any(url.lower().startswith(("http://", "https://")) for url in _image_urls(request.get("messages"))):
        return "the public service takes images as data URIs (data:image/png;base64,...) only, not as URLs"
    if "image_url" in message and "not supported by selected model" in message:
        return "this model does not read images: choose one that does"
    return None


def _image_urls(messages: Any) -> Iterable[str]:
    for message in messages if isinstance(messages, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        for part in content if isinstance(content, list) else ():
            image = part.get("image_url") if isinstance(part, Mapping) else None
            if isinstance(image, Mapping) and isinstance(image.get("url"), str):
                yield image["url"]


def history_fault(messages: Any) -> str | None:
    """Return what is wrong between tool calls and tool results, with the message index, or None.

    The service wants each call answered right after the assistant turn, and no result without its call;
    trimming a history breaks that easily, and the refusal may have no text at all.
    """
    pending: dict[str, int] = {}
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "tool":
            call_id = repr(message.get("tool_call_id"))
            if call_id not in pending:
                return f"message {index} is a tool result with id {call_id}, which no preceding assistant turn called"
            del pending[call_id]
            continue
        if pending:
            break
        calls = message.get("tool_calls")
        for call in calls if isinstance(calls, list) else ():
            pending[repr(call.get("id") if isinstance(call, Mapping) else None)] = index
    if pending:
        call_id, index = next(iter(pending.items()))
        return f"message {index} calls a tool with id {call_id}, and no tool message answers it right after"
    return None

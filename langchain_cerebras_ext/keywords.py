"""Keywords that users write: other spellings, other providers' keywords, unknown names, options of a call."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Mapping
from typing import Any

from cerebras_ext.errors import RequestValidationError, nearest_name, unknown_field_message
from cerebras_ext.keywords import CallOptions

ALIASES: Mapping[str, str] = {
    "model_name": "model",
    "max_completion_tokens": "max_tokens",
    "stop_sequences": "stop",
    "request_timeout": "timeout",
    "cerebras_api_key": "api_key",
    "openai_api_key": "api_key",
    "cerebras_api_base": "base_url",
    "openai_api_base": "base_url",
    "extra_headers": "default_headers",
    "cerebras_proxy": "proxy",
    "openai_proxy": "proxy",
}
"""Other spellings of our fields, as `ChatOpenAI` and `langchain_cerebras.ChatCerebras` have them."""

FOREIGN: Mapping[str, str] = {
    "stream_usage": "usage always comes with a stream",
    "stream": "call stream, or set streaming",
    "store": "the service stores nothing",
    "organization": "the key decides",
    "openai_organization": "the key decides",
    "openai_api_type": "there is one API",
    "use_responses_api": "the service has no Responses API",
    "use_previous_response_id": "the service has no Responses API",
    "include": "the service has no Responses API",
    "truncation": "the service has no Responses API",
    "context_management": "the service has no Responses API",
    "reasoning": "use reasoning_effort",
    "verbosity": "the service has no such parameter",
    "tiktoken_model_name": "pass custom_get_token_ids for another way to count tokens",
    "disabled_params": "only parameters that are set are sent",
    "default_query": "the service has no query parameters",
    "prompt_cache_options": "use prompt_cache_key",
    "allowed_special": "the service has no such parameter",
    "disallowed_special": "the service has no such parameter",
    "http_socket_options": "pass http_client and http_async_client",
    "stream_chunk_timeout": "use stream_idle_timeout",
    "client": "pass http_client",
    "async_client": "pass http_async_client",
    "root_client": "pass http_client",
    "root_async_client": "pass http_async_client",
    "thinking": "use reasoning_effort",
    "top_k": "the service has no such parameter",
}
"""Keywords of other providers' classes that cannot mean anything here, and what to do instead."""

TRANSPORT_OPTIONS = frozenset(CallOptions.__annotations__)
"""What a call may set beside the fields of the request."""

_PRIVATE = frozenset(("stream", "stream_usage"))
_GIVEN_BY_METHODS = frozenset(("messages", "prompt"))
_CALL_ALIASES = {name: field for name, field in ALIASES.items() if field in ("model", "max_tokens", "stop", "timeout")}


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the first line that is outside of this library, langchain-core and pydantic."""
    warnings.warn(message, category, stacklevel=_outside())


def _outside() -> int:
    level = 1
    frame = sys._getframe(1)
    while frame.f_back is not None:
        root = frame.f_globals.get("__name__", "").partition(".")[0]
        if root not in ("langchain_cerebras_ext", "langchain_core", "pydantic", "functools", "abc"):
            break
        frame = frame.f_back
        level += 1
    return level


def resolve_aliases(values: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the keywords of a constructor under the names of our fields.

    Raises:
        RequestValidationError: Two spellings of one field have different values.
    """
    result = dict(values)
    for alias, name in ALIASES.items():
        if alias not in result or alias in known or name not in known:
            continue
        value = result.pop(alias)
        if value is None:
            continue
        other = result.get(name)
        if other is not None and other != value:
            raise RequestValidationError(f"{alias} and {name} are one setting, but differ: give one of them")
        result[name] = value
    return result


def split_unknown(
    values: Mapping[str, Any], known: Collection[str], class_name: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the keywords that are fields, and the unknown ones, which are sent as they are; warn about the latter."""
    fields: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    for name, value in values.items():
        if name in known:
            fields[name] = value
        elif name in FOREIGN:
            warn(f"{class_name}: {name} is another provider's keyword and was dropped: {FOREIGN[name]}.")
        else:
            near = nearest_name(name, known)
            guess = f" Did you mean {near!r}?" if near else ""
            warn(f"{class_name}: {name} is not a parameter; it goes to model_kwargs and is sent as it is.{guess}")
            unknown[name] = value
    return fields, unknown


def lift_model_kwargs(fields: dict[str, Any], given: Any, known: Collection[str]) -> dict[str, Any]:
    """Move what `model_kwargs` has of our fields into `fields`; return the rest.

    Raises:
        RequestValidationError: A field is given both inside and outside with different values.
    """
    rest: dict[str, Any] = {}
    for name, value in dict(given or {}).items():
        field = ALIASES.get(name, name)
        if field not in known or field == "model_kwargs":
            rest[name] = value
        elif fields.get(field) is not None and fields[field] != value:
            raise RequestValidationError(f"{name}: given both in model_kwargs and as a parameter, with another value")
        else:
            fields[field] = value
    return rest


def canonical_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under the names of our fields; of two spellings of one field the later one counts."""
    return {_CALL_ALIASES.get(name, name): value for name, value in options.items()}


def call_level(
    options: Mapping[str, Any], known: Collection[str], also: Collection[str] = (), *, quiet: bool = False
) -> dict[str, Any]:
    """Return the request fields and transport options of one call, under our names.

    What frameworks add for themselves (`stream`, `stream_usage`, `ls_*`) is dropped, other providers' keywords are
    dropped with a warning, and of two spellings of one field the later one counts (a call's comes after a bound one).

    Args:
        options: Keywords of the call, bound ones included.
        known: Names of the request's fields.
        also: Further names that the caller takes care of; they are left out.
        quiet: Leave out what would be warned about or refused.

    Raises:
        RequestValidationError: An option is unknown; the text has the nearest known name.
    """
    level: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in options.items():
        field = _CALL_ALIASES.get(name, name)
        if name in also or name in _PRIVATE or name.startswith("ls_"):
            continue
        if (field in known and field not in _GIVEN_BY_METHODS) or field in TRANSPORT_OPTIONS:
            level[field] = value
        elif name == "model_kwargs":
            extra.update(value or {})
        elif quiet:
            continue
        elif name in FOREIGN:
            warn(f"{name} is another provider's option and was dropped: {FOREIGN[name]}.")
        else:
            raise RequestValidationError(unknown_field_message(name, name, sorted({*known, *TRANSPORT_OPTIONS})))
    if extra:
        level["extra_body"] = {**extra, **(level.get("extra_body") or {})}
    return level

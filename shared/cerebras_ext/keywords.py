"""The keywords of the clients' methods as a type checker and an editor see them.

The request models decide at run time; a test holds the names here against their fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from cerebras_ext.classify import ErrorTypes
from cerebras_ext.settings import ApiKey, SettingsOptions, Timeout
from cerebras_ext.types import (
    AssistantMessage,
    DeveloperMessage,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedToolChoice,
    Prediction,
    StreamOptions,
    SystemMessage,
    TextFormat,
    Tool,
    ToolMessage,
    UserMessage,
)

Unstreamable = Literal["raise", "single"]
"""What to do with a request that cannot become one stream of one answer (json_object, best_of, n above 1): raise, or
make a single request without a stream and yield its answer as one batch."""

JsonObject = Mapping[str, Any]
AnyMessage = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage


class ClientOptions(SettingsOptions, total=False):
    """Arguments of both clients; see `SettingsOptions` for the others.

    Attributes:
        api_key: The key, a `SecretStr`, or a function that returns one; default `CEREBRAS_API_KEY`.
        error_types: Replacements for error classes, for framework adapters.
    """

    api_key: ApiKey | None
    error_types: ErrorTypes | None


class CallOptions(TypedDict, total=False):
    """What may be given with a single call beside the fields of its request.

    Attributes:
        timeout: As for the client, for this call.
        extra_headers: Headers of this call.
        queue_threshold: As for the client, for this call.
    """

    timeout: Timeout | None
    extra_headers: Mapping[str, str] | None
    queue_threshold: int | None


class SharedFields(CallOptions, total=False):
    """Fields that the requests of both endpoints have, and the options of a call."""

    model: str
    frequency_penalty: float | None
    logit_bias: Mapping[str, float] | None
    max_tokens: int | None
    min_tokens: int | None
    n: int | None
    presence_penalty: float | None
    prompt_cache_key: str | None
    reasoning_format: Literal["none", "parsed", "text_parsed", "raw", "hidden"] | None
    seed: int | None
    stop: str | Sequence[str] | None
    stream: bool | None
    stream_options: StreamOptions | JsonObject | None
    temperature: float | None
    top_p: float | None
    user: str | None
    extra_body: JsonObject | None


class ChatKeywords(SharedFields, total=False):
    """Fields of `ChatRequest`, whose descriptions hold, and the options of a call."""

    messages: Sequence[AnyMessage | JsonObject]
    clear_thinking: bool | None
    disable_reasoning: bool | None
    logprobs: bool | None
    max_completion_tokens: int | None
    min_completion_tokens: int | None
    model_parameters: JsonObject | None
    parallel_tool_calls: bool | None
    prediction: Prediction | JsonObject | None
    reasoning_effort: Literal["none", "low", "medium", "high"] | None
    response_format: TextFormat | JsonObjectFormat | JsonSchemaFormat | JsonObject | None
    service_tier: Literal["priority", "default", "auto", "flex"] | None
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | JsonObject | None
    tools: Sequence[Tool | JsonObject] | None
    top_logprobs: int | None


class CompletionKeywords(SharedFields, total=False):
    """Fields of `CompletionRequest`, whose descriptions hold, and the options of a call."""

    prompt: str | Sequence[str] | Sequence[int] | Sequence[Sequence[int]]
    best_of: int | None
    echo: bool | None
    grammar_root: str | None
    logprobs: int | None
    return_raw_tokens: bool | None
    suffix: str | None

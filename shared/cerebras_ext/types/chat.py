"""Wire types of `POST /v1/chat/completions`."""

# Annotations are not postponed: pydantic would evaluate the text of each, a tenth of the core's import.

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PrivateAttr

from cerebras_ext.names import NAME_PATTERN, NAME_RULE
from cerebras_ext.ratelimit import ResponseInfo
from cerebras_ext.types._base import ClosedModel, OpenModel, RequestModel
from cerebras_ext.types.common import (
    LogitBias,
    LogProbs,
    NullableIndex,
    NullableList,
    ReasoningFormat,
    Stop,
    StreamOptions,
    TimeInfo,
    Usage,
)

# ---- messages that we send ----


class TextPart(ClosedModel):
    """A piece of text."""

    type: Literal["text"] = "text"
    text: str


class ImageUrl(ClosedModel):
    """Where an image is: a data URI (`data:image/png;base64,...`); the public service takes nothing else today."""

    url: str
    detail: str | None = None


class ImageUrlPart(ClosedModel):
    """An image given by URL or data URI."""

    type: Literal["image_url"] = "image_url"
    image_url: ImageUrl


class ImagePart(ClosedModel):
    """An image given inline, in the form that the service's own document has beside `image_url`."""

    type: Literal["image"] = "image"
    image: str


UserPart = Annotated[TextPart | ImageUrlPart | ImagePart, Field(discriminator="type")]


class FunctionCall(ClosedModel):
    """Name and JSON-encoded arguments of a call in history."""

    name: str
    arguments: str


class ToolCall(ClosedModel):
    """A tool call in history."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall
    index: int | None = None


class SystemMessage(ClosedModel):
    """Instructions to follow regardless of what the user says."""

    role: Literal["system"] = "system"
    content: str | list[TextPart]
    name: str | None = None


class DeveloperMessage(ClosedModel):
    """Like a system message, in the spelling of newer models."""

    role: Literal["developer"] = "developer"
    content: str | list[TextPart]
    name: str | None = None


class UserMessage(ClosedModel):
    """A turn of the user: text, or parts of text and images."""

    role: Literal["user"] = "user"
    content: str | list[UserPart]
    name: str | None = None


def _empty_is_unset(value: Any) -> Any:
    """An empty list is not a legal content or list of calls, and says the same as none."""
    return None if isinstance(value, list) and not value else value


EmptyIsUnset = BeforeValidator(_empty_is_unset)


class AssistantMessage(ClosedModel):
    """An earlier turn of the model. `content` is left out of a turn that only calls tools."""

    role: Literal["assistant"] = "assistant"
    content: Annotated[str | list[TextPart] | None, EmptyIsUnset] = None
    name: str | None = None
    reasoning: str | list[TextPart] | None = None
    tool_calls: Annotated[list[ToolCall] | None, EmptyIsUnset] = None


class ToolMessage(ClosedModel):
    """The result of a tool call."""

    role: Literal["tool"] = "tool"
    content: str | list[TextPart]
    tool_call_id: str
    name: str | None = None


Message = Annotated[
    SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")
]

# ---- tools and formats ----


class FunctionDefinition(ClosedModel):
    """A function that the model may call."""

    name: str = Field(pattern=NAME_PATTERN, description=f"{NAME_RULE}.")
    description: str | None = None
    parameters: dict[str, Any] | None = Field(default=None, description="JSON schema of the arguments.")
    strict: bool | None = Field(default=None, description="Constrained arguments; must be the same on every tool.")


class Tool(ClosedModel):
    """A tool that the model may call. Only functions exist."""

    type: Literal["function"] = "function"
    function: FunctionDefinition


class NamedFunction(ClosedModel):
    """Name of the function to force."""

    name: str


class NamedToolChoice(ClosedModel):
    """Forces the call of one function."""

    type: Literal["function"] = "function"
    function: NamedFunction


class TextFormat(ClosedModel):
    """Plain text, the default."""

    type: Literal["text"] = "text"


class JsonObjectFormat(ClosedModel):
    """Any JSON object. Needs an instruction that asks for JSON; cannot be streamed."""

    type: Literal["json_object"] = "json_object"


class JsonSchema(ClosedModel):
    """A schema with its name."""

    name: str
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema", description="The JSON schema of the answer.")
    strict: bool | None = Field(default=None, description="True enforces the schema by constrained decoding.")


class JsonSchemaFormat(ClosedModel):
    """JSON that follows a schema."""

    type: Literal["json_schema"] = "json_schema"
    json_schema: JsonSchema


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


class Prediction(ClosedModel):
    """Text that the answer is expected to repeat in large parts."""

    type: Literal["content"] = "content"
    content: str | list[TextPart]


class ChatRequest(RequestModel):
    """Body of `POST /v1/chat/completions`.

    Only fields that were set are sent. `extra_body` is merged into the body last, as it is: the way to send something
    that this class does not know, or a JSON null.
    """

    model: str = Field(min_length=1, description="Model id, or endpoint id of a dedicated endpoint.")
    messages: list[Message] = Field(min_length=1, description="The conversation so far.")
    clear_thinking: bool | None = Field(
        default=None, description="Whether reasoning of earlier turns is left out of the prompt. Known to zai-glm-4.7."
    )
    disable_reasoning: bool | None = Field(
        default=None,
        description="Removed from the service on 2026-07-21; use reasoning_effort='none'.",
        deprecated="removed from the service on 2026-07-21; use reasoning_effort='none'",
    )
    frequency_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="Penalty by frequency of a token so far."
    )
    logit_bias: LogitBias | None = Field(default=None, description="Token id to bias, -100 to 100.")
    logprobs: bool | None = Field(default=None, description="Return log probabilities of the output tokens.")
    max_completion_tokens: int | None = Field(
        default=None,
        ge=-1,
        description="Limit of generated tokens, reasoning included; -1 for what the context allows.",
    )
    max_tokens: int | None = Field(
        default=None, ge=-1, description="Older name of max_completion_tokens; written under the new name."
    )
    min_completion_tokens: int | None = Field(default=None, ge=-1, description="Fewest tokens to generate.")
    min_tokens: int | None = Field(default=None, ge=-1, description="Older name of min_completion_tokens.")
    model_parameters: dict[str, Any] | None = Field(
        default=None, description="Undocumented; typed in the vendor's SDK."
    )
    n: int | None = Field(default=None, ge=1, description="How many answers to generate.")
    parallel_tool_calls: bool | None = Field(default=None, description="Allow several tool calls in one answer.")
    prediction: Prediction | None = Field(
        default=None, description="Predicted output, to speed up small edits of long texts."
    )
    presence_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="Penalty by presence of a token so far."
    )
    prompt_cache_key: str | None = Field(
        default=None, max_length=1024, description="Groups requests that share a prompt prefix, for cache hits."
    )
    reasoning_effort: Literal["none", "low", "medium", "high"] | None = Field(
        default=None, description="How much to reason. Which values are known depends on the model."
    )
    reasoning_format: ReasoningFormat | None = Field(default=None, description="Where reasoning goes in the answer.")
    response_format: ResponseFormat | None = Field(
        default=None, description="Text, any JSON object, or JSON by a schema."
    )
    seed: int | None = Field(default=None, description="Best-effort reproducible sampling.")
    service_tier: Literal["priority", "default", "auto", "flex"] | None = Field(
        default=None, description="Priority of the request (private preview)."
    )
    stop: Stop = Field(default=None, description="Up to 4 sequences that end the answer; not part of it.")
    stream: bool | None = Field(default=None, description="Set by the client's methods.")
    stream_options: StreamOptions | None = Field(
        default=None, description="Sent only when set, and only with a stream."
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature.")
    tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | None = Field(
        default=None, description="Whether and which tool to call."
    )
    tools: list[Tool] | None = Field(default=None, description="Tools that the model may call.")
    top_logprobs: int | None = Field(
        default=None, ge=0, le=20, description="Most likely tokens to return per position."
    )
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="Nucleus sampling: share of probability mass to consider."
    )
    user: str | None = Field(default=None, description="Id of the end user, for abuse monitoring.")
    extra_body: dict[str, Any] | None = Field(
        default=None, exclude=True, description="Members to merge into the body as they are, last."
    )


# ---- what the service sends ----


class ResponseFunction(OpenModel):
    """Function of a tool call as the service sends it."""

    name: str | None = None
    arguments: str | None = Field(default=None, description="JSON text; may be malformed or cut off.")


class ResponseToolCall(OpenModel):
    """A tool call as the service sends it."""

    id: str | None = None
    type: str | None = None
    function: ResponseFunction | None = None
    index: int | None = None

    @property
    def name(self) -> str:
        """Function name, or an empty string."""
        return (self.function.name if self.function else None) or ""

    @property
    def arguments(self) -> str:
        """The arguments as JSON text, or an empty string."""
        return (self.function.arguments if self.function else None) or ""


class ResponseMessage(OpenModel):
    """The model's answer."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = Field(
        default=None, description="Spelling of some gateways; the service says reasoning."
    )
    tool_calls: list[ResponseToolCall] | None = None

    @property
    def reasoning_text(self) -> str:
        """The reasoning under whichever name it came, or an empty string."""
        return self.reasoning or self.reasoning_content or ""


class ChatChoice(OpenModel):
    """One of the answers."""

    index: Annotated[int, NullableIndex] = 0
    finish_reason: str | None = Field(
        default=None, description="stop, length, content_filter, tool_calls, or a newer value."
    )
    message: ResponseMessage | None = None
    logprobs: LogProbs | None = None
    reasoning_logprobs: LogProbs | None = None


class ChatResponse(OpenModel):
    """Answer of the chat endpoint; streams are assembled to the same object."""

    id: str | None = None
    choices: Annotated[list[ChatChoice], NullableList] = Field(default_factory=list)
    created: int | float | None = None
    model: str | None = None
    object: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    service_tier_used: str | None = None
    usage: Usage | None = None
    time_info: TimeInfo | None = None

    _info: ResponseInfo | None = PrivateAttr(None)

    @property
    def info(self) -> ResponseInfo | None:
        """Request id, rate limits and headers of the HTTP response; None where the object was not received by HTTP."""
        return self._info

    @property
    def message(self) -> ResponseMessage:
        """Message of the first choice (an empty one if there is none)."""
        message = self.choices[0].message if self.choices else None
        return message if message is not None else ResponseMessage()

    @property
    def text(self) -> str:
        """Content of the first choice, or an empty string."""
        return self.message.content or ""

    @property
    def reasoning(self) -> str:
        """Reasoning of the first choice, or an empty string."""
        return self.message.reasoning_text

    @property
    def tool_calls(self) -> list[ResponseToolCall]:
        """Tool calls of the first choice."""
        return self.message.tool_calls or []

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended."""
        return self.choices[0].finish_reason if self.choices else None


class ChunkDelta(OpenModel):
    """What a chunk adds to an answer."""

    role: str | None = None
    content: str | None = None
    reasoning: str | None = None
    tool_calls: list[ResponseToolCall] | None = None


class ChunkChoice(OpenModel):
    """Part of one answer inside a chunk."""

    index: int | None = None
    delta: ChunkDelta | None = None
    finish_reason: str | None = None
    logprobs: LogProbs | None = None
    reasoning_logprobs: LogProbs | None = None


class ChatChunk(OpenModel):
    """One event of a chat stream."""

    id: str | None = None
    choices: Annotated[list[ChunkChoice], NullableList] = Field(default_factory=list)
    created: int | float | None = None
    model: str | None = None
    object: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    service_tier_used: str | None = None
    usage: Usage | None = None
    time_info: TimeInfo | None = None

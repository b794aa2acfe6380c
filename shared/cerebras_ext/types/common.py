"""Wire types that both endpoints share: usage, timing, logprobs of chat, stream options, error bodies, model lists."""

# Annotations are not postponed: pydantic would evaluate the text of each, a tenth of the core's import.

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from cerebras_ext.types._base import ClosedModel, OpenModel

ReasoningFormat = Literal["none", "parsed", "text_parsed", "raw", "hidden"]

LogitBias = dict[str, Annotated[float, Field(ge=-100, le=100)]]


def _stop_list(value: Any) -> Any:
    """An empty list of stop sequences means none were asked for."""
    if isinstance(value, (list, tuple)):
        return list(value) or None
    return value


Stop = Annotated[
    str | Annotated[list[str], Field(max_length=4)] | None,
    BeforeValidator(_stop_list),
]


def _none_is_empty(value: Any) -> Any:
    return [] if value is None else value


NullableList = BeforeValidator(_none_is_empty)
"""For lists that the service may send as null: read as an empty list."""


def _none_is_zero(value: Any) -> Any:
    return 0 if value is None else value


NullableIndex = BeforeValidator(_none_is_zero)
"""For the index of an answer, which a gateway may send as null: read as the first."""


class StreamOptions(ClosedModel):
    """Options for streaming."""

    include_usage: bool | None = Field(default=None, description="Ask for token usage at the end of the stream.")


class PromptTokensDetails(OpenModel):
    """Breakdown of the prompt tokens."""

    cached_tokens: int | None = Field(default=None, description="Prompt tokens served from the prompt cache.")
    image_tokens: int | None = Field(default=None, description="Tokens of image inputs (the place used since 2026-08).")


class CompletionTokensDetails(OpenModel):
    """Breakdown of the completion tokens."""

    accepted_prediction_tokens: int | None = Field(default=None, description="Predicted tokens that were used.")
    rejected_prediction_tokens: int | None = Field(
        default=None, description="Predicted tokens that were not used but billed."
    )
    reasoning_tokens: int | None = Field(
        default=None, description="Tokens spent on reasoning; part of completion_tokens."
    )


class Usage(OpenModel):
    """Token counts of one request, over all of its choices."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = Field(default=None, description="Generated tokens, reasoning included.")
    total_tokens: int | None = None
    image_tokens: int | None = Field(default=None, description="Tokens of image inputs (the place used until 2026-07).")
    prompt_tokens_details: PromptTokensDetails | None = None
    completion_tokens_details: CompletionTokensDetails | None = None

    @property
    def cached_tokens(self) -> int | None:
        """Prompt tokens read from the cache, or None where the service does not say."""
        return self.prompt_tokens_details.cached_tokens if self.prompt_tokens_details else None

    @property
    def reasoning_tokens(self) -> int | None:
        """Tokens spent on reasoning, or None where the service does not say."""
        return self.completion_tokens_details.reasoning_tokens if self.completion_tokens_details else None

    @property
    def total_image_tokens(self) -> int | None:
        """Image tokens from whichever of their two places the service used."""
        if self.image_tokens is not None:
            return self.image_tokens
        return self.prompt_tokens_details.image_tokens if self.prompt_tokens_details else None


class TimeInfo(OpenModel):
    """How long the phases of a request took on the server, in seconds."""

    queue_time: float | None = Field(default=None, description="Waiting for processing.")
    prompt_time: float | None = Field(default=None, description="Processing the input tokens.")
    completion_time: float | None = Field(default=None, description="Generating the output tokens.")
    total_time: float | None = Field(default=None, description="From submission to completion.")
    created: int | float | None = Field(default=None, description="Unix time at which the times were taken.")

    def tokens_per_second(self, usage: Usage | None) -> float | None:
        """Generation speed on the server, or None where a number is missing or zero."""
        if usage is None or not usage.completion_tokens or not self.completion_time:
            return None
        return usage.completion_tokens / self.completion_time


class TopLogProb(OpenModel):
    """One of the most likely tokens at a position."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None


class TokenLogProb(TopLogProb):
    """The sampled token at a position, with the alternatives that were asked for."""

    top_logprobs: Annotated[list[TopLogProb], NullableList] = Field(default_factory=list)


class LogProbs(OpenModel):
    """Log probabilities in the form of the chat endpoint."""

    content: list[TokenLogProb] | None = None
    refusal: list[TokenLogProb] | None = None


class ErrorBody(OpenModel):
    """What an error says, whatever envelope it came in (see `cerebras_ext.classify.read_error_body`)."""

    message: str | None = None
    type: str | None = None
    param: str | None = None
    code: str | None = None
    id: str | None = None


class Model(OpenModel):
    """One entry of the model list."""

    id: str | None = None
    object: str | None = None
    created: int | float | None = None
    owned_by: str | None = None


class ModelList(OpenModel):
    """Answer of `GET /v1/models`: the models that the key may use."""

    object: str | None = None
    data: Annotated[list[Model], NullableList] = Field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """Names of the models, in the order of the service."""
        return [model.id for model in self.data if model.id]

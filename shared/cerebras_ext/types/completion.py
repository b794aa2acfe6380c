"""Wire types of `POST /v1/completions`."""

# Annotations are not postponed: pydantic would evaluate the text of each, a tenth of the core's import.

from array import array
from functools import cache
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, TypeAdapter, WithJsonSchema

from cerebras_ext.ratelimit import ResponseInfo
from cerebras_ext.types._base import OpenModel, RequestModel
from cerebras_ext.types.common import (
    LogitBias,
    NullableIndex,
    NullableList,
    ReasoningFormat,
    Stop,
    StreamOptions,
    TimeInfo,
    Usage,
)


@cache
def _not_negative(nested: bool) -> TypeAdapter[Any]:
    one = Annotated[list[Annotated[int, Field(ge=0)]], Field(fail_fast=True)]
    return TypeAdapter(Annotated[list[one], Field(fail_fast=True)]) if nested else TypeAdapter(one)


def _refuse_negative(prompt: Any) -> Any:
    """Refuse negative token ids, all at once: a bound on each would take three times as long."""
    if isinstance(prompt, list) and prompt and not isinstance(prompt[0], str):
        nested = isinstance(prompt[0], list)
        try:
            for token_ids in prompt if nested else (prompt,):
                array("Q", token_ids)  # the fastest way to try a bound
        except OverflowError:
            _not_negative(nested).validate_python(prompt)  # names the place; a number may also be very large
    return prompt


TokenIds = Annotated[list[Annotated[int, WithJsonSchema({"type": "integer", "minimum": 0})]], Field(fail_fast=True)]
Prompt = Annotated[
    str | Annotated[list[str], Field(fail_fast=True)] | TokenIds | Annotated[list[TokenIds], Field(fail_fast=True)],
    AfterValidator(_refuse_negative),
]
"""Failing fast, 50,000 token ids are not refused one by one as texts first."""


class CompletionRequest(RequestModel):
    """Body of `POST /v1/completions`.

    Only fields that were set are sent. `extra_body` is merged into the body last, as it is.
    """

    model: str = Field(min_length=1, description="Model id, or endpoint id of a dedicated endpoint.")
    prompt: Prompt = Field(description="A text, several texts, token ids, or several lists of token ids.")
    best_of: int | None = Field(
        default=None,
        ge=0,
        le=20,
        description="Candidates made on the server, best n returned; above n, not with a stream.",
    )
    echo: bool | None = Field(default=None, description="Return the prompt in front of the completion.")
    frequency_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="Penalty by frequency of a token so far."
    )
    grammar_root: str | None = Field(default=None, description="Root of the grammar for structured output.")
    logit_bias: LogitBias | None = Field(default=None, description="Token id to bias, -100 to 100.")
    logprobs: int | None = Field(default=None, ge=0, le=20, description="Most likely tokens to return per position.")
    max_tokens: int | None = Field(default=None, ge=-1, description="Limit of generated tokens.")
    min_tokens: int | None = Field(
        default=None, ge=-1, description="Fewest tokens to generate; -1 for the longest sequence."
    )
    n: int | None = Field(default=None, ge=1, description="How many completions per prompt.")
    presence_penalty: float | None = Field(
        default=None, ge=-2, le=2, description="Penalty by presence of a token so far."
    )
    prompt_cache_key: str | None = Field(
        default=None, max_length=1024, description="Groups requests that share a prompt prefix, for cache hits."
    )
    reasoning_format: ReasoningFormat | None = Field(
        default=None, description="Where reasoning goes (deprecated here)."
    )
    return_raw_tokens: bool | None = Field(default=None, description="Return token ids instead of text.")
    seed: int | None = Field(default=None, description="Best-effort reproducible sampling.")
    stop: Stop = Field(default=None, description="Up to 4 sequences that end the completion; not part of it.")
    stream: bool | None = Field(default=None, description="Set by the client's methods.")
    stream_options: StreamOptions | None = Field(default=None, description="Sent only with a stream.")
    suffix: str | None = Field(default=None, description="Sent as given; the service does not support it.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Sampling temperature.")
    top_p: float | None = Field(
        default=None, ge=0, le=1, description="Nucleus sampling: share of probability mass to consider."
    )
    user: str | None = Field(default=None, description="Id of the end user, for abuse monitoring.")
    extra_body: dict[str, Any] | None = Field(
        default=None, exclude=True, description="Members to merge into the body as they are, last."
    )


class CompletionLogProbs(OpenModel):
    """Log probabilities in the form of the completions endpoint: parallel lists, one entry a token."""

    text_offset: list[int] | None = Field(
        default=None, description="Offsets in characters, from the start of the prompt."
    )
    token_logprobs: list[float | None] | None = None
    tokens: list[str] | None = None
    top_logprobs: list[dict[str, float | None] | None] | None = None


def _null_text(value: Any) -> Any:
    return "" if value is None else value


class CompletionChoice(OpenModel):
    """One completion. `text` is empty and `tokens` filled when raw tokens were asked for."""

    index: Annotated[int, NullableIndex] = 0
    finish_reason: str | None = Field(default=None, description="stop, length, content_filter, or a newer value.")
    text: Annotated[str, BeforeValidator(_null_text)] = ""
    tokens: list[int] | None = None
    logprobs: CompletionLogProbs | None = None


class CompletionResponse(OpenModel):
    """Answer of the completions endpoint; streams are assembled to the same object."""

    id: str | None = None
    choices: Annotated[list[CompletionChoice], NullableList] = Field(default_factory=list)
    created: int | float | None = None
    model: str | None = None
    object: str | None = None
    system_fingerprint: str | None = None
    usage: Usage | None = None
    time_info: TimeInfo | None = None

    _info: ResponseInfo | None = PrivateAttr(None)

    @property
    def info(self) -> ResponseInfo | None:
        """Request id, rate limits and headers of the HTTP response; None where the object was not received by HTTP."""
        return self._info

    @property
    def text(self) -> str:
        """Text of the first choice, or an empty string."""
        return self.choices[0].text if self.choices else ""

    @property
    def finish_reason(self) -> str | None:
        """Why the first choice ended."""
        return self.choices[0].finish_reason if self.choices else None


class CompletionChunk(CompletionResponse):
    """One event of a completions stream: the same object type, with the new part of each choice."""

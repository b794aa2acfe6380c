"""The two endpoints as data, so that one client serves both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from cerebras_ext.assembly import (
    ChatAssembler,
    ChatDelta,
    CompletionAssembler,
    CompletionDelta,
    deltas_of_chat,
    deltas_of_completion,
)
from cerebras_ext.body import Body, chat_body, completion_body
from cerebras_ext.request_fields import RequestFields
from cerebras_ext.types import ChatRequest, ChatResponse, CompletionRequest, CompletionResponse

RequestT = TypeVar("RequestT", bound=ChatRequest | CompletionRequest)
ResponseT = TypeVar("ResponseT", bound=ChatResponse | CompletionResponse)
DeltaT = TypeVar("DeltaT", bound=ChatDelta | CompletionDelta)
ResponseT_co = TypeVar("ResponseT_co", covariant=True)


class Assembler(Protocol[DeltaT, ResponseT_co]):
    """What a stream needs of an assembler."""

    @property
    def complete(self) -> bool:
        """Whether every answer has its finish reason."""
        ...

    def feed(self, chunk: dict[str, Any]) -> list[DeltaT]:
        """Take one event and return what it adds."""
        ...

    def response(self) -> ResponseT_co:
        """Return the answer assembled so far."""
        ...


class BodyBuilder(Protocol):
    """Builds the JSON object to send from the fields of a request."""

    def __call__(self, fields: RequestFields, /, *, stream: bool) -> Body:
        """Return the body, or raise `RequestValidationError`."""
        ...


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[RequestT, ResponseT, DeltaT]):
    """Path, types and pure steps of one endpoint."""

    path: str
    request_type: type[RequestT]
    response_type: type[ResponseT]
    build_body: BodyBuilder
    assembler: Callable[[int], Assembler[DeltaT, ResponseT]]
    split: Callable[[ResponseT], list[DeltaT]]


CHAT: Endpoint[ChatRequest, ChatResponse, ChatDelta] = Endpoint(
    "/v1/chat/completions", ChatRequest, ChatResponse, chat_body, ChatAssembler, deltas_of_chat
)
COMPLETION: Endpoint[CompletionRequest, CompletionResponse, CompletionDelta] = Endpoint(
    "/v1/completions", CompletionRequest, CompletionResponse, completion_body, CompletionAssembler, deltas_of_completion
)

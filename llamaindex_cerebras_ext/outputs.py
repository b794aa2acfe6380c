"""Structured output without I/O: the format to ask for, and the way from an answer to an object."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

from llama_index.core.base.llms.types import ChatResponse
from llama_index.core.program.utils import FlexibleModel, create_flexible_model
from pydantic import BaseModel, RootModel

from cerebras_ext.answers import json_answer, partial_json_answer
from cerebras_ext.jsontext import dumps
from cerebras_ext.strict_schema import SchemaError, StrictSchema, loose_schema, schema_name, to_strict_schema
from llamaindex_cerebras_ext.errors import InvalidOutputError, OutputTruncatedError, RefusalError

logger = logging.getLogger("cerebras_ext")

ModelT = TypeVar("ModelT", bound=BaseModel)

_SHOWN = 500
"""Characters of an answer that an error's text shows; the error holds all of it."""


@dataclass(frozen=True, eq=False)
class OutputFormat(Generic[ModelT]):
    """What is asked for to get an instance of a class, and how the answer becomes one."""

    output_cls: type[ModelT]
    flexible_cls: type[FlexibleModel]
    name: str
    sent: Mapping[str, Any]
    strict: bool
    description: str | None
    _schema: StrictSchema | None

    def response_format(self) -> dict[str, Any]:
        """Return the request field."""
        schema: dict[str, Any] = {"name": self.name, "schema": dict(self.sent), "strict": self.strict}
        if self.description:
            schema["description"] = self.description
        return {"type": "json_schema", "json_schema": schema}

    def read(self, response: ChatResponse) -> ModelT:
        """Return the object of a whole answer.

        Raises:
            RefusalError: The answer was withheld.
            OutputTruncatedError: The answer is not whole because of the token limit.
            InvalidOutputError: The answer is not JSON, or breaks the rules of the class.
        """
        text = response.message.content or ""
        raw = response.raw if isinstance(response.raw, dict) else {}
        choice: dict[str, Any] = next(iter(raw.get("choices") or ()), {})
        reason = choice.get("finish_reason")
        refusal = (choice.get("message") or {}).get("refusal")
        if refusal or reason == "content_filter":
            raise RefusalError(f"The answer was withheld: {refusal or reason}", text=text, raw=raw)
        try:
            return self._validate(self._restore(json_answer(text)))
        except ValueError as error:
            if reason == "length":
                raise OutputTruncatedError(_truncation(text, raw), text=text, raw=raw) from error
            shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
            raise InvalidOutputError(
                f"No {self.output_cls.__name__} in the answer: {error}\nThe answer was: {shown!r}", text=text, raw=raw
            ) from error

    def partial(self, text: str) -> ModelT | FlexibleModel | None:
        """Return the object as far as it is known, None while nothing is: of the class where it is valid already."""
        value = partial_json_answer(text)
        if not value:
            return None
        restored = self._restore(value)
        try:
            return self._validate(restored)
        except ValueError:  # pydantic's, or that of a number which JSON does not have
            return self.flexible_cls.model_validate(restored if isinstance(restored, dict) else {"root": restored})

    def _restore(self, answer: Any) -> Any:
        return answer if self._schema is None else self._schema.restore(answer)

    def _validate(self, restored: Any) -> ModelT:
        # As JSON, since classes in strict mode take a text for a date only there.
        return self.output_cls.model_validate_json(dumps(restored))


def _truncation(text: str, raw: Mapping[str, Any]) -> str:
    limit = "The answer ran into the token limit"
    if text.strip():
        return f"{limit} before it was whole; raise max_completion_tokens."
    details = (raw.get("usage") or {}).get("completion_tokens_details") or {}
    spent = details.get("reasoning_tokens")
    tokens = f" ({spent} tokens)" if spent else ""
    return f"{limit} before it began: reasoning{tokens} used it up; raise max_completion_tokens or lower the effort."


@lru_cache(maxsize=256)
def output_format(output_cls: type[ModelT], strict: bool | None) -> OutputFormat[ModelT]:
    """Return the format for a class.

    Args:
        output_cls: The class.
        strict: True for constrained decoding, False for a schema as a guide, None for constrained decoding where the
            class has a strict form.

    Raises:
        SchemaError: `strict` is True, or the root is no object, and there is no strict form.
    """
    plain = output_cls.model_json_schema()
    schema: StrictSchema | None = None
    if strict is not False or _root_type(plain) != "object":
        try:
            schema = to_strict_schema(plain, name=output_cls.__name__)
        except SchemaError as error:
            if strict or issubclass(output_cls, RootModel):
                raise
            logger.debug("%s is sent as a guide only, since it has no strict form: %s", output_cls.__name__, error)
    return OutputFormat(
        output_cls=output_cls,
        flexible_cls=create_flexible_model(output_cls),
        name=schema_name(output_cls.__name__),
        sent=schema.schema if schema is not None else loose_schema(plain),
        strict=schema is not None and strict is not False,
        description=plain.get("description"),
        _schema=schema,
    )


def _root_type(schema: Mapping[str, Any]) -> Any:
    reference = schema.get("$ref")
    if isinstance(reference, str):
        schema = (schema.get("$defs") or {}).get(reference.rpartition("/")[2]) or {}
    return schema.get("type")

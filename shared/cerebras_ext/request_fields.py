"""From a request in any of its forms to its fields as they go on the wire, validated."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaError, SchemaSerializer, SchemaValidator

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.types import ChatRequest, CompletionRequest
from cerebras_ext.types._typed_dicts import UnknownSchemaError, holds_any, typed_dict_schema

RequestT = TypeVar("RequestT", bound=ChatRequest | CompletionRequest)


class RequestFields(NamedTuple):
    """Fields of a request that were set, as plain data under their names on the wire, in the order of the model."""

    members: dict[str, Any]
    extra_body: Mapping[str, Any] | None


def read_fields(request_type: type[RequestT], request: Any, keywords: Mapping[str, Any]) -> RequestFields:
    """Validate a request given as a model, as a mapping, as keywords, or as a model or mapping with keywords on top.

    Plain data, which adapters send, is validated as such: making an object of each of its messages and dumping it
    again takes three times as long. Everything else, and whatever is wrong, goes through the models.

    Raises:
        RequestValidationError: A field is unknown, missing, or out of range.
    """
    plain = _read_plain(request_type, request, keywords)
    return plain if plain is not None else dump_request(make_request(request_type, request, keywords))


def make_request(request_type: type[RequestT], request: Any, fields: Mapping[str, Any]) -> RequestT:
    """Return the request given in any of its forms as a model.

    Raises:
        RequestValidationError: A field is unknown, missing, or out of range.
    """
    if isinstance(request, request_type):
        if not fields:
            return request
        return request_type(**{**request.given(), **fields})
    if request is None:
        return request_type(**fields)
    if isinstance(request, Mapping):
        unnamed = [key for key in request if not isinstance(key, str)]
        if unnamed:
            raise RequestValidationError(f"request: names of fields must be text, got {unnamed[0]!r}")
        return request_type(**{**request, **fields})
    raise RequestValidationError(
        f"request: must be a {request_type.__name__} or keywords, got {type(request).__name__}"
    )


def dump_request(request: ChatRequest | CompletionRequest) -> RequestFields:
    """Return the fields of a request that is a model."""
    if isinstance(request, ChatRequest):
        return RequestFields(request.model_dump(exclude_none=True, by_alias=True), request.extra_body)
    # The prompt is plain data as it is, and may have very many token ids.
    fields = request.model_dump(exclude_none=True, by_alias=True, exclude={"prompt"})
    return RequestFields({"model": request.model, "prompt": request.prompt, **fields}, request.extra_body)


class _PlainValidator(NamedTuple):
    validator: SchemaValidator
    unchecked: frozenset[str]
    """Fields that may hold values of any type, such as the schema of a tool's arguments."""


_ANY = SchemaSerializer({"type": "any"})


@cache
def _plain_validator(request_type: type[BaseModel]) -> _PlainValidator | None:
    try:
        schema = typed_dict_schema(request_type)
        validator = SchemaValidator(schema)
    except (UnknownSchemaError, SchemaError, LookupError, TypeError, AttributeError):
        # A version of pydantic whose schemas look otherwise.
        return None
    fields = schema["schema"]["fields"]
    unchecked = {name for name, field in fields.items() if holds_any(field)} - {"extra_body", "prompt"}
    return _PlainValidator(validator, frozenset(unchecked))


def _read_plain(request_type: type[BaseModel], request: Any, keywords: Mapping[str, Any]) -> RequestFields | None:
    """Return the fields, or None where there is something else than plain data, or something wrong."""
    if request is not None:
        if not isinstance(request, Mapping):
            return None
        keywords = {**request, **keywords}
    found = _plain_validator(request_type)
    if found is None:
        return None
    try:
        members: dict[str, Any] = found.validator.validate_python(keywords)
    except ValidationError:
        return None
    for name in found.unchecked & members.keys():
        members[name] = _ANY.to_python(members[name], by_alias=True, exclude_none=True)
    return RequestFields(members, members.pop("extra_body", None))

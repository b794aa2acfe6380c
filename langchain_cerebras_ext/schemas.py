"""What an answer is to become: classes, TypedDicts and JSON schemas in one form, and the way back from an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_function
from pydantic import BaseModel, TypeAdapter
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic_core import to_json
from typing_extensions import is_typeddict

from cerebras_ext.strict_schema import StrictSchema, loose_schema, schema_name, to_strict_schema
from langchain_cerebras_ext.errors import RequestValidationError
from langchain_cerebras_ext.typed_dicts import JsonSchema, schema_of_typed_dict

SchemaLike = Mapping[str, Any] | type | Callable[..., Any] | BaseTool

_WRAPPER = "value"
_DEFINITIONS = ("$defs", "definitions")


@dataclass(frozen=True)
class AnswerFormat:
    """A schema as it is sent, and the way from an answer to the object the user asked for."""

    name: str
    description: str | None
    schema: JsonSchema
    """What is sent; the root is an object. Not to be changed."""
    strict: StrictSchema | None
    """Set where constrained decoding is asked for."""
    wrapped: bool
    """Whether the root was no object and is sent as the member `value` of one."""
    build: Callable[[Any], Any] | None
    """Makes an instance of the user's class; None where the answer is a plain dictionary."""

    def restore(self, answer: Any) -> Any:
        """Return an answer in the terms of the user's schema. Nothing is checked."""
        if self.strict is not None:
            return self.strict.restore(answer)
        if self.wrapped and isinstance(answer, Mapping) and set(answer) == {_WRAPPER}:
            return answer[_WRAPPER]
        return answer

    def read(self, answer: Any) -> Any:
        """Return the object that the user asked for.

        Raises:
            ValueError: The answer breaks the schema.
        """
        if self.build is not None:
            return self.build(self.restore(answer))
        if self.strict is not None:
            return self.strict.validate(answer)
        restored = self.restore(answer)
        if not self.wrapped and not isinstance(restored, dict):
            raise ValueError(f"the answer is not a JSON object but {type(restored).__name__}")
        return restored

    @property
    def json_schema(self) -> dict[str, Any]:
        """The member `json_schema` of a response format."""
        described = {"description": self.description} if self.description else {}
        return {"name": self.name, **described, "schema": self.schema, "strict": self.strict is not None}


def answer_format(schema: SchemaLike, *, strict: bool | None = None, restored: bool = True) -> AnswerFormat:
    """Read what the user gave as a schema.

    Args:
        schema: A pydantic class (v2 or v1), a TypedDict or dataclass, any other type, a JSON schema, a function
            dictionary, `{name, schema, strict}`, or a tool.
        strict: None takes what the dictionary says, else True.
        restored: Whether this class reads the answer; where somebody else does, members that may be left out stay
            unrequired instead of nullable.

    Raises:
        SchemaError: Strict, and the schema has no strict form.
        ValueError: Not a schema.
    """
    plain, build, asked = _source(schema)
    if strict is None:
        strict = True if asked is None else asked
    title = plain.get("title")
    name = schema_name(title if isinstance(title, str) else None)
    if strict:
        strict_schema = to_strict_schema(plain, name=name, optional="nullable" if restored else "absent")
        sent, wrapped = dict(strict_schema.schema), strict_schema.wrapped
    else:
        strict_schema = None
        sent, wrapped = _loose(plain)
    description = sent.pop("description", None) or plain.get("description")
    if not isinstance(description, str):
        description = None
    return AnswerFormat(name, description, sent, strict_schema, wrapped, build)


def wire_response_format(given: Any, *, strict: bool | None = None) -> Any:
    """Return a response format as the service takes it: closed where it is strict, which is the default.

    Args:
        given: A response format, or a schema in any form that `answer_format` takes.
        strict: None takes what the format says, else True.
    """
    if isinstance(given, Mapping) and given.get("type") in ("text", "json_object"):
        return dict(given)
    return {"type": "json_schema", "json_schema": answer_format(given, strict=strict, restored=False).json_schema}


_Build = Callable[[Any], Any] | None


def _source(schema: SchemaLike) -> tuple[JsonSchema, _Build, bool | None]:
    """Return the JSON schema with title and description, the maker of instances, and the strictness asked for."""
    if isinstance(schema, Mapping):
        plain, strict = _source_of_dict(schema)
        return plain, None, strict
    if isinstance(schema, BaseTool) or inspect.isroutine(schema):
        function = convert_to_openai_function(schema)
        return _titled(function, function.get("parameters")), None, None
    if is_typeddict(schema):
        return schema_of_typed_dict(schema), None, None
    if isinstance(schema, type) and issubclass(schema, BaseModelV1):
        return schema.schema(), schema.parse_obj, None
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return schema.model_json_schema(), _Instance(schema), None
    return _source_of_type(schema)


def _source_of_type(schema: Any) -> tuple[JsonSchema, _Build, bool | None]:
    try:
        adapter = TypeAdapter(schema)
        plain = adapter.json_schema()
    except Exception as error:
        raise RequestValidationError(f"{schema!r} is not a schema: {error}") from error
    plain.setdefault("title", getattr(schema, "__name__", None) or "output")
    return plain, _Instance(schema), None


class _Instance:
    """Makes instances by pydantic, in JSON mode: a strict class takes a date from a text only there."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._adapter: TypeAdapter[Any] | None = None

    def __call__(self, value: Any) -> Any:
        if isinstance(self._kind, type) and issubclass(self._kind, BaseModel):
            return self._kind.model_validate_json(to_json(value))
        if self._adapter is None:
            self._adapter = TypeAdapter(self._kind)
        return self._adapter.validate_json(to_json(value))

    def __getstate__(self) -> dict[str, Any]:
        return {"_kind": self._kind, "_adapter": None}


def _source_of_dict(given: Mapping[str, Any]) -> tuple[JsonSchema, bool | None]:
    if given.get("type") == "json_schema" and isinstance(given.get("json_schema"), Mapping):
        given = given["json_schema"]
    elif given.get("type") == "function" and isinstance(given.get("function"), Mapping):
        given = given["function"]
    strict = given.get("strict")
    for key in ("schema", "parameters", "input_schema"):
        if "name" in given and isinstance(given.get(key), Mapping):
            return _titled(given, given[key]), strict if isinstance(strict, bool) else None
    if isinstance(given.get("name"), str) and "type" not in given and "properties" not in given:
        return _titled(given, None), strict if isinstance(strict, bool) else None
    return loose_schema(given), None


def _titled(function: Mapping[str, Any], parameters: Mapping[str, Any] | None) -> JsonSchema:
    plain = loose_schema(parameters or {"type": "object", "properties": {}})
    if function.get("name"):
        plain["title"] = function["name"]
    if function.get("description"):
        plain["description"] = function["description"]
    return plain


def _loose(plain: JsonSchema) -> tuple[JsonSchema, bool]:
    """Return a schema with an object at its root, and whether it had to be wrapped."""
    sent = loose_schema(plain)
    sent.pop("title", None)
    root, seen = sent, 0
    while isinstance(root.get("$ref"), str) and seen < 10:
        found = _definition(sent, root["$ref"])
        root, seen = found or {}, seen + 1
    if root.get("type") == "object" or "properties" in root or not root:
        return sent, False
    if "'#'" in repr(sent):
        raise RequestValidationError("a schema that refers to its own root has to have an object there")
    definitions = {key: sent.pop(key) for key in _DEFINITIONS if key in sent}
    wrapper = {"type": "object", "properties": {_WRAPPER: sent}, "required": [_WRAPPER], "additionalProperties": False}
    return {**wrapper, **definitions}, True


def _definition(root: JsonSchema, pointer: str) -> JsonSchema | None:
    found: Any = root
    for step in pointer.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, dict) else None

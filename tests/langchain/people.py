"""Kinds of schemas of one thing, and answers to them."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, TypedDict

from pydantic import BaseModel
from pydantic.v1 import BaseModel as BaseModelV1

from tests.langchain.stub import call, say

METHODS = ("json_schema", "function_calling", "json_mode")


class Person(BaseModel):
    """A person."""

    name: str
    age: int = 5
    note: str | None = None


class PersonV1(BaseModelV1):
    """A person."""

    name: str
    age: int = 5


class PersonDict(TypedDict):
    """A person."""

    name: Annotated[str, ..., "The name."]
    age: Annotated[int | None, None, "The age."]


@dataclasses.dataclass
class PersonData:
    """A person."""

    name: str
    age: int = 5


SCHEMA = {
    "title": "Person",
    "description": "A person.",
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}
PARAMETERS = {key: value for key, value in SCHEMA.items() if key not in ("title", "description")}
FUNCTION = {"name": "Person", "description": "A person.", "parameters": PARAMETERS}
NULLABLE_AGE = {"anyOf": [{"type": "integer"}, {"type": "null"}]}
STRICT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": NULLABLE_AGE},
    "required": ["name", "age"],
    "additionalProperties": False,
}

SCHEMAS: dict[str, tuple[Any, Any]] = {
    "pydantic": (Person, Person(name="Ada")),
    "pydantic v1": (PersonV1, PersonV1(name="Ada")),
    "typed dict": (PersonDict, {"name": "Ada", "age": None}),
    "dataclass": (PersonData, PersonData("Ada")),
    "json schema": (SCHEMA, {"name": "Ada"}),
    "function": (FUNCTION, {"name": "Ada"}),
    "tool": ({"type": "function", "function": FUNCTION}, {"name": "Ada"}),
    "named schema": ({"name": "Person", "schema": PARAMETERS}, {"name": "Ada"}),
    "anthropic": ({"name": "Person", "input_schema": PARAMETERS}, {"name": "Ada"}),
    "response format": (
        {"type": "json_schema", "json_schema": {"name": "Person", "schema": PARAMETERS}},
        {"name": "Ada"},
    ),
}
ANSWER = {"name": "Ada", "age": None}


def answering(value: Any, method: str, name: str = "Person", **more: Any) -> dict[str, Any]:
    text = value if isinstance(value, str) else json.dumps(value)
    return call((name, text), **more) if method == "function_calling" else say(text, **more)

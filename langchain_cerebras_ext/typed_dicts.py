"""JSON schemas of TypedDicts, with the descriptions that LangChain's users write into them."""

from __future__ import annotations

import inspect
import types
import typing
from typing import Annotated, Any, Literal, NotRequired, Required, get_args, get_origin, get_type_hints

from pydantic import Field, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from typing_extensions import TypedDict, is_typeddict

JsonSchema = dict[str, Any]
"""A JSON schema as plain data; its members are as free as the language is."""


def schema_of_typed_dict(kind: Any) -> JsonSchema:
    """Return the JSON schema of a TypedDict, nested ones and `NotRequired` included.

    Fields may be described as LangChain has it, `Annotated[int, default, "description"]`, or in the docstring's `Args`.
    """
    schema = TypeAdapter(_described(kind, {})).json_schema(schema_generator=_WithoutTitles)
    schema["title"] = kind.__name__
    return schema


class _WithoutTitles(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _described(kind: Any, known: dict[Any, Any]) -> Any:
    """Return a type with the descriptions of its TypedDicts in a form that pydantic reads."""
    if is_typeddict(kind):
        if kind not in known:
            known[kind] = kind  # what it is while it is being described: recursion is left to pydantic
            known[kind] = _described_class(kind, known)
        return known[kind]
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal or not args:
        return kind
    if origin is Annotated:
        return Annotated[(_described(args[0], known), *args[1:])]
    parts = tuple(_described(part, known) if part is not Ellipsis else part for part in args)
    if parts == args:
        return kind
    if isinstance(kind, types.UnionType):
        return typing.Union[parts]  # noqa: UP007 - a text among the parts cannot be joined by an operator
    return kind.copy_with(parts) if hasattr(kind, "copy_with") else origin[parts]


def _described_class(kind: Any, known: dict[Any, Any]) -> Any:
    hints = get_type_hints(kind, include_extras=True)
    documented = _documented(kind, list(hints))
    fields: dict[str, Any] = {}
    for name, hint in hints.items():
        required = name in kind.__required_keys__  # does not know the wrappers where annotations are strings
        while get_origin(hint) in (Required, NotRequired):
            required, hint = get_origin(hint) is Required, get_args(hint)[0]
        description = documented.get(name)
        if get_origin(hint) is Annotated:
            args = get_args(hint)
            if len(args) > 2 and isinstance(args[2], str):
                description = args[2]
                required = required and args[1] is Ellipsis
                hint = args[0]
        inner = _described(hint, known)
        if description:
            inner = Annotated[inner, Field(description=description)]
        fields[name] = Required[inner] if required else NotRequired[inner]
    described = TypedDict(kind.__name__, fields)  # type: ignore[misc]
    described.__doc__ = _summary(kind)
    return described


def _summary(kind: Any) -> str | None:
    text = inspect.getdoc(kind)
    if not text or text.startswith("dict() ->"):
        return None
    return text.split("\nArgs:")[0].strip() or None


def _documented(kind: Any, names: list[str]) -> dict[str, str]:
    """Return the descriptions of fields in the `Args` of a docstring."""
    _, found, block = (inspect.getdoc(kind) or "").partition("\nArgs:\n")
    described: dict[str, str] = {}
    name = ""
    for line in block.splitlines() if found else ():
        if not line.strip():
            break
        head, colon, rest = line.strip().partition(":")
        if colon and head.split(" ")[0] in names:
            name = head.split(" ")[0]
            described[name] = rest.strip()
        elif name:
            described[name] += f" {line.strip()}"
    return described

"""Schemas of request models as schemas of dictionaries: the same checks, without making objects and dumping them.

Only what validates to its own dump is taken. Whatever this does not know raises, and the models are used instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from pydantic import BaseModel
from pydantic_core import PydanticOmit

Schema = Mapping[str, Any]

_MODEL_KEYS = {"type", "cls", "schema", "config", "custom_init", "root_model", "ref", "metadata"}
_FIELD_KEYS = {"type", "schema", "metadata", "validation_alias", "serialization_alias", "serialization_exclude"}
_SCALARS = {"any", "bool", "float", "int", "str"}
_AS_IT_IS = {*_SCALARS, "definition-ref", "dict", "literal"}


class UnknownSchemaError(Exception):
    """The schema has something whose dictionary form is not known."""


def typed_dict_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of the dictionaries that a request model is dumped to, without what is None.

    Raises:
        UnknownSchemaError: The model, or a part of it, does more than to check and hold its fields.
    """
    model.model_rebuild()
    schema = model.__pydantic_core_schema__
    definitions = [_convert(item) for item in schema["definitions"]] if schema["type"] == "definitions" else []
    whole = schema["schema"] if definitions else schema
    return {"type": "definitions", "definitions": definitions, "schema": _model({**whole, "custom_init": False})}


def holds_any(schema: Any) -> bool:
    """Whether a value of a schema may hold something that is checked by none."""
    if isinstance(schema, Mapping):
        return schema.get("type") == "any" or any(holds_any(value) for value in schema.values())
    return isinstance(schema, list) and any(holds_any(item) for item in schema)


def _convert(schema: Schema) -> dict[str, Any]:
    kind = schema["type"]
    if "serialization" in schema or _dumps_otherwise(schema):
        raise UnknownSchemaError(kind)
    if kind in _AS_IT_IS:
        return dict(schema)
    if kind == "model":
        return _model(schema)
    if kind == "nullable":
        return {"type": "union", "mode": "left_to_right", "choices": [_convert(schema["schema"]), _NOTHING]}
    if kind == "list":
        # Strict, so that what can be read only once is left to the models.
        return {**schema, "items_schema": _convert(schema["items_schema"]), "strict": True}
    if kind == "union":
        return {**schema, "choices": [_convert(choice) for choice in schema["choices"]]}
    if kind == "tagged-union":
        return {**schema, "choices": {tag: _convert(choice) for tag, choice in schema["choices"].items()}}
    if kind in ("default", "function-before", "function-after"):
        return {**schema, "schema": _convert(schema["schema"])}
    raise UnknownSchemaError(kind)


def _dumps_otherwise(schema: Schema) -> bool:
    """Whether a dump may differ: a value may have models that would stay objects, or None where it is no member's."""
    kind = schema["type"]
    if kind == "dict":
        return schema.get("values_schema", {"type": "any"})["type"] not in _SCALARS
    if kind == "list":
        return bool(schema["items_schema"]["type"] == "nullable")
    if kind == "nullable":
        return bool(schema["schema"]["type"] == "any")
    return kind == "literal" and None in schema["expected"]


def _model(schema: Schema) -> dict[str, Any]:
    inner = schema["schema"]
    if not schema.keys() <= _MODEL_KEYS or schema.get("custom_init") or schema.get("root_model"):
        raise UnknownSchemaError(str(schema.get("cls")))
    if inner["type"] != "model-fields" or inner.get("extras_schema") or inner.get("computed_fields"):
        raise UnknownSchemaError(str(schema.get("cls")))
    made: dict[str, Any] = {"type": "typed-dict", "config": schema["config"], "extra_behavior": "forbid"}
    made["fields"] = dict(_field(name, field) for name, field in inner["fields"].items())
    return {**made, "ref": schema["ref"]} if "ref" in schema else made


def _field(name: str, field: Schema) -> tuple[str, dict[str, Any]]:
    alias = field.get("validation_alias", name)
    if not field.keys() <= _FIELD_KEYS or alias != field.get("serialization_alias", name) or not isinstance(alias, str):
        raise UnknownSchemaError(name)
    schema = field["schema"]
    required = schema["type"] != "default"
    if not required and schema.get("default", schema) is None:
        schema = schema["schema"]
    if schema["type"] == "any":  # and so may be None
        raise UnknownSchemaError(name)
    return alias, {"type": "typed-dict-field", "schema": _convert(schema), "required": required}


def _leave_out(value: Any) -> NoReturn:
    """Leave a member out whose value is None."""
    if value is None:
        raise PydanticOmit
    raise ValueError


_NOTHING = {"type": "function-plain", "function": {"type": "no-info", "function": _leave_out}}

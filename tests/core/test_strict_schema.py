"""The strict dialect of JSON schema: what is sent, what is refused, what an answer means."""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
import time
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from cerebras_ext import strict_schema
from cerebras_ext.errors import CerebrasError, RequestValidationError
from cerebras_ext.strict_schema import (
    SchemaError,
    SchemaLimits,
    loose_schema,
    schema_name,
    to_strict_schema,
)

NULL = {"type": "null"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def sent(part: Any, **definitions: Any) -> Any:
    """Return what a property with this schema is sent as."""
    schema = obj(x=part) | ({"$defs": definitions} if definitions else {})
    return to_strict_schema(schema).schema["properties"]["x"]


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Address(BaseModel):
    """Where somebody lives."""

    street: str = Field(min_length=1)
    zip: int | None = None


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str] = []


class Node(BaseModel):
    value: int
    kids: list[Node] = []


# ---- what is sent ----


def test_every_object_is_closed_and_requires_all_of_its_properties() -> None:
    class Person(BaseModel):
        home: Address
        tags: list[Address] = []

    schema = to_strict_schema(Person.model_json_schema()).schema
    address = schema["$defs"]["Address"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["home", "tags"]
    assert address["additionalProperties"] is False
    assert address["required"] == ["street", "zip"]


def test_an_optional_property_is_nullable_and_required() -> None:
    class A(BaseModel):
        a: int
        b: str | None = None
        c: int = Field(5, description="How many.")

    assert to_strict_schema(A.model_json_schema()).schema == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"anyOf": [{"type": "string"}, NULL]},
            "c": {"anyOf": [{"type": "integer"}, NULL], "description": "How many."},
        },
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    }


def test_a_tag_with_a_default_stays_without_null() -> None:
    properties = to_strict_schema(Cat.model_json_schema()).schema["properties"]
    assert properties["kind"] == {"type": "string", "enum": ["cat"]}


@pytest.mark.parametrize(
    ("schema", "description"),
    [
        ({"type": "string", "minLength": 1}, "(at least 1 character)"),
        ({"type": "string", "maxLength": 20, "description": "A name."}, "A name. (at most 20 characters)"),
        ({"type": "string", "pattern": "^a+$"}, "(matching the pattern ^a+$)"),
        ({"type": "string", "format": "date-time"}, "(format date-time)"),
        ({"type": "string", "contentEncoding": "base64"}, "(base64 encoded)"),
        ({"type": "integer", "minimum": 0, "exclusiveMaximum": 10}, "(at least 0; less than 10)"),
        ({"type": "number", "exclusiveMinimum": 0.5, "maximum": 3}, "(greater than 0.5; at most 3)"),
        ({"type": "integer", "minimum": 0, "exclusiveMinimum": True}, "(greater than 0)"),
        ({"type": "integer", "multipleOf": 5}, "(multiple of 5)"),
        (
            {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
            "(at least 1 item; at most 3 items)",
        ),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}, "(exactly 2 items)"),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "(no duplicates)"),
        ({"type": "object", "properties": {}, "minProperties": 1}, "(at least 1 field)"),
        ({"type": "string", "not": {"enum": ["x"]}}, '(not {"enum":["x"]})'),
    ],
)
def test_a_constraint_is_removed_and_told_to_the_model(schema: dict[str, Any], description: str) -> None:
    part = sent(schema)
    assert part["description"] == description
    assert set(part) <= {"type", "description", "items", "properties", "required", "additionalProperties"}


def test_annotations_and_unknown_keywords_are_dropped() -> None:
    noise = {
        "title": "X", "default": "a", "examples": ["a"], "$comment": "-", "readOnly": True, "deprecated": True,
        "x-order": 1, "discriminator": {"propertyName": "kind"},
    }  # fmt: skip
    assert sent({"type": "string", **noise}) == {"type": "string"}


def test_properties_that_are_named_like_keywords_stay() -> None:
    names = ["title", "description", "default", "pattern", "format", "$ref", "items", "enum", "const", "anyOf"]
    strict = to_strict_schema(obj(**{name: {"type": "string"} for name in names}))
    assert strict.schema["required"] == names
    assert strict.schema["properties"]["default"] == {"type": "string"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"const": None}, NULL),
        ({"const": True}, {"type": "boolean", "enum": [True]}),
        ({"enum": [1, 2, 1]}, {"type": "integer", "enum": [1, 2]}),
        ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"enum": [1, True]}, {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "boolean", "enum": [True]}]}),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
        ({"type": "number", "enum": [1, 2]}, {"type": "number", "enum": [1, 2]}),
        (
            {"type": ["string", "null"], "enum": ["a", None]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]},
        ),
        (
            {"type": ["string", "null"], "minLength": 2, "description": "d"},
            {"anyOf": [{"type": "string", "description": "(at least 2 characters)"}, NULL], "description": "d"},
        ),
        ({"type": ["string"]}, {"type": "string"}),
        (
            {"type": "string", "nullable": True, "description": "d"},
            {"anyOf": [{"type": "string"}, NULL], "description": "d"},
        ),
        ({"enum": ["a", None], "nullable": True}, {"anyOf": [{"type": "string", "enum": ["a"]}, NULL]}),
        ({"type": ["string", "null"], "nullable": True}, {"anyOf": [{"type": "string"}, NULL]}),
        ({"oneOf": [{"type": "string"}, {"const": 1}]},
         {"anyOf": [{"type": "string"}, {"type": "integer", "enum": [1]}]}),
        ({"type": "string", "anyOf": [{"enum": ["a"]}, {"enum": ["b"]}]},
         {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}]}),
        ({"minLength": 1}, {"type": "string", "description": "(at least 1 character)"}),
        ({"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
        ({"type": "array", "items": [{"type": "string"}]},
         {"type": "array", "prefixItems": [{"type": "string"}], "items": False}),
        ({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "null"}},
         {"type": "array", "prefixItems": [{"type": "string"}], "items": NULL}),
    ],
)  # fmt: skip
def test_a_spelling_that_is_refused_is_rewritten(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    assert sent(schema) == expected


def test_an_optional_union_gets_one_null() -> None:
    strict = to_strict_schema(
        {"type": "object", "properties": {"x": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}
    )
    assert strict.schema["properties"]["x"] == {"anyOf": [{"type": "string"}, {"type": "integer"}, NULL]}


def test_all_of_is_merged() -> None:
    base = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    part = sent(
        {"allOf": [{"$ref": "#/$defs/B"}, {"properties": {"b": {"type": "integer"}}, "required": ["b"]}]}, B=base
    )
    assert part == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert sent({"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 3}]})["description"] == "(at least 3)"
    assert sent({"type": "number", "allOf": [{"type": "integer"}]}) == {"type": "integer"}


def test_parts_of_all_of_that_disagree_are_refused() -> None:
    with pytest.raises(SchemaError, match=r"\$\.x: parts of allOf disagree about 'type'"):
        sent({"allOf": [{"type": "string"}, {"type": "integer"}]})
    with pytest.raises(SchemaError, match=r"\$\.x\.a: parts of allOf disagree"):
        sent({"allOf": [obj(a={"type": "string"}), obj(a={"type": "null"})]})
    with pytest.raises(SchemaError, match=r"\$\.x: minLength cannot be 'a'"):
        sent({"allOf": [{"minLength": 1}, {"minLength": "a"}]})


# ---- references ----


def test_a_definition_used_once_is_spelled_out_and_a_shared_one_is_kept() -> None:
    class Person(BaseModel):
        first: Color
        second: Color
        home: Address

    schema = to_strict_schema(Person.model_json_schema()).schema
    assert schema["$defs"] == {"Color": {"type": "string", "enum": ["red", "green"]}}
    assert schema["properties"]["first"] == schema["properties"]["second"] == {"$ref": "#/$defs/Color"}
    assert schema["properties"]["home"]["description"] == "Where somebody lives."


def test_a_description_beside_a_reference_survives_without_a_sibling() -> None:
    class Person(BaseModel):
        home: Address = Field(description="By night.")
        work: Address = Field(description="By day.")

    schema = to_strict_schema(Person.model_json_schema()).schema
    assert [part["description"] for part in schema["properties"].values()] == ["By night.", "By day."]
    assert [part["type"] for part in schema["properties"].values()] == ["object", "object"]
    assert "$defs" not in schema


def test_described_uses_that_would_not_fit_spelled_out_are_wrapped() -> None:
    big = obj(**{f"property_{i}": {"type": "string"} for i in range(40)})
    properties = {f"x{i}": {"$ref": "#/$defs/Big", "description": f"Number {i}."} for i in range(5)}
    schema = to_strict_schema(
        {"type": "object", "properties": properties, "$defs": {"Big": big}, "required": ["x0", "x2", "x3", "x4"]}
    ).schema
    assert schema["properties"]["x0"] == {"anyOf": [{"$ref": "#/$defs/Big"}], "description": "Number 0."}
    assert schema["properties"]["x1"] == {"anyOf": [{"$ref": "#/$defs/Big"}, NULL], "description": "Number 1."}


def test_constraints_beside_a_reference_are_merged_into_it() -> None:
    part = sent({"$ref": "#/$defs/Name", "maxLength": 3}, Name={"type": "string", "description": "A name."})
    assert part == {"type": "string", "description": "A name. (at most 3 characters)"}


def test_definitions_of_older_drafts_and_odd_names_are_resolved() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/definitions/Page[int]~1x%20y"},
            "b": {"$ref": "#/definitions/Page[int]~1x%20y"},
            "c": {"$ref": "#/properties/a"},
        },
        "required": ["a", "b", "c"],
        "definitions": {"Page[int]/x y": {"type": "string"}},
    }
    strict = to_strict_schema(schema).schema
    name = strict["properties"]["a"]["$ref"].removeprefix("#/$defs/")
    assert re.fullmatch(r"[A-Za-z0-9_.-]+", name)
    assert strict["$defs"] == {name: {"type": "string"}}


@pytest.mark.parametrize("pointer", ["#/$defs/Gone", "https://example.com/a.json", "#anchor", 7])
def test_a_reference_to_nowhere_is_refused(pointer: Any) -> None:
    with pytest.raises(SchemaError, match=r"^\$\.x: \$ref"):
        sent({"$ref": pointer})


@pytest.mark.parametrize(
    "schema",
    [
        Node.model_json_schema(),
        obj(x={"$ref": "#"}),
        obj(x={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        obj(x={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, {"type": "object"}]}}},
        obj(x={"$ref": "#/$defs/A"})
        | {"$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}, obj()]}, "B": obj(a={"$ref": "#/$defs/A"})}},
    ],
)
def test_a_recursive_schema_is_refused_at_once_and_the_cycle_is_named(schema: dict[str, Any]) -> None:
    start = time.perf_counter()
    with pytest.raises(SchemaError, match=r"recursive \(\S+ -> \S+"):
        to_strict_schema(schema)
    assert time.perf_counter() - start < 1


def test_definitions_that_multiply_stay_small() -> None:
    levels = {
        f"L{i}": obj(**{f"p{j}": {"$ref": f"#/$defs/L{i + 1}", "description": f"d{j}"} for j in range(6)})
        for i in range(8)
    }
    start = time.perf_counter()
    schema = to_strict_schema({"$ref": "#/$defs/L0", "$defs": {**levels, "L8": {"type": "string"}}}).schema
    assert len(schema["$defs"]) == 8
    assert time.perf_counter() - start < 1


# ---- refusals and limits ----


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({}, "accepts any value"),
        (True, "accepts any value"),
        ({"description": "anything"}, "accepts any value"),
        ({"type": "object"}, "without declared properties"),
        ({"type": "object", "additionalProperties": True}, "open map"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "list of {key, value} objects"),
        ({"type": "object", "properties": {"a": NULL}, "additionalProperties": {}}, "open map"),
        ({"type": "object", "patternProperties": {"^a": NULL}}, "open map"),
        ({"type": "object", "properties": {}, "required": ["a"]}, "does not declare"),
        ({"type": "object", "properties": {"a": NULL}, "required": True}, "list of names"),
        ({"type": "any"}, "'any' is not a JSON type"),
        ({"type": [{}]}, "{} is not a JSON type"),
        ({"type": "array", "prefixItems": 1}, "list of schemas"),
        ({"type": "string", "enum": [1]}, "no member of enum"),
        ({"enum": []}, "list of values"),
        ({"enum": [{"a": 1}]}, "describe their properties"),
        ({"anyOf": []}, "list of schemas"),
        ({"anyOf": [NULL], "oneOf": [NULL]}, "keep one"),
        ({"type": "string", "minLength": "1"}, "minLength cannot be '1'"),
        ({"type": "array", "prefixItems": [NULL], "minItems": 2}, "more items"),
    ],
)
def test_a_schema_without_a_strict_form_is_refused_with_its_path(schema: Any, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        sent(schema)
    assert str(caught.value).startswith("$.x: ")
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "path"),
    [(dict[str, int], r"\$\.x:"), (list[dict[str, Any]], r"\$\.x\[\]:"), (Any, r"\$\.x:"), (list, r"\$\.x\[\]:")],
)
def test_open_types_of_pydantic_are_refused(annotation: Any, path: str) -> None:
    schema = obj(x=TypeAdapter(annotation).json_schema())
    with pytest.raises(SchemaError, match=f"^{path} .*turn strict off"):
        to_strict_schema(schema)


def test_a_class_that_allows_extra_fields_is_refused() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int

    with pytest.raises(SchemaError, match="open map"):
        to_strict_schema(Open.model_json_schema())


def test_the_error_belongs_to_the_tree_and_can_be_pickled() -> None:
    with pytest.raises(RequestValidationError) as caught:
        sent({})
    assert isinstance(caught.value, (CerebrasError, ValueError))
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_notes_are_shortened_before_a_schema_is_refused_for_its_size() -> None:
    item = {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3}
    schema = obj(**{f"p{i}": item for i in range(40)})
    assert to_strict_schema(schema).schema["properties"]["p0"]["description"] == "(at least 1 item; at most 3 items)"
    schema = obj(**{f"p{i}": item for i in range(50)})
    assert to_strict_schema(schema).schema["properties"]["p0"]["description"] == "(1..3 items)"
    schema = obj(**{f"p{i}": item for i in range(65)})
    assert "description" not in to_strict_schema(schema).schema["properties"]["p0"]
    schema = obj(**{f"p{i}": item for i in range(100)})
    with pytest.raises(SchemaError, match=r"\d+ characters as compact JSON, strict mode takes 5000"):
        to_strict_schema(schema)


def test_depth_properties_and_enums_are_counted() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(10):
        deep = obj(a=deep)
    to_strict_schema(deep)
    with pytest.raises(SchemaError, match="11 levels of objects, strict takes 10"):
        to_strict_schema(obj(a=deep))
    large = SchemaLimits(characters=100_000)
    with pytest.raises(SchemaError, match="501 properties"):
        to_strict_schema(obj(**{f"p{i}": NULL for i in range(501)}), limits=large)
    with pytest.raises(SchemaError, match="501 enum values"):
        to_strict_schema(obj(x={"enum": list(range(501))}), limits=large)
    with pytest.raises(SchemaError, match="7530 characters in a long enum"):
        to_strict_schema(obj(x={"enum": [f"{i:030}" for i in range(251)]}), limits=large)


def test_a_schema_nested_without_end_is_refused() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(5000):
        deep = {"type": "array", "items": deep}
    with pytest.raises(SchemaError, match="nested"):
        to_strict_schema(obj(x=deep))


# ---- roots and names ----


@pytest.mark.parametrize(
    ("root", "answer"),
    [
        ({"title": "L", "type": "array", "items": {"type": "string"}}, ["a", "b"]),
        ({"anyOf": [obj(a={"type": "string"}), obj(b={"type": "string"})]}, {"b": "x"}),
        ({"enum": ["a", "b"]}, "b"),
        ({"type": "integer", "description": "d"}, 3),
        (obj(value={"type": "integer"}) | {"type": ["object", "null"]}, {"value": 1}),
    ],
)
def test_a_root_that_is_no_object_is_wrapped_and_unwrapped(root: dict[str, Any], answer: Any) -> None:
    strict = to_strict_schema(root)
    assert strict.wrapped
    assert strict.schema["type"] == "object"
    assert strict.schema["required"] == ["value"]
    assert strict.restore({"value": answer}) == answer
    assert strict.validate({"value": answer}) == answer


def test_a_root_reference_is_resolved() -> None:
    strict = to_strict_schema({"$ref": "#/$defs/A", "$defs": {"A": obj(a=NULL) | {"description": "An A."}}})
    assert not strict.wrapped
    assert strict.schema["description"] == "An A."
    assert set(strict.schema) == {"type", "description", "properties", "required", "additionalProperties"}
    assert strict.name == "A"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Person", "Person"), ("Page[int]", "Page_int_"), ("a b/c", "a_b_c"), ("x" * 99, "x" * 64),
        (None, "output"), ("", "output"), ("人物", "output"), ("_private-1", "_private-1"),
    ],
)  # fmt: skip
def test_names_are_valid(title: str | None, name: str) -> None:
    assert schema_name(title) == name
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name)


def test_the_name_comes_from_the_title_or_the_caller() -> None:
    assert to_strict_schema(Address.model_json_schema()).name == "Address"
    assert to_strict_schema(Address.model_json_schema(), name="where to").name == "where_to"
    assert to_strict_schema(obj()).name == "output"


def test_a_loose_schema_is_an_equal_deep_copy() -> None:
    schema = Node.model_json_schema()
    copied = loose_schema(schema)
    assert copied == schema
    copied["$defs"]["Node"]["properties"].clear()
    assert schema == Node.model_json_schema()


def test_every_public_name_is_there_and_the_errors_alone_load_no_more() -> None:
    assert all(hasattr(strict_schema, name) for name in strict_schema.__all__)
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        strict_schema.other  # noqa: B018

    code = (
        "import sys; from cerebras_ext import strict_schema as s; from cerebras_ext.strict_schema import SchemaError;"
        "assert set(s.__all__) <= set(dir(s)); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "cerebras_ext.strict_schema._errors" in loaded
    assert "cerebras_ext.strict_schema._strict" not in loaded

"""JSON that satisfies the schema it was asked for, with values from the prompt."""

from __future__ import annotations

import json
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from cerebras_ext.emulator import Emulator
from cerebras_ext.emulator.schema_values import ValueMaker
from tests.emulator.support import ask, say

TEXT, WHOLE = {"type": "string"}, {"type": "integer"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object", "properties": properties, "required": list(properties), "additionalProperties": False,
    }  # fmt: skip


def answer(emulator: Emulator, text: str, schema: dict[str, Any], **fields: Any) -> Any:
    form = {"type": "json_schema", "json_schema": {"name": "n", "strict": False, "schema": schema}}
    return json.loads(say(emulator, text, response_format=form, **fields))


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        (
            "Alice Smith is 30 years old and likes coffee and tea.",
            closed(name=TEXT, age=WHOLE, likes={"type": "array", "items": {"$ref": "#/$defs/L"}})
            | {"$defs": {"L": {"type": "string", "enum": ["tea", "coffee", "milk"]}}},
            {"name": "Alice Smith", "age": 30, "likes": ["coffee", "tea"]},
        ),
        (
            "The city is Paris.",
            closed(city=TEXT, country={"type": ["string", "null"]}),
            {"city": "Paris", "country": None},
        ),
        (
            "city: Oslo, country: Norway",
            closed(city=TEXT, country={"anyOf": [TEXT, {"type": "null"}]}),
            {"city": "Oslo", "country": "Norway"},
        ),
        ("I am very unhappy, so negative.", closed(mood={"enum": ["positive", "negative"]}), {"mood": "negative"}),
        ("Rated 12 of 10", closed(rating={"type": "integer", "minimum": 1, "maximum": 5}), {"rating": 5}),
        (
            "Two friends: Ann and Bob",
            closed(people={"type": "array", "items": closed(name=TEXT), "minItems": 2}),
            {"people": [{"name": "Ann"}, {"name": "Bob"}]},
        ),
        ("Ann", closed(a={"const": 7}, b={"allOf": [{"type": "string"}, {"maxLength": 2}]}), {"a": 7, "b": "An"}),
    ],
)  # fmt: skip
def test_values_come_from_the_prompt(emu: Emulator, text: str, schema: dict[str, Any], value: Any) -> None:
    assert answer(emu, text, schema) == value


def test_a_field_for_the_answer_gets_the_answer(emu: Emulator) -> None:
    text = (
        "Berlin is the capital of Germany. Paris is the capital of France.\n\nQuestion: What is the capital of France?"
    )
    assert answer(emu, text, closed(answer=TEXT)) == {"answer": "Paris is the capital of France."}


def test_a_schema_can_be_streamed_and_asked_for_without_being_given(emu: Emulator) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n"}}
    assert isinstance(json.loads(say(emu, "Bob is 42", response_format=form)), dict)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Return JSON with the keys name and age for: Bob is 42.", {"name": "Bob", "age": 42}),
        ('Answer with JSON like {"name": "x", "tags": ["y"], "age": 1}. Bob is 42.', {"name": "Bob", "age": 42}),
        ("What is 2 + 2? Answer in JSON.", {"answer": "2 + 2 = 4"}),
    ],
)
def test_json_object_mode(emu: Emulator, text: str, value: dict[str, Any]) -> None:
    made = json.loads(say(emu, text, response_format={"type": "json_object"}))
    assert made | value == made


def test_a_schema_inside_a_prompt_is_followed(emu: Emulator) -> None:
    schema = {
        "title": "Person",
        "type": "object",
        "properties": {"name": TEXT, "age": WHOLE},
        "required": ["name", "age"],
    }
    text = f"Bob is 42.\n\nHere's a JSON schema to follow:\n{json.dumps(schema)}\n\nOutput a valid JSON object."
    for fields in ({}, {"response_format": {"type": "json_object"}}):
        assert json.loads(say(emu, text, **fields)) == {"name": "Bob", "age": 42}


def test_recursive_schemas_end(emu: Emulator) -> None:
    tree = closed(value=WHOLE, children={"type": "array", "items": {"$ref": "#"}})
    assert "value" in answer(emu, "1 2 3", tree)
    assert ask(
        emu,
        "x",
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": closed(a={"$ref": "#"})}},
    )


def test_format_and_length(emu: Emulator) -> None:
    schema = closed(
        day={"type": "string", "format": "date"},
        mail={"type": "string", "format": "email"},
        code={"type": "string", "pattern": "^[A-Z]{2}\\d{2}$"},
        long={"type": "string", "minLength": 40},
        short={"type": "string", "maxLength": 3},
    )
    made = answer(emu, "On 2026-03-04 mail to bob@example.org about AB12, please", schema)
    assert (made["day"], made["mail"], made["code"]) == ("2026-03-04", "bob@example.org", "AB12")
    assert len(made["long"]) >= 40
    assert len(made["short"]) <= 3


NUMBERS = st.integers(-1000, 1000)
OPTIONS = st.one_of(NUMBERS, st.text(max_size=5), st.none())


@st.composite
def numeric(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number"]))}
    low = draw(NUMBERS)
    high = low + draw(st.integers(3, 100))
    schema[draw(st.sampled_from(["minimum", "exclusiveMinimum"]))] = low
    schema[draw(st.sampled_from(["maximum", "exclusiveMaximum"]))] = high
    if draw(st.booleans()):
        return {"type": schema["type"], "minimum": low, "multipleOf": draw(st.integers(1, 7))}
    return schema


LEAVES = st.one_of(
    st.just(TEXT),
    numeric(),
    st.just({"type": "boolean"}),
    st.just({"type": "null"}),
    st.just({}),
    st.just({"type": ["string", "null"]}),
    st.just({"type": "string", "minLength": 5, "maxLength": 9}),
    st.sampled_from(["date", "email", "uuid"]).map(lambda form: {"type": "string", "format": form}),
    st.lists(OPTIONS, min_size=1, max_size=4).map(lambda options: {"enum": options}),
    NUMBERS.map(lambda value: {"const": value}),
    st.just({"$ref": "#/$defs/shared"}),
)  # fmt: skip


def compound(children: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    arrays = st.builds(
        lambda items, least, more: {"type": "array", "items": items, "minItems": least, "maxItems": least + more},
        children, st.integers(0, 3), st.integers(0, 2),
    )  # fmt: skip
    tuples = st.lists(children, min_size=1, max_size=3).map(
        lambda parts: {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    )
    unions = st.lists(children, min_size=1, max_size=3).map(lambda parts: {"anyOf": parts})
    objects = st.dictionaries(st.text("abcdefg_", min_size=1, max_size=6), children, max_size=4).flatmap(
        lambda properties: (
            st.lists(st.sampled_from(sorted(properties)), unique=True).map(
                lambda required: {
                    "type": "object",
                    "properties": properties,
                    "required": required,
                    "additionalProperties": False,
                }
            )
            if properties
            else st.just({"type": "object"})
        )
    )
    return st.one_of(arrays, tuples, unions, objects)


SCHEMAS = st.recursive(LEAVES, compound, max_leaves=12).map(
    lambda schema: {**schema, "$defs": {"shared": closed(name=TEXT)}}
)


@hypothesis.settings(max_examples=150, deadline=None)
@hypothesis.given(SCHEMAS, st.text(max_size=60), st.booleans())
def test_every_value_satisfies_its_schema(schema: dict[str, Any], text: str, complete: bool) -> None:
    validator = pytest.importorskip("jsonschema_rs").Draft202012Validator(schema, validate_formats=True)
    for words in (text, "Ann is 42 and says 'abc' on 2026-01-02, not 1000000 or -3.5."):
        value = ValueMaker(schema, words, prose=lambda name: f"about {name}", complete=complete).make()
        assert validator.is_valid(json.loads(json.dumps(value))), (value, words)

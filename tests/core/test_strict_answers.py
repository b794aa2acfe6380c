"""Answers in the strict dialect: what a null means, and which rules are checked on our side."""

from __future__ import annotations

import copy
import datetime
import json
import pickle
import uuid
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from cerebras_ext.strict_schema import (
    AnswerMismatchError,
    to_strict_schema,
)

NULL = {"type": "null"}


def obj(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


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


class Order(BaseModel):
    number: int = Field(ge=1)
    note: str | None = None
    count: int = 5
    limit: int | None = 7
    color: Color = Color.RED
    level: Level = Level.LOW
    home: Address = Address(street="default")
    pet: Cat | Dog = Field(Cat(), discriminator="kind")
    pair: tuple[int, str] = (1, "a")
    tags: set[str] = set()
    price: Decimal = Decimal("1.50")
    when: datetime.datetime | None = None
    key: Annotated[uuid.UUID | None, Field(description="An id.")] = None


ORDER = to_strict_schema(Order.model_json_schema())


def test_nulls_of_left_out_members_become_the_defaults() -> None:
    answer = dict.fromkeys(ORDER.schema["required"]) | {"number": 1}
    before = copy.deepcopy(answer)
    restored = ORDER.restore(answer)
    assert restored == {"number": 1, "note": None, "limit": None, "when": None, "key": None}
    assert Order.model_validate(restored) == Order(number=1, limit=None)
    assert answer == before


def test_members_that_the_model_left_out_become_the_defaults() -> None:
    assert Order.model_validate(ORDER.restore({"number": 1})) == Order(number=1)


def test_nulls_are_found_in_references_lists_and_unions() -> None:
    class Zoo(BaseModel):
        pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]
        first: Cat | None
        pairs: list[tuple[Dog, int]]

    strict = to_strict_schema(Zoo.model_json_schema())
    dog = {"kind": "dog", "tricks": None}
    answer = {
        "pets": [dog, {"kind": "cat", "lives": None}],
        "first": {"kind": "cat", "lives": None},
        "pairs": [[dog, 1]],
    }
    assert strict.restore(answer) == {
        "pets": [{"kind": "dog"}, {"kind": "cat"}],
        "first": {"kind": "cat"},
        "pairs": [[{"kind": "dog"}, 1]],
    }
    assert Zoo.model_validate(strict.restore(answer)).pets == [Dog(kind="dog"), Cat()]


def test_the_branch_of_a_union_is_chosen_by_structure() -> None:
    left = {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer"}}, "required": ["a"]}
    right = {
        "type": "object",
        "properties": {"b": {"type": "string"}, "n": {"type": ["integer", "null"]}},
        "required": ["b"],
    }
    strict = to_strict_schema(obj(x={"anyOf": [left, right]}))
    assert strict.restore({"x": {"a": "1", "n": None}}) == {"x": {"a": "1"}}
    assert strict.restore({"x": {"b": "1", "n": None}}) == {"x": {"b": "1", "n": None}}


@pytest.mark.parametrize(
    "answer", [None, [], "text", {}, {"number": "x"}, {"pet": {"kind": "ca"}}, {"pet": 3}, {"zz": 1}]
)
def test_partial_and_wrong_answers_pass_through(answer: Any) -> None:
    assert ORDER.restore(answer) == answer


def test_removed_constraints_are_enforced_by_the_class() -> None:
    with pytest.raises(ValidationError, match="greater_than_equal"):
        Order.model_validate(ORDER.restore({"number": 0}))


@pytest.mark.parametrize(
    ("schema", "good", "bad", "fault"),
    [
        ({"type": "string", "minLength": 2}, "ab", "a", "at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "ab", "abc", "at most 2 characters"),
        ({"type": "string", "pattern": "^a"}, "ab", "b", r"pattern \^a"),
        ({"type": "string", "format": "date"}, "2026-11-30", "30.11.", "format date"),
        ({"type": "string", "format": "date-time"}, "2026-11-30T10:00:00Z", "now", "format date-time"),
        ({"type": "string", "format": "uuid"}, "2f1b6c1e-4a7d-4c0e-9b43-0d9f6f3a5b11", "x", "format uuid"),
        ({"type": "string", "format": "email"}, "a@b.c", "a", "format email"),
        ({"type": "string", "format": "ipv4"}, "127.0.0.1", "300.0.0.1", "format ipv4"),
        ({"type": "integer", "minimum": 1}, 1, 0, "at least 1"),
        ({"type": "number", "exclusiveMaximum": 1}, 0.5, 1, "less than 1"),
        ({"type": "number", "multipleOf": 0.1}, 0.3, 0.35, "multiple of 0.1"),
        ({"type": "integer"}, 2.0, 2.5, "type integer, not number"),
        ({"type": "integer"}, 1, True, "type integer, not boolean"),
        ({"type": "number"}, 1, "1", "type number, not string"),
        ({"enum": [1, 2]}, 2, 3, r"one of \[1, 2\]"),
        ({"const": "a"}, "a", "b", r"one of \['a'\]"),
        ({"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1}, ["a"], [], "at least 1 items"),
        ({"type": "array", "items": NULL, "maxItems": 1}, [None], [None, None], "at most 1 items"),
        ({"type": "array", "items": {"type": "number"}, "uniqueItems": True}, [1, 2], [1, 1.0], "duplicates"),
        ({"type": "array", "prefixItems": [NULL]}, [None], [None, 1], r"x\[1\]: is one item too many"),
        (obj(y={"type": "string"}), {"y": "a"}, {}, "y is missing"),
        (obj(y={"type": "string"}), {"y": "a"}, {"y": "a", "z": 1}, "z is not a property"),
        (obj(y={"type": "string"}), {"y": "a"}, {"y": 1}, r"\$\.x\.y: must be of type string"),
        ({"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 3}]}, 3, 2, "at least 3"),
    ],
)
def test_a_plain_schema_is_enforced_on_our_side(schema: Any, good: Any, bad: Any, fault: str) -> None:
    strict = to_strict_schema(obj(x=schema))
    assert strict.validate({"x": good}) == {"x": good}
    with pytest.raises(AnswerMismatchError, match=fault) as caught:
        strict.validate({"x": bad})
    assert caught.value.faults[0].startswith("$.x")
    assert pickle.loads(pickle.dumps(caught.value)).faults == caught.value.faults


def test_constraints_that_nobody_checks_are_listed() -> None:
    strict = to_strict_schema(
        obj(
            a={"type": "string", "not": {"const": "x"}, "format": "hostname"},
            b={"type": "array", "items": {"type": "string", "pattern": r"\p{L}", "minLength": 1}},
        )
    )
    assert strict.unchecked == ("$.a: not", "$.a: format", "$.b[]: pattern")
    assert strict.validate({"a": "x", "b": ["1"]})


def test_a_strict_schema_is_its_own_strict_form() -> None:
    assert to_strict_schema(ORDER.schema).schema == ORDER.schema


def test_a_strict_schema_can_be_copied_and_pickled() -> None:
    for copied in (copy.deepcopy(ORDER), pickle.loads(pickle.dumps(ORDER))):
        assert json.dumps(copied.schema) == json.dumps(ORDER.schema)
        assert copied.restore({"number": 1, "count": None}) == {"number": 1}

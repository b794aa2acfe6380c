"""The two ways to say that a member may be left out, and what each means to who reads the answer."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from cerebras_ext.strict_schema import strict_tools, to_strict_schema


class Inner(BaseModel):
    unit: str = "C"


class Weather(BaseModel):
    city: str
    days: int = 3
    note: str | None = None
    inner: Inner = Inner()


SCHEMA = Weather.model_json_schema()


def test_absent_members_stay_unrequired_and_forbid_null_where_the_schema_does() -> None:
    strict = to_strict_schema(SCHEMA, optional="absent")
    assert strict.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "inner": {
                "type": "object",
                "properties": {"unit": {"type": "string"}},
                "required": [],
                "additionalProperties": False,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_nullable_is_the_default() -> None:
    assert to_strict_schema(SCHEMA).schema["required"] == ["city", "days", "note", "inner"]
    assert to_strict_schema(SCHEMA).schema == to_strict_schema(SCHEMA, optional="nullable").schema


def test_the_absent_form_is_its_own_absent_form() -> None:
    strict = to_strict_schema(SCHEMA, optional="absent").schema
    assert to_strict_schema(strict, optional="absent").schema == strict


@pytest.mark.parametrize("answer", [{"city": "x"}, {"city": "x", "days": None, "note": None, "inner": None}])
def test_both_kinds_of_answer_are_understood(answer: dict[str, Any]) -> None:
    strict = to_strict_schema(SCHEMA, optional="absent")
    assert Weather.model_validate(strict.validate(answer)) == Weather(city="x")


def test_tools_take_the_same_choice() -> None:
    tool = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "strict": True}}
    function = strict_tools([tool], optional="absent").tools[0]["function"]
    assert function["parameters"] == to_strict_schema(SCHEMA, optional="absent").schema
    assert function["strict"] is True

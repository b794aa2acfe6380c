"""Line breaks inside of the strings of tool arguments, as models write them in code: read, and replayed as JSON."""

from __future__ import annotations

import json
from datetime import date
from types import MappingProxyType
from typing import Any

import pytest

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments, replayed_arguments


@pytest.mark.parametrize("control", ["\n", "\t", "\r\n", "\x00", "\x1f"])
def test_control_characters_in_strings_are_taken_as_they_are(control: str) -> None:
    text = f'{{\n "code": "a{control}b\ud83e",\n "n": 1}}'
    assert parse_arguments(text) == {"code": f"a{control}b\ufffd", "n": 1}


@pytest.mark.parametrize(
    "text", ['{"code": "a\nb', '{"code": "a\nb"', '{"a\n"}', '{"a": "x\n"} rest', '{"a": "\n", "b": NaN}']
)
def test_what_is_no_object_beside_that_stays_invalid(text: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_arguments(text)
    assert json.loads(replayed_arguments(text)) == {"invalid_arguments": text}


def test_replayed_arguments_are_strict_json() -> None:
    assert json.loads(replayed_arguments('{"code": "a\nb"}')) == {"code": "a\nb"}
    assert replayed_arguments('{"code": "a"}') == '{"code": "a"}'


def test_arguments_nested_too_deeply_are_invalid() -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_arguments('{"a": "\n", "b": ' + "[" * 100_000)


def circular() -> dict[str, Any]:
    value: dict[str, Any] = {}
    value["self"] = value
    return value


@pytest.mark.parametrize(
    "value",
    [{"x": float("nan")}, {"x": [float("-inf")]}, {"x": date(2024, 1, 2)}, {"x": {1}}, {(1, 2): 3}, circular()],
    ids=["nan", "infinity", "date", "set", "key", "circular"],
)
def test_arguments_that_json_has_no_form_for_are_refused_by_the_name_of_the_call(value: dict[Any, Any]) -> None:
    for given in (value, MappingProxyType(value)):
        with pytest.raises(RequestValidationError, match="call of 'lookup' cannot be written as JSON"):
            replayed_arguments(given, "lookup")


def test_a_mapping_is_written_as_a_dictionary_is() -> None:
    assert replayed_arguments(MappingProxyType({"a": 1})) == '{"a": 1}'

"""JSON in and out: surrogates, constants that JSON does not have, large numbers, deep nesting."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from cerebras_ext.jsontext import dumps, loads, loads_partial, replace_surrogates


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("\ud83e", "\ufffd"),
        ("a\udc00b", "a\ufffdb"),
        ("\ud83d\ude00", "\U0001f600"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("é\u2028\x00", "é\u2028\x00"),
    ],
)
def test_lone_surrogates_are_replaced_and_pairs_joined_before_sending(text: str, sent: str) -> None:
    body = {"messages": [{"content": text, text: [text, (text,)]}]}
    assert json.loads(dumps(body).decode()) == {"messages": [{"content": sent, sent: [sent, [sent]]}]}
    assert b"\\ud" not in dumps(body).lower()


def test_surrogates_in_escapes_of_an_answer_are_read() -> None:
    assert loads(rb'{"a":"\ud83e","b":["\ud83d\ude00"]}') == {"a": "\ufffd", "b": ["\U0001f600"]}


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_constants_that_json_does_not_have_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="no form in JSON"):
        dumps({"a": [value]})
    with pytest.raises(ValueError, match="no form in JSON"):
        dumps({"a": [value], "b": "\ud83e"})
    assert json.loads(dumps({"a": "NaN Infinity -Infinity"})) == {"a": "NaN Infinity -Infinity"}


@pytest.mark.parametrize("number", [2**53 + 1, 2**63, 2**64, -(2**200), 10**400])
def test_large_whole_numbers_keep_their_value(number: int) -> None:
    assert loads(dumps({"seed": number})) == {"seed": number}


def test_objects_of_the_users_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="cannot be written as JSON"):
        dumps({"a": object()})


def test_deep_nesting_is_an_error_and_no_crash() -> None:
    with pytest.raises(ValueError, match=r"deep|recursion"):
        loads("[" * 200_000)
    nested: Any = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(ValueError, match=r"cannot be written|deep"):
        dumps({"a": nested})


@pytest.mark.parametrize("text", ["", " ", "{", "nope", b"\xff\xfe", '{"a":1}x'])
def test_what_is_not_json_is_a_value_error(text: str | bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        loads(text)


def test_the_beginning_of_a_text_is_read_as_far_as_it_goes() -> None:
    assert loads_partial('{"a": "hel') == {"a": "hel"}
    assert loads_partial('{"a": 1, "b"') == {"a": 1}
    assert loads_partial("") is None
    assert loads_partial("nope") is None


def test_replacing_leaves_the_given_object_alone() -> None:
    given = {"a": ["\ud83e"]}
    assert replace_surrogates(given) == {"a": ["\ufffd"]}
    assert given == {"a": ["\ud83e"]}

"""JSON out of the text of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext.answers import json_answer, partial_json_answer, split_thoughts, worth_reading

VALUE = {"a": [1, {"b": "</think> ```"}], "c": None}
TEXT = json.dumps(VALUE)

WRAPPED = {
    "plain": TEXT,
    "white space": f"\n\n {TEXT} \n",
    "thoughts": f"<think>\nhm {{x}}\n</think>\n\n{TEXT}",
    "empty thoughts": f"<think></think>{TEXT}",
    "thoughts without the opening tag": f"hm [1] {{x}}\n</think>\n{TEXT}",
    "fence": f"```json\n{TEXT}\n```",
    "fence without a language": f"```\n{TEXT}```",
    "thoughts and fence": f"<think>hm</think>\n```json\n{TEXT}\n```\n",
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_is_around_the_json_is_taken_off(name: str) -> None:
    assert json_answer(WRAPPED[name]) == VALUE


@pytest.mark.parametrize(
    "text", ["", "  ", "hello", TEXT[:-1], TEXT + " x", TEXT + TEXT, "```json\n" + TEXT, "<think>" + TEXT, "{'a': 1}"]
)
def test_nothing_is_repaired(text: str) -> None:
    with pytest.raises(ValueError, match="the answer is"):
        json_answer(text)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_have_are_refused(number: str) -> None:
    text = f'{{"a": {number}, "b": 1}}'
    for answer in (text, f"<think>hm</think>{text}", f"```json\n{text}\n```"):
        with pytest.raises(ValueError, match=r"the answer is not JSON: .*has no form in JSON"):
            json_answer(answer)
        assert partial_json_answer(answer) is None
    assert json_answer('{"a": "NaN"}') == {"a": "NaN"}


@pytest.mark.parametrize("name", WRAPPED)
def test_parts_grow_to_the_whole_and_thoughts_are_no_part(name: str) -> None:
    text = WRAPPED[name]
    parts: list[Any] = [partial_json_answer(text[:end]) for end in range(len(text) + 1)]
    assert parts[-1] == VALUE
    started = [part for part in parts if part not in (None, {}, {"a": []}, [])]
    if name != "thoughts without the opening tag":  # which cannot be told from an answer before the tag comes
        assert all(part["a"][0] == 1 for part in started)


@pytest.mark.parametrize("text", ["", "hello", "12", '"text"', "nul"])
def test_only_objects_and_lists_have_parts(text: str) -> None:
    assert partial_json_answer(text) is None


@pytest.mark.parametrize(
    ("text", "thoughts", "rest"),
    [
        ("<think>a</think>b", "a", "b"),
        ("a\n</think>\n\nb", "a", "b"),
        ("b", "", "b"),
        ('{"x": "</think>"}', "", '{"x": "</think>"}'),
        ("<think>a", "a", ""),
    ],
)
def test_thoughts_are_split_off(text: str, thoughts: str, rest: str) -> None:
    assert split_thoughts(text) == (thoughts, rest)


def test_a_growing_text_is_read_in_proportion_to_its_length() -> None:
    read = [0]
    for length in range(1, 200_000):
        if worth_reading(length, read[-1]):
            read.append(length)
    assert read[:2001] == list(range(2001))
    assert sum(read[2048:]) < 40 * 200_000
    assert read[-1] > 0.96 * 200_000

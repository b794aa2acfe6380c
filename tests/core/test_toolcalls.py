"""Tool calls: which call a fragment belongs to, ids, names, and strict reading of arguments."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebras_ext.assembly import ChatAssembler, deltas_of_chat
from cerebras_ext.toolcalls import (
    InvalidArgumentsError,
    ToolCallSlots,
    arguments_text,
    parse_arguments,
    replayed_arguments,
    whole_tool_calls,
)
from cerebras_ext.types import ChatResponse

Fragment = dict[str, Any]


def fragment(
    index: int | None = 0, id: str | None = None, name: str | None = None, args: Any = None, **more: Any
) -> Fragment:
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not None}
    given = {"index": index, "id": id, "function": function, **more}
    return {key: value for key, value in given.items() if value is not None}


def collect(*deltas: list[Fragment]) -> list[tuple[str, str, str]]:
    slots = ToolCallSlots()
    for fragments in deltas:
        slots.feed(fragments)
    return [(slot.id, slot.name, slot.arguments) for slot in slots.slots]


def test_a_new_id_on_a_used_index_is_a_new_call() -> None:
    assert collect([fragment(0, "a", "f", "{}")], [fragment(0, "b", "g", "{}")]) == [("a", "f", "{}"), ("b", "g", "{}")]


def test_fragments_without_id_follow_the_newest_call_of_their_index() -> None:
    assert collect(
        [fragment(0, "a", "f", "")], [fragment(0, "b", "g", "")], [fragment(0, args='{"x"')], [fragment(0, args=":1}")]
    ) == [("a", "f", ""), ("b", "g", '{"x":1}')]


@pytest.mark.parametrize("index", [3, 1, -1, 10**9])
def test_indices_are_keys_and_no_empty_call_is_made(index: int) -> None:
    slots = ToolCallSlots()
    deltas = slots.feed([fragment(index, "z", "f", "{}")])
    assert [(delta.index, delta.id) for delta in deltas] == [(0, "z")]
    assert len(slots.slots) == 1


def test_order_is_that_of_first_appearance() -> None:
    assert [call[0] for call in collect([fragment(5, "a", "f"), fragment(2, "b", "g")])] == ["a", "b"]


@pytest.mark.parametrize("placeholder", [None, "", "null", "None"])
def test_a_call_without_id_gets_one_that_stays(placeholder: str | None) -> None:
    slots = ToolCallSlots()
    first = slots.feed([{"index": 0, "id": placeholder, "function": {"name": "f", "arguments": "{"}}])
    second = slots.feed([{"index": 0, "id": placeholder, "function": {"arguments": "}"}}])
    (slot,) = slots.slots
    assert first[0].id == slot.id
    assert slot.id.startswith("call_")
    assert second[0].id is None
    assert slot.arguments == "{}"


def test_generated_ids_differ() -> None:
    calls = collect([fragment(0, None, "f", "{}"), fragment(1, None, "f", "{}")])
    assert len({call[0] for call in calls}) == 2


@pytest.mark.parametrize("again", ["call_1", "", "null", None])
def test_a_repeated_id_or_name_is_never_concatenated(again: str | None) -> None:
    assert collect([fragment(0, "call_1", "f", '{"a"')], [fragment(0, again, "f", ":1}")]) == [
        ("call_1", "f", '{"a":1}')
    ]


def test_two_calls_in_one_delta_and_interleaved_fragments() -> None:
    assert collect(
        [fragment(0, "a", "f"), fragment(1, "b", "f")],
        [fragment(1, args='{"a":2}')],
        [fragment(0, args='{"a":')],
        [fragment(0, args="1}")],
    ) == [("a", "f", '{"a":1}'), ("b", "f", '{"a":2}')]


@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_the_result_does_not_depend_on_how_fragments_interleave(rng: random.Random, count: int) -> None:
    queues = []
    for number in range(count):
        text = json.dumps({"number": number, "text": "x" * rng.randrange(5)})
        cut = rng.randrange(len(text))
        queues.append([fragment(number, args=text[:cut]), fragment(number, args=text[cut:])])
    stream = [[fragment(number, f"id{number}", f"f{number}")] for number in range(count)]
    while any(queues):
        stream.append([rng.choice([queue for queue in queues if queue]).pop(0)])
    calls = collect(*stream)
    assert [(call[0], call[1], json.loads(call[2])["number"]) for call in calls] == [
        (f"id{number}", f"f{number}", number) for number in range(count)
    ]


def test_without_any_index_ids_decide() -> None:
    assert collect(
        [fragment(None, "a", "f", "{")], [fragment(None, "b", "g", "[")], [fragment(None, "a", None, "}")],
        [fragment(None, "b", None, "]")],
    ) == [("a", "f", "{}"), ("b", "g", "[]")]  # fmt: skip


def test_without_index_and_id_fragments_follow_the_last_call() -> None:
    assert [call[1:] for call in collect([fragment(None, None, "f", "{")], [fragment(None, None, None, "}")])] == [
        ("f", "{}")
    ]


def test_whole_calls_without_id_on_one_index_stay_two() -> None:
    calls = collect([fragment(0, None, "f", '{"a":1}')], [fragment(0, None, "f", '{"a":2}')])
    assert [call[1:] for call in calls] == [("f", '{"a":1}'), ("f", '{"a":2}')]


def test_another_name_on_one_index_without_ids_is_another_call() -> None:
    calls = collect([fragment(0, None, "f", "{}")], [fragment(0, None, "g", "{}")])
    assert [call[1:] for call in calls] == [("f", "{}"), ("g", "{}")]


def test_a_late_id_does_not_split_a_call() -> None:
    calls = collect([fragment(0, None, "f")], [fragment(0, "real", None, "{}")])
    assert [call[1:] for call in calls] == [("f", "{}")]


def test_a_name_that_comes_later_is_taken() -> None:
    slots = ToolCallSlots()
    slots.feed([fragment(0, "a")])
    assert slots.feed([fragment(0, None, "f", "{}")])[0].name == "f"
    assert [(slot.id, slot.name, slot.arguments) for slot in slots.slots] == [("a", "f", "{}")]


@pytest.mark.parametrize(
    "odd",
    [
        None, 5, "x", [], {}, {"index": 0}, {"index": 0, "function": None}, {"index": 0, "function": {}},
        {"index": 0, "id": "", "function": {"name": None, "arguments": None}}, {"index": "0"}, {"index": 1.5},
    ],
    ids=repr,
)  # fmt: skip
def test_empty_fragments_make_no_call_and_break_none(odd: Any) -> None:
    assert collect([odd]) == []
    assert collect([fragment(0, "a", "f", "{")], [odd], [fragment(0, args="}")]) == [("a", "f", "{}")]


def test_an_object_as_arguments_becomes_its_text() -> None:
    assert collect([fragment(0, "a", "f", {"x": "é"})]) == [("a", "f", '{"x": "é"}')]
    assert (arguments_text(None), arguments_text(0), arguments_text("")) == ("", "0", "")


@pytest.mark.parametrize("name", ["assistant<|channel|>analysis", "ns.search", "python", "näme", "x" * 200])
def test_an_odd_name_passes_unchanged(name: str) -> None:
    assert collect([fragment(0, "a", name, "import os")]) == [("a", name, "import os")]


def test_unknown_members_of_a_call_are_kept() -> None:
    assembler = ChatAssembler()
    assembler.feed({"choices": [{"index": 0, "delta": {"tool_calls": [fragment(0, "a", "f", "{}", new=1)]}}]})
    (call,) = assembler.response().to_dict()["choices"][0]["message"]["tool_calls"]
    assert call == {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "new": 1}


def test_long_arguments_are_linear() -> None:
    slots = ToolCallSlots()
    slots.feed([fragment(0, "a", "f", "")])
    for _ in range(50_000):
        slots.feed([fragment(0, args="xxxx")])
    assert len(slots.slots[0].arguments) == 200_000


# ---- answers that are not streamed ----


def test_equal_calls_of_a_whole_answer_stay_apart() -> None:
    call = {"id": "a", "index": 0, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    assert [(slot.index, slot.id) for slot in whole_tool_calls([call, call])] == [(0, "a"), (1, "a")]
    assert whole_tool_calls(None) == []


def test_a_whole_answer_and_a_stream_agree() -> None:
    calls = [
        {"id": f"t{n}", "type": "function", "function": {"name": "f", "arguments": f'{{"n":{n}}}'}} for n in (1, 2)
    ]
    whole = ChatResponse.model_validate({"choices": [{"index": 0, "message": {"tool_calls": calls}}]})
    assembler = ChatAssembler()
    deltas = assembler.feed(
        {"choices": [{"index": 0, "delta": {"tool_calls": [{**c, "index": n} for n, c in enumerate(calls)]}}]}
    )
    assert deltas_of_chat(whole)[0].tool_calls == deltas[0].tool_calls
    assert assembler.response().tool_calls == whole.tool_calls


def test_text_that_looks_like_a_call_stays_text() -> None:
    response = ChatResponse.model_validate(
        {"choices": [{"index": 0, "message": {"content": '{"name":"rm","arguments":{"p":"/"}}'}}]}
    )
    assert response.tool_calls == []
    assert deltas_of_chat(response)[0].tool_calls == []


# ---- arguments ----


@pytest.mark.parametrize("text", ["", " \n", "null", "{}", None])
def test_no_arguments_are_an_empty_object(text: str | None) -> None:
    assert parse_arguments(text) == {}
    assert replayed_arguments(text) == "{}"


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "/tmp/a',
        '{"a": 1',
        "{",
        '{"a":1}}',
        "import os",
        "[1]",
        '"x"',
        "1",
        "{'a': 1}",
        '{"a": NaN}',
        '{"a": -Infinity}',
    ],
)
def test_broken_or_cut_arguments_are_never_repaired(text: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="arguments are not"):
        parse_arguments(text)
    assert json.loads(replayed_arguments(text)) == {"invalid_arguments": text}


def test_good_arguments_pass_unchanged() -> None:
    text = '{"a":  "é\\u2028", "b": {"lc": 1, "type": "secret"}}'
    assert parse_arguments(text) == {"a": "é\u2028", "b": {"lc": 1, "type": "secret"}}
    assert replayed_arguments(text) == text
    assert json.loads(replayed_arguments({"a": [1, "é"]})) == {"a": [1, "é"]}


@pytest.mark.parametrize("pair", itertools.permutations(["a", "b"]))
def test_ids_seen_before_go_back_to_their_call(pair: tuple[str, str]) -> None:
    first, second = pair
    assert collect(
        [fragment(0, first, "f", "1")], [fragment(0, second, "g", "2")], [fragment(0, first, None, "3")]
    ) == [(first, "f", "13"), (second, "g", "2")]

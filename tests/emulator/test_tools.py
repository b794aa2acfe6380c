"""Tool calls: which tool, with which arguments, when, and what becomes of the results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cerebras_ext.emulator import Emulator
from tests.emulator.support import CHAT, ask, calls, chat_body, events, post, say, user


def tool(name: str, description: str, required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    parameters = {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
    }
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


TEXT, WHOLE = {"type": "string"}, {"type": "integer"}
UNIT = {"type": "string", "enum": ["celsius", "fahrenheit"]}
WEATHER = tool("get_weather", "Get the current weather in a city.", ["city"], city=TEXT, unit=UNIT)
MULTIPLY = tool("multiply", "Multiply two integers.", a=WHOLE, b=WHOLE)
ADD = tool("add", "Add two integers.", a=WHOLE, b=WHOLE)
SEARCH = tool("search", "Search the web.", query=TEXT)
NOTHING = tool("get_time", "Return the current time.")
ALL = [WEATHER, MULTIPLY, ADD, SEARCH, NOTHING]


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("What's the weather in Paris?", [("get_weather", {"city": "Paris"})]),
        ("How warm will the weather be in new york today?", [("get_weather", {"city": "new york today"})]),
        ("What is the weather in San Francisco, CA?", [("get_weather", {"city": "San Francisco, CA"})]),
        ("Weather in Oslo in fahrenheit, please", [("get_weather", {"city": "Oslo", "unit": "fahrenheit"})]),
        ("What is 3 times 4?", [("multiply", {"a": 3, "b": 4})]),
        ("What is 12 * -4?", [("multiply", {"a": 12, "b": -4})]),
        ("Multiply six and seven", [("multiply", {"a": 6, "b": 7})]),
        ("What is the sum of 17 and 25?", [("add", {"a": 17, "b": 25})]),
        ("Search for the population of France", [("search", {"query": "the population of France"})]),
        ("Please search for 'llama prices'", [("search", {"query": "llama prices"})]),
        ("What time is it?", [("get_time", {})]),
        ("What is the capital of Mongolia?", []),
        ("Hello!", []),
        ("Are there more integers than cities?", []),
    ],
)
def test_the_tool_that_fits_is_called_with_arguments_from_the_question(
    emu: Emulator, question: str, wanted: list[Any]
) -> None:
    assert calls(emu, question, tools=ALL) == wanted


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Weather in Paris and London?", [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "London"})]),
        (
            "What is the weather in Paris, London and Rome?",
            [("get_weather", {"city": city}) for city in ("Paris", "London", "Rome")],
        ),
        (
            "What is 3 plus 4, and what is 5 times 6?",
            [("add", {"a": 3, "b": 4}), ("multiply", {"a": 5, "b": 6})],
        ),
        (
            "What's the weather in Oslo? And what is 3 * 4?",
            [("get_weather", {"city": "Oslo"}), ("multiply", {"a": 3, "b": 4})],
        ),
        ("Multiply 3 and 4", [("multiply", {"a": 3, "b": 4})]),
    ],
)
def test_two_wishes_make_two_calls(emu: Emulator, question: str, wanted: list[Any]) -> None:
    assert calls(emu, question, tools=ALL) == wanted
    assert calls(emu, question, tools=ALL, parallel_tool_calls=False) == wanted[:1]


def test_ids_are_nine_hexadecimal_digits_and_differ(emu: Emulator) -> None:
    message = ask(emu, "Weather in Paris and London?", tools=ALL)["message"]
    ids = [call["id"] for call in message["tool_calls"]]
    assert len(set(ids)) == 2
    assert all(len(call_id) == 9 and int(call_id, 16) >= 0 for call_id in ids)
    assert "content" not in message


def test_tool_choice(emu: Emulator) -> None:
    named = {"type": "function", "function": {"name": "multiply"}}
    assert calls(emu, "What's the weather in Paris?", tools=ALL, tool_choice="none") == []
    assert [name for name, _ in calls(emu, "Hello", tools=ALL, tool_choice="required")] == ["get_weather"]
    assert calls(emu, "The weather in Paris: 5 and 6", tools=ALL, tool_choice=named) == [("multiply", {"a": 5, "b": 6})]
    assert calls(emu, "Weather in Paris?", tools=ALL, tool_choice="auto") == [("get_weather", {"city": "Paris"})]


@pytest.mark.parametrize(
    ("question", "schema", "value"),
    [
        ("Create a customer named '你好啊集团' (HelloAh Group)", {"customer_name": TEXT}, "你好啊集团"),
        ("Use the tool with input=7 and nothing else", {"input": WHOLE}, 7),
        ("Book it for 2026-05-04 please", {"date": {"type": "string", "format": "date"}}, "2026-05-04"),
        ("Write to ann@example.org about it", {"email": TEXT}, "ann@example.org"),
        ("Calculate (2 + 3) * 4.", {"expression": TEXT}, "(2 + 3) * 4"),
        ("Set verbose output", {"verbose": {"type": "boolean"}}, True),
        ("Do not use verbose output", {"verbose": {"type": "boolean"}}, False),
        ("Use 1, 2 and 3", {"numbers": {"type": "array", "items": WHOLE}}, [1, 2, 3]),
        ("Ask 'Ann' and 'Bob'", {"people": {"type": "array", "items": TEXT}}, ["Ann", "Bob"]),
        ("It is 5", {"value": {"type": "number"}}, 5),
    ],
)  # fmt: skip
def test_arguments_of_every_type(emu: Emulator, question: str, schema: dict[str, Any], value: Any) -> None:
    only = tool("do_it", "Does it.", **schema)
    (made,) = calls(emu, question, tools=[only], tool_choice="required")
    assert made == ("do_it", {next(iter(schema)): value})


def test_a_request_for_the_tool_is_enough(emu: Emulator) -> None:
    only = tool("run_me", "", foo=TEXT, bar=WHOLE)
    ((name, arguments),) = calls(emu, "Please run the tool, providing whatever arguments you want.", tools=[only])
    assert name == "run_me"
    assert sorted(arguments) == ["bar", "foo"]


def test_a_tool_without_parameters(emu: Emulator) -> None:
    bare = {"type": "function", "function": {"name": "run_me"}}
    assert calls(emu, "Please call run_me.", tools=[bare]) == [("run_me", {})]


def history(*steps: tuple[str, dict[str, Any], str], question: str) -> list[dict[str, Any]]:
    messages = user(question)
    for number, (name, arguments, result) in enumerate(steps):
        function = {"name": name, "arguments": json.dumps(arguments)}
        messages.append(
            {"role": "assistant", "tool_calls": [{"id": str(number), "type": "function", "function": function}]}
        )
        messages.append({"role": "tool", "tool_call_id": str(number), "content": result})
    return messages


def test_results_are_used_in_the_answer(emu: Emulator) -> None:
    talk = history(("multiply", {"a": 3, "b": 4}, "12"), question="What is 3 times 4?")
    assert say(emu, talk, tools=ALL) == "The answer is 12."
    assert say(emu, talk) == "The answer is 12."  # the follow-up may leave the tools out
    talk = history(("get_weather", {"city": "Paris"}, "It is sunny in Paris."), question="Weather in Paris?")
    assert say(emu, talk, tools=ALL) == "It is sunny in Paris."


def test_one_call_after_the_other_ends_with_an_answer(emu: Emulator) -> None:
    question = "What's the weather in Oslo and what is 3 * 4?"
    steps: list[tuple[str, dict[str, Any], str]] = [
        ("get_weather", {"city": "Oslo"}, "Rainy"),
        ("multiply", {"a": 3, "b": 4}, "12"),
    ]
    for number, (name, arguments, _) in enumerate(steps):
        talk = history(*steps[:number], question=question)
        assert calls(emu, talk, tools=ALL, parallel_tool_calls=False) == [(name, arguments)]
    answer = say(emu, history(*steps, question=question), tools=ALL, parallel_tool_calls=False)
    assert "Rainy" in answer
    assert "12" in answer


def test_a_long_result_is_answered_from(emu: Emulator) -> None:
    page = "Paris is old.\n\n" + "Nothing to see here. " * 40 + "\n\nThe tower is 330 metres high."
    talk = history(("search", {"query": "tower"}, page), question="How high is the tower?")
    assert say(emu, talk, tools=ALL) == "The tower is 330 metres high."


def test_a_new_question_after_results_is_a_new_question(emu: Emulator) -> None:
    talk = [
        *history(("multiply", {"a": 3, "b": 4}, "12"), question="What is 3 times 4?"),
        {"role": "assistant", "content": "The answer is 12."},
        *user("And what is 5 times 6?"),
    ]
    assert calls(emu, talk, tools=ALL) == [("multiply", {"a": 5, "b": 6})]


@pytest.mark.parametrize(("model", "pieces"), [("gpt-oss-120b", True), ("qwen-3.8-27b", False)])
def test_streamed_calls_have_the_shape_of_the_model(emu: Emulator, model: str, pieces: bool) -> None:
    body = chat_body("Weather in Paris and London?", tools=ALL, stream=True) | {"model": model}
    deltas = [
        delta
        for event in events(post(emu, CHAT, body).text)
        for delta in event["choices"][0]["delta"].get("tool_calls", ())
    ]
    heads = [delta for delta in deltas if "id" in delta]
    assert [(head["index"], head["function"]["name"]) for head in heads] == [(0, "get_weather"), (1, "get_weather")]
    assert all((head["function"]["arguments"] == "") == pieces for head in heads)
    assert (len(deltas) > 2) == pieces
    for index, city in enumerate(("Paris", "London")):
        text = "".join(delta["function"]["arguments"] for delta in deltas if delta["index"] == index)
        assert json.loads(text) == {"city": city}


def test_arguments_break_off_at_the_limit(emu: Emulator) -> None:
    choice = ask(emu, "Weather in Paris?", tools=ALL, max_tokens=8, model="gemma-4-31b")
    assert choice["finish_reason"] == "length"
    arguments = choice["message"]["tool_calls"][0]["function"]["arguments"]
    assert '{"city": "Paris"}'.startswith(arguments)
    assert arguments != '{"city": "Paris"}'

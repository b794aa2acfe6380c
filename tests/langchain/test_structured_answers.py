"""Structured output: answers with something around them, answers that do not fit, and `include_raw`."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.exceptions import ModelError, OutputParserException

from langchain_cerebras_ext.errors import OutputTruncatedError, RefusalError
from tests.langchain.people import (
    ANSWER,
    METHODS,
    SCHEMAS,
    Person,
    answering,
)
from tests.langchain.stub import PATHS, Stub, ask, call, last, say


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
@pytest.mark.parametrize(
    "text",
    [
        '<think>\nhm {"name": 1}\n</think>\n{"name": "Ada", "age": 1}',
        'hm {x}\n</think>\n\n{"name": "Ada", "age": 1}',
        '```json\n{"name": "Ada", "age": 1}\n```',
        '<think>hm</think>```\n{"name": "Ada", "age": 1}```',
    ],
)
async def test_thoughts_and_fences_around_the_json_are_taken_off(text: str, method: Any, path: str) -> None:
    structured = Stub(say(text)).model().with_structured_output(Person, method=method)
    assert await last(structured, path) == Person(name="Ada", age=1)


def test_thoughts_in_the_content_go_to_the_reasoning_of_the_raw_message() -> None:
    stub = Stub(say('<think>\nhm {x}\n</think>\n{"name": "Ada"}'))
    answer = stub.model().with_structured_output(Person, include_raw=True).invoke("q")
    assert answer["parsed"] == Person(name="Ada")
    assert answer["raw"].additional_kwargs == {"reasoning_content": "hm {x}"}
    assert answer["raw"].content == '{"name": "Ada"}'


def test_a_closing_tag_inside_of_a_string_is_text() -> None:
    stub = Stub(say('{"name": "</think>"}'))
    assert stub.model().with_structured_output(Person).invoke("q") == Person(name="</think>")


BAD = {
    "no json": "not json",
    "empty": "",
    "cut off": '{"name": "Ada", "age": 1',
    "two values": '{"name": "Ada"} {"name": "Bob"}',
    "wrong type": '{"name": [3]}',
    "missing": '{"age": 3}',
    "a list": "[1]",
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("kind", ["pydantic", "pydantic v1", "json schema", "typed dict"])
@pytest.mark.parametrize("bad", BAD)
async def test_an_answer_that_does_not_fit_raises_and_is_never_none(bad: str, kind: str, path: str) -> None:
    structured = Stub(say(BAD[bad])).model().with_structured_output(SCHEMAS[kind][0])
    with pytest.raises(OutputParserException) as caught:
        await last(structured, path)
    assert caught.value.llm_output == BAD[bad]
    assert not isinstance(caught.value, ModelError)


@pytest.mark.parametrize("path", ["invoke", "ainvoke"])
@pytest.mark.parametrize("method", METHODS)
async def test_include_raw_returns_the_fault_instead_of_raising(method: Any, path: str) -> None:
    stub = Stub(answering("not json", method))
    answer = await ask(stub.model().with_structured_output(Person, method=method, include_raw=True), path)
    assert set(answer) == {"raw", "parsed", "parsing_error"}
    assert answer["parsed"] is None
    assert isinstance(answer["parsing_error"], OutputParserException)
    assert answer["raw"].usage_metadata["total_tokens"] == 15


@pytest.mark.parametrize("path", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", SCHEMAS)
async def test_include_raw_returns_message_and_object(kind: str, method: Any, path: str) -> None:
    schema, expected = SCHEMAS[kind]
    name = getattr(schema, "__name__", "Person")
    value = ANSWER if method == "json_schema" or kind == "typed dict" else {"name": "Ada"}
    stub = Stub(answering(value, method, name))
    answer = await ask(stub.model().with_structured_output(schema, method=method, include_raw=True), path)
    assert answer["parsed"] == expected
    assert answer["parsing_error"] is None
    assert answer["raw"].usage_metadata["total_tokens"] == 15
    assert answer["raw"].response_metadata["finish_reason"] in ("stop", "tool_calls")


@pytest.mark.parametrize("path", PATHS)
async def test_function_calling_without_a_call_raises_with_the_text(path: str) -> None:
    structured = Stub(say("hello")).model().with_structured_output(Person, method="function_calling")
    with pytest.raises(OutputParserException, match="did not call Person, but answered 'hello'"):
        await last(structured, path)


@pytest.mark.parametrize("path", PATHS)
async def test_a_call_of_another_function_is_no_answer(path: str) -> None:
    structured = Stub(call(("other", "{}"))).model().with_structured_output(Person, method="function_calling")
    with pytest.raises(OutputParserException, match="did not call Person"):
        await last(structured, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
async def test_an_answer_at_the_token_limit_is_a_typed_error(method: Any, path: str) -> None:
    stub = Stub(answering('{"name": "Ad', method, finish="length"))
    with pytest.raises(OutputTruncatedError, match="token limit") as caught:
        await last(stub.model().with_structured_output(Person, method=method), path)
    assert isinstance(caught.value, OutputParserException)
    assert caught.value.raw_message is not None
    assert caught.value.raw_message.usage_metadata["total_tokens"] == 15  # type: ignore[attr-defined]


@pytest.mark.parametrize("path", PATHS)
async def test_a_whole_answer_exactly_at_the_limit_counts(path: str) -> None:
    stub = Stub(say('{"name": "Ada"}', finish="length"))
    assert await last(stub.model().with_structured_output(Person), path) == Person(name="Ada")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
async def test_a_withheld_answer_is_a_typed_error(method: Any, path: str) -> None:
    stub = Stub(say("", finish="content_filter"))
    with pytest.raises(RefusalError, match="withheld") as caught:
        await last(stub.model().with_structured_output(Person, method=method), path)
    assert isinstance(caught.value, ModelError)
    assert caught.value.raw_message is not None
    assert caught.value.raw_message.response_metadata["finish_reason"] == "content_filter"


@pytest.mark.parametrize("finish", ["content_filter", "length"])
def test_include_raw_hands_out_typed_errors_too(finish: str) -> None:
    answer = Stub(say("", finish=finish)).model().with_structured_output(Person, include_raw=True).invoke("q")
    assert answer["parsed"] is None
    assert type(answer["parsing_error"]) in (RefusalError, OutputTruncatedError)

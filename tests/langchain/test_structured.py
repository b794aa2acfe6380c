"""with_structured_output: methods, kinds of schemas, what goes out, and what is around it."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import OutputParserException
from langchain_core.load import dumps
from langchain_core.utils.function_calling import convert_to_json_schema

from langchain_cerebras_ext.errors import BadRequestError
from langchain_cerebras_ext.structured_parser import StructuredOutputParser
from tests.langchain.people import (
    ANSWER,
    FUNCTION,
    METHODS,
    PARAMETERS,
    SCHEMA,
    SCHEMAS,
    STRICT,
    Person,
    PersonDict,
    PersonV1,
    answering,
)
from tests.langchain.stub import PATHS, Stub, ask, call, last, refuse, say


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", SCHEMAS)
async def test_every_schema_with_every_method(kind: str, method: Any, strict: bool | None, path: str) -> None:
    schema, expected = SCHEMAS[kind]
    if method == "json_mode" and strict is not None:
        strict = None
    constrained = (method == "json_schema" and strict is not False) or strict
    value = ANSWER if constrained else {"name": "Ada"}
    if kind == "typed dict" and not constrained:
        expected = {"name": "Ada"}
    name = getattr(schema, "__name__", "Person")
    stub = Stub(answering(value, method, name))
    structured = stub.model().with_structured_output(schema, method=method, strict=strict)
    assert await last(structured, path) == expected


def test_json_schema_is_the_default_and_forces_no_tool() -> None:
    stub = Stub(say(json.dumps(ANSWER)))
    assert stub.model().with_structured_output(SCHEMA).invoke("q") == {"name": "Ada"}
    json_schema = {"name": "Person", "description": "A person.", "schema": STRICT, "strict": True}
    assert stub.body == {"response_format": {"type": "json_schema", "json_schema": json_schema}}


def test_without_strict_the_schema_is_sent_as_it_is() -> None:
    stub = Stub(say('{"name": "Ada"}'))
    assert stub.model().with_structured_output(Person, strict=False).invoke("q") == Person(name="Ada")
    sent = stub.body["response_format"]["json_schema"]
    assert sent["strict"] is False
    assert sent["schema"]["required"] == ["name"]
    assert sent["schema"]["properties"]["age"] == {"default": 5, "title": "Age", "type": "integer"}


@pytest.mark.parametrize("strict", [None, True])
def test_function_calling_forces_one_tool(strict: bool | None) -> None:
    stub = Stub(call(("Person", '{"name": "Ada"}')))
    structured = stub.model().with_structured_output(SCHEMA, method="function_calling", strict=strict)
    assert structured.invoke("q") == {"name": "Ada"}
    function = {**FUNCTION, "parameters": STRICT, "strict": True} if strict else FUNCTION
    assert stub.body == {
        "tools": [{"type": "function", "function": function}],
        "tool_choice": {"type": "function", "function": {"name": "Person"}},
    }


@pytest.mark.parametrize("path", PATHS)
async def test_json_mode_asks_for_an_object_and_is_never_streamed(path: str) -> None:
    stub = Stub(say('{"name": "Ada"}'))
    structured = stub.model().with_structured_output(Person, method="json_mode")
    assert await last(structured, path) == Person(name="Ada")
    assert stub.body == {"response_format": {"type": "json_object"}}
    assert not stub.bodies[0].get("stream")


@pytest.mark.parametrize("path", PATHS)
async def test_json_mode_without_a_schema_gives_any_json(path: str) -> None:
    stub = Stub(say('{"a": [1]}'))
    assert await last(stub.model().with_structured_output(method="json_mode"), path) == {"a": [1]}


@pytest.mark.parametrize("strict", [True, False])
def test_a_dictionary_says_whether_it_is_strict(strict: bool) -> None:
    stub = Stub(say('{"name": "Ada"}'))
    stub.model().with_structured_output({"name": "P", "schema": PARAMETERS, "strict": strict}).invoke("q")
    assert stub.body["response_format"]["json_schema"]["strict"] is strict


def test_options_of_the_call_go_along() -> None:
    stub = Stub(say(json.dumps(ANSWER)))
    stub.model().with_structured_output(SCHEMA, temperature=0.5).invoke("q", seed=7)
    assert (stub.body["temperature"], stub.body["seed"]) == (0.5, 7)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", METHODS)
async def test_headers_and_usage_come_with_structured_answers(method: str, path: str) -> None:
    stub = Stub(answering({"name": "Ada"}, method, "Person"))
    model = stub.model(include_response_headers=True)
    answer = await ask(model.with_structured_output(Person, method=method, include_raw=True), path)
    assert answer["raw"].response_metadata["headers"]["content-type"]
    assert answer["raw"].usage_metadata["total_tokens"] == 15


def test_tools_are_sent_along_only_when_asked_for() -> None:
    stub = Stub(say(json.dumps(ANSWER)))
    stub.model().with_structured_output(SCHEMA, tools=[FUNCTION]).invoke("q")
    assert set(stub.body) == {"tools", "response_format"}


def test_the_callers_schema_is_not_changed() -> None:
    before = copy.deepcopy(SCHEMA)
    for method in METHODS:
        Stub(answering(ANSWER, method)).model().with_structured_output(SCHEMA, method=method).invoke("q")
    assert before == SCHEMA


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"schema": SCHEMA, "method": "json"}, "must be one of json_schema, function_calling, json_mode"),
        ({"schema": None}, "json_schema needs one"),
        ({"schema": SCHEMA, "method": "json_mode", "strict": True}, "json_mode has no schema to follow"),
        ({"schema": SCHEMA, "method": "function_calling", "tools": [FUNCTION]}, "cannot be sent along"),
        ({"schema": 3}, "is not a schema"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused(arguments: Any, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Stub(say("x")).model().with_structured_output(**arguments)


def test_a_model_of_content_blocks_is_parsed_by_its_text() -> None:
    stub = Stub(say('{"name": "Ada"}', reasoning="Hm {"))
    structured = stub.model(output_version="v1").with_structured_output(Person)
    assert structured.invoke("q") == Person(name="Ada")
    assert list(structured.stream("q"))[-1] == Person(name="Ada")


@pytest.mark.parametrize("method", ["json_schema", "json_mode"])
def test_a_model_without_the_format_gives_an_error_that_names_the_method(method: Any) -> None:
    stub = Stub(refuse(400, "type: Input should be 'text'", param="validation_error", code="wrong_api_format"))
    with pytest.raises(BadRequestError, match="another method") as caught:
        stub.model().with_structured_output(Person, method=method).invoke("q")
    assert stub.body["response_format"]["type"] in str(caught.value)
    assert len(stub.bodies) == 1


class Options(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_chat_model_start(self, serialized: Any, messages: Any, *, options: Any = None, **kwargs: Any) -> None:
        self.seen.append(options)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("schema", [Person, PersonV1, PersonDict, SCHEMA, FUNCTION], ids=str)
def test_callbacks_get_method_and_schema(schema: Any, method: Any) -> None:
    handler = Options()
    name = getattr(schema, "__name__", "Person")
    stub = Stub(answering(ANSWER if method == "json_schema" else {"name": "Ada"}, method, name))
    stub.model().with_structured_output(schema, method=method).invoke("q", config={"callbacks": [handler]})
    (options,) = handler.seen
    assert options["ls_structured_output_format"]["schema"] == convert_to_json_schema(schema)
    assert options["ls_structured_output_format"]["kwargs"]["method"] == method
    assert "ls_structured_output_format" not in stub.bodies[0]


def test_the_parser_can_be_pickled_after_use() -> None:
    structured: Any = Stub(say('{"name": "Ada"}')).model().with_structured_output(Person)
    structured.invoke("q")
    parser = pickle.loads(pickle.dumps(structured.last))
    assert isinstance(parser, StructuredOutputParser)
    assert parser.parse('{"name": "Ada"}') == Person(name="Ada")


def test_a_batch_keeps_the_order() -> None:
    stub = Stub(lambda body: say(json.dumps({"name": body["messages"][0]["content"]})))
    people = stub.model().with_structured_output(Person).batch(["a", "b", "c"])
    assert [person.name for person in people] == ["a", "b", "c"]


async def test_an_answer_that_does_not_fit_can_be_asked_for_again() -> None:
    stub = Stub(say("bad"), say('{"name": "Ada"}'))
    structured = stub.model().with_structured_output(Person)
    retried = structured.with_retry(stop_after_attempt=2, retry_if_exception_type=(OutputParserException,))
    assert await retried.ainvoke("q") == Person(name="Ada")
    assert len(stub.bodies) == 2


def test_a_structured_chain_can_be_dumped_and_drawn() -> None:
    structured = Stub(say("x")).model().with_structured_output(Person)
    assert "csk-test" not in dumps(structured)
    assert len(structured.get_graph().nodes) == 4
    assert structured.get_output_jsonschema()

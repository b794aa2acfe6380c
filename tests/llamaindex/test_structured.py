"""Structured prediction: what is sent, and the objects that come back."""

from __future__ import annotations

import copy
import datetime
import itertools
import json
from typing import Any, Literal

import pytest
from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.program.utils import FlexibleModel
from llama_index.core.prompts import ChatPromptTemplate, SelectorPromptTemplate
from llama_index.core.prompts.utils import is_chat_model
from llama_index.core.types import PydanticProgramMode
from pydantic import BaseModel, ConfigDict, Field, RootModel

from cerebras_ext.strict_schema import SchemaError
from llamaindex_cerebras_ext.outputs import OutputFormat
from tests.llamaindex.predicting import PARIS, PATHS, PROMPT, STREAMS, Loose, Place, format_of, objects, says
from tests.llamaindex.scripted import Json, scripted, streamed, whole

# ---- what is sent ----


@pytest.mark.parametrize("path", PATHS)
async def test_json_schema_strict_is_asked_for_and_no_tools(path: str) -> None:
    llm, wire = scripted(says(json.dumps(PARIS)), temperature=0.5)
    assert (await objects(llm, path))[-1] == Place(name="Paris", tags=["river", "old"])
    schema = format_of(wire)["schema"]
    assert wire.body == {
        "model": "some-model",
        "messages": [{"role": "user", "content": "Where is Paris?"}],
        "temperature": 0.5,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "Place", "description": "A place on earth.", "schema": schema, "strict": True},
        },
        **({"stream": True} if path in STREAMS else {}),
    }
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name", "country", "people", "tags"]
    assert not {"minLength", "minimum", "maxItems", "default", "title"} & set(_keys(schema))


def _keys(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [key for name, item in value.items() for key in (name, *_keys(item))]
    return [key for item in value for key in _keys(item)] if isinstance(value, list) else []


@pytest.mark.parametrize("path", PATHS)
async def test_system_prompt_and_chat_variant_of_the_prompt_are_kept(path: str) -> None:
    chat = ChatPromptTemplate(
        [ChatMessage(role=MessageRole.SYSTEM, content="Text QA."), ChatMessage(content="Chat {place}")]
    )
    prompt = SelectorPromptTemplate(default_template=PROMPT, conditionals=[(is_chat_model, chat)])
    llm, wire = scripted(says(json.dumps(PARIS)), system_prompt="Be brief.")
    await objects(llm, path, prompt=prompt)
    assert wire.body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "system", "content": "Text QA."},
        {"role": "user", "content": "Chat Paris"},
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_options_of_the_call_are_sent_and_not_changed(path: str) -> None:
    options = {
        "seed": 1,
        "extra_headers": {"x-a": "b"},
        "tool_choice": "Place",
        "tool_required": True,
        "allow_parallel_tool_calls": False,
    }
    before = copy.deepcopy(options)
    llm, wire = scripted(says(json.dumps(PARIS)))
    await objects(llm, path, llm_kwargs=options)
    assert options == before
    assert wire.body["seed"] == 1
    assert wire.requests[0].headers["x-a"] == "b"
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(wire.body)


async def test_braces_of_values_and_schemas_are_not_doubled() -> None:
    llm, wire = scripted(says(json.dumps(PARIS)))
    await objects(llm, "structured_predict", args={"place": '{"a": "{b}"}'})
    assert wire.body["messages"][0]["content"] == 'Where is {"a": "{b}"}?'


def test_a_class_is_converted_once() -> None:
    llm, _ = scripted(says(json.dumps(PARIS)))
    assert llm._output_format(Place) is llm._output_format(Place)


# ---- the dialect ----


class Open(BaseModel):
    name: str
    data: dict[str, int]


class Node(BaseModel):
    value: int
    kids: list[Node] = []


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("cls", "answer"), [(Open, {"name": "a", "data": {"x": 1}}), (Node, {"value": 1, "kids": [{"value": 2}]})]
)
async def test_a_class_without_a_strict_form_is_sent_as_a_guide(path: str, cls: type[BaseModel], answer: Json) -> None:
    llm, wire = scripted(says(json.dumps(answer)))
    assert (await objects(llm, path, cls))[-1] == cls.model_validate(answer)
    assert format_of(wire)["strict"] is False
    assert format_of(wire)["schema"] == cls.model_json_schema()


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cls", [Open, Node])
async def test_strict_true_refuses_a_class_without_a_strict_form(path: str, cls: type[BaseModel]) -> None:
    llm, wire = scripted(says("{}"), strict=True)
    with pytest.raises(SchemaError):
        await objects(llm, path, cls)
    assert wire.bodies == []


@pytest.mark.parametrize("path", PATHS)
async def test_strict_false_sends_the_schema_as_it_is(path: str) -> None:
    llm, wire = scripted(says('{"name": "Paris"}'), strict=False)
    assert (await objects(llm, path))[-1] == Place(name="Paris")
    assert format_of(wire)["strict"] is False
    assert format_of(wire)["schema"] == Place.model_json_schema()


class Names(RootModel[list[str]]):
    pass


@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("path", PATHS)
async def test_a_root_that_is_no_object_is_wrapped_and_unwrapped(path: str, strict: bool | None) -> None:
    llm, wire = scripted(says('{"value": ["ab", "cd"]}', size=4), strict=strict)
    assert (await objects(llm, path, Names))[-1] == Names(["ab", "cd"])
    assert format_of(wire)["schema"]["properties"].keys() == {"value"}
    assert format_of(wire)["strict"] is (strict is not False)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)

    when: datetime.date
    kind: Literal["a", "b"] = "a"


@pytest.mark.parametrize("path", PATHS)
async def test_classes_in_pydantic_s_strict_mode_read_texts_as_json_does(path: str) -> None:
    llm, _ = scripted(says('{"when": "2026-01-02", "kind": null}'))
    assert (await objects(llm, path, Strict))[-1] == Strict(when=datetime.date(2026, 1, 2))


class Aliased(BaseModel):
    first_name: str = Field(alias="firstName")


@pytest.mark.parametrize("path", PATHS)
async def test_aliases_are_the_names_on_the_wire(path: str) -> None:
    llm, wire = scripted(says('{"firstName": "Ada"}'))
    assert (await objects(llm, path, Aliased))[-1].first_name == "Ada"
    assert list(format_of(wire)["schema"]["properties"]) == ["firstName"]


class Generic_(BaseModel):  # noqa: N801 - a name with a character that is legal in Python only
    x: int


async def test_the_name_of_the_schema_is_legal_whatever_the_class_is_called() -> None:
    cls = type("Größe[int]" * 10, (Generic_,), {})
    llm, wire = scripted(says('{"x": 1}'))
    await objects(llm, "structured_predict", cls)
    name = format_of(wire)["name"]
    assert name.isascii()
    assert len(name) <= 64
    assert "[" not in name


# ---- what comes back ----


@pytest.mark.parametrize("path", PATHS)
async def test_nulls_that_stand_for_left_out_become_the_defaults(path: str) -> None:
    llm, _ = scripted(says(json.dumps(dict.fromkeys(PARIS) | {"name": "Paris"})))
    assert (await objects(llm, path))[-1] == Place(name="Paris", country=None, people=5, tags=[])


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "text",
    [
        "<think>\nhm {x}\n</think>\n" + json.dumps(PARIS),
        "hm {x}</think>" + json.dumps(PARIS),
        "```json\n" + json.dumps(PARIS) + "\n```",
        "  " + json.dumps(PARIS) + "\n",
    ],
)
async def test_thoughts_and_fences_around_the_answer_are_taken_off(path: str, text: str) -> None:
    llm, _ = scripted(says(text))
    assert (await objects(llm, path))[-1] == Place(name="Paris", tags=["river", "old"])


@pytest.mark.parametrize("path", PATHS)
async def test_reasoning_beside_the_answer_does_not_disturb_it(path: str) -> None:
    llm, _ = scripted(says(json.dumps(PARIS), reasoning="Let me think."))
    assert (await objects(llm, path))[-1] == Place(name="Paris", tags=["river", "old"])


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_yields_the_object_as_it_grows_and_the_whole_one_last(path: str) -> None:
    llm, _ = scripted(says(json.dumps(PARIS), size=1))
    found = await objects(llm, path)
    assert found[-1] == Place(name="Paris", tags=["river", "old"])
    assert isinstance(found[1], FlexibleModel)
    assert found[1].name == "P"  # type: ignore[attr-defined]
    grown = [item.name for item in found]
    assert grown == sorted(grown, key=len)
    assert [item.tags for item in found if item.tags][:2] == [[""], ["r"]]
    assert all(before != after for before, after in itertools.pairwise(found))


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_that_comes_in_one_piece_yields_the_object_once(path: str) -> None:
    llm, _ = scripted(says(json.dumps(PARIS), size=1000))
    assert await objects(llm, path) == [Place(name="Paris", tags=["river", "old"])]


@pytest.mark.parametrize("path", STREAMS)
async def test_defaults_are_not_shown_before_there_is_something(path: str) -> None:
    llm, _ = scripted(says('{"text": "abcdefghi"}', size=1))
    found = await objects(llm, path, Loose)
    assert [item.text for item in found] == ["abcdefghi"[:end] for end in range(10)]


# ---- structured LLM ----

STRUCTURED_PATHS = ("chat", "achat", "stream_chat", "astream_chat", "complete", "acomplete")


@pytest.mark.parametrize("path", STRUCTURED_PATHS)
async def test_as_structured_llm_works_by_all_methods_that_core_allows(path: str) -> None:
    llm, wire = scripted(says(json.dumps(PARIS)), system_prompt="Be brief.")
    structured = llm.as_structured_llm(Place)
    question: Any = "Where is {Paris}?" if "complete" in path else [ChatMessage(content="Where is {Paris}?")]
    method = getattr(structured, path)
    if path == "astream_chat":
        response = [chunk async for chunk in await method(question)][-1]
    elif path == "stream_chat":
        response = list(method(question))[-1]
    else:
        response = await method(question) if path.startswith("a") else method(question)
    assert response.raw == Place(name="Paris", tags=["river", "old"])
    assert wire.body["response_format"]["json_schema"]["name"] == "Place"
    assert [message["role"] for message in wire.body["messages"]] == ["system", "user"]


# ---- other program modes ----


@pytest.mark.parametrize("path", PATHS)
async def test_function_mode_is_core_s_program_by_tools(path: str) -> None:
    arguments = json.dumps({"name": "Paris"})
    tool_call = {"id": "1", "type": "function", "function": {"name": "Place", "arguments": arguments}}

    def answer(body: Json) -> Any:
        if body.get("stream"):
            return streamed({"tool_calls": [{**tool_call, "index": 0}]}, finish_reason="tool_calls")
        return whole({"tool_calls": [tool_call]}, finish_reason="tool_calls")

    llm, wire = scripted(answer, pydantic_program_mode=PydanticProgramMode.FUNCTION)
    assert (await objects(llm, path))[-1] == Place(name="Paris")
    assert "response_format" not in wire.body
    assert wire.body["tools"][0]["function"]["name"] == "Place"


@pytest.mark.parametrize("path", ["structured_predict", "astructured_predict"])
async def test_text_mode_is_core_s_program_by_text(path: str) -> None:
    llm, wire = scripted(says('{"name": "Paris"}'), pydantic_program_mode=PydanticProgramMode.LLM)
    assert (await objects(llm, path))[-1] == Place(name="Paris")
    assert not {"response_format", "tools"} & set(wire.body)


async def test_the_service_s_format_does_not_depend_on_function_calling() -> None:
    llm, wire = scripted(says(json.dumps(PARIS)), is_function_calling_model=False)
    await objects(llm, "structured_predict")
    assert wire.body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("path", STREAMS)
async def test_a_long_answer_is_read_in_proportion_to_its_length(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    partial = OutputFormat.partial
    monkeypatch.setattr(OutputFormat, "partial", lambda self, text: (read.append(len(text)), partial(self, text))[1])
    answer = {**PARIS, "name": "P" * 40_000}
    llm, _ = scripted(says(json.dumps(answer), size=8))
    found = await objects(llm, path)
    assert found[-1] == Place(name="P" * 40_000, tags=["river", "old"])
    assert len(read) < 500
    assert max(later - earlier for earlier, later in itertools.pairwise(read)) < 40_000 / 30
    assert sum(read) < 50 * 40_000

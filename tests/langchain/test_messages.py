"""LangChain messages as the service takes them: roles, content, images, tool calls, reasoning, names."""

from __future__ import annotations

import copy
import json
from typing import Any

import httpx
import pytest
from langchain_core.load import dumpd, load
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from pydantic import TypeAdapter

from cerebras_ext.types import ChatRequest
from langchain_cerebras_ext import errors
from langchain_cerebras_ext.errors import RequestValidationError
from langchain_cerebras_ext.to_wire import messages_to_wire
from tests.langchain.service import PATHS, Service, delta, end, tool_delta, whole

PNG = "aGk="
CALL = {"id": "t1", "name": "lookup", "args": {"k": 1}, "type": "tool_call"}
WIRE_CALL = {"id": "t1", "type": "function", "function": {"name": "lookup", "arguments": '{"k": 1}'}}


def wire(*messages: Any, **options: Any) -> list[dict[str, Any]]:
    """The messages on the wire; each is checked against the closed request model, and none is changed."""
    before = copy.deepcopy(messages)
    found = messages_to_wire(messages, **options)
    assert list(messages) == list(before)
    ChatRequest(model="m", messages=found)
    return found


def one(message: Any, **options: Any) -> dict[str, Any]:
    (found,) = wire(message, **options)
    return found


# ---- roles, names ----


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (SystemMessage("s"), {"role": "system", "content": "s"}),
        (HumanMessage("u"), {"role": "user", "content": "u"}),
        (AIMessage("a"), {"role": "assistant", "content": "a"}),
        (AIMessageChunk("a"), {"role": "assistant", "content": "a"}),
        (ToolMessage("t", tool_call_id="c1"), {"role": "tool", "content": "t", "tool_call_id": "c1"}),
        (ChatMessage("u", role="user"), {"role": "user", "content": "u"}),
        (ChatMessage("u", role="human"), {"role": "user", "content": "u"}),
        (ChatMessage("a", role="assistant"), {"role": "assistant", "content": "a"}),
        (ChatMessage("s", role="system"), {"role": "system", "content": "s"}),
        (ChatMessage("d", role="developer"), {"role": "developer", "content": "d"}),
        (HumanMessage("u", name="ann"), {"role": "user", "content": "u", "name": "ann"}),
        (SystemMessage("s", name="n"), {"role": "system", "content": "s", "name": "n"}),
        (AIMessage("a", name="bot"), {"role": "assistant", "content": "a", "name": "bot"}),
        (ChatMessage("d", role="developer", name="n"), {"role": "developer", "content": "d", "name": "n"}),
        (HumanMessage(""), {"role": "user", "content": ""}),
        (HumanMessage([]), {"role": "user", "content": ""}),
        (AIMessage(""), {"role": "assistant", "content": ""}),
    ],
)
def test_role_content_and_name(message: AnyMessage, expected: dict[str, Any]) -> None:
    assert one(message) == expected


@pytest.mark.parametrize("path", PATHS)
async def test_developer_role_of_a_dictionary_is_kept_and_system_is_never_upgraded(path: str) -> None:
    service = Service()
    await PATHS[path](service.model(model="gpt-oss-120b"), [{"role": "developer", "content": "d"}, ("system", "s")])
    assert service.body["messages"] == [{"role": "developer", "content": "d"}, {"role": "system", "content": "s"}]


@pytest.mark.parametrize(
    "message",
    [
        FunctionMessage("r", name="f"),
        RemoveMessage(id="1"),
        ChatMessage("x", role="critic"),
        ChatMessage("x", role="tool"),
    ],
)
def test_messages_without_a_role_on_the_wire_are_refused_by_name(message: AnyMessage) -> None:
    with pytest.raises(errors.core.RequestValidationError, match=r"^messages\.1: .*(role|critic|tool)"):
        messages_to_wire([HumanMessage("q"), message])


# ---- content ----


def test_unknown_keys_of_text_blocks_stay_here() -> None:
    extra = {"cache_control": {"type": "ephemeral"}, "id": "lc_1", "index": 0, "annotations": []}
    block = {"type": "text", "text": "z", **extra}
    for message in (HumanMessage([block]), SystemMessage([block]), ToolMessage([block], tool_call_id="t")):
        assert one(message)["content"] == [{"type": "text", "text": "z"}]
    assert one(AIMessage([block]))["content"] == "z"


def test_all_text_is_kept_in_order() -> None:
    content: list[Any] = ["a", {"type": "text", "text": "b"}, {"text": "c"}]
    expected = [{"type": "text", "text": text} for text in "abc"]
    assert one(HumanMessage(content))["content"] == expected
    assert one(SystemMessage(content))["content"] == expected
    assert one(ToolMessage(content, tool_call_id="t"))["content"] == expected
    assert one(AIMessage(content))["content"] == "abc"


IMAGES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "v1 base64": (
        {"type": "image", "base64": PNG, "mime_type": "image/png"}, {"url": f"data:image/png;base64,{PNG}"}
    ),
    "v1 url": ({"type": "image", "url": "https://x/y.png"}, {"url": "https://x/y.png"}),
    "v1 with id and extras": (
        {"type": "image", "id": "lc_1", "base64": PNG, "mime_type": "image/jpeg", "extras": {"detail": "low"}},
        {"url": f"data:image/jpeg;base64,{PNG}", "detail": "low"},
    ),
    "v0 base64": (
        {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
        {"url": f"data:image/png;base64,{PNG}"},
    ),
    "v0 url": ({"type": "image", "source_type": "url", "url": "https://x/y.png"}, {"url": "https://x/y.png"}),
    "OpenAI": (
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "high"}, "id": "b"},
        {"url": f"data:image/png;base64,{PNG}", "detail": "high"},
    ),
    "OpenAI, a string": ({"type": "image_url", "image_url": "https://x/y.png"}, {"url": "https://x/y.png"}),
    "OpenAI, detail beside": (
        {"type": "image_url", "image_url": {"url": "https://x/y.png"}, "detail": "low"},
        {"url": "https://x/y.png", "detail": "low"},
    ),
    "Anthropic base64": (
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": PNG},
            "cache_control": {"type": "ephemeral"},
        },
        {"url": f"data:image/png;base64,{PNG}"},
    ),
    "Anthropic url": (
        {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}, {"url": "https://x/y.png"}
    ),
}  # fmt: skip


@pytest.mark.parametrize("spelling", IMAGES)
@pytest.mark.parametrize("path", PATHS)
async def test_images_in_every_spelling_become_image_url_parts(path: str, spelling: str) -> None:
    block, expected = IMAGES[spelling]
    service = Service()
    await PATHS[path](service.model(), [HumanMessage([{"type": "text", "text": "look"}, block])])
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": expected}]
    assert service.body["messages"] == [{"role": "user", "content": parts}]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "base64": PNG, "mime_type": "audio/wav"},
        {"type": "input_audio", "input_audio": {"format": "wav", "data": PNG}},
        {"type": "video", "url": "https://x/y.mp4"},
        {"type": "file", "base64": PNG, "mime_type": "application/pdf"},
        {"type": "file", "file": {"file_id": "f-1"}},
        {"type": "image", "file_id": "f-1"},
        {"type": "image"},
        {"type": "tool_result", "tool_use_id": "t", "content": "x"},
        {"type": "something_new", "value": 1},
        {"value": 1},
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_blocks_without_a_form_raise_before_the_request(path: str, block: dict[str, Any]) -> None:
    service = Service()
    with pytest.raises(RequestValidationError, match=r"messages\.1: .*(block of type|keys)") as caught:
        await PATHS[path](service.model(), [HumanMessage("q"), HumanMessage([block])])
    assert "text and images" in str(caught.value)
    assert not service.requests


def test_system_messages_take_no_images() -> None:
    with pytest.raises(errors.core.RequestValidationError, match=r"messages\.0: must be text, .*'image'"):
        messages_to_wire([SystemMessage([IMAGES["v1 url"][0]])])


# ---- tool results ----


def test_tool_message_has_exactly_role_content_and_id() -> None:
    message = ToolMessage("ok", name="get_status", tool_call_id="t1", status="success", artifact={"a": 1}, id="m1")
    assert one(message) == {"role": "tool", "content": "ok", "tool_call_id": "t1"}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([{"a": 1}], '[{"a": 1}]'),
        ([{"name": "Zoë"}], '[{"name": "Zoë"}]'),
        ([{"type": "text", "text": "x"}, {"a": 1}], '[{"type": "text", "text": "x"}, {"a": 1}]'),
        ([], "[]"),
        ("", ""),
        ("0", "0"),
    ],
)
def test_tool_results_that_are_no_text_are_sent_as_json(content: Any, expected: str) -> None:
    assert one(ToolMessage(content, tool_call_id="t"))["content"] == expected


@pytest.mark.parametrize(
    ("result", "expected"), [(0, "0"), (False, "false"), (None, "null"), ({"a": "ö"}, '{"a": "ö"}')]
)
def test_falsy_and_structured_results_of_real_tools_survive(result: Any, expected: str) -> None:
    @tool
    def probe() -> Any:
        """Probe."""
        return result

    message = probe.invoke({"type": "tool_call", "name": "probe", "args": {}, "id": "t"})
    assert one(message)["content"] == expected


@pytest.mark.parametrize("spelling", IMAGES)
def test_tool_messages_never_carry_images(spelling: str) -> None:
    block = IMAGES[spelling][0]
    with pytest.raises(errors.core.RequestValidationError, match=r"messages\.0: a tool result is text, .*'image"):
        messages_to_wire([ToolMessage([{"type": "text", "text": "x"}, block], tool_call_id="t")])


# ---- assistant turns ----


def test_content_is_left_out_of_a_turn_that_only_calls_tools() -> None:
    for content in ("", []):
        assert one(AIMessage(content, tool_calls=[CALL])) == {"role": "assistant", "tool_calls": [WIRE_CALL]}


@pytest.mark.parametrize("content", ["text", ["te", "xt"], [{"type": "text", "text": "text"}]])
def test_tool_calls_survive_whatever_the_content_is(content: Any) -> None:
    message = AIMessage(content, tool_calls=[CALL])
    assert one(message) == {"role": "assistant", "content": "text", "tool_calls": [WIRE_CALL]}


def test_foreign_blocks_and_metadata_stay_here() -> None:
    message = AIMessage(
        [
            {"type": "thinking", "thinking": "..", "signature": "s"},
            {"type": "redacted_thinking", "data": "x"},
            {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"k": 1}},
            {"type": "tool_call", "id": "t1", "name": "lookup", "args": {"k": 1}},
            {"type": "non_standard", "value": {"a": 1}},
            {"type": "text", "text": "A"},
        ],
        tool_calls=[CALL],
        additional_kwargs={"refusal": None, "store": True, "audio": None, "function_call": None},
        response_metadata={"x": 1, "model_provider": "anthropic"},
    )
    assert one(message) == {"role": "assistant", "content": "A", "tool_calls": [WIRE_CALL]}


def test_malformed_calls_are_replayed_with_arguments_that_are_json() -> None:
    invalid = {"id": "a", "name": "f", "args": '{"p": ', "error": "e", "type": "invalid_tool_call"}
    message = AIMessage("", invalid_tool_calls=[invalid], tool_calls=[CALL])
    answered = ToolMessage("bad json", tool_call_id="a", status="error")
    found, _ = wire(message, answered)
    valid, broken = found["tool_calls"]
    assert valid == WIRE_CALL
    assert (broken["id"], broken["function"]["name"]) == ("a", "f")
    assert json.loads(broken["function"]["arguments"]) == {"invalid_arguments": '{"p": '}


@pytest.mark.parametrize("args", [{}, None, ""])
def test_calls_without_arguments_are_replayed_as_an_empty_object(args: Any) -> None:
    if args == {}:
        message = AIMessage("", tool_calls=[{**CALL, "args": args}])
    else:
        message = AIMessage("", invalid_tool_calls=[{**CALL, "type": "invalid_tool_call", "args": args, "error": None}])
    assert one(message)["tool_calls"][0]["function"]["arguments"] == "{}"


def test_calls_without_an_id_get_ids_that_differ_and_repeat() -> None:
    message = AIMessage("", tool_calls=[{**CALL, "id": None}, {**CALL, "id": None}])
    found = wire(message, message)
    ids = [call["id"] for turn in found for call in turn["tool_calls"]]
    assert len(set(ids)) == 4
    assert found == wire(message, message)


def test_chunks_merged_from_a_stream_are_replayed_like_the_message() -> None:
    chunk = AIMessageChunk(
        "hm",
        additional_kwargs={"reasoning_content": "why"},
        tool_call_chunks=[{"id": "t1", "name": "lookup", "args": '{"k": 1}', "index": 0, "type": "tool_call_chunk"}],
    )
    assert one(chunk) == {"role": "assistant", "content": "hm", "reasoning": "why", "tool_calls": [WIRE_CALL]}


# ---- reasoning in history ----

OURS = AIMessage("4", additional_kwargs={"reasoning_content": "2+2"}, response_metadata={"model_provider": "cerebras"})


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("reasoning", {"role": "assistant", "content": "4", "reasoning": "2+2"}),
        ("think_tags", {"role": "assistant", "content": "<think>\n2+2\n</think>\n\n4"}),
        ("off", {"role": "assistant", "content": "4"}),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_reasoning_is_replayed_as_the_setting_says(path: str, mode: str, expected: dict[str, Any]) -> None:
    history = [HumanMessage("q"), OURS, HumanMessage("and?")]
    service = Service()
    await PATHS[path](service.model(replay_reasoning=mode), history)
    await PATHS[path](service.model(), history, replay_reasoning=mode)
    await PATHS[path](service.model().bind(replay_reasoning=mode), history)
    assert [body["messages"][1] for body in service.bodies] == [expected] * 3
    assert all("replay_reasoning" not in body for body in service.bodies)


def test_reasoning_alone_and_beside_tool_calls_needs_no_content() -> None:
    alone = AIMessage("", additional_kwargs={"reasoning_content": "r"})
    assert one(alone) == {"role": "assistant", "reasoning": "r"}
    assert one(alone, replay_reasoning="off") == {"role": "assistant", "content": ""}
    calling = AIMessage("", additional_kwargs={"reasoning_content": "r"}, tool_calls=[CALL])
    assert one(calling) == {"role": "assistant", "reasoning": "r", "tool_calls": [WIRE_CALL]}


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("4", additional_kwargs={"reasoning_content": "2+2"}),
        AIMessage("4", additional_kwargs={"reasoning": "2+2"}),
        AIMessage([{"type": "reasoning", "reasoning": "2+2"}, {"type": "text", "text": "4"}]),
        AIMessage([{"type": "reasoning", "reasoning": "2+", "index": 0}, {"type": "reasoning", "reasoning": "2"}, "4"]),
    ],
)
def test_messages_without_a_provider_count_as_ours(message: AIMessage) -> None:
    assert one(message) == {"role": "assistant", "content": "4", "reasoning": "2+2"}


@pytest.mark.parametrize(
    "message",
    [
        AIMessage("4", additional_kwargs={"reasoning_content": "s"}, response_metadata={"model_provider": "deepseek"}),
        AIMessage("4", additional_kwargs={"reasoning": "s"}, response_metadata={"model_provider": "openai"}),
        AIMessage([{"type": "reasoning", "reasoning": "s"}, "4"], response_metadata={"model_provider": "anthropic"}),
        AIMessage([{"type": "reasoning", "reasoning": "s", "extras": {"signature": "x"}}, "4"]),
        AIMessage([{"type": "thinking", "thinking": "s", "signature": "x"}, "4"]),
        AIMessage("4", additional_kwargs={"reasoning": {"summary": "s"}}),
    ],
)
@pytest.mark.parametrize("mode", ["reasoning", "think_tags"])
def test_reasoning_of_other_providers_is_never_sent(message: AIMessage, mode: Any) -> None:
    assert one(message, replay_reasoning=mode) == {"role": "assistant", "content": "4"}


@pytest.mark.parametrize("output_version", [None, "v1"])
@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_fed_back_is_the_same_on_the_wire_from_every_path(
    path: str, output_version: str | None
) -> None:
    events = [
        delta(reasoning="be"), delta(reasoning="cause"), delta(content="A"),
        delta(tool_calls=[tool_delta(0, "t1", "lookup", "")]), delta(tool_calls=[tool_delta(0, arguments='{"k": 1}')]),
        end("tool_calls"),
    ]  # fmt: skip
    answer = whole({"content": "A", "reasoning": "because", "tool_calls": [WIRE_CALL]}, finish_reason="tool_calls")
    service = Service(events, answer)
    model = service.model(output_version=output_version)
    message = await PATHS[path](model, "q")
    stored = load(dumpd(message), allowed_objects="messages")
    await PATHS[path](model, [HumanMessage("q"), stored, ToolMessage("7", tool_call_id="t1")])
    assert service.bodies[1]["messages"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "A", "reasoning": "because", "tool_calls": [WIRE_CALL]},
        {"role": "tool", "content": "7", "tool_call_id": "t1"},
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_orphaned_tool_results_are_sent_as_they_are_and_named_in_the_error(path: str) -> None:
    service = Service(answer=lambda: httpx.Response(400, content=b""))
    history = [HumanMessage("q"), ToolMessage("7", tool_call_id="gone"), HumanMessage("so?")]
    with pytest.raises(errors.BadRequestError, match=r"message 1 .*'gone'"):
        await PATHS[path](service.model(), history)
    assert service.body["messages"][1] == {"role": "tool", "content": "7", "tool_call_id": "gone"}


def test_no_shape_of_history_writes_a_member_that_the_service_does_not_know() -> None:
    allowed = TypeAdapter(ChatRequest)
    history = [
        SystemMessage([{"type": "text", "text": "s", "cache_control": {}}], additional_kwargs={"x": 1}, id="1"),
        HumanMessage("q", additional_kwargs={"store": True}, response_metadata={"y": 1}),
        OURS,
        AIMessage("a", additional_kwargs={"reasoning_content": "r", "refusal": None}, usage_metadata=None, id="run"),
        ToolMessage("t", tool_call_id="1", additional_kwargs={"is_error": True}, status="error"),
    ]
    allowed.validate_python({"model": "m", "messages": wire(*history)})
    assert "reasoning_content" not in json.dumps(wire(*history))


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
@pytest.mark.parametrize("path", PATHS)
async def test_arguments_that_json_has_no_form_for_are_refused_by_the_name_of_the_call(value: Any, path: str) -> None:
    service = Service()
    message = AIMessage("", tool_calls=[{**CALL, "args": {"k": value}}])
    with pytest.raises(RequestValidationError, match="call of 'lookup'"):
        await PATHS[path](service.model(), [HumanMessage("q"), message, ToolMessage("7", tool_call_id="t1")])
    assert not service.bodies

"""From levels of settings to the body: merging, conflicts, ranges, names."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from cerebras_ext import ChatRequest, Client, CompletionRequest
from cerebras_ext.body import chat_body, completion_body, merge_levels, single_reason
from cerebras_ext.errors import CerebrasError, RequestValidationError
from cerebras_ext.request_fields import dump_request, read_fields
from tests.support import MESSAGES, WAYS, Answer, Server, Way

CHAT: dict[str, Any] = {"model": "m", "messages": MESSAGES}
TEXT: dict[str, Any] = {"model": "m", "prompt": "q"}
TOOL = {"type": "function", "function": {"name": "f"}}


def chat(*, stream: bool = False, **fields: Any) -> dict[str, Any]:
    fields = {**CHAT, **fields}
    body = chat_body(read_fields(ChatRequest, None, fields), stream=stream)
    assert body == chat_body(dump_request(ChatRequest(**fields)), stream=stream)
    return body


def completion(*, stream: bool = False, **fields: Any) -> dict[str, Any]:
    fields = {**TEXT, **fields}
    body = completion_body(read_fields(CompletionRequest, None, fields), stream=stream)
    assert body == completion_body(dump_request(CompletionRequest(**fields)), stream=stream)
    return body


# ---- levels ----


def test_later_levels_win_and_none_says_nothing() -> None:
    levels = ({"a": 1, "b": 1, "c": 1}, {"b": 2, "c": None}, {"c": 3, "a": None})
    before = copy.deepcopy(levels)
    assert merge_levels(*levels) == {"a": 1, "b": 2, "c": 3}
    assert levels == before


def test_extra_body_is_last_in_its_level_and_beaten_by_a_later_level() -> None:
    assert merge_levels({"a": 1, "extra_body": {"a": 2, "x": 1}}) == {"a": 1, "extra_body": {"a": 2, "x": 1}}
    assert merge_levels({"a": 1, "extra_body": {"a": 2, "x": 1}}, {"a": 3}) == {"a": 3, "extra_body": {"x": 1}}
    assert merge_levels({"extra_body": {"x": 1, "y": 1}}, {"extra_body": {"x": 2}}) == {"extra_body": {"x": 2, "y": 1}}
    assert merge_levels({"extra_body": {"a": 1}}, {"a": 2}) == {"a": 2}


def test_an_explicit_null_of_extra_body_is_kept_and_of_a_field_is_not() -> None:
    assert merge_levels({"extra_body": {"a": None}}) == {"extra_body": {"a": None}}
    assert chat(extra_body={"user": None})["user"] is None


@pytest.mark.parametrize("first", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize("second", ["max_tokens", "max_completion_tokens"])
def test_both_names_of_the_limit_are_one_field(first: str, second: str) -> None:
    assert merge_levels({first: 1}, {second: 2}) == {second: 2}
    assert merge_levels({"extra_body": {first: 1}}, {second: 2}) == {second: 2}
    assert chat(**merge_levels({first: 1}, {second: 2}))["max_completion_tokens"] == 2
    body = chat(**merge_levels({first: 1}, {"extra_body": {second: 2}}))
    assert [body[name] for name in ("max_tokens", "max_completion_tokens") if name in body] == [2]


def test_different_limits_in_one_level_are_refused_with_both_values() -> None:
    with pytest.raises(RequestValidationError, match=r"max_tokens and max_completion_tokens .*1 and 2"):
        merge_levels({"max_tokens": 1, "max_completion_tokens": 2})
    with pytest.raises(RequestValidationError, match=r"1 and 2"):
        chat(max_tokens=1, max_completion_tokens=2)
    assert chat(max_tokens=2, max_completion_tokens=2) == {**CHAT, "max_completion_tokens": 2}


def test_the_limit_is_written_under_the_name_of_its_endpoint() -> None:
    assert chat(max_tokens=9) == {**CHAT, "max_completion_tokens": 9}
    assert completion(max_tokens=9) == {**TEXT, "max_tokens": 9}


# ---- what is left out ----


def test_none_and_empty_stops_and_tools_never_reach_the_wire() -> None:
    unset: dict[str, Any] = dict.fromkeys(set(ChatRequest.model_fields) - {"model", "messages", "stream"})
    assert chat(**unset) == CHAT
    assert chat(stop=[], tools=[], tool_choice="auto", parallel_tool_calls=True) == CHAT
    unset = dict.fromkeys(set(CompletionRequest.model_fields) - {"model", "prompt", "stream"})
    assert completion(**unset) == TEXT
    assert completion(stop=()) == TEXT


def test_nulls_inside_messages_tools_and_formats_are_left_out() -> None:
    body = chat(
        messages=[
            {"role": "user", "content": "q", "name": None},
            {"role": "assistant", "content": None, "reasoning": None, "name": None, "tool_calls": None},
            {"role": "assistant", "content": [], "tool_calls": []},
            {"role": "tool", "content": "7", "tool_call_id": "t", "name": None},
            {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,", "detail": None}}]},
        ],
        tools=[
            {"type": "function", "function": {"name": "f", "description": None, "parameters": None, "strict": None}}
        ],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "strict": None, "description": None}},
    )
    assert body["messages"] == [
        {"role": "user", "content": "q"},
        {"role": "assistant"},
        {"role": "assistant"},
        {"role": "tool", "content": "7", "tool_call_id": "t"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
    ]
    assert body["tools"] == [TOOL]
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": "n"}}


def test_nulls_inside_schemas_are_the_users() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", None], "default": None}}}
    body = chat(
        tools=[{"type": "function", "function": {"name": "f", "parameters": schema}}],
        response_format={"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        model_parameters={"a": None},
    )
    assert body["tools"][0]["function"]["parameters"] == schema
    assert body["response_format"]["json_schema"]["schema"] == schema
    assert body["model_parameters"] == {"a": None}


def test_stream_options_are_sent_only_when_set_and_only_with_a_stream() -> None:
    given: dict[str, Any] = {"stream_options": {"include_usage": True}}
    assert chat(stream=True) == {**CHAT, "stream": True}
    assert chat(**given) == CHAT
    assert chat(stream=True, **given) == {**CHAT, "stream": True, **given}
    assert completion(**given) == TEXT
    assert completion(stream=True, **given) == {**TEXT, "stream": True, **given}


@pytest.mark.parametrize("stream", [True, False])
def test_the_method_decides_about_streaming(stream: bool) -> None:
    assert chat(stream=stream, extra_body={"stream": stream})["stream"] is stream
    with pytest.raises(RequestValidationError, match=r"extra_body\.stream"):
        chat(stream=stream, extra_body={"stream": not stream})


# ---- conflicts ----


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"top_logprobs": 2}, "top_logprobs: needs logprobs=True"),
        ({"top_logprobs": 2, "logprobs": False}, "top_logprobs: needs logprobs=True"),
        ({"tool_choice": "required"}, "'required' needs tools"),
        ({"tool_choice": "required", "tools": []}, "'required' needs tools"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}}, "needs tools"),
    ],
)
def test_conflicts_of_chat_fields_are_named(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(RequestValidationError, match=text):
        chat(**fields)


def test_what_needs_a_partner_passes_with_it() -> None:
    assert chat(top_logprobs=0, logprobs=True)["top_logprobs"] == 0
    assert chat(tool_choice="required", tools=[TOOL])["tool_choice"] == "required"
    assert chat(extra_body={"tools": [TOOL]}, tool_choice="required")["tool_choice"] == "required"
    assert chat(extra_body={"logprobs": True}, top_logprobs=3)["logprobs"] is True


def test_tools_with_a_response_format_are_sent_as_asked() -> None:
    body = chat(tools=[TOOL], response_format={"type": "json_object"})
    assert {"tools", "response_format"} <= body.keys()


@pytest.mark.parametrize("level", ["field", "extra_body"])
def test_what_cannot_be_streamed_is_refused_by_name(level: str) -> None:
    json_object: dict[str, Any] = {"response_format": {"type": "json_object"}}
    with pytest.raises(RequestValidationError, match="json_object cannot be streamed"):
        chat(stream=True, **(json_object if level == "field" else {"extra_body": json_object}))
    with pytest.raises(RequestValidationError, match="best_of: cannot be streamed"):
        completion(stream=True, **({"best_of": 2} if level == "field" else {"extra_body": {"best_of": 2}}))


def test_best_of_must_exceed_n() -> None:
    refused: list[dict[str, Any]] = [{"best_of": 2, "n": 2}, {"best_of": 1}, {"best_of": 0}]
    for fields in refused:
        with pytest.raises(RequestValidationError, match="best_of: must be greater than n"):
            completion(**fields)
    assert completion(best_of=3, n=2)["best_of"] == 3


@pytest.mark.parametrize(
    ("fields", "single"),
    [
        ({}, False),
        ({"n": 1}, False),
        ({"n": 2}, True),
        ({"n": None, "response_format": None, "extra_body": None}, False),
        ({"best_of": 3}, True),
        ({"extra_body": {"n": 2}}, True),
        ({"extra_body": {"response_format": {"type": "json_object"}}}, True),
        ({"response_format": {"type": "json_schema", "json_schema": {"name": "n"}}}, False),
    ],
)
def test_which_requests_are_one_request_instead_of_a_stream(fields: dict[str, Any], single: bool) -> None:
    assert (single_reason(fields) is not None) is single
    if set(fields) <= {"n", "response_format", "extra_body"}:
        request = ChatRequest(**CHAT, **fields)
        assert (single_reason({name: getattr(request, name) for name in fields}) is not None) is single


# ---- ranges and names, before anything is sent ----

RANGES = [
    ("temperature", 2.1, "2"),
    ("temperature", -0.1, "0"),
    ("top_p", 1.1, "1"),
    ("frequency_penalty", -2.5, "-2"),
    ("presence_penalty", 2.5, "2"),
    ("n", 0, "1"),
    ("seed", "x", "integer"),
    ("stop", list("abcde"), "4"),
    ("logit_bias", {"1": 101}, "100"),
    ("temperature", float("nan"), "number"),
    ("prompt_cache_key", "x" * 1025, "1024"),
]
CHAT_RANGES = [
    *RANGES,
    ("max_completion_tokens", -2, "-1"),
    ("max_tokens", -2, "-1"),
    ("top_logprobs", 21, "20"),
    ("reasoning_effort", "extreme", "'high'"),
    ("service_tier", "gold", "'flex'"),
    ("messages", [], "1"),
    ("model", "", "1"),
    ("tool_choice", "any", "'required'"),
    ("prediction", "x", "Prediction"),
    ("messages", [{"role": "robot", "content": "x"}], "'user'"),
    ("messages", [{"role": "tool", "content": "x"}], "tool_call_id"),
    ("messages", [{"role": "user", "content": None}], "content"),
    ("tools", [{"type": "function", "function": {"name": "ns.search"}}], "ns.search"),
    ("tools", [{"type": "function", "function": {"name": "x" * 65}}], "name"),
]
TEXT_RANGES = [
    *RANGES,
    ("max_tokens", -2, "-1"),
    ("best_of", 21, "20"),
    ("logprobs", 21, "20"),
    ("prompt", [-1], "0"),
    ("prompt", None, "prompt"),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_values_out_of_range_name_field_limit_and_value(server: Server, options: dict[str, Any], way: Way) -> None:
    for name, value, limit in CHAT_RANGES if way.endpoint == "chat" else TEXT_RANGES:
        with pytest.raises(RequestValidationError) as caught:
            way.ask(options, **{name: value})
        assert isinstance(caught.value, ValueError)
        assert str(caught.value).startswith(name)
        assert limit in str(caught.value)
    assert server.requests == []


def test_the_value_is_told_and_cut_when_long() -> None:
    with pytest.raises(RequestValidationError, match=r"^temperature: .*2.*\(got 3\)$"):
        chat(temperature=3)
    with pytest.raises(RequestValidationError) as caught:
        chat(prompt_cache_key="x" * 5000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    ("typo", "meant"), [("temprature", "temperature"), ("top_P", "top_p"), ("prezence_penalty", "presence_penalty")]
)
def test_an_unknown_field_names_the_nearest_one(
    server: Server, options: dict[str, Any], way: Way, typo: str, meant: str
) -> None:
    with pytest.raises(RequestValidationError, match=rf"{typo}: unknown field; did you mean '{meant}'\?.*extra_body"):
        way.ask(options, **{typo: 1})
    assert server.requests == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("messages.0.user.cache_control", {"messages": [{"role": "user", "content": "q", "cache_control": {}}]}),
        ("messages.0.assistant.reasoning_content", {"messages": [{"role": "assistant", "reasoning_content": "r"}]}),
        ("messages.0.assistant.refusal", {"messages": [{"role": "assistant", "content": "a", "refusal": None}]}),
        ("tools.0.function.extra", {"tools": [{"type": "function", "function": {"name": "f", "extra": 1}}]}),
        ("stream_options.x", {"stream_options": {"x": 1}}),
        (
            "response_format.json_schema.json_schema.x",
            {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "x": 1}}},
        ),
    ],
)  # fmt: skip
def test_unknown_members_are_refused_at_any_depth_with_their_path(path: str, fields: dict[str, Any]) -> None:
    with pytest.raises(RequestValidationError) as caught:
        chat(**fields)
    assert str(caught.value).startswith(f"{path}: unknown field")


@pytest.mark.parametrize("make", ["keywords", "mapping", "json"])
def test_several_faults_are_told_at_once_however_a_request_is_made(make: str) -> None:
    wrong: dict[str, Any] = {"temperature": 3, "store": True}
    ways: dict[str, Callable[[], ChatRequest]] = {
        "keywords": lambda: ChatRequest(**wrong),
        "mapping": lambda: ChatRequest.model_validate(wrong),
        "json": lambda: ChatRequest.model_validate_json(json.dumps(wrong)),
    }
    with pytest.raises(RequestValidationError) as caught:
        ways[make]()
    assert str(caught.value).splitlines() == [
        "model: required, but not given",
        "messages: required, but not given",
        "temperature: Input should be less than or equal to 2 (got 3)",
        "store: unknown field; did you mean 'stream'? What the library does not know can be sent with extra_body.",
    ]


@pytest.mark.parametrize("name", ["transport", "coalesce", "proxy", "max_retries"])
@pytest.mark.parametrize("make", [chat, completion])
def test_a_setting_given_with_a_call_is_told_where_it_belongs(make: Any, name: str) -> None:
    with pytest.raises(RequestValidationError, match=f"^{name}: a setting of the client or model; give it where"):
        make(**{name: True})


def test_the_escape_hatch_is_merged_as_it_is() -> None:
    extra = {"store": True, "thinking": {"a": [None, 1]}, "temperature": 9}
    assert chat(temperature=1, extra_body=extra) == {**CHAT, **extra}
    assert completion(extra_body={"top_k": 5}) == {**TEXT, "top_k": 5}


def test_requests_may_be_models_mappings_or_keywords_on_top(server: Server, options: dict[str, Any]) -> None:
    client = Client(**options)
    server.script = [WAYS[0].answer()]
    request = ChatRequest(**CHAT, seed=1)
    for given, fields in (
        (request, {}),
        (request.model_dump(exclude_unset=True), {}),
        (None, {**CHAT, "seed": 1}),
        (ChatRequest(**CHAT, seed=5), {"seed": 1}),
        ({**CHAT, "seed": 5}, {"seed": 1}),
    ):
        client.chat(given, **fields)
    assert [received.json for received in server.requests] == [{**CHAT, "seed": 1}] * 5
    with pytest.raises(RequestValidationError, match="ChatRequest or keywords, got list"):
        client.chat([])  # type: ignore[arg-type]


def test_a_deprecated_field_is_sent_without_a_warning_of_ours(server: Server, options: dict[str, Any]) -> None:
    server.script = [WAYS[0].answer()]
    request = ChatRequest(**CHAT, disable_reasoning=True)
    Client(**options).chat(request, seed=1)
    list(Client(**options).stream_chat(request, n=2, unstreamable="single"))
    assert [received.json["disable_reasoning"] for received in server.requests] == [True, True]


ODD_EXTRAS = [
    {"n": "2"},
    {"n": 2.5},
    {"n": None},
    {"best_of": "3"},
    {"response_format": 5},
    {"stream": "yes"},
    {"tools": 5, "tool_choice": [1]},
    {"messages": [5, {"role": "tool", "tool_call_id": ["x"]}, {"tool_calls": 5}, {"tool_calls": [5, {"id": [1]}]}]},
    {"messages": {"a": 1}, "prompt": 5},
    {"prompt": [], "model": None},
    {"top_logprobs": "x", "logprobs": "y"},
    {"max_tokens": "x"},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("extra", ODD_EXTRAS, ids=str)
def test_whatever_the_escape_hatch_holds_is_sent_or_refused_and_never_a_crash(
    server: Server, options: dict[str, Any], way: Way, extra: dict[str, Any]
) -> None:
    server.script = [Answer((b"{}",), 400)]
    with pytest.raises(CerebrasError):
        way.ask(options, extra_body=extra, **({"unstreamable": "single"} if way.stream else {}))
    for received in server.requests:
        assert {name: received.json[name] for name in extra} == extra


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("extra", ["x", 5, [1], [("a", 1)]], ids=repr)
def test_an_escape_hatch_that_is_no_mapping_is_refused(
    server: Server, options: dict[str, Any], way: Way, extra: Any
) -> None:
    with pytest.raises(RequestValidationError, match=r"^extra_body: "):
        way.ask(options, extra_body=extra, **({"unstreamable": "single"} if way.stream else {}))
    assert server.requests == []


def test_an_unknown_way_out_is_refused() -> None:
    with pytest.raises(ValueError, match="unstreamable: must be 'raise' or 'single', got 'maybe'"):
        Client(api_key="k").stream_chat(**CHAT, unstreamable="maybe")  # type: ignore[arg-type]


@pytest.mark.parametrize("way", [way for way in WAYS if way.stream], ids=str)
def test_a_request_that_cannot_be_streamed_becomes_one_batch(server: Server, options: dict[str, Any], way: Way) -> None:
    whole = Way(way.endpoint, False, way.is_async)
    server.script = [Answer((b"{}",), 503, {"retry-after": "0"}), whole.answer()]
    unstreamable: dict[str, Any] = (
        {"n": 2} if way.endpoint == "completion" else {"response_format": {"type": "json_object"}}
    )
    outcome = way.ask(options, **unstreamable, unstreamable="single", stream_options={"include_usage": True})
    (delta,) = outcome.deltas
    assert (getattr(delta, "content", None) or delta.text, delta.finish_reason) == ("ok", "stop")
    assert outcome.response.text == "ok"
    assert server.requests[1].json == {**way.fields, **unstreamable}

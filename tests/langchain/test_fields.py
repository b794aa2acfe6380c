"""Every field of the request reaches the wire from the constructor, from `bind` and from a call, on all paths."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from cerebras_ext.types import ChatRequest
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.errors import RequestValidationError
from tests.langchain.service import KEY, PATHS, Service

TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}

# Value, value that another level has, and what has to be there beside it.
SAMPLES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "clear_thinking": (False, True, {}),
    "frequency_penalty": (0.5, -0.5, {}),
    "logit_bias": ({"5": 1.0}, {"6": 2.0}, {}),
    "logprobs": (True, False, {}),
    "max_completion_tokens": (9, 10, {}),
    "max_tokens": (9, 10, {}),
    "min_completion_tokens": (1, 2, {}),
    "min_tokens": (1, 2, {}),
    "model": ("other", "third", {}),
    "model_parameters": ({"a": 1}, {"a": 2}, {}),
    "n": (1, 1, {}),
    "parallel_tool_calls": (False, True, {"tools": [TOOL]}),
    "prediction": ({"type": "content", "content": "x"}, {"type": "content", "content": "y"}, {}),
    "presence_penalty": (0.5, -0.5, {}),
    "prompt_cache_key": ("k", "l", {}),
    "reasoning_effort": ("low", "high", {}),
    "reasoning_format": ("parsed", "hidden", {}),
    "response_format": (
        {"type": "json_schema", "json_schema": {"name": "o", "strict": True, "schema": SCHEMA}}, {"type": "text"}, {}
    ),
    "seed": (0, 7, {}),
    "service_tier": ("flex", "auto", {}),
    "stop": (["a", "b"], ["c"], {}),
    "stream_options": ({"include_usage": True}, {"include_usage": False}, {}),
    "temperature": (0.0, 1.5, {}),
    "tool_choice": ("required", "none", {"tools": [TOOL]}),
    "tools": ([TOOL], [TOOL, {"type": "function", "function": {"name": "g"}}], {}),
    "top_logprobs": (3, 2, {"logprobs": True}),
    "top_p": (0.1, 1.0, {}),
    "user": ("u", "v", {}),
    "extra_body": ({"new": None}, {"new": 2}, {}),
}  # fmt: skip
RENAMED = {"max_tokens": "max_completion_tokens"}
GIVEN_OTHERWISE = {"messages", "stream", "disable_reasoning"}


def test_samples_are_all_fields_of_the_request() -> None:
    assert SAMPLES.keys() | GIVEN_OTHERWISE == ChatRequest.model_fields.keys()


def test_every_field_is_a_parameter_of_the_constructor() -> None:
    missing = ChatRequest.model_fields.keys() - ChatCerebras.model_fields.keys()
    assert missing - GIVEN_OTHERWISE == {"max_completion_tokens"}  # an alias of max_tokens


def expected(name: str, value: Any) -> dict[str, Any]:
    if name == "extra_body":
        return dict(value)
    return {RENAMED.get(name, name): value}


def check(body: dict[str, Any], name: str, value: Any, beside: dict[str, Any], path: str) -> None:
    sent = {key: item for key, item in body.items() if key not in ("messages", "stream", "model")}
    wanted = {**beside, **expected(name, value)}
    if name == "model":
        assert body["model"] == wanted.pop("model")
    else:
        assert body["model"] == "m"
    if name == "stream_options" and "stream" not in path:
        wanted = {}  # has no meaning without a stream, and the service refuses it
    assert sent == wanted


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", SAMPLES)
async def test_field_reaches_the_wire_from_every_level(name: str, path: str) -> None:
    value, _, beside = SAMPLES[name]
    service = Service()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        await PATHS[path](service.model(**{"model": "m", **beside, name: value}), "hi")
        await PATHS[path](service.model(**beside).bind(**{name: value}), "hi")
        await PATHS[path](service.model(**beside), "hi", **{name: value})
    for body in service.bodies:
        check(body, name, value, beside, path)
    assert len(service.bodies) == 3


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", SAMPLES)
async def test_call_beats_bind_beats_constructor(name: str, path: str) -> None:
    value, other, beside = SAMPLES[name]
    service = Service()
    model = service.model(**{"model": "m", **beside, name: other})
    await PATHS[path](model.bind(**{name: value}), "hi")
    await PATHS[path](model.bind(**{name: other}), "hi", **{name: value})
    for body in service.bodies:
        check(body, name, value, beside, path)


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_sent_that_was_not_set(path: str) -> None:
    service = Service()
    unset = {name: None for name in SAMPLES if name not in ("model", "extra_body")}
    await PATHS[path](service.model(), "hi")
    await PATHS[path](service.model(**unset), "hi")
    await PATHS[path](service.model(), "hi", **unset)
    for body in service.bodies:
        body.pop("stream", None)
        assert body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("path", PATHS)
async def test_stop_of_the_call_beats_that_of_the_constructor(path: str) -> None:
    service = Service()
    await PATHS[path](service.model(stop=["a"]), "hi", stop=["b"])
    assert service.body["stop"] == ["b"]


@pytest.mark.parametrize("path", PATHS)
async def test_unknown_call_option_raises_with_the_nearest_name_and_sends_nothing(path: str) -> None:
    service = Service()
    with pytest.raises(RequestValidationError, match=r"temprature: unknown field; did you mean 'temperature'"):
        await PATHS[path](service.model(), "hi", temprature=0.1)
    assert not service.requests


@pytest.mark.parametrize("path", PATHS)
async def test_a_setting_given_with_a_call_is_told_where_it_belongs(path: str) -> None:
    service = Service()
    with pytest.raises(RequestValidationError, match="transport: a setting of the client or model"):
        await PATHS[path](service.model(), "hi", transport="httptools")
    assert not service.requests


@pytest.mark.parametrize("path", PATHS)
async def test_private_options_of_frameworks_never_reach_the_wire(path: str) -> None:
    service = Service()
    model = service.model().bind(ls_structured_output_format={"kwargs": {}, "schema": {}}, stream_usage=True)
    await PATHS[path](model, "hi", ls_anything=1)
    body = service.body
    body.pop("stream", None)
    assert body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.mark.parametrize("path", PATHS)
async def test_transport_options_of_a_call_go_to_headers(path: str) -> None:
    service = Service()
    model = service.model(service_tier="flex", queue_threshold=1500, default_headers={"x-a": "1"})
    await PATHS[path](model, "hi")
    await PATHS[path](model, "hi", queue_threshold=2000, extra_headers={"x-a": "2"}, timeout=3)
    first, second = service.requests
    assert (first.headers["queue_threshold"], first.headers["x-a"]) == ("1500", "1")
    assert (second.headers["queue_threshold"], second.headers["x-a"]) == ("2000", "2")
    assert second.extensions["timeout"]["read"] == 3
    assert all("queue_threshold" not in body and body["service_tier"] == "flex" for body in service.bodies)


@pytest.mark.parametrize("path", PATHS)
async def test_a_refused_value_is_told_before_the_request(path: str) -> None:
    service = Service()
    with pytest.raises(RequestValidationError, match=r"temperature: .*less than or equal to 2 \(got 3\)"):
        await PATHS[path](service.model(), "hi", temperature=3)
    with pytest.raises(RequestValidationError, match="top_logprobs: needs logprobs=True"):
        await PATHS[path](service.model(), "hi", top_logprobs=3)
    assert not service.requests


# ---- disable_reasoning ----


@pytest.mark.parametrize("path", PATHS)
async def test_disable_reasoning_is_deprecated_and_becomes_reasoning_effort_none(path: str) -> None:
    service = Service()
    with pytest.warns(DeprecationWarning, match="reasoning_effort='none'"):
        model = service.model(disable_reasoning=True)
    await PATHS[path](model, "hi")
    with pytest.warns(DeprecationWarning, match="reasoning_effort='none'"):
        await PATHS[path](service.model(), "hi", disable_reasoning=True)
    for body in service.bodies:
        assert body["reasoning_effort"] == "none"
        assert "disable_reasoning" not in body


def test_disable_reasoning_false_says_nothing_and_none_does_not_warn() -> None:
    with pytest.warns(DeprecationWarning, match="disable_reasoning"):
        assert ChatCerebras(model="m", api_key=KEY, disable_reasoning=False).reasoning_effort is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ChatCerebras(model="m", api_key=KEY, disable_reasoning=None).reasoning_effort is None


def test_disable_reasoning_beside_another_effort_is_refused() -> None:
    with (
        pytest.warns(DeprecationWarning, match="disable_reasoning"),
        pytest.raises(RequestValidationError, match="contradicts reasoning_effort='low'"),
    ):
        ChatCerebras(model="m", api_key=KEY, disable_reasoning=True, reasoning_effort="low")

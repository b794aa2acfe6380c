"""Streams of the chat model: what is on which chunk, callbacks, tool calls, output version v1, closing."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langgraph.graph import END, START, MessagesState, StateGraph

from cerebras_ext.assembly import ChatDelta
from cerebras_ext.toolcalls import ToolCallDelta
from cerebras_ext.types import ChatResponse
from langchain_cerebras_ext import errors
from langchain_cerebras_ext.from_wire import ChunkBuilder, Style
from tests.langchain.service import (
    ALL_PATHS,
    HEAD,
    PATHS,
    RICH,
    USAGE,
    Service,
    both,
    chunks_of,
    delta,
    end,
    merged,
    reasoning_of,
    whole,
)

STREAM_PATHS = [path for path in ALL_PATHS if "stream" in path]
MERGING_PATHS = [path for path in STREAM_PATHS if "v3" not in path]
LOGPROBS = {"content": [{"token": "a", "logprob": -0.5, "bytes": [97], "top_logprobs": []}]}


def text_events(*pieces: str) -> list[dict[str, Any]]:
    return [delta(role="assistant"), *(delta(content=piece) for piece in pieces), end()]


# ---- what is on which chunk ----


@pytest.mark.parametrize("output_version", [None, "v1"])
@both
async def test_each_metadatum_is_on_the_last_chunk_only(is_async: bool, output_version: str | None) -> None:
    service = Service(RICH, headers={"x-request-id": "r"})
    model = service.model(output_version=output_version, include_response_headers=True)
    *early, last = await chunks_of(model, is_async)
    common = {"model_provider": "cerebras", **({"output_version": "v1"} if output_version else {})}
    assert all(chunk.response_metadata == common for chunk in early)
    assert all(chunk.usage_metadata is None and chunk.chunk_position is None for chunk in early)
    assert last.chunk_position == "last"
    assert last.content in ("", [])
    assert last.usage_metadata == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert last.response_metadata == {
        **common,
        "id": HEAD["id"],
        "created": 1,
        "model_name": "m-1",
        "system_fingerprint": "fp_1",
        "service_tier": "flex",
        "service_tier_used": "default",
        "finish_reason": "tool_calls",
        "time_info": {"queue_time": 0.25, "total_time": 0.5},
        "token_usage": USAGE,
        "headers": last.response_metadata["headers"],
    }
    assert last.response_metadata["headers"]["x-request-id"] == "r"
    assert len({chunk.id for chunk in (*early, last)}) == 1
    assert merged([*early, last]).response_metadata == last.response_metadata
    assert (early[0] + [*early[1:], last]) == merged([*early, last])  # one by one, or at once


@both
async def test_a_chunk_has_one_kind_of_content(is_async: bool) -> None:
    chunks = await chunks_of(Service(RICH).model(), is_async)
    kinds = [
        [name for name in ("reasoning", "text", "tool_call_chunk") if name in {b["type"] for b in chunk.content_blocks}]
        for chunk in chunks
    ]
    assert kinds == [
        ["reasoning"], ["reasoning"], ["text"], ["text"], ["tool_call_chunk"], ["text"], ["tool_call_chunk"],
        ["tool_call_chunk"], [],
    ]  # fmt: skip


@both
async def test_role_chunks_and_empty_deltas_make_no_chunks(is_async: bool) -> None:
    events = [delta(role="assistant"), delta(), delta(content=""), delta(content="a"), delta(), end()]
    assert [chunk.content for chunk in await chunks_of(Service(events).model(), is_async)] == ["a", ""]


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_line_separators_of_unicode_are_text(path: str) -> None:
    text = "a\u2028b\u2029c\u0085d\x0ce"
    service = Service([delta(content=text[:3]), delta(content=text[3:]), end()], whole({"content": text}))
    assert (await ALL_PATHS[path](service.model(), "hi")).text == text


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_usage_on_several_events_is_counted_once(path: str) -> None:
    events = [{**delta(content=str(n)), "usage": {**USAGE, "completion_tokens": n}} for n in (1, 2, 3)]
    answer = whole({"content": "123"}, finish_reason="stop")
    message = await ALL_PATHS[path](Service([*events, end()], answer).model(), "hi")
    assert message.usage_metadata == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.response_metadata["model_name"] == "m-1"


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_two_finish_reasons_do_not_add_up(path: str) -> None:
    events = [delta(content="x"), end(), {**end(), "usage": {**USAGE, "prompt_tokens": 10}}]
    message = await ALL_PATHS[path](Service(events, whole({"content": "x"})).model(), "hi")
    assert message.response_metadata["finish_reason"] == "stop"
    assert message.usage_metadata["input_tokens"] == 10


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_events_without_choices_lose_nothing(path: str) -> None:
    events = [
        {"choices": None, **HEAD}, delta(content="a"), {"id": HEAD["id"]}, {"choices": [], "usage": USAGE, **HEAD},
        delta(content="b"), {key: value for key, value in end().items() if key != "usage"},
    ]  # fmt: skip
    message = await ALL_PATHS[path](Service(events, whole({"content": "ab"})).model(), "hi")
    assert message.text == "ab"
    assert message.usage_metadata["total_tokens"] == 15


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_answer_without_usage_has_none(path: str) -> None:
    last = {key: value for key, value in end().items() if key != "usage"}
    answer = {key: value for key, value in whole().items() if key != "usage"}
    message = await ALL_PATHS[path](Service([delta(content="ok"), last], answer).model(), "hi")
    assert message.usage_metadata is None
    assert "token_usage" not in message.response_metadata


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_usage_details_and_raw_usage(path: str) -> None:
    usage = {
        "prompt_tokens": 300, "completion_tokens": 40, "total_tokens": 340,
        "prompt_tokens_details": {"cached_tokens": 128, "image_tokens": 64},
        "completion_tokens_details": {
            "reasoning_tokens": 32, "accepted_prediction_tokens": 3, "rejected_prediction_tokens": 1,
        },
    }  # fmt: skip
    message = await ALL_PATHS[path](Service([delta(content="x"), end(usage=usage)], whole(usage=usage)).model(), "hi")
    assert message.usage_metadata == {
        "input_tokens": 300, "output_tokens": 40, "total_tokens": 340,
        "input_token_details": {"cache_read": 128, "image": 64}, "output_token_details": {"reasoning": 32},
    }  # fmt: skip
    assert message.response_metadata["token_usage"] == usage


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_logprobs_of_text_and_of_reasoning_are_kept_in_order(path: str) -> None:
    def entry(token: str) -> dict[str, Any]:
        return {"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": []}

    events = []
    for token in "ab":
        event = delta(content=token, reasoning=token.upper())
        event["choices"][0] |= {
            "logprobs": {"content": [entry(token)]}, "reasoning_logprobs": {"content": [entry(token.upper())]},
        }  # fmt: skip
        events.append(event)
    answer = whole({"content": "ab", "reasoning": "AB"})
    found = {
        "logprobs": {"content": [entry("a"), entry("b")]}, "reasoning_logprobs": {"content": [entry("A"), entry("B")]},
    }  # fmt: skip
    answer["choices"][0] |= found
    message = await ALL_PATHS[path](Service([*events, end()], answer).model(), "hi")
    assert {name: message.response_metadata[name] for name in found} == found
    assert (message.text, message.additional_kwargs) == ("ab", {"reasoning_content": "AB"})


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_new_members_of_an_answer_are_kept(path: str) -> None:
    message = await ALL_PATHS[path](Service([delta(content="x"), end(new="y")], whole(new="y")).model(), "hi")
    assert message.response_metadata["new"] == "y"


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_stream_options_are_never_added(path: str) -> None:
    service = Service()
    await ALL_PATHS[path](service.model(), "hi")
    assert "stream_options" not in service.body


# ---- response headers ----


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_response_headers_on_request_and_without_secrets(path: str) -> None:
    headers = {"x-ratelimit-remaining-requests-day": "41", "set-cookie": "__cf_bm=abc"}
    events = [delta(content=""), delta(content="ok"), end()]
    service = Service(events, headers=headers)
    message = await ALL_PATHS[path](service.model(include_response_headers=True), "hi")
    assert message.response_metadata["headers"]["x-ratelimit-remaining-requests-day"] == "41"
    assert "set-cookie" not in message.response_metadata["headers"]
    message = await ALL_PATHS[path](service.model(), "hi")
    assert "headers" not in message.response_metadata
    message = await ALL_PATHS[path](service.model(), "hi", include_response_headers=True)
    assert "headers" in message.response_metadata


# ---- callbacks ----


class Order(BaseCallbackHandler):
    """Notes the calls of a sync run."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        assert isinstance(chunk, ChatGenerationChunk)
        self.log.append(("callback", token))


class AsyncOrder(AsyncCallbackHandler):
    """Notes the calls of an async run; slow, so that a call that is not awaited would come late."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        await asyncio.sleep(0)
        self.log.append(("callback", token))


@both
async def test_callback_comes_before_each_chunk_is_handed_out(is_async: bool) -> None:
    log: list[Any] = []
    model = Service(text_events("a", "b")).model(callbacks=[AsyncOrder(log) if is_async else Order(log)])
    if is_async:
        async for chunk in model.astream("hi"):
            log.append(("yield", chunk.text))  # noqa: PERF401
    else:
        for chunk in model.stream("hi"):
            log.append(("yield", chunk.text))  # noqa: PERF401
    assert log == [(kind, text) for text in ("a", "b", "") for kind in ("callback", "yield")]


@both
async def test_a_run_manager_handed_to_the_stream_is_told_of_each_chunk(is_async: bool) -> None:
    told: list[Any] = []

    class Manager:
        def on_llm_new_token(self, token: str, *, chunk: ChatGenerationChunk) -> Any:
            told.append((token, chunk.message))
            return asyncio.sleep(0) if is_async else None

    model: Any = Service(text_events("a", "b")).model()
    prompt = [HumanMessage("hi")]
    if is_async:
        chunks = [chunk async for chunk in model._astream(prompt, run_manager=Manager())]
    else:
        chunks = list(model._stream(prompt, run_manager=Manager()))
    assert told == [(chunk.text, chunk.message) for chunk in chunks]


# ---- when a call streams ----


@pytest.mark.parametrize("path", ["invoke", "ainvoke"])
@pytest.mark.parametrize(
    ("fields", "options", "streams"),
    [
        ({}, {}, False),
        ({"streaming": True}, {}, True),
        ({"streaming": False}, {}, False),
        ({}, {"stream": True}, True),
        ({"streaming": True}, {"stream": False}, False),
        ({"streaming": True, "disable_streaming": True}, {}, False),
    ],
)
async def test_streaming_of_a_call_is_as_asked(path: str, fields: Any, options: Any, streams: bool) -> None:
    service = Service()
    message = await PATHS[path](service.model(**fields), "hi", **options)
    assert service.body.get("stream", False) is streams
    assert isinstance(message, AIMessage)
    assert not isinstance(message, AIMessageChunk)
    assert message.text == "ok"


def graph_of(model: Any) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile()


def test_a_call_inside_of_a_graph_streams_and_disable_streaming_is_honoured() -> None:
    prompt = {"messages": [HumanMessage("hi")]}
    service = Service(text_events("a", "b", "c"), whole({"content": "abc"}))
    chunks = [chunk for chunk, _ in graph_of(service.model()).stream(prompt, stream_mode="messages")]
    assert [chunk.content for chunk in chunks] == ["a", "b", "c", ""]
    assert service.body["stream"] is True
    quiet = Service(text_events("a", "b", "c"), whole({"content": "abc"}))
    model = quiet.model(disable_streaming=True)
    chunks = [chunk for chunk, _ in graph_of(model).stream(prompt, stream_mode="messages")]
    assert [chunk.content for chunk in chunks] == ["abc"]
    assert "stream" not in quiet.body
    with_tools = Service().model(disable_streaming="tool_calling")
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    assert len(list(with_tools.stream("hi", tools=[tool]))) == 1


# ---- what is never streamed ----

JSON_OBJECT = {"type": "json_object"}


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_json_object_is_one_request_without_a_stream_on_every_path(path: str) -> None:
    answer = whole({"content": '{"a": 1}', "reasoning": "r"})
    service = Service(answer=answer, headers={"x-request-id": "r"})
    for model in (service.model(response_format=JSON_OBJECT), service.model().bind(response_format=JSON_OBJECT)):
        service.requests.clear()
        message = await ALL_PATHS[path](model, "json please")
        assert "stream" not in service.body
        assert json.loads(message.text) == {"a": 1}
        assert message.additional_kwargs == {"reasoning_content": "r"}
        assert message.usage_metadata["total_tokens"] == 15
        assert message.response_metadata["finish_reason"] == "stop"


@both
async def test_json_object_is_one_chunk_with_everything(is_async: bool) -> None:
    (chunk,) = await chunks_of(Service(answer=whole({"content": "{}"})).model(response_format=JSON_OBJECT), is_async)
    assert (chunk.content, chunk.chunk_position) == ("{}", "last")
    assert chunk.usage_metadata == {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    assert chunk.response_metadata["finish_reason"] == "stop"


def test_json_object_inside_of_a_graph_is_not_streamed() -> None:
    service = Service(answer=whole({"content": "{}"}))
    graph = graph_of(service.model().bind(response_format=JSON_OBJECT))
    chunks = [chunk for chunk, _ in graph.stream({"messages": [HumanMessage("json")]}, stream_mode="messages")]
    assert [chunk.content for chunk in chunks] == ["{}"]
    assert "stream" not in service.body


@pytest.mark.parametrize("given", ["constructor", "bind", "call", "extra_body"])
@pytest.mark.parametrize("path", ["stream", "astream", "stream_events v3", "astream_events v3"])
async def test_several_answers_are_never_mixed_in_one_stream(path: str, given: str) -> None:
    service = Service()
    model: Any = service.model(n=2) if given == "constructor" else service.model()
    model = model.bind(n=2) if given == "bind" else model
    options: dict[str, Any] = {"call": {"n": 2}, "extra_body": {"extra_body": {"n": 2}}}.get(given, {})
    with pytest.raises(errors.RequestValidationError, match="n: a stream has one answer"):
        await ALL_PATHS[path](model, "hi", **options)
    assert not service.requests


@pytest.mark.parametrize("options", [{"n": 2}, {"extra_body": {"n": 2}}, {"model_kwargs": {"n": 2}}])
@pytest.mark.parametrize("level", ["constructor", "bind"])
def test_several_answers_inside_of_a_graph_are_one_plain_request(options: dict[str, Any], level: str) -> None:
    service = Service(answer=whole({"content": "a"}, {"content": "b"}))
    model: Any = service.model(**options) if level == "constructor" else service.model().bind(**options)
    chunks = list(graph_of(model).stream({"messages": [HumanMessage("hi")]}, stream_mode="messages"))
    assert [chunk.content for chunk, _ in chunks] == ["a"]
    assert (service.body["n"], "stream" in service.body) == (2, False)


async def test_several_answers_without_a_stream_count_usage_once() -> None:
    service = Service(answer=whole({"content": "a"}, {"content": "b"}))
    for model in (service.model(n=2), service.model(n=2, streaming=True)):
        for result in (model.generate([[HumanMessage("hi")]]), await model.agenerate([[HumanMessage("hi")]])):
            messages = [generation.message for generation in result.generations[0]]  # type: ignore[union-attr]
            assert [message.text for message in messages] == ["a", "b"]
            assert [message.usage_metadata for message in messages] == [  # type: ignore[union-attr]
                {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}, None,
            ]  # fmt: skip
            for message in messages:
                assert message.response_metadata["model_name"] == "m-1"
                assert message.response_metadata["finish_reason"] == "stop"
            assert result.llm_output["token_usage"] == USAGE
    assert all(body == {"model": "m", "messages": body["messages"], "n": 2} for body in service.bodies)


def test_deltas_of_another_answer_are_not_mixed_in() -> None:
    builder = ChunkBuilder(Style())
    assert builder.feed_all([ChatDelta(1, "x", "", [], None, None, None, {})]) == []
    calls = [ToolCallDelta(0, "a", "f", "{}")]
    (chunk,) = builder.feed_all([ChatDelta(0, "", "", calls, None, None, None, {})])
    assert chunk.message.tool_call_chunks[0]["id"] == "a"  # type: ignore[attr-defined]
    (last,) = builder.finish(ChatResponse.model_validate(whole()))
    assert last.message.chunk_position == "last"  # type: ignore[attr-defined]


# ---- closing ----


@both
async def test_a_stream_that_is_left_early_is_closed(is_async: bool) -> None:
    service = Service(text_events("a", "b", "c"))
    if is_async:
        stream = service.model().astream("hi")
        assert (await anext(stream)).text == "a"
        await stream.aclose()  # type: ignore[attr-defined]
        for _ in range(3):  # langchain-core leaves the closing of our generator to the event loop
            await asyncio.sleep(0)
    else:
        sync_stream = service.model().stream("hi")
        assert next(sync_stream).text == "a"
        sync_stream.close()  # type: ignore[attr-defined]
    assert [stream.closed for stream in service.streams] == [True]
    assert reasoning_of(AIMessage("x")) == ""

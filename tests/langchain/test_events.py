"""Protocol events: the native hooks, alone, against langchain-core's bridge, and inside of what consumes them."""

from __future__ import annotations

import importlib.util
import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.version import VERSION

from cerebras_ext.emulator import Emulator, Fault
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.errors import AuthenticationError, StreamTruncatedError
from langchain_cerebras_ext.from_wire import ChunkBuilder
from tests.conformance import recordings
from tests.langchain.stub import MODEL, Stub, call, refuse, say

MODES = ("sync", "async")
SNAPSHOTS = tuple(int(part) for part in VERSION.split(".")[:2]) < (1, 8)
JSON_OBJECT = {"type": "json_object"}
"""Whether events of a growing tool call repeat what came before, as in cores before 1.8."""

ANSWERS = {
    "text": say("Hello, world!"),
    "reasoning and text": say("Hello!", reasoning="They greet me."),
    "reasoning only": say(reasoning="Too long", finish="length"),
    "nothing": say(),
    "a call": call(("weather", '{"city": "Oslo"}')),
    "two calls": call(("weather", '{"city": "Oslo"}'), ("now", "")),
    "everything": {
        "finish_reason": "tool_calls",
        "message": {
            "content": "I look.",
            "reasoning": "Hm.",
            "tool_calls": call(("weather", '{"city": "Oslo"}'))["message"]["tool_calls"],
        },
    },
}


async def events_and_output(model: Any, mode: str, **options: Any) -> tuple[list[dict[str, Any]], AIMessage]:
    """Stream by the public method of version 3."""
    if mode == "sync":
        stream = model.stream_events("q", version="v3", **options)
        return list(stream), stream.output
    stream = await model.astream_events("q", version="v3", **options)
    events = [event async for event in stream]
    return events, await stream.output


def without_hooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the making of events to langchain-core."""
    monkeypatch.delattr(ChatCerebras, "_stream_chat_model_events")
    monkeypatch.delattr(ChatCerebras, "_astream_chat_model_events")


def facts(message: AIMessage) -> dict[str, Any]:
    """What two messages have to agree on: everything but the id of the run, and the form of the content."""
    metadata = {key: value for key, value in message.response_metadata.items() if key != "output_version"}
    return {
        "text": str(message.text),
        "reasoning": message.additional_kwargs,
        "blocks": [{k: v for k, v in block.items() if k != "index"} for block in message.content_blocks],
        "tool_calls": message.tool_calls,
        "usage": message.usage_metadata,
        "metadata": metadata,
    }


def check_lifecycle(events: list[dict[str, Any]]) -> None:
    stream_lifecycle = pytest.importorskip("langchain_tests.utils.stream_lifecycle")
    stream_lifecycle.assert_valid_event_stream(events)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ANSWERS)
async def test_events_pass_the_standard_validator(name: str, mode: str) -> None:
    events, _ = await events_and_output(Stub(ANSWERS[name]).model(), mode)
    assert events[-1]["event"] == "message-finish"
    check_lifecycle(events)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ANSWERS)
async def test_the_output_is_that_of_invoke(name: str, mode: str) -> None:
    stub = Stub(ANSWERS[name])
    _, output = await events_and_output(stub.model(), mode)
    assert facts(output) == facts(stub.model().invoke("q"))
    assert stub.bodies[0] == {**stub.bodies[1], "stream": True}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ANSWERS)
async def test_all_is_the_same_without_the_native_hooks(name: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stub = Stub(ANSWERS[name])
    native, output = await events_and_output(stub.model(), mode)
    without_hooks(monkeypatch)
    bridged, bridged_output = await events_and_output(stub.model(), mode)
    assert facts(bridged_output) == facts(output)
    assert bridged[0] == {**native[0], "id": bridged[0]["id"], "metadata": bridged[0]["metadata"]}
    if not SNAPSHOTS:
        assert bridged[1:] == native[1:]
    assert stub.bodies[0] == stub.bodies[1]


@pytest.mark.recordings
@pytest.mark.parametrize("number", recordings.numbers())
async def test_every_recorded_stream_gives_valid_events_and_the_message_of_the_bridge(
    number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange = recordings.load(number)
    content = recordings.body(exchange)
    if not recordings.is_stream(exchange) or b"chat.completion.chunk" not in content:
        return

    def reply(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=content, headers={"content-type": "text/event-stream"})

    transport = httpx.MockTransport(reply)
    model = ChatCerebras(model=MODEL, api_key="csk-test", http_client=httpx.Client(transport=transport))
    events, output = await events_and_output(model, "sync")
    if importlib.util.find_spec("langchain_tests") is not None:  # with the lowest versions it is not installed
        check_lifecycle(events)
    without_hooks(monkeypatch)
    assert facts((await events_and_output(model, "sync"))[1]) == facts(output)


@pytest.mark.parametrize("mode", MODES)
async def test_unknown_keywords_of_the_hook_are_options_and_the_first_id_is_that_of_the_run(mode: str) -> None:
    stub = Stub(say("x"))
    events, output = await events_and_output(stub.model(), mode, temperature=0.5, stop=["!"], ls_new_thing=1)
    assert stub.body == {"temperature": 0.5, "stop": ["!"]}
    assert events[0]["id"] == output.id
    assert events[0]["metadata"] == {"provider": "cerebras"}


def test_the_hook_works_without_a_run_manager() -> None:
    events = list(Stub(say("x")).model()._stream_chat_model_events([HumanMessage("q")]))
    assert events[0]["id"] == ""
    check_lifecycle(events)


@pytest.mark.parametrize("mode", MODES)
async def test_projections_are_live(mode: str) -> None:
    stub = Stub(ANSWERS["everything"])
    if mode == "sync":
        stream = stub.model().stream_events("q", version="v3")
        reasoning, text, calls = list(stream.reasoning), list(stream.text), stream.tool_calls.get()
        pieces = list(stream.tool_calls)
    else:
        astream = await stub.model().astream_events("q", version="v3")
        reasoning = [part async for part in astream.reasoning]
        text = [part async for part in astream.text]
        calls = await astream.tool_calls
        pieces = [part async for part in astream.tool_calls]
    assert reasoning == ["Hm."]
    assert text == ["I l", "ook", "."]
    assert calls == [{"type": "tool_call", "id": "c0", "name": "weather", "args": {"city": "Oslo"}}]
    text_of_call = pieces[-1]["args"] if SNAPSHOTS else "".join(piece["args"] for piece in pieces)
    assert text_of_call == '{"city": "Oslo"}'
    assert {(piece["id"], piece["name"], piece["index"]) for piece in pieces} == {("c0", "weather", 0)}


@pytest.mark.parametrize("mode", MODES)
async def test_text_after_which_reasoning_goes_on_stays_one_block(mode: str) -> None:
    head = {"id": "1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    deltas = [{"content": "a", "reasoning": "x"}, {"content": "b"}, {"reasoning": "y"}, {"content": "c"}]
    parts = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    parts.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    text = "".join(f"data: {json.dumps(part)}\n\n" for part in parts)
    stub = Stub(httpx.Response(200, text=text, headers={"content-type": "text/event-stream"}))
    events, output = await events_and_output(stub.model(), mode)
    check_lifecycle(events)
    assert [(block["type"], block.get("reasoning") or block.get("text")) for block in output.content_blocks] == [
        ("reasoning", "xy"),
        ("text", "abc"),
    ]


@pytest.mark.parametrize("mode", MODES)
async def test_a_call_that_was_cut_off_is_invalid_and_keeps_its_text(mode: str) -> None:
    stub = Stub(call(("weather", '{"city": "Os'), finish="length"))
    events, output = await events_and_output(stub.model(), mode)
    check_lifecycle(events)
    assert output.tool_calls == []
    (invalid,) = output.invalid_tool_calls
    assert (invalid["id"], invalid["name"], invalid["args"]) == ("c0", "weather", '{"city": "Os')
    assert output.invalid_tool_calls == stub.model().invoke("q").invalid_tool_calls


@pytest.mark.parametrize("mode", MODES)
async def test_json_object_is_one_request_without_a_stream(mode: str) -> None:
    stub = Stub(say('{"a": 1}', reasoning="Hm."))
    bound = stub.model().bind(response_format=JSON_OBJECT)
    events, output = await events_and_output(bound, mode)
    check_lifecycle(events)
    assert "stream" not in stub.bodies[0]
    assert str(output.text) == '{"a": 1}'
    assert output.usage_metadata is not None
    assert [event["event"] for event in events].count("content-block-delta") == 2


@pytest.mark.parametrize("mode", MODES)
async def test_a_think_block_becomes_reasoning_as_on_every_path(mode: str) -> None:
    stub = Stub(say("<think>Hm.</think>\n\nYes."))
    model = stub.model(split_think_tags=True)
    events, output = await events_and_output(model, mode)
    check_lifecycle(events)
    assert facts(output) == facts(model.invoke("q"))
    assert output.additional_kwargs == {"reasoning_content": "Hm."}


@pytest.mark.parametrize("mode", MODES)
async def test_a_refused_request_raises_before_any_event(mode: str) -> None:
    stub = Stub(refuse(401, "Wrong API Key"))
    with pytest.raises(AuthenticationError):
        await events_and_output(stub.model(), mode)
    assert len(stub.bodies) == 1


@pytest.mark.parametrize("mode", MODES)
async def test_a_stream_that_is_cut_off_raises_after_what_came(mode: str) -> None:
    head = {"id": "1", "created": 1, "model": "m", "object": "chat.completion.chunk"}
    part = {**head, "choices": [{"index": 0, "delta": {"content": "half"}}]}
    text = f"data: {json.dumps(part)}\n\n"
    stub = Stub(httpx.Response(200, text=text, headers={"content-type": "text/event-stream"}))
    seen: list[str] = []

    async def read() -> None:
        if mode == "sync":
            seen.extend(stub.model().stream_events("q", version="v3").text)
            return
        stream = await stub.model().astream_events("q", version="v3")
        async for piece in stream.text:
            seen.append(piece)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(StreamTruncatedError):
        await read()
    assert seen == ["half"]


class Tokens(BaseCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self.seen.append((token, chunk))


class AsyncTokens(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.seen: list[tuple[str, Any]] = []

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        self.seen.append((token, chunk))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("mode", MODES)
async def test_handlers_of_tokens_hear_the_same_with_and_without_the_hooks(
    mode: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not native:
        without_hooks(monkeypatch)
    handler = Tokens() if mode == "sync" else AsyncTokens()
    model = Stub(say("abcdef")).model()
    await events_and_output(model, mode, config={"callbacks": [handler]})
    assert [token for token, _ in handler.seen] == ["abc", "def", ""]
    await events_and_output(model.bind(response_format=JSON_OBJECT), mode, config={"callbacks": [handler]})
    assert [token for token, _ in handler.seen[3:]] == ["abcdef"]
    assert all(isinstance(chunk, ChatGenerationChunk) for _, chunk in handler.seen)


def test_a_handler_may_have_its_method_set_on_it_alone() -> None:
    seen: list[Any] = []
    handler: Any = BaseCallbackHandler()
    handler.on_llm_new_token = lambda token, **kwargs: seen.append(token)
    Stub(say("abc")).model().stream_events("q", version="v3", config={"callbacks": [handler]}).output  # noqa: B018
    assert seen == ["abc", ""]


def test_no_chunk_is_made_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a chunk was made")

    monkeypatch.setattr(ChunkBuilder, "feed_all", refused)
    stream = Stub(say("abcdef")).model().stream_events("q", version="v3", config={"callbacks": [BaseCallbackHandler()]})
    assert "".join(stream.text) == "abcdef"


async def test_events_of_version_2_are_those_of_chunks() -> None:
    events = [event async for event in Stub(say("abcdef")).model().astream_events("q", version="v2")]
    pieces = [event["data"]["chunk"].content for event in events if event["event"] == "on_chat_model_stream"]
    assert "".join(pieces) == "abcdef"
    assert events[-1]["data"]["output"].usage_metadata["total_tokens"] == 15


@pytest.mark.slow
@pytest.mark.once
def test_native_events_cost_less_than_bridged_chunks() -> None:
    """Compares what makes the events, without what core does with them; the best of runs in turn."""
    bridge = pytest.importorskip("langchain_core.language_models._compat_bridge")
    model = Stub(say("word " * 2000), piece=5).model()
    messages: list[Any] = [HumanMessage("q")]
    ways: list[Callable[[], Any]] = [
        lambda: model._stream_chat_model_events(messages),
        lambda: bridge.chunks_to_events(model._stream(messages)),
    ]
    best = [float("inf")] * len(ways)
    for _ in range(7):
        for number, way in enumerate(ways):
            started = time.perf_counter()
            assert sum(1 for _ in way()) == 2004
            best[number] = min(best[number], time.perf_counter() - started)
    assert best[0] < best[1] * 0.7


@pytest.mark.parametrize("mode", MODES)
async def test_leaving_early_closes_the_connection(mode: str) -> None:
    with Emulator() as emulator:
        emulator.script(Fault(stall_after_chunks=4))
        model = ChatCerebras(model=MODEL, api_key="csk-x", base_url=emulator.base_url)
        if mode == "sync":
            events: Any = model._stream_chat_model_events([HumanMessage("q")])
            names = [next(events)["event"] for _ in range(3)]
            events.close()
        else:
            aevents: Any = model._astream_chat_model_events([HumanMessage("q")])
            names = [(await anext(aevents))["event"] for _ in range(3)]
            await aevents.aclose()
        assert names == ["message-start", "content-block-start", "content-block-delta"]
        emulator.wait_until(lambda emu: emu.connections_open == 0)
        model.close()
        await model.aclose()

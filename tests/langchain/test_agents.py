"""Agents, graphs and chains over our model: what they send, and what comes out of them."""

from __future__ import annotations

from typing import Any

import langchain
import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    LLMToolSelectorMiddleware,
    ModelFallbackMiddleware,
    ModelRetryMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import create_react_agent
from pydantic import BaseModel, Field

from cerebras_ext.emulator import Emulator
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.errors import AuthenticationError, BadRequestError, ContextLengthExceededError
from tests.langchain.stub import MODEL, Stub, call, refuse, say

LANGCHAIN = tuple(int(part) for part in langchain.__version__.split(".")[:3])
NO_LOOP: Any = {"recursion_limit": 15}


def since(*version: int) -> pytest.MarkDecorator:
    """Leave a test out on a langchain that does not do yet what it is about."""
    return pytest.mark.skipif(version > LANGCHAIN, reason=f"needs langchain {'.'.join(map(str, version))}")


QUESTION: Any = {"messages": [{"role": "user", "content": "Weather in Oslo?"}]}
MODES = ("invoke", "ainvoke", "stream", "astream")


@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"sun in {city}"


@tool
def now() -> str:
    """Time."""
    return "noon"


class Report(BaseModel):
    """A report."""

    city: str
    degrees: int = Field(ge=-90)
    unit: str = "C"


WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "Weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
NOW = {
    "type": "function",
    "function": {"name": "now", "description": "Time.", "parameters": {"type": "object", "properties": {}}},
}
USER = {"role": "user", "content": "Weather in Oslo?"}
CALLED: dict[str, Any] = {
    "role": "assistant",
    "reasoning": "I ask.",
    "tool_calls": [{"id": "c0", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}],
}
RESULT = {"role": "tool", "content": "sun in Oslo", "tool_call_id": "c0"}


def asking() -> dict[str, Any]:
    answer = call(("weather", '{"city": "Oslo"}'))
    answer["message"]["reasoning"] = "I ask."
    return answer


async def run(agent: Any, mode: str, question: Any = None, **options: Any) -> dict[str, Any]:
    """Run an agent in one of the ways; return its last state."""
    question = QUESTION if question is None else question
    options.setdefault("config", NO_LOOP)
    if mode == "invoke":
        state = agent.invoke(question, **options)
    elif mode == "ainvoke":
        state = await agent.ainvoke(question, **options)
    elif mode == "stream":
        *_, state = agent.stream(question, stream_mode="values", **options)
    else:
        *_, state = [state async for state in agent.astream(question, stream_mode="values", **options)]
    found: dict[str, Any] = state
    return found


def sent(stub: Stub) -> list[dict[str, Any]]:
    """Return the bodies without model and `stream`."""
    return [{key: value for key, value in body.items() if key not in ("model", "stream")} for body in stub.bodies]


# ---- the loop ----


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_with_tools_sends_exactly_this(mode: str) -> None:
    stub = Stub(asking(), say("Sunny."))
    state = await run(create_agent(stub.model(), [weather, now]), mode)
    assert state["messages"][-1].content == "Sunny."
    assert sent(stub) == [
        {"messages": [USER], "tools": [WEATHER, NOW]},
        {"messages": [USER, CALLED, RESULT], "tools": [WEATHER, NOW]},
    ]


async def test_a_malformed_call_is_answered_and_replayed_so_that_the_agent_recovers() -> None:
    stub = Stub(call(("weather", '{"city": ')), asking(), say("Sunny."))
    state = await run(create_agent(stub.model(), [weather]), "invoke")
    assert [type(message).__name__ for message in state["messages"]][-1] == "AIMessage"
    for body in stub.bodies[1:]:
        for message in body["messages"]:
            for one in message.get("tool_calls", ()):
                assert one["function"]["arguments"].startswith("{")
                assert one["function"]["arguments"].endswith("}")


def test_an_agent_without_tools_sends_no_empty_list() -> None:
    stub = Stub(say("Hi."))
    create_agent(stub.model(), []).invoke(QUESTION)
    assert sent(stub) == [{"messages": [USER]}]


def test_memory_over_turns_replays_what_was_said() -> None:
    stub = Stub(say("Hello Ada.", reasoning="Hm."), say("Ada."))
    agent = create_agent(stub.model(), [], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [HumanMessage("I am Ada.")]}, config)
    agent.invoke({"messages": [HumanMessage("Who am I?")]}, config)
    assert stub.bodies[1]["messages"] == [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada.", "reasoning": "Hm."},
        {"role": "user", "content": "Who am I?"},
    ]


@pytest.mark.parametrize("mode", MODES)
async def test_the_emulated_service_runs_an_agent(mode: str) -> None:
    with Emulator() as emulator, ChatCerebras(model=MODEL, api_key="csk-x", base_url=emulator.base_url) as model:
        state = await run(create_agent(model, [weather]), mode)
        await model.aclose()
    first, second = (request.body for request in emulator.requests)
    assert first == {"model": MODEL, "messages": [USER], "tools": [WEATHER]}
    asked = state["messages"][1]
    called = {**CALLED, "reasoning": asked.additional_kwargs["reasoning_content"]}
    called["tool_calls"] = [{**CALLED["tool_calls"][0], "id": asked.tool_calls[0]["id"]}]
    result = {**RESULT, "tool_call_id": asked.tool_calls[0]["id"]}
    assert second == {"model": MODEL, "messages": [USER, called, result], "tools": [WEATHER]}
    assert "sun in Oslo" in state["messages"][-1].text
    assert state["messages"][-1].response_metadata["finish_reason"] == "stop"


@pytest.mark.parametrize("mode", MODES)
async def test_the_emulated_service_answers_in_a_schema_without_tools(mode: str) -> None:
    with Emulator() as emulator, ChatCerebras(model=MODEL, api_key="csk-x", base_url=emulator.base_url) as model:
        state = await run(create_agent(model, [], response_format=ProviderStrategy(Report)), mode)
        await model.aclose()
    assert isinstance(state["structured_response"], Report)
    (request,) = emulator.requests
    assert set(request.body) == {"model", "messages", "response_format"}


# ---- structured responses ----

REPORT_ARGS = '{"city": "Oslo", "degrees": 3}'


@since(1, 3, 8)  # older ones take every model with gpt-oss in its name for one that combines tools and schemas
@pytest.mark.parametrize("response_format", [Report, ToolStrategy(Report)], ids=["class", "ToolStrategy"])
@pytest.mark.parametrize("mode", MODES)
async def test_a_response_format_works_with_tools_out_of_the_box(mode: str, response_format: Any) -> None:
    stub = Stub(asking(), call(("Report", REPORT_ARGS)))
    agent = create_agent(stub.model(), [weather], response_format=response_format)
    state = await run(agent, mode)
    assert state["structured_response"] == Report(city="Oslo", degrees=3)
    for body in stub.bodies:
        assert "response_format" not in body
        assert body["tool_choice"] == "required"
        assert [one["function"]["name"] for one in body["tools"]] == ["weather", "Report"]


@since(1, 3, 8)
@pytest.mark.parametrize("mode", MODES)
async def test_a_response_format_works_without_tools_out_of_the_box(mode: str) -> None:
    stub = Stub(call(("Report", REPORT_ARGS)))
    state = await run(create_agent(stub.model(), [], response_format=Report), mode)
    assert state["structured_response"] == Report(city="Oslo", degrees=3)
    assert not ({"tools", "response_format"} <= set(stub.bodies[0]))


@pytest.mark.parametrize("mode", MODES)
async def test_an_explicit_provider_strategy_without_tools_sends_a_closed_schema_only(mode: str) -> None:
    stub = Stub(say(REPORT_ARGS, reasoning="Hm {"))
    state = await run(create_agent(stub.model(), [], response_format=ProviderStrategy(Report)), mode)
    assert state["structured_response"] == Report(city="Oslo", degrees=3)
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "degrees": {"type": "integer", "description": "(at least -90)"},
            "unit": {"type": "string"},
        },
        "required": ["city", "degrees"],
        "additionalProperties": False,
    }
    json_schema = {"name": "Report", "description": "A report.", "schema": schema, "strict": True}
    assert sent(stub) == [{"messages": [USER], "response_format": {"type": "json_schema", "json_schema": json_schema}}]


def test_an_explicit_provider_strategy_with_tools_is_sent_as_asked_and_its_refusal_has_a_hint() -> None:
    stub = Stub(refuse(400, "tools cannot be used with response_format", param="response_format"))
    agent = create_agent(stub.model(), [weather], response_format=ProviderStrategy(Report))
    with pytest.raises(BadRequestError, match="refuses tools together with response_format"):
        agent.invoke(QUESTION)
    assert {"tools", "response_format"} <= set(stub.bodies[0])
    assert len(stub.bodies) == 1


class Other(BaseModel):
    """Something else."""

    text: str


async def test_a_union_of_schemas_is_one_tool_each() -> None:
    stub = Stub(call(("Other", '{"text": "x"}')))
    agent = create_agent(stub.model(), [], response_format=ToolStrategy(Report | Other))
    assert (await run(agent, "ainvoke"))["structured_response"] == Other(text="x")
    assert [one["function"]["name"] for one in stub.body["tools"]] == ["Report", "Other"]


async def test_a_wrong_structured_answer_is_told_to_the_model_and_asked_for_again() -> None:
    stub = Stub(call(("Report", '{"city": "Oslo", "degrees": -100}')), call(("Report", REPORT_ARGS)))
    state = await run(create_agent(stub.model(), [], response_format=ToolStrategy(Report)), "invoke")
    assert state["structured_response"] == Report(city="Oslo", degrees=3)
    assert "greater than or equal to -90" in stub.bodies[1]["messages"][-1]["content"]


def test_the_older_react_agent_of_langgraph_works_with_a_response_format() -> None:
    stub = Stub(asking(), say("Sunny."), say(REPORT_ARGS))
    state = create_react_agent(stub.model(), [weather], response_format=Report).invoke(QUESTION)
    assert state["structured_response"] == Report(city="Oslo", degrees=3)
    assert ["tools" in body for body in stub.bodies] == [True, True, False]
    assert ["response_format" in body for body in stub.bodies] == [False, False, True]


# ---- middleware ----


@since(1, 5)
@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("mode", ["invoke", "ainvoke"])
async def test_retry_middleware_makes_one_request_with_a_bad_key(mode: str, streaming: bool) -> None:
    stub = Stub(refuse(401, "Wrong API Key"))
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, on_failure="error")
    agent = create_agent(stub.model(streaming=streaming), [], middleware=[retry])
    with pytest.raises(AuthenticationError):
        await run(agent, mode)
    assert len(stub.bodies) == 1


@pytest.mark.parametrize("streaming", [True, False])
async def test_retry_middleware_repeats_what_may_succeed_later(streaming: bool) -> None:
    stub = Stub(refuse(429, "slow down"), refuse(500, "oops"), say("Hi."))
    retry = ModelRetryMiddleware(max_retries=2, initial_delay=0, backoff_factor=0)
    state = await run(create_agent(stub.model(streaming=streaming), [], middleware=[retry]), "invoke")
    assert state["messages"][-1].content == "Hi."
    assert len(stub.bodies) == 3


async def test_fallback_middleware_takes_the_second_model() -> None:
    bad, good = Stub(refuse(500, "oops")), Stub(say("Hi."))
    middleware = [ModelFallbackMiddleware(good.model())]
    state = await run(create_agent(bad.model(), [weather], middleware=middleware), "ainvoke")
    assert state["messages"][-1].content == "Hi."
    assert sent(good) == [{"messages": [USER], "tools": [WEATHER]}]


def test_tool_selection_asks_by_schema_and_binds_what_was_selected() -> None:
    selector = Stub(say('{"tools": ["weather"]}'))
    main = Stub(say("Hi."))
    middleware = [LLMToolSelectorMiddleware(model=selector.model(), max_tools=1)]
    create_agent(main.model(), [weather, now], middleware=middleware).invoke(QUESTION)
    assert main.body == {"tools": [WEATHER]}
    format_ = selector.body["response_format"]["json_schema"]
    assert format_["strict"] is True
    assert format_["schema"]["required"] == ["tools"]


def history(turns: int) -> list[Any]:
    return [message for turn in range(turns) for message in (HumanMessage(f"q{turn}"), AIMessage("word " * 50))]


def test_summarisation_by_a_fraction_of_the_context_works_with_our_profile() -> None:
    stub = Stub(say("A summary."), say("Hi."))
    model = stub.model()
    assert model.profile is not None
    limit = model.profile["max_input_tokens"]
    middleware = SummarizationMiddleware(model, trigger=("fraction", 500 / limit), keep=("messages", 2))
    agent = create_agent(model, [], middleware=[middleware])
    agent.invoke({"messages": [*history(20), HumanMessage("last")]})
    assert len(stub.bodies) == 2
    assert "A summary." in stub.bodies[1]["messages"][0]["content"]
    assert len(stub.bodies[1]["messages"]) == 3


def test_summarisation_by_the_usage_that_the_service_reported() -> None:
    stub = Stub(say("A summary."), say("Hi."))
    model = stub.model()
    answer = model.invoke("q0").model_copy(update={"content": "short"})
    answer.usage_metadata = {"input_tokens": 4000, "output_tokens": 1000, "total_tokens": 5000}
    stub.bodies.clear()
    stub.answers = [say("A summary."), say("Hi.")]
    middleware = SummarizationMiddleware(model, trigger=("tokens", 4500), keep=("messages", 1))
    agent = create_agent(model, [], middleware=[middleware])
    agent.invoke({"messages": [HumanMessage("q0"), answer, HumanMessage("last")]})
    assert len(stub.bodies) == 2


def test_context_editing_counts_with_the_model_and_clears_old_results() -> None:
    stub = Stub(say("Hi."))
    edit = ClearToolUsesEdit(trigger=50, keep=1, placeholder="[cleared]")
    middleware = [ContextEditingMiddleware(edits=[edit], token_count_method="model")]
    turns = [
        message
        for number in range(3)
        for message in (
            AIMessage("", tool_calls=[{"id": f"c{number}", "name": "weather", "args": {"city": "x"}}]),
            ToolMessage("long " * 50, tool_call_id=f"c{number}"),
        )
    ]
    create_agent(stub.model(), [weather], middleware=middleware).invoke({"messages": [HumanMessage("q"), *turns]})
    results = [message["content"] for message in stub.bodies[0]["messages"] if message["role"] == "tool"]
    assert results[:2] == ["[cleared]", "[cleared]"]
    assert results[2].startswith("long")


def test_a_prompt_that_is_too_long_is_the_error_that_summarisation_knows() -> None:
    stub = Stub(refuse(400, "Please reduce the length", code="context_length_exceeded", param="messages"))
    with pytest.raises(ContextLengthExceededError):
        create_agent(stub.model(), []).invoke(QUESTION)


# ---- streams of graphs ----


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_messages_mode_streams_a_model_that_is_invoked(asynchronous: bool) -> None:
    stub = Stub(asking(), say("Sunny today."))
    agent = create_agent(stub.model(), [weather])
    if asynchronous:
        parts = [part async for part in agent.astream(QUESTION, stream_mode="messages")]
    else:
        parts = list(agent.stream(QUESTION, stream_mode="messages"))
    chunks = [message for message, _ in parts if isinstance(message, AIMessageChunk)]
    assert "".join(str(chunk.text) for chunk in chunks) == "Sunny today."
    assert "".join(one["args"] or "" for chunk in chunks for one in chunk.tool_call_chunks) == '{"city": "Oslo"}'
    assert len({chunk.id for chunk in chunks}) == 2
    assert [body.get("stream") for body in stub.bodies] == [True, True]
    usages = [chunk.usage_metadata for chunk in chunks if chunk.usage_metadata]
    assert [usage["total_tokens"] for usage in usages] == [15, 15]


def test_without_streaming_messages_mode_makes_plain_requests() -> None:
    stub = Stub(say("Hi."))
    list(create_agent(stub.model(disable_streaming=True), []).stream(QUESTION, stream_mode="messages"))
    assert "stream" not in stub.bodies[0]


@pytest.mark.parametrize("stream_mode", ["values", "updates", "debug", "custom"])
def test_other_modes_make_plain_requests(stream_mode: Any) -> None:
    stub = Stub(say("Hi."))
    list(create_agent(stub.model(), []).stream(QUESTION, stream_mode=stream_mode))
    assert [body.get("stream") for body in stub.bodies] == [None]


def test_json_mode_inside_of_a_streaming_graph_is_one_plain_request() -> None:
    stub = Stub(say('{"a": 1}'))
    bound = stub.model().bind(response_format={"type": "json_object"})
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda state: {"messages": [bound.invoke(state["messages"])]})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    parts: list[Any] = list(graph.compile().stream(QUESTION, stream_mode="messages"))
    assert "stream" not in stub.bodies[0]
    assert "".join(str(message.text) for message, _ in parts) == '{"a": 1}'


@pytest.mark.parametrize("native", [True, False])
async def test_version_3_of_a_graph_streams_messages(native: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not native:
        monkeypatch.delattr(ChatCerebras, "_stream_chat_model_events")
        monkeypatch.delattr(ChatCerebras, "_astream_chat_model_events")
    stub = Stub(asking(), say("Sunny today.", reasoning="Easy."))
    stream: Any = create_agent(stub.model(), [weather]).stream_events(QUESTION, version="v3")
    texts, thoughts = [], []
    for message in stream.messages:
        texts.append("".join(message.text))
        thoughts.append(str(message.reasoning))
    assert texts == ["", "Sunny today."]
    assert thoughts == ["I ask.", "Easy."]
    assert stream.output["messages"][-1].text == "Sunny today."
    assert [body.get("stream") for body in stub.bodies] == [True, True]
    assert sent(stub)[1]["messages"] == [USER, CALLED, RESULT]

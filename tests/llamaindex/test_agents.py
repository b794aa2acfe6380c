"""Core's agents on our class: how many requests they make, what they send back, and what they stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentStream, AgentWorkflow, CodeActAgent, FunctionAgent, ReActAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import ChatMemoryBuffer, Memory
from llama_index.core.tools import FunctionTool
from pydantic import BaseModel

from cerebras_ext.toolcalls import InvalidArgumentsError
from tests.llamaindex.scripted import ESTIMATES_BLOCKS, Json, call, scripted, streamed, whole


def weather(city: str) -> str:
    """The weather of a city."""
    return f"sun in {city}"


def clock() -> str:
    """The time."""
    return "noon"


TOOLS = (FunctionTool.from_defaults(weather), FunctionTool.from_defaults(clock))


def turn(text: str = "", *, thinking: str = "", calls: tuple[tuple[str, str, Json], ...] = ()) -> Any:
    """What the model says in one turn, in pieces where it is streamed."""
    entries = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in calls
    ]
    reason = "tool_calls" if calls else "stop"

    def answer(body: Json) -> Any:
        if not body.get("stream"):
            message: Json = {"content": text} if text else {}
            message |= {"reasoning": thinking} if thinking else {}
            message |= {"tool_calls": entries} if entries else {}
            return whole(message, finish_reason=reason)
        deltas: list[Json] = [{"reasoning": piece} for piece in _halves(thinking)]
        deltas += [{"content": piece} for piece in _halves(text)]
        for index, entry in enumerate(entries):
            deltas.append({"tool_calls": [call(index, entry["id"], entry["function"]["name"], "")]})
            deltas += [
                {"tool_calls": [call(index, None, None, part)]} for part in _halves(entry["function"]["arguments"])
            ]
        return streamed(*deltas, finish_reason=reason)

    return answer


def _halves(text: str) -> list[str]:
    half = len(text) // 2
    return [piece for piece in (text[:half], text[half:]) if piece]


async def run(agent: Any, text: str, **kwargs: Any) -> tuple[Any, list[AgentStream]]:
    """Run an agent; return its output and what it streamed."""
    handler = agent.run(text, **kwargs)
    events = [event async for event in handler.stream_events() if isinstance(event, AgentStream)]
    return await handler, events


def roles(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"]]


streaming = pytest.mark.parametrize("streaming", [True, False], ids=["streaming", "whole"])


@streaming
async def test_function_agent_calls_tools_and_answers(streaming: bool) -> None:
    if not (streaming or ESTIMATES_BLOCKS):
        pytest.skip("agents of older cores that do not stream ask for one call only")
    llm, wire = scripted(
        turn(thinking="look it up", calls=(("a", "weather", {"city": "Bern"}), ("b", "clock", {}))),
        turn("Sunny at noon."),
    )
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, system_prompt="Be brief.", streaming=streaming)
    output, events = await run(agent, "How is it in Bern?")
    assert str(output) == "Sunny at noon."
    assert len(wire.bodies) == 2, "one request a step"
    assert all(bool(body.get("stream")) is streaming for body in wire.bodies)
    assert roles(wire.bodies[1]) == ["system", "user", "assistant", "tool", "tool"]
    assistant, first, second = wire.bodies[1]["messages"][2:]
    assert assistant["reasoning"] == "look it up"
    assert "content" not in assistant
    assert [(entry["id"], entry["function"]["arguments"]) for entry in assistant["tool_calls"]] == [
        ("a", '{"city": "Bern"}'), ("b", "{}"),
    ]  # fmt: skip
    assert first == {"role": "tool", "content": "sun in Bern", "tool_call_id": "a"}
    assert second == {"role": "tool", "content": "noon", "tool_call_id": "b"}
    assert "parallel_tool_calls" not in wire.bodies[0]
    if streaming:
        assert "".join(event.delta for event in events) == "Sunny at noon."
        assert "".join(event.thinking_delta or "" for event in events) == "look it up"
        assert events[-1].raw["usage"]["total_tokens"] == 15
        assert {"city": "Bern"} in [item.tool_kwargs for event in events for item in event.tool_calls]


@streaming
async def test_function_agent_forces_its_first_tool(streaming: bool) -> None:
    llm, wire = scripted(turn(calls=(("a", "clock", {}),)), turn("noon"))
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, initial_tool_choice="clock", streaming=streaming)
    await run(agent, "Time?")
    assert wire.bodies[0]["tool_choice"] == {"type": "function", "function": {"name": "clock"}}
    assert "tool_choice" not in wire.bodies[1]


@streaming
async def test_function_agent_without_parallel_calls_runs_one(streaming: bool) -> None:
    llm, wire = scripted(turn(calls=(("a", "weather", {"city": "Bern"}), ("b", "clock", {}))), turn("done"))
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, allow_parallel_tool_calls=False, streaming=streaming)
    await run(agent, "q")
    assert wire.bodies[0]["parallel_tool_calls"] is False
    assert roles(wire.bodies[1]) == ["user", "assistant", "tool"]
    assert len(wire.bodies[1]["messages"][1]["tool_calls"]) == 1


@streaming
async def test_function_agent_keeps_ids_apart_that_repeat_every_turn(streaming: bool) -> None:
    again = turn(calls=(("call_0", "clock", {}),))
    llm, wire = scripted(again, again, turn("done"))
    await run(FunctionAgent(tools=list(TOOLS), llm=llm, streaming=streaming), "q")
    messages = wire.bodies[2]["messages"]
    ids = [message["tool_calls"][0]["id"] for message in messages if message["role"] == "assistant"]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == ids


@streaming
async def test_function_agent_never_runs_a_tool_with_arguments_that_were_cut_off(streaming: bool) -> None:
    ran: list[str] = []

    def delete(path: str = "/") -> str:
        """Delete a path."""
        ran.append(path)
        return "gone"

    entry = {"id": "a", "type": "function", "function": {"name": "delete", "arguments": '{"path": "/tmp/a'}}

    def answer(body: Json) -> Any:
        if body.get("stream"):
            return streamed({"tool_calls": [{**entry, "index": 0}]}, finish_reason="length")
        return whole({"tool_calls": [entry]}, finish_reason="length")

    llm, _ = scripted(answer)
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(delete)], llm=llm, streaming=streaming)
    with pytest.raises(InvalidArgumentsError, match="token limit"):
        await run(agent, "q")
    assert ran == []


@streaming
async def test_tool_that_returns_its_result_directly_ends_the_run(streaming: bool) -> None:
    tool = FunctionTool.from_defaults(clock, return_direct=True)
    llm, wire = scripted(turn(calls=(("a", "clock", {}),)), turn("again"))
    memory = ChatMemoryBuffer.from_defaults(llm=llm)
    agent = FunctionAgent(tools=[tool], llm=llm, streaming=streaming)
    output, _ = await run(agent, "Time?", memory=memory)
    assert str(output) == "noon"
    assert len(wire.bodies) == 1
    await run(agent, "And now?", memory=memory)
    assert roles(wire.bodies[1]) == ["user", "assistant", "tool", "assistant", "user"]


@streaming
@pytest.mark.parametrize("kind", ["buffer", "sql"])
async def test_memory_carries_turns_with_calls_and_thinking(kind: str, streaming: bool) -> None:
    llm, wire = scripted(turn(thinking="t", calls=(("a", "clock", {}),)), turn("It is noon."), turn("You are welcome."))
    memory: Any = (
        Memory.from_defaults(session_id="s", token_limit=10_000)
        if kind == "sql"
        else ChatMemoryBuffer.from_defaults(llm=llm)
    )
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, streaming=streaming)
    await run(agent, "Time?", memory=memory)
    await run(agent, "Thanks", memory=memory)
    assert len(wire.bodies) == 3
    assert roles(wire.bodies[2]) == ["user", "assistant", "tool", "assistant", "user"]
    replayed = wire.bodies[2]["messages"]
    assert replayed[1]["tool_calls"][0]["id"] == replayed[2]["tool_call_id"] == "a"
    assert replayed[1]["reasoning"] == "t"
    assert replayed[3]["content"] == "It is noon."
    if kind == "sql":
        await memory.sql_store._async_engine.dispose()


@streaming
async def test_function_agent_with_an_output_class(streaming: bool) -> None:
    class Report(BaseModel):
        """A report."""

        city: str

    llm, wire = scripted(turn("Bern is sunny."), lambda body: whole({"content": '{"city": "Bern"}'}))
    agent = FunctionAgent(tools=list(TOOLS), llm=llm, output_cls=Report, streaming=streaming)
    output, _ = await run(agent, "q")
    assert output.structured_response == {"city": "Bern"}
    assert len(wire.bodies) == 2
    assert wire.bodies[1]["response_format"]["type"] == "json_schema"
    assert "tools" not in wire.bodies[1]


@streaming
async def test_workflow_hands_over_to_another_agent(streaming: bool) -> None:
    llm, wire = scripted(
        turn(calls=(("h", "handoff", {"to_agent": "writer", "reason": "writing"}),)),
        turn(calls=(("w", "clock", {}),)),
        turn("Written at noon."),
    )
    common: dict[str, Any] = {"llm": llm, "streaming": streaming}
    planner = FunctionAgent(
        name="planner", description="plans", tools=[], can_handoff_to=["writer"], system_prompt="Plan.", **common
    )
    writer = FunctionAgent(
        name="writer", description="writes", tools=[TOOLS[1]], can_handoff_to=[], system_prompt="Write.", **common
    )
    output, _ = await run(AgentWorkflow(agents=[planner, writer], root_agent="planner"), "Write it.")
    assert str(output) == "Written at noon."
    assert len(wire.bodies) == 3
    names = [[tool["function"]["name"] for tool in body["tools"]] for body in wire.bodies]
    assert names == [["handoff"], ["clock"], ["clock"]]
    assert [body["messages"][0]["content"] for body in wire.bodies] == ["Plan.", "Write.", "Write."]
    assert any(message["role"] == "tool" and message["tool_call_id"] == "h" for message in wire.bodies[1]["messages"])


def test_workflow_picks_the_function_agent_for_us() -> None:
    workflow = AgentWorkflow.from_tools_or_functions([weather], llm=scripted({})[0])
    assert isinstance(next(iter(workflow.agents.values())), FunctionAgent)


@pytest.mark.skipif(not ESTIMATES_BLOCKS, reason="the ReActAgent of older cores takes no message with thinking")
@streaming
async def test_react_agent_reasons_in_text(streaming: bool) -> None:
    llm, wire = scripted(
        turn("Thought: I need the time.\nAction: clock\nAction Input: {}", thinking="hm"),
        turn("Thought: I can answer.\nAnswer: It is noon.", thinking="so"),
    )
    output, events = await run(ReActAgent(tools=list(TOOLS), llm=llm, streaming=streaming), "Time?")
    assert str(output).endswith("It is noon.")
    assert len(wire.bodies) == 2
    assert all("tools" not in body for body in wire.bodies)
    if streaming:
        assert "".join(event.thinking_delta or "" for event in events) == "hmso"
        assert all(isinstance(event.response, str) for event in events)


@pytest.mark.skipif(not ESTIMATES_BLOCKS, reason="the ReActAgent of older cores takes no message with thinking")
@streaming
async def test_react_agent_survives_an_answer_without_text(streaming: bool) -> None:
    llm, wire = scripted(turn(thinking="only thoughts"), turn("Thought: I can answer.\nAnswer: 4"))
    output, _ = await run(ReActAgent(tools=list(TOOLS), llm=llm, streaming=streaming), "2+2?")
    assert str(output).endswith("4")
    assert len(wire.bodies) == 2


@streaming
async def test_code_act_agent_runs_code_from_the_text(streaming: bool) -> None:
    executed: list[str] = []

    async def execute(code: str) -> str:
        executed.append(code.strip())
        return "4"

    llm, wire = scripted(turn("Let me see.\n<execute>\nprint(2 + 2)\n</execute>"), turn("It is 4."))
    agent = CodeActAgent(code_execute_fn=execute, tools=list(TOOLS), llm=llm, streaming=streaming)
    output, _ = await run(agent, "2+2?")
    assert executed == ["print(2 + 2)"]
    assert str(output) == "It is 4."
    assert len(wire.bodies) == 2


async def test_history_of_an_agent_is_chat_history_for_a_plain_call() -> None:
    llm, wire = scripted(turn(calls=(("a", "clock", {}),)), turn("noon"), turn("ok"))
    memory = ChatMemoryBuffer.from_defaults(llm=llm)
    await run(FunctionAgent(tools=list(TOOLS), llm=llm), "Time?", memory=memory)
    history = memory.get_all()
    llm.chat([*history, ChatMessage(role="user", content="ok?")])
    assert roles(wire.bodies[2]) == ["user", "assistant", "tool", "assistant", "user"]

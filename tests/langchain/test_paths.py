"""Every recorded exchange gives the same message, whichever way the model is asked."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph

from cerebras_ext import errors as core_errors
from langchain_cerebras_ext import errors
from tests.conformance import recordings
from tests.langchain.service import ALL_PATHS, Service, merged, reasoning_of

pytestmark = pytest.mark.recordings

METADATA = ("id", "created", "system_fingerprint", "service_tier", "service_tier_used", "time_info")


def whole_of_stream(events: list[dict[str, Any]]) -> dict[str, Any]:
    """The answer that a recorded stream adds up to."""
    message: dict[str, Any] = {"role": "assistant"}
    calls: list[dict[str, Any]] = []
    for event in events:
        delta = event["choices"][0]["delta"]
        for key in ("content", "reasoning"):
            if delta.get(key):
                message[key] = message.get(key, "") + delta[key]
        for piece in delta.get("tool_calls", []):
            if piece.get("id"):
                calls.append({"id": piece["id"], "type": "function", "function": {**piece["function"]}})
            else:
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    if calls:
        message["tool_calls"] = calls
    last = events[-1]
    choice = {"index": 0, "finish_reason": last["choices"][0]["finish_reason"], "message": message}
    return {**last, "object": "chat.completion", "choices": [choice]}


def stream_of_whole(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """A stream that adds up to a recorded answer, cut into pieces of a few characters."""
    head = {key: value for key, value in answer.items() if key not in ("usage", "time_info", "choices")}
    choice = answer["choices"][0]
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    for key in ("reasoning", "content"):
        deltas += [{key: message.get(key, "")[at : at + 40]} for at in range(0, len(message.get(key, "")), 40)]
    for index, call in enumerate(message.get("tool_calls", [])):
        name, text = call["function"]["name"], call["function"]["arguments"]
        first = {"index": index, "id": call["id"], "type": "function", "function": {"name": name, "arguments": ""}}
        pieces = [{"index": index, "function": {"arguments": text[at : at + 7]}} for at in range(0, len(text), 7)]
        deltas += [{"tool_calls": [piece]} for piece in (first, *pieces)]
    events = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    last = {"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}
    rest = {key: answer[key] for key in ("usage", "time_info") if key in answer}
    return [*events, {**head, **rest, "choices": [last]}]


def expected_usage(usage: dict[str, Any]) -> dict[str, Any]:
    inside = usage.get("prompt_tokens_details") or {}
    inputs = {"cache_read": inside.get("cached_tokens"), "image": usage.get("image_tokens", inside.get("image_tokens"))}
    outputs = {"reasoning": (usage.get("completion_tokens_details") or {}).get("reasoning_tokens")}
    found: dict[str, Any] = {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
    }
    for name, details in (("input_token_details", inputs), ("output_token_details", outputs)):
        known = {key: value for key, value in details.items() if value is not None}
        if known:
            found[name] = known
    return found


def expected(answer: dict[str, Any]) -> dict[str, Any]:
    choice = answer["choices"][0]
    message = choice["message"]
    calls = [
        (call["id"], call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", [])
    ]
    return {
        "text": message.get("content") or "",
        "reasoning": message.get("reasoning", ""),
        "tool_calls": [{"type": "tool_call", "id": i, "name": n, "args": json.loads(a)} for i, n, a in calls],
        "invalid_tool_calls": [],
        "usage": expected_usage(answer["usage"]),
        "metadata": {
            **{name: answer[name] for name in METADATA if name in answer},
            "model_name": answer["model"],
            "model_provider": "cerebras",
            "finish_reason": choice["finish_reason"],
            "token_usage": answer["usage"],
        },
    }


def seen(message: AIMessage) -> dict[str, Any]:
    metadata = dict(message.response_metadata)
    metadata.pop("output_version", None)
    return {
        "text": str(message.text),
        "reasoning": message.additional_kwargs.get("reasoning_content", ""),
        "tool_calls": message.tool_calls,
        "invalid_tool_calls": message.invalid_tool_calls,
        "usage": message.usage_metadata,
        "metadata": metadata,
    }


def _graph(model: Any) -> Any:
    def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    async def async_node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", RunnableLambda(node, async_node))
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile()


async def _stream_of_graph(model: Any, prompt: str) -> AIMessage:
    state = {"messages": [HumanMessage(prompt)]}
    return merged([chunk for chunk, _ in _graph(model).stream(state, stream_mode="messages")])


async def _astream_of_graph(model: Any, prompt: str) -> AIMessage:
    state = {"messages": [HumanMessage(prompt)]}
    return merged([chunk async for chunk, _ in _graph(model).astream(state, stream_mode="messages")])


async def _state_of_stream_of_graph(model: Any, prompt: str) -> AIMessage:
    state = {"messages": [HumanMessage(prompt)]}
    *_, (_, last) = _graph(model).stream(state, stream_mode=["messages", "values"])
    return last["messages"][-1]


PATHS = {
    **ALL_PATHS,
    "stream of a graph": _stream_of_graph,
    "astream of a graph": _astream_of_graph,
    "state of a graph that streams": _state_of_stream_of_graph,
}


@pytest.mark.parametrize("number", recordings.numbers())
async def test_recorded_exchange_is_one_answer_on_all_paths(number: str) -> None:
    exchange = recordings.load(number)
    if "/models" in (exchange["request"] or {}).get("url", "") or exchange["response"]["status"] != 200:
        return
    if recordings.is_stream(exchange):
        service = Service(recordings.body(exchange), whole_of_stream(recordings.events(exchange)))
    else:
        answer = json.loads(recordings.body(exchange))
        service = Service(stream_of_whole(answer), answer)
    assert isinstance(service.answer, dict)
    wanted = expected(service.answer)
    model = service.model()
    for path, ask in PATHS.items():
        message = await ask(model, "hi")
        assert seen(message) == wanted, path
        assert reasoning_of(message) == wanted["reasoning"], path
        assert bool(service.bodies[-1].get("stream")) is ("stream" in path), path
    assert len(service.requests) == len(PATHS)


REFUSALS = [
    number
    for number in recordings.numbers()
    if number == "absent" or recordings.load(number)["response"]["status"] != 200
]


@pytest.mark.parametrize("path", ALL_PATHS)
@pytest.mark.parametrize("number", REFUSALS)
async def test_recorded_refusal_is_one_error_on_all_paths(number: str, path: str) -> None:
    exchange = recordings.load(number)
    answer = exchange["response"]
    headers = {name: value for name, value in answer["headers"].items() if name != "content-encoding"}
    service = Service(
        answer=lambda: httpx.Response(answer["status"], headers=headers, content=recordings.body(exchange))
    )
    said = json.loads(recordings.body(exchange))
    with pytest.raises(errors.APIStatusError) as caught:
        await ALL_PATHS[path](service.model(), "hi")
    error = caught.value
    assert (error.status_code, error.message, error.code) == (answer["status"], said["message"], said.get("code"))
    assert isinstance(error, core_errors.APIStatusError)
    assert error.response.json() == said
    assert len(service.requests) == 1

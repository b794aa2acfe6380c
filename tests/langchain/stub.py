"""A scripted service for the tests of tools, structured output, events and agents, and the ways to ask a model."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from operator import add
from typing import Any

import httpx

from langchain_cerebras_ext import ChatCerebras

MODEL = "gpt-oss-120b"
PATHS = ("invoke", "ainvoke", "stream", "astream")
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
TIMES = {"queue_time": 0.25, "total_time": 0.5}


def say(content: str | None = None, *, reasoning: str | None = None, finish: str = "stop") -> dict[str, Any]:
    """An answer in text."""
    message = {"content": content, "reasoning": reasoning}
    return {"finish_reason": finish, "message": {key: text for key, text in message.items() if text is not None}}


def call(*calls: tuple[str, str | None], content: str | None = None, finish: str = "tool_calls") -> dict[str, Any]:
    """An answer that calls tools: names, and arguments as text."""
    answer = say(content, finish=finish)
    answer["message"]["tool_calls"] = [
        {"id": f"c{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for number, (name, arguments) in enumerate(calls)
    ]
    return answer


def refuse(status: int, message: str, **more: Any) -> httpx.Response:
    """A refusal in the form of the service."""
    return httpx.Response(status, json={"message": message, "type": "invalid_request_error", **more})


Answer = dict[str, Any] | httpx.Response | Callable[[dict[str, Any]], dict[str, Any]]


class Stub:
    """Answers requests in turn, streamed or not as they ask, and keeps their bodies. The last answer repeats."""

    def __init__(self, *answers: Answer, piece: int = 3) -> None:
        self.answers = list(answers)
        self.bodies: list[dict[str, Any]] = []
        self._piece = piece

    def model(self, **fields: Any) -> ChatCerebras:
        transport = httpx.MockTransport(self._handle)
        fields = {"model": MODEL, "api_key": "csk-test", "max_retries": 0, **fields}
        return ChatCerebras(
            http_client=httpx.Client(transport=transport),
            http_async_client=httpx.AsyncClient(transport=transport),
            **fields,
        )

    @property
    def body(self) -> dict[str, Any]:
        """The only body that was sent, without what every request has."""
        assert len(self.bodies) == 1
        return {key: value for key, value in self.bodies[0].items() if key not in ("model", "messages", "stream")}

    def _handle(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        self.bodies.append(body)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, httpx.Response):
            return answer
        if callable(answer):
            answer = answer(body)
        head = {"id": "chatcmpl-1", "created": 1, "model": body["model"], "system_fingerprint": "fp_1"}
        if body.get("stream"):
            events = [{**head, "object": "chat.completion.chunk", **part} for part in self._parts(answer)]
            text = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
            return httpx.Response(200, text=text, headers={"content-type": "text/event-stream"})
        message = {"role": "assistant", **answer["message"]}
        choice = {"index": 0, "finish_reason": answer["finish_reason"], "message": message}
        whole = {**head, "object": "chat.completion", "choices": [choice], "usage": USAGE, "time_info": TIMES}
        return httpx.Response(200, json=whole)

    def _parts(self, answer: Mapping[str, Any]) -> list[dict[str, Any]]:
        message = answer["message"]
        deltas: list[dict[str, Any]] = [{"role": "assistant"}]
        for key in ("reasoning", "content"):
            deltas += [{key: piece} for piece in self._cut(message.get(key) or "")]
        for index, whole in enumerate(message.get("tool_calls", ())):
            function = whole["function"]
            first = {**whole, "index": index, "function": {"name": function["name"], "arguments": ""}}
            deltas.append({"tool_calls": [first]})
            deltas += [
                {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}
                for piece in self._cut(function["arguments"] or "")
            ]
        parts: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
        last = {"index": 0, "delta": {}, "finish_reason": answer["finish_reason"]}
        return [*parts, {"choices": [last], "usage": USAGE, "time_info": TIMES}]

    def _cut(self, text: str) -> list[str]:
        return [text[start : start + self._piece] for start in range(0, len(text), self._piece)]


async def ask(runnable: Any, path: str, question: Any = "q", /, **options: Any) -> Any:
    """Ask a model or chain in one of the ways; chunks of a stream are added up."""
    if path == "invoke":
        return runnable.invoke(question, **options)
    if path == "ainvoke":
        return await runnable.ainvoke(question, **options)
    return reduce(add, await chunks(runnable, path, question, **options))


async def chunks(runnable: Any, path: str, question: Any = "q", /, **options: Any) -> list[Any]:
    """Return what a stream yields."""
    if path == "stream":
        return list(runnable.stream(question, **options))
    return [chunk async for chunk in runnable.astream(question, **options)]


async def last(runnable: Any, path: str, question: Any = "q", /, **options: Any) -> Any:
    """Ask, and return the answer or the last thing that a stream yields."""
    if path in ("invoke", "ainvoke"):
        return await ask(runnable, path, question, **options)
    return (await chunks(runnable, path, question, **options))[-1]

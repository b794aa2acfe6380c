"""An imitation of `POST /v1/completions` that runs in the process, and the ways to ask a `CerebrasLLM`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx
from langchain_core.outputs import LLMResult
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run

from langchain_cerebras_ext.llm import CerebrasLLM

USAGE = {
    "prompt_tokens": 4,
    "completion_tokens": 2,
    "total_tokens": 6,
    "prompt_tokens_details": {"cached_tokens": 1},
}
TIME_INFO = {"queue_time": 0.25, "prompt_time": 0.5, "completion_time": 0.125, "total_time": 0.875, "created": 7.0}
HEAD = {
    "id": "chatcmpl-1",
    "object": "text_completion",
    "created": 7,
    "model": "m-served",
    "system_fingerprint": "fp_1",
}
PATHS = ("invoke", "ainvoke", "stream", "astream")


def logprobs_of(tokens: list[str], start: int = 0) -> dict[str, Any]:
    """Log probabilities in the service's form; the second most likely token is `index`, which merging must survive."""
    offsets = [start + len("".join(tokens[:position])) for position in range(len(tokens))]
    return {
        "text_offset": offsets,
        "token_logprobs": [-0.5 * len(token) for token in tokens],
        "tokens": tokens,
        "top_logprobs": [{token: -0.5, "index": -1.5} for token in tokens],
    }


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


class TextService:
    """Answers every prompt with its own text; choices come in reverse order, as nothing promises an order."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[httpx.Headers] = []
        self.answer: Callable[[dict[str, Any]], httpx.Response] | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/v1/completions"
        body = json.loads(request.content)
        self.bodies.append(body)
        self.headers.append(request.headers)
        if self.answer is not None:
            return self.answer(body)
        return self.stream(body) if body.get("stream") else self.whole(body)

    @staticmethod
    def prompts(body: dict[str, Any]) -> list[Any]:
        prompt = body["prompt"]
        many = isinstance(prompt, list) and not isinstance(prompt[0], int)
        return list(prompt) if many else [prompt]

    def whole(self, body: dict[str, Any]) -> httpx.Response:
        choices = []
        for position, prompt in enumerate(self.prompts(body)):
            for number in range(body.get("n", 1)):
                choice = self.choice(body, [f"<{prompt}", f"#{number}>"])
                choice["index"] = position * body.get("n", 1) + number
                choices.append({**choice, "finish_reason": "stop"})
        content = {**HEAD, "choices": choices[::-1], "usage": USAGE, "time_info": TIME_INFO}
        return httpx.Response(200, json=content, headers={"x-request-id": "r-1", "set-cookie": "s=1"})

    @staticmethod
    def choice(body: dict[str, Any], tokens: list[str], start: int = 0) -> dict[str, Any]:
        choice: dict[str, Any] = {"index": 0, "text": "".join(tokens), "tokens": None}
        if body.get("return_raw_tokens"):
            choice |= {"text": "", "tokens": [len(token) for token in tokens]}
        if body.get("logprobs") is not None:
            choice["logprobs"] = logprobs_of(tokens, start)
        return choice

    def stream(self, body: dict[str, Any]) -> httpx.Response:
        first = f"<{self.prompts(body)[0]}"
        events = [
            event({**HEAD, "choices": [self.choice(body, [first])]}),
            event({**HEAD, "choices": [self.choice(body, ["#0>"], len(first))]}),
            event({**HEAD, "choices": [{"index": 0, "text": "", "finish_reason": "stop"}]}),
            event({**HEAD, "choices": [], "usage": USAGE, "time_info": TIME_INFO}),
            b"data: [DONE]\n\n",
        ]
        headers = {"content-type": "text/event-stream", "x-request-id": "r-1", "set-cookie": "s=1"}
        return httpx.Response(200, content=b"".join(events), headers=headers)

    def llm(self, **fields: Any) -> CerebrasLLM:
        transport = httpx.MockTransport(self)
        return CerebrasLLM(
            **{
                "model": "m",
                "api_key": "csk-PLANTED",
                "http_client": httpx.Client(transport=transport),
                "http_async_client": httpx.AsyncClient(transport=transport),
                "max_retries": 0,
                **fields,
            }
        )


class Recorder(BaseTracer):
    """Keeps the runs that it is told of, like LangSmith's tracer."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


async def ask(llm: Any, path: str, prompt: str, **options: Any) -> tuple[str, dict[str, Any]]:
    """Ask in one of four ways; return the text as the caller sees it, and the generation as callbacks see it."""
    recorder = Recorder()
    config = {"callbacks": [recorder]}
    if path == "invoke":
        text = llm.invoke(prompt, config, **options)
    elif path == "ainvoke":
        text = await llm.ainvoke(prompt, config, **options)
    elif path == "stream":
        text = "".join(llm.stream(prompt, config, **options))
    else:
        text = "".join([piece async for piece in llm.astream(prompt, config, **options)])
    outputs = recorder.runs[-1].outputs
    assert outputs is not None
    ((generation,),) = outputs["generations"]
    return text, generation


def texts(result: LLMResult) -> list[list[str]]:
    return [[generation.text for generation in row] for row in result.generations]

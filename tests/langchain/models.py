"""Both models over an imitation of the service that runs in the process, for what holds for both alike."""

from __future__ import annotations

import json
from typing import Any

import httpx

from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from langchain_cerebras_ext.llm import CerebrasLLM

CLASSES: tuple[type[CerebrasBase], ...] = (ChatCerebras, CerebrasLLM)
PATHS = ("invoke", "ainvoke", "stream", "astream")
KEY = "csk-PLANTED-0123456789"


class Service:
    """Answers chat and completions with `ok`, or with what `responses` hold in turn (the last one repeats)."""

    def __init__(self, *responses: httpx.Response | Exception) -> None:
        self.requests: list[httpx.Request] = []
        self.responses = list(responses)

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(request.content) for request in self.requests]

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.responses:
            response = self.responses[0] if len(self.responses) == 1 else self.responses.pop(0)
            if isinstance(response, Exception):
                raise response
            return httpx.Response(response.status_code, headers=response.headers, content=response.content)
        body = json.loads(request.content)
        chat = request.url.path == "/v1/chat/completions"
        said: dict[str, Any] = {"message": {"role": "assistant", "content": "ok"}} if chat else {"text": "ok"}
        if body.get("stream"):
            said = {"delta": {"content": "ok"}} if chat else {"text": "ok"}
        choice = {"index": 0, "finish_reason": "stop", **said}
        answer = {"id": "c", "created": 1, "model": body["model"], "choices": [choice], "usage": {"total_tokens": 2}}
        if body.get("stream"):
            return httpx.Response(200, content=f"data: {json.dumps(answer)}\n\ndata: [DONE]\n\n".encode())
        return httpx.Response(200, json=answer)

    def model(self, cls: type[CerebrasBase], **fields: Any) -> Any:
        transport = httpx.MockTransport(self)
        return cls(
            **{
                "model": "m",
                "api_key": KEY,
                "http_client": httpx.Client(transport=transport),
                "http_async_client": httpx.AsyncClient(transport=transport),
                **fields,
            }
        )


async def ask(model: Any, path: str, prompt: Any = "q", **options: Any) -> str:
    """Ask in one of four ways and return the text."""
    if path == "invoke":
        pieces = [model.invoke(prompt, **options)]
    elif path == "ainvoke":
        pieces = [await model.ainvoke(prompt, **options)]
    elif path == "stream":
        pieces = list(model.stream(prompt, **options))
    else:
        pieces = [piece async for piece in model.astream(prompt, **options)]
    return "".join(piece if isinstance(piece, str) else str(piece.text) for piece in pieces)

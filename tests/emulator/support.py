"""Talks to the emulator without any help of the library."""

from __future__ import annotations

import json
from typing import Any

import httpx

from cerebras_ext.emulator import Emulator

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
MODEL = "gpt-oss-120b"
HEADERS = {"authorization": "Bearer test-key"}


def post(emulator: Emulator, path: str, body: Any, headers: dict[str, str] | None = None) -> httpx.Response:
    """Post a JSON value, or bytes as they are."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(
        emulator.base_url + path,
        content=content,
        headers={"content-type": "application/json", **HEADERS, **(headers or {})},
        timeout=30,
        trust_env=False,
        verify=False,
    )


def get(emulator: Emulator, path: str, **options: Any) -> httpx.Response:
    return httpx.get(
        emulator.base_url + path, headers=options.pop("headers", HEADERS), trust_env=False, verify=False, **options
    )


def user(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


def chat_body(messages: str | list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    return {"model": MODEL, "messages": user(messages) if isinstance(messages, str) else messages, **fields}


def ask(emulator: Emulator, messages: str | list[dict[str, Any]], **fields: Any) -> dict[str, Any]:
    """Return the first choice of a chat answer."""
    answer = post(emulator, CHAT, chat_body(messages, **fields))
    assert answer.status_code == 200, answer.text
    choice: dict[str, Any] = answer.json()["choices"][0]
    return choice


def say(emulator: Emulator, messages: str | list[dict[str, Any]], **fields: Any) -> str:
    """Return the text of a chat answer."""
    content: str = ask(emulator, messages, **fields)["message"]["content"]
    return content


def calls(emulator: Emulator, messages: str | list[dict[str, Any]], **fields: Any) -> list[tuple[str, Any]]:
    """Return names and decoded arguments of the tool calls of a chat answer."""
    message = ask(emulator, messages, **fields)["message"]
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [(function["name"], json.loads(function["arguments"])) for function in functions]


def events(text: str) -> list[dict[str, Any]]:
    """Return the JSON events of a stream."""
    return [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]


def complete(emulator: Emulator, prompt: Any, **fields: Any) -> dict[str, Any]:
    """Return the whole answer of the completions endpoint."""
    answer = post(emulator, COMPLETIONS, {"model": MODEL, "prompt": prompt, **fields})
    assert answer.status_code == 200, answer.text
    whole: dict[str, Any] = answer.json()
    return whole

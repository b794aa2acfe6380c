"""Without a framework: httpx with its raw bytes and a fast JSON parser, and the official SDK."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pydantic_core

from benchmarks.candidates import KEY, MODEL, TOOL, Library, Setup

_HEADERS = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}


def wire_body(setup: Setup, *, stream: bool) -> dict[str, Any]:
    """Return the request body that every candidate sends in its own way."""
    body: dict[str, Any] = {"model": MODEL}
    if setup.prompt is None:
        body["messages"] = setup.messages
    else:
        body["prompt"] = setup.prompt
    if setup.tools:
        body["tools"] = [TOOL]
    if stream:
        body["stream"] = True
    return body


class _Events:
    """The least that reads a stream: events split at blank lines, their JSON parsed, nothing built."""

    def __init__(self) -> None:
        self.rest = b""
        self.count = 0

    def feed(self, data: bytes) -> None:
        *frames, self.rest = (self.rest + data).split(b"\n\n")
        for frame in frames:
            if not frame.startswith(b"data: [DONE]"):
                pydantic_core.from_json(frame[6:])
                self.count += 1


class RawHttpx:
    """httpx clients as a careful user would make them."""

    def __init__(self, setup: Setup) -> None:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        self.client = httpx.Client(headers=_HEADERS, timeout=60, limits=limits, verify=False)
        self.async_client = httpx.AsyncClient(headers=_HEADERS, timeout=60, limits=limits, verify=False)
        self.setup = setup
        path = "/v1/chat/completions" if setup.prompt is None else "/v1/completions"
        self.url = httpx.URL(setup.url + path)

    def _content(self, *, stream: bool) -> bytes:
        return json.dumps(wire_body(self.setup, stream=stream), separators=(",", ":")).encode()

    def stream(self) -> int:
        """Read a whole stream."""
        events = _Events()
        with self.client.stream("POST", self.url, content=self._content(stream=True)) as response:
            for data in response.iter_raw():
                events.feed(data)
        return events.count

    async def astream(self) -> int:
        """Read a whole stream, async."""
        events = _Events()
        async with self.async_client.stream("POST", self.url, content=self._content(stream=True)) as response:
            async for data in response.aiter_raw():
                events.feed(data)
        return events.count

    def call(self) -> int:
        """Ask once."""
        response = self.client.post(self.url, content=self._content(stream=False))
        response.json()
        return 1

    async def acall(self) -> int:
        """Ask once, async."""
        response = await self.async_client.post(self.url, content=self._content(stream=False))
        response.json()
        return 1


def raw() -> Library:
    """httpx alone."""
    return Library("httpx", RawHttpx)


def sdk() -> Library:
    """The official SDK."""
    from cerebras.cloud.sdk import AsyncCerebras, Cerebras

    class Sdk:
        def __init__(self, setup: Setup) -> None:
            keywords: dict[str, Any] = {"api_key": KEY, "base_url": setup.url, "warm_tcp_connection": False}
            client, async_client = Cerebras(**keywords), AsyncCerebras(**keywords)
            chat = setup.prompt is None
            self.create: Any = client.chat.completions.create if chat else client.completions.create
            self.acreate: Any = async_client.chat.completions.create if chat else async_client.completions.create
            self.body = wire_body(setup, stream=False)

        def stream(self) -> int:
            return sum(1 for _ in self.create(**self.body, stream=True))

        async def astream(self) -> int:
            count = 0
            async for _ in await self.acreate(**self.body, stream=True):
                count += 1
            return count

        def call(self) -> int:
            self.create(**self.body)
            return 1

        async def acall(self) -> int:
            await self.acreate(**self.body)
            return 1

    return Library("sdk", Sdk)

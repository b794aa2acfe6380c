"""The emulator's answers against the shapes of all recorded ones, read without the library."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from cerebras_ext.emulator import Emulator
from tests.conformance import recordings
from tests.emulator.support import CHAT, chat_body, events, get, post
from tests.emulator.test_tools import ALL

pytestmark = pytest.mark.recordings

Shape = set[tuple[str, str]]


def shape(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the type of everything inside a JSON value."""
    if isinstance(value, dict):
        yield path, "object"
        for key, item in value.items():
            yield from shape(item, f"{path}.{key}")
    elif isinstance(value, list):
        yield path, "array"
        for item in value:
            yield from shape(item, f"{path}[]")
    else:
        yield path, type(value).__name__


@functools.cache
def recorded() -> dict[str, list[Any]]:
    """Return the recorded values by kind."""
    kinds: dict[str, list[Any]] = {"chunk": [], "answer": [], "error": [], "models": [], "headers": []}
    for number in recordings.numbers():
        exchange = recordings.load(number)
        answer = exchange["response"]
        if recordings.is_stream(exchange):
            kinds["chunk"].append(recordings.events(exchange))
        elif answer["status"] >= 400:
            kinds["error"].append(json.loads(recordings.body(exchange)))
        else:
            value = json.loads(recordings.body(exchange))
            kinds["models" if value.get("object") == "list" else "answer"].append(value)
        kinds["headers"].append(answer["headers"])
    return kinds


def union(values: list[Any]) -> Shape:
    return {found for value in values for found in shape(value)}


def required(values: list[Any]) -> Shape:
    """Return what every value has, where a recent one has it too."""
    return set.intersection(*(set(shape(value)) for value in values))


BODIES = [
    chat_body("hello"),
    chat_body("Count to 40", max_tokens=30),
    chat_body("Weather in Paris and London?", tools=ALL),
    *({"model": model, **chat_body("What is 2 + 2?")} | {"model": model} for model in ("gemma-4-31b", "zai-glm-4.7")),
    {**chat_body("Weather in Paris?", tools=ALL), "model": "zai-glm-4.7"},
]


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_whole_answers(emu: Emulator, number: int) -> None:
    value = post(emu, CHAT, BODIES[number]).json()
    made = set(shape(value))
    known = recorded()["answer"]
    assert made <= union(known)
    assert {path for path, _ in required(known)} <= {path for path, _ in made}


@pytest.mark.parametrize("number", range(len(BODIES)))
def test_streams(emu: Emulator, number: int) -> None:
    chunks = events(post(emu, CHAT, BODIES[number] | {"stream": True}).text)
    streams = recorded()["chunk"]
    assert set(shape(chunks[0])) == union([stream[0] for stream in streams])
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant"}
    middle = [chunk for stream in streams for chunk in stream[1:-1]]
    allowed = {frozenset(shape(chunk)) for chunk in middle}
    for chunk in chunks[1:-1]:
        assert frozenset(shape(chunk)) in allowed
    # The recorded streams of the model with images are older than its whole answers, and so is their usage.
    newer = {(path, kind) for path, kind in union(recorded()["answer"]) if path.startswith(".usage")}
    assert set(shape(chunks[-1])) <= union([stream[-1] for stream in streams]) | newer
    assert chunks[-1]["choices"][0]["delta"] == {}
    assert list(chunks[-1]) == list(streams[-1][-1])


def test_framing(emu: Emulator) -> None:
    answer = post(emu, CHAT, chat_body("hello", stream=True))
    assert answer.headers["content-type"] in {headers.get("content-type") for headers in recorded()["headers"]}
    lines = answer.text.split("\n")
    assert all(line.startswith("data: ") for line in lines[:-2:2])
    assert not any(lines[1::2])
    assert answer.text.endswith("}\n\ndata: [DONE]\n\n")


def test_errors(emu: Emulator) -> None:
    flat = {frozenset(value) for value in recorded()["error"]}
    for body in (chat_body("x", store=1), {**chat_body("x"), "model": "x"}):
        assert frozenset(post(emu, CHAT, body).json()) in flat


def test_models(emu: Emulator) -> None:
    assert set(shape(get(emu, "/v1/models").json())) <= union(recorded()["models"])


def test_headers(emu: Emulator) -> None:
    names = {name for headers in recorded()["headers"] for name in headers}
    wanted = {name for name in names if name.startswith("x-ratelimit") or name in ("x-request-id", "inference-id")}
    for stream in (False, True):
        answer = post(emu, CHAT, chat_body("hello", stream=stream))
        assert wanted <= set(answer.headers)
        part = events(answer.text)[0] if stream else answer.json()
        assert answer.headers["inference-id"] == part["id"]
        assert answer.headers["x-request-id"] == answer.headers["cf-ray"]
        assert all(float(answer.headers[name]) >= 0 for name in wanted if "ratelimit" in name)

"""Every field of the completions endpoint reaches the wire from every level, on every path."""

from __future__ import annotations

from typing import Any

import pytest

from cerebras_ext.types import CompletionRequest
from langchain_cerebras_ext.llm import CerebrasLLM
from tests.langchain.text_service import PATHS, TextService, ask

OF_THE_CALL = {"model", "prompt", "stream", "extra_body"}
VALUES: dict[str, Any] = {
    "best_of": 3,
    "echo": True,
    "frequency_penalty": 0.5,
    "grammar_root": "root",
    "logit_bias": {"5": 1.5},
    "logprobs": 0,
    "max_tokens": 9,
    "min_tokens": -1,
    "n": 1,
    "presence_penalty": -0.5,
    "prompt_cache_key": "key",
    "reasoning_format": "raw",
    "return_raw_tokens": False,
    "seed": 0,
    "stop": ["x", "y"],
    "stream_options": {"include_usage": True},
    "suffix": "end",
    "temperature": 0.0,
    "top_p": 0.25,
    "user": "u",
}
LEVELS = ("constructor", "bind", "call", "extra_body", "model_kwargs")


def test_table_of_values_is_the_list_of_fields() -> None:
    assert VALUES.keys() == CompletionRequest.model_fields.keys() - OF_THE_CALL
    assert VALUES.keys() <= CerebrasLLM.model_fields.keys()


def built(service: TextService, level: str, fields: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The model, and the options of the call, with fields given on one level."""
    if level == "constructor":
        return service.llm(**fields), {}
    if level == "bind":
        return service.llm().bind(**fields), {}
    if level == "call":
        return service.llm(), fields
    return service.llm(**{level: fields}), {}


PLACES = [
    (field, path)
    for field in VALUES
    for path in PATHS
    # Of these two, one is refused with a stream, and one left out without; test_llm.py has tests of that.
    if not (field == "best_of" and "stream" in path) and not (field == "stream_options" and "invoke" in path)
]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("field", "path"), PLACES)
async def test_field_reaches_the_wire(field: str, path: str, level: str) -> None:
    streamed = "stream" in path
    service = TextService()
    llm, options = built(service, level, {field: VALUES[field]})

    await ask(llm, path, "a", **options)

    (body,) = service.bodies
    rest = {"stream": True} if streamed else {}
    assert body == {"model": "m", "prompt": "a", **rest, field: VALUES[field]}


@pytest.mark.parametrize("path", PATHS)
async def test_call_beats_bind_beats_constructor(path: str) -> None:
    service = TextService()
    llm = service.llm(temperature=0.1, top_p=0.1, seed=1).bind(temperature=0.2, top_p=0.2)

    await ask(llm, path, "a", temperature=0.3)

    assert {name: service.bodies[0][name] for name in ("temperature", "top_p", "seed")} == {
        "temperature": 0.3,
        "top_p": 0.2,
        "seed": 1,
    }


@pytest.mark.parametrize("path", PATHS)
async def test_none_says_nothing_on_any_level(path: str) -> None:
    service = TextService()
    nothing = dict.fromkeys(VALUES)

    await ask(service.llm(**nothing, extra_body=None).bind(**nothing), path, "a", temperature=None)

    assert service.bodies[0].keys() - {"stream", "stream_options"} == {"model", "prompt"}


@pytest.mark.parametrize("path", PATHS)
async def test_extra_body_is_sent_as_it_is_and_null_too(path: str) -> None:
    service = TextService()

    await ask(service.llm(extra_body={"a": None, "top_p": 0.5}), path, "a", extra_body={"b": [1]})

    assert {name: service.bodies[0][name] for name in ("a", "b", "top_p")} == {"a": None, "b": [1], "top_p": 0.5}


def test_max_completion_tokens_is_max_tokens_on_this_endpoint() -> None:
    service = TextService()
    service.llm(max_completion_tokens=9).invoke("a")
    service.llm(max_tokens=9).invoke("a", max_completion_tokens=4)
    service.llm().bind(max_tokens=9).invoke("a", max_completion_tokens=5)

    assert [body.get("max_tokens") for body in service.bodies] == [9, 4, 5]
    assert all("max_completion_tokens" not in body for body in service.bodies)

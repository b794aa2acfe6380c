"""Bound options: what wins, what stays bound, and subclasses that stream in their own way."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableBinding, RunnableLambda
from pydantic import BaseModel

from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from tests.langchain.models import CLASSES, PATHS, ask
from tests.langchain.models import Service as Both
from tests.langchain.service import Service
from tests.langchain.stub import Stub, call, say


class City(BaseModel):
    """A city."""

    name: str


def weather(city: str) -> str:
    """Return the weather."""
    return city


LIMITS = {ChatCerebras: "max_completion_tokens", CerebrasLLM: "max_tokens"}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cls", CLASSES)
async def test_an_option_of_the_call_beats_a_bound_one_in_any_spelling(cls: type[CerebrasBase], path: str) -> None:
    service = Both()
    bound = service.model(cls).bind(max_completion_tokens=5).bind(max_tokens=6, stop_sequences=["a"])
    await ask(bound, path, max_completion_tokens=9, stop=["b"])
    await ask(bound, path, max_tokens=8, stop_sequences=["c"])
    sent = [(body[LIMITS[cls]], body["stop"]) for body in service.bodies]
    assert sent == [(9, ["b"]), (8, ["c"])]


@pytest.mark.parametrize("cls", CLASSES)
def test_bindings_are_dumped_as_those_of_langchain_core(cls: type[CerebrasBase]) -> None:
    bound = cls(model="m", api_key="k").bind(seed=1).bind(temperature=0)  # type: ignore[attr-defined]
    assert dumpd(bound)["id"] == RunnableBinding.lc_id()
    assert pickle.loads(pickle.dumps(bound)) == bound


@pytest.mark.parametrize("path", PATHS)
async def test_tools_are_bound_beside_what_is_bound_already(path: str) -> None:
    stub = Stub(say("x"))
    bound = stub.model().bind(seed=1, temperature=1).bind_tools([weather], temperature=0)
    await ask(bound, path)
    assert (stub.bodies[0]["seed"], stub.bodies[0]["temperature"]) == (1, 0)
    assert [tool["function"]["name"] for tool in stub.bodies[0]["tools"]] == ["weather"]


@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_output_keeps_what_is_bound_but_tools(method: str) -> None:
    stub = Stub(call(("City", '{"name": "Rome"}')) if method == "function_calling" else say('{"name": "Rome"}'))
    bound = stub.model().bind_tools([weather], tool_choice="any", seed=1)
    assert bound.with_structured_output(City, method=method).invoke("q") == City(name="Rome")  # type: ignore[attr-defined]
    body = stub.bodies[0]
    assert body["seed"] == 1
    assert not ("tools" in body and "response_format" in body)
    assert [tool["function"]["name"] for tool in body.get("tools", ())] in ([], ["City"])


def test_bound_options_survive_a_subclass_that_makes_its_own_runnables() -> None:
    class Own(ChatCerebras):
        def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
            return RunnableLambda(lambda _: "own")

    assert Own(model="m", api_key="k").bind(seed=1).bind_tools([]).invoke("q") == "own"


def test_profile_of_a_bound_model_is_known_after_an_unknown_one() -> None:
    model = ChatCerebras(model="brand-new-1", api_key="k")
    assert model.profile is None
    assert model.bind(model="gpt-oss-120b").bound.profile["name"]
    assert model.bind(seed=1).bind(model_name="gpt-oss-120b").bound.profile["name"]
    assert model.model_copy(update={"model": "gpt-oss-120b"}).profile["name"]  # type: ignore[index]
    llm = CerebrasLLM(model="brand-new-1", api_key="k")
    llm.model = "gpt-oss-120b"
    assert llm.bind(model="x").bound == llm


class Tagging(ChatCerebras):
    """Streams in its own way."""

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        for chunk in super()._stream(*args, **kwargs):
            if chunk.text:
                chunk.message.additional_kwargs["tag"] = "tagged"
            yield chunk


class Further(Tagging):
    """A subclass of one that does."""


@pytest.mark.parametrize("cls", [Tagging, Further])
def test_a_subclass_that_streams_in_its_own_way_does_so_in_version_3_too(cls: type[ChatCerebras]) -> None:
    model = cls(model="m", api_key="k", **Service().clients())
    assert model.stream_events("q", version="v3").output.additional_kwargs["tag"] == "tagged"
    assert ChatCerebras._stream_chat_model_events is not None

"""Dumps and loads of our models and of chains with them inside; cache keys."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import httpx
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.load import dumpd, dumps
from langchain_core.load import load as load_of_core
from langchain_core.load import loads as loads_of_core
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel
from langchain_core.tools import tool

from cerebras_ext.errors import MissingAPIKeyError
from cerebras_ext.settings import make_timeout
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from langchain_cerebras_ext.llm import CerebrasLLM
from langchain_cerebras_ext.serialization import IMPORT_MAPPINGS, LOAD_OPTIONS, load, loads
from tests.langchain.models import CLASSES, KEY, Service

both = pytest.mark.parametrize("cls", CLASSES)
Cls = type[CerebrasBase]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CEREBRAS_API_KEY", "CEREBRAS_BASE_URL", "CEREBRAS_API_BASE"):
        monkeypatch.delenv(name, raising=False)


def full(cls: Cls, **more: Any) -> Any:
    return cls(
        model="m",
        api_key=KEY,
        base_url="https://gateway.example",
        timeout=3.5,
        max_retries=1,
        temperature=0.5,
        stop=["x"],
        max_tokens=9,
        streaming=True,
        payload="gzip",
        extra_body={"a": {"b": [1, None]}},
        model_kwargs={"c": 1},
        **more,
    )


@both
def test_dump_is_a_constructor_with_the_key_as_a_reference(cls: Cls) -> None:
    dumped = dumpd(full(cls))

    assert dumped["type"] == "constructor"
    assert dumped["kwargs"]["api_key"] == {"lc": 1, "type": "secret", "id": ["CEREBRAS_API_KEY"]}
    assert "PLANTED" not in json.dumps(dumped)
    assert "not_implemented" not in json.dumps(dumped)


def test_ids_in_dumps_never_change() -> None:
    """Stored chains hold them, wherever the classes move."""
    assert ChatCerebras.lc_id() == ["langchain_cerebras_ext", "chat", "ChatCerebras"]
    assert CerebrasLLM.lc_id() == ["langchain_cerebras_ext", "llm", "CerebrasLLM"]
    assert IMPORT_MAPPINGS.keys() == {tuple(cls.lc_id()) for cls in CLASSES}


@both
def test_load_gives_an_equal_model(cls: Cls) -> None:
    model = full(cls)

    assert load(dumpd(model), api_key=KEY) == model
    assert loads(dumps(model), api_key=model.api_key) == model
    assert load(dumpd(model), secrets_map={"CEREBRAS_API_KEY": KEY}) == model


@both
@pytest.mark.parametrize("deep", [False, True])
def test_dump_of_a_changed_copy_is_not_that_of_the_original(cls: Cls, deep: bool) -> None:
    model = full(cls)
    assert model._serialized["kwargs"]["temperature"] == 0.5

    assert model.model_copy(update={"temperature": 1.0}, deep=deep)._serialized["kwargs"]["temperature"] == 1.0
    model.temperature = 0.75
    assert model._serialized["kwargs"]["temperature"] == 0.75


@both
def test_options_for_the_loader_of_core(cls: Cls, monkeypatch: pytest.MonkeyPatch) -> None:
    model = full(cls)
    secrets = {"CEREBRAS_API_KEY": KEY}

    assert load_of_core(dumpd(model), secrets_map=secrets, **LOAD_OPTIONS) == model
    assert loads_of_core(dumps(model), secrets_map=secrets, **LOAD_OPTIONS) == model
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    assert load_of_core(dumpd(model), secrets_from_env=True, **LOAD_OPTIONS) == model


@both
def test_loading_without_a_key_says_so(cls: Cls) -> None:
    with pytest.raises(MissingAPIKeyError):
        load(dumpd(full(cls)))


@both
def test_fine_grained_timeouts_survive(cls: Cls) -> None:
    timeout = make_timeout(30)
    model = cls(model="m", api_key=KEY, timeout=timeout)

    assert load(dumpd(model), api_key=KEY).timeout == timeout
    assert dumps(model) == dumps(cls(model="m", api_key=KEY, timeout=make_timeout(30)))


@tool
def weather(city: str) -> str:
    """Tell the weather."""
    return city


@both
def test_chain_with_a_model_inside_reloads_and_runs(cls: Cls) -> None:
    prompt = ChatPromptTemplate([("system", "Be {mood}."), ("user", "{question}")])
    model: Any = cls(model="m", api_key=KEY, temperature=0.5)
    bound = model.bind_tools([weather]) if cls is ChatCerebras else model.bind(seed=1)
    chain = prompt | bound.with_config(tags=["t"]) | StrOutputParser()

    loaded = loads(dumps(chain), api_key=KEY)

    assert dumps(loaded) == dumps(chain)
    service = Service()
    inside = loaded.steps[1].bound.bound if hasattr(loaded.steps[1].bound, "bound") else loaded.steps[1].bound
    inside.http_client = service.model(cls).http_client
    assert loaded.invoke({"mood": "brief", "question": "q"}) == "ok"
    assert service.bodies[0]["temperature"] == 0.5
    assert ("tools" in service.bodies[0]) == (cls is ChatCerebras)


def test_chain_with_both_models_reloads() -> None:
    models: list[Any] = [cls(model="m", api_key=KEY) for cls in CLASSES]
    chain = RunnableParallel(chat=models[0], text=models[1])

    assert loads(dumps(chain), api_key=KEY) == chain


def test_arguments_that_look_like_a_dump_stay_data() -> None:
    secret = {"lc": 1, "type": "secret", "id": ["CEREBRAS_API_KEY"]}
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": json.dumps(secret)}}]
    service = Service()
    chat = service.model(ChatCerebras)
    answer = {"index": 0, "finish_reason": "tool_calls", "message": {"tool_calls": calls}}
    service.responses.append(httpx.Response(200, json={"model": "m", "choices": [answer]}))

    message = chat.invoke("q")

    assert message.tool_calls[0]["args"] == secret
    assert type(message.tool_calls[0]["args"]) is dict


# ---- cache keys ----

PRINT_KEY = """
import os
os.environ["CEREBRAS_API_KEY"] = "csk-PLANTED-{number}"
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.llm import CerebrasLLM
chat = ChatCerebras(model="gpt-oss-120b", temperature=0.5, logit_bias={{"5": 1.0}})
chat.metadata["x"] = object()
print(chat._get_llm_string(stop=["x"], tools=[{{"type": "function"}}]))
print(sorted(CerebrasLLM(model="m", temperature=0.5).asdict().items()))
"""


def test_keys_are_equal_in_other_processes_and_hold_neither_key_nor_addresses() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", PRINT_KEY.format(number=number)], capture_output=True, text=True, check=True
        ).stdout
        for number in (1, 2)
    ]

    assert said[0] == said[1]
    assert "0.5" in said[0]
    assert "PLANTED" not in said[0]
    assert " at 0x" not in said[0]


VALUES: dict[str, Any] = {
    "model": "other",
    "temperature": 0.75,
    "max_tokens": 3,
    "stop": ["y"],
    "seed": 1,
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "tools": [{"type": "function", "function": {"name": "f"}}],
    "extra_body": {"a": 1},
}


@pytest.mark.parametrize("field", VALUES)
@pytest.mark.parametrize("level", ["constructor", "call"])
def test_cached_answers_are_not_used_for_other_parameters(field: str, level: str) -> None:
    service = Service()
    cache = InMemoryCache()
    plain = service.model(ChatCerebras, cache=cache)
    plain.invoke("q")
    plain.invoke("q")
    service.model(ChatCerebras, cache=cache).invoke("q")
    assert len(service.requests) == 1

    if level == "call":
        plain.invoke("q", **{field: VALUES[field]})
    else:
        service.model(ChatCerebras, cache=cache, **{field: VALUES[field]}).invoke("q")
    assert len(service.requests) == 2


def test_base_url_is_part_of_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    one = ChatCerebras(model="m", api_key=KEY)._get_llm_string()
    monkeypatch.setenv("CEREBRAS_BASE_URL", "http://127.0.0.1:1")

    assert ChatCerebras(model="m", api_key=KEY)._get_llm_string() != one

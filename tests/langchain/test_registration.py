"""`register()`: `cerebras:<model>` for init_chat_model and create_agent."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.chat_models import base as chat_models

from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.registration import register
from tests.langchain.models import Service

base: Any = chat_models


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("CEREBRAS_API_KEY", "k")
    before = dict(base._BUILTIN_PROVIDERS)
    base._BUILTIN_PROVIDERS.pop("cerebras", None)
    base._get_chat_model_creator.cache_clear()
    yield
    base._BUILTIN_PROVIDERS.clear()
    base._BUILTIN_PROVIDERS.update(before)
    base._get_chat_model_creator.cache_clear()


@pytest.fixture
def service() -> Service:
    return Service()


def clients(service: Service) -> dict[str, Any]:
    model = service.model(ChatCerebras)
    return {"http_client": model.http_client, "http_async_client": model.http_async_client}


def test_import_registers_nothing() -> None:
    code = (
        "import langchain_cerebras_ext, sys; assert 'langchain.chat_models.base' not in sys.modules;"
        "from langchain.chat_models import base; print('cerebras' in base._BUILTIN_PROVIDERS)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.strip() == "False", done.stderr


def test_init_chat_model_finds_our_class(service: Service) -> None:
    with pytest.raises(ValueError, match="provider"):
        base.init_chat_model("gpt-oss-120b", model_provider="cerebras")

    assert register()

    model = base.init_chat_model("cerebras:gpt-oss-120b", temperature=0.5, **clients(service))
    assert type(model) is ChatCerebras
    assert model.invoke("q").text == "ok"
    assert service.bodies == [
        {"model": "gpt-oss-120b", "temperature": 0.5, "messages": [{"role": "user", "content": "q"}]}
    ]
    assert type(base.init_chat_model("x", model_provider="cerebras")) is ChatCerebras


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_every_field_is_configurable_per_call(service: Service, asynchronous: bool) -> None:
    register()
    model = base.init_chat_model("cerebras:gpt-oss-120b", configurable_fields="any", **clients(service))
    config = {"configurable": {"model": "cerebras:qwen-3.8-27b", "temperature": 0.25, "max_tokens": 7}}

    answer = await model.ainvoke("q", config) if asynchronous else model.invoke("q", config)

    assert answer.text == "ok"
    assert {name: value for name, value in service.bodies[0].items() if name != "messages"} == {
        "model": "qwen-3.8-27b",
        "temperature": 0.25,
        "max_completion_tokens": 7,
    }


def test_model_without_a_default_is_chosen_at_run_time(service: Service) -> None:
    register()
    model = base.init_chat_model(temperature=0, **clients(service))

    model.invoke("q", {"configurable": {"model": "cerebras:zai-glm-4.7"}})
    model.bind_tools([lookup]).invoke("q", {"configurable": {"model": "gpt-oss-120b", "model_provider": "cerebras"}})

    assert [body["model"] for body in service.bodies] == ["zai-glm-4.7", "gpt-oss-120b"]
    assert service.bodies[1]["tools"][0]["function"]["name"] == "lookup"


def lookup(word: str) -> str:
    """Look a word up."""
    return word


def test_configurable_model_builds_its_model_in_microseconds() -> None:
    register()
    model = base.init_chat_model("cerebras:gpt-oss-120b", configurable_fields="any")
    config = {"configurable": {"temperature": 0.25}}
    model._model(config)
    times = []
    for _ in range(100):
        started = time.perf_counter()
        model._model(config)
        times.append(time.perf_counter() - started)
    assert sorted(times)[50] < 0.002


def test_create_agent_takes_the_name(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    monkeypatch.setattr(ChatCerebras, "_sync_client", service.model(ChatCerebras)._sync_client)

    agent: Any = create_agent("cerebras:gpt-oss-120b")
    answer = agent.invoke({"messages": [("user", "q")]})

    assert answer["messages"][-1].text == "ok"
    assert service.bodies[0]["model"] == "gpt-oss-120b"


def test_registering_again_changes_nothing() -> None:
    assert register()
    entry = base._BUILTIN_PROVIDERS["cerebras"]
    assert register()
    assert base._BUILTIN_PROVIDERS["cerebras"] is entry


def test_entry_of_somebody_else_is_left_alone() -> None:
    theirs = ("langchain_cerebras", "ChatCerebras", base._call)
    base._BUILTIN_PROVIDERS["cerebras"] = theirs

    with pytest.warns(UserWarning, match="langchain_cerebras.ChatCerebras"):
        assert not register()

    assert base._BUILTIN_PROVIDERS["cerebras"] is theirs


@pytest.mark.parametrize("form", [None, {}, {"openai": "langchain_openai"}, {"openai": ("a", "b")}], ids=str)
def test_another_form_of_the_table_is_told_and_not_touched(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "_BUILTIN_PROVIDERS", form)

    with pytest.raises(RuntimeError, match="ChatCerebras"):
        register()

    assert base._BUILTIN_PROVIDERS is form
    assert not form or "cerebras" not in form
    monkeypatch.undo()


def test_missing_langchain_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "langchain.chat_models.base", None)

    with pytest.raises(ImportError, match=r'pip install "cerebras-ext\[langchain\]"'):
        register()

"""What an import of the package loads, and what comes when it is needed."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.tools import tool

import langchain_cerebras_ext
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from langchain_cerebras_ext.connection import Connected
from langchain_cerebras_ext.llm import CerebrasLLM

FLOOR = "import langchain_core.language_models.chat_models, langchain_core.runnables, httpx, gzip"
OURS = {
    "base", "chat", "chunks", "connection", "content", "errors", "from_wire", "keywords", "partial_json", "profiles",
    "registration", "to_wire", "tokens",
}  # fmt: skip
"""Modules that every user of the chat model pays for. Tools, schemas, events and the text model are none of them."""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded(code: str) -> set[str]:
    return set(json.loads(run(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))")))


def test_only_listed_modules_are_loaded() -> None:
    found = loaded("import langchain_cerebras_ext; langchain_cerebras_ext.ChatCerebras") - loaded(FLOOR)

    ours = {name.partition(".")[2] for name in found if name.startswith("langchain_cerebras_ext.")}
    assert ours - OURS == set()
    assert {name for name in found if name.startswith("langchain_core.")} == set()


def test_text_model_is_loaded_at_the_first_use_of_its_name() -> None:
    code = """
import sys, langchain_cerebras_ext
assert "langchain_cerebras_ext.llm" not in sys.modules
assert "CerebrasLLM" in dir(langchain_cerebras_ext)
first = langchain_cerebras_ext.CerebrasLLM
assert vars(langchain_cerebras_ext)["CerebrasLLM"] is first
from langchain_cerebras_ext import *
from langchain_cerebras_ext.llm import CerebrasLLM as again
print(CerebrasLLM is again is first)
"""
    assert run(code).strip() == "True"


def test_unknown_names_of_the_package_are_refused() -> None:
    with pytest.raises(AttributeError, match="'langchain_cerebras_ext' has no attribute 'Cerebras'"):
        _ = langchain_cerebras_ext.Cerebras  # type: ignore[attr-defined]


def test_pickles_load_in_a_process_that_has_imported_nothing() -> None:
    for cls in (ChatCerebras, CerebrasLLM):
        model = cls(model="m", api_key="k").bind(stop=["x"])
        data = pickle.dumps(model)
        code = f"import pickle; print(pickle.loads({data!r}).kwargs)"
        assert run(code).strip() == "{'stop': ['x']}"


def test_only_classes_without_instances_have_no_validator() -> None:
    class Own(ChatCerebras):
        shade: str = "blue"

    class OwnText(CerebrasLLM):
        shade: str = "blue"

    for cls in (ChatCerebras, CerebrasLLM, Own, OwnText):
        assert cls.__pydantic_complete__
    for base in (Connected, CerebrasBase):
        assert not base.__pydantic_complete__
    assert Own(model="m", api_key="k").shade == OwnText(model="m", api_key="k").shade == "blue"


def test_fallbacks_hand_on_what_returns_a_runnable() -> None:
    code = """
from langchain_cerebras_ext import ChatCerebras
model = ChatCerebras(model="m", api_key="k")
def f(x: int) -> int:
    "F."
    return x
schema = {"title": "t", "type": "object", "properties": {"a": {"type": "string"}}}
both = model.with_fallbacks([ChatCerebras(model="n", api_key="k")])
bound = both.bind_tools([f])
names = [one.kwargs["tools"][0]["function"]["name"] for one in (bound.runnable, *bound.fallbacks)]
print(type(bound).__name__, names, type(both.with_structured_output(schema)).__name__)
"""
    assert run(code).strip() == "RunnableWithFallbacks ['f', 'f'] RunnableWithFallbacks"


def test_tools_given_without_binding_are_converted() -> None:
    @tool
    def look(place: str) -> str:
        """Look."""
        return place

    options: list[dict[str, Any]] = [{"tools": [look]}, {"tools": [look], "tool_choice": "any"}]
    model = ChatCerebras(model="m", api_key="k")
    for given in options:
        fields = model._request_fields([], None, given)
        assert fields["tools"][0]["function"]["name"] == "look"
    assert fields["tool_choice"] == "required"

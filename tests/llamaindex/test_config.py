"""LLMs by configuration: `load_llm`, `from_config`, the environment, and a swap from other classes."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import llama_index.core.llms
import pytest
from llama_index.core.llms.loading import RECOGNIZED_LLMS, load_llm
from llama_index.core.llms.mock import MockLLM
from pydantic import ValidationError

import llamaindex_cerebras_ext
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from llamaindex_cerebras_ext.base import CerebrasBase
from llamaindex_cerebras_ext.config import register
from llamaindex_cerebras_ext.keywords import ALIASES, REFUSED, WITHOUT_EFFECT

CLASSES = [Cerebras, CerebrasCompletion]

OPENAI_DUMP: dict[str, Any] = {
    "system_prompt": None, "pydantic_program_mode": "default", "model": "gpt-oss-120b", "temperature": 0.1,
    "max_tokens": 256, "logprobs": None, "top_logprobs": 0, "additional_kwargs": {}, "max_retries": 3, "timeout": 60.0,
    "default_headers": None, "reuse_client": True, "api_key": "csk-test", "api_base": None, "api_version": "",
    "strict": False, "reasoning_effort": None, "modalities": None, "audio_config": None,
}  # fmt: skip
"""What `to_dict` of the OpenAI integration writes."""

INCUMBENT_DUMP = {
    **OPENAI_DUMP, "api_base": "https://api.cerebras.ai/v1/", "context_window": 3900, "is_chat_model": True,
    "is_function_calling_model": False, "tokenizer": None, "should_use_structured_outputs": None,
}  # fmt: skip
"""The same of the integration that LlamaIndex ships, which stands on OpenAILike."""


@pytest.mark.parametrize("cls", CLASSES)
def test_load_llm_knows_the_classes_after_import(cls: type[CerebrasBase]) -> None:
    llm = load_llm({"class_name": cls.class_name(), "model": "m", "temperature": 0.5})
    assert type(llm) is cls
    assert llm == cls(model="m", temperature=0.5)


@pytest.mark.parametrize("cls", CLASSES)
def test_what_to_dict_writes_is_what_load_llm_reads(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", temperature=0.5, timeout=3, default_headers={"a": "b"}, additional_kwargs={"seed": 1})
    assert load_llm(llm.to_dict()) == llm


def test_registering_never_replaces_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(RECOGNIZED_LLMS, "Cerebras", MockLLM)
    register(lambda: Cerebras)
    assert RECOGNIZED_LLMS["Cerebras"] is MockLLM


class Fallible(Loader):
    """Makes a stand-in for core's module; fails at first."""

    def __init__(self) -> None:
        self.failures = 1

    def exec_module(self, module: ModuleType) -> None:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("a provider cannot be imported")
        module.RECOGNIZED_LLMS = {"Cerebras": MockLLM}  # type: ignore[attr-defined]


class Finder(MetaPathFinder):
    """Finds only the stand-in."""

    def __init__(self) -> None:
        self.loader = Fallible()

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self.loader) if name == "llama_index.core.llms.loading" else None


def test_registering_waits_for_the_module_and_survives_its_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    name, finder = "llama_index.core.llms.loading", Finder()
    monkeypatch.setattr(llama_index.core.llms, "loading", None, raising=False)
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    register(lambda: Cerebras)
    register(lambda: CerebrasCompletion)
    assert name not in sys.modules

    with pytest.raises(RuntimeError, match="a provider"):
        importlib.import_module(name)
    loaded = importlib.import_module(name)

    assert dict(loaded.RECOGNIZED_LLMS) == {"Cerebras": MockLLM, "CerebrasCompletion": CerebrasCompletion}
    assert loaded.__loader__ is finder.loader
    assert sys.meta_path[0] is finder


def test_the_package_has_both_classes_and_loads_what_is_asked_for() -> None:
    assert set(llamaindex_cerebras_ext.__all__) <= set(dir(llamaindex_cerebras_ext))
    assert llamaindex_cerebras_ext.CerebrasCompletion is CerebrasCompletion
    with pytest.raises(AttributeError, match="no attribute 'Other'"):
        llamaindex_cerebras_ext.Other  # noqa: B018

    code = "import sys; from llamaindex_cerebras_ext import Cerebras; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "llamaindex_cerebras_ext.chat" in loaded
    assert not {"llamaindex_cerebras_ext.completion", "cerebras_ext.strict_schema"} & set(loaded)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize(
    "config",
    [
        "cerebras:m",
        "m",
        {"model": "m"},
        {"model": "cerebras:m"},
        {"model_name": "m"},
    ],
)
def test_from_config_takes_a_dictionary_or_a_name(cls: type[CerebrasBase], config: Any) -> None:
    assert cls.from_config(config) == cls(model="m")


@pytest.mark.parametrize("cls", CLASSES)
def test_from_config_takes_the_class_name_and_overrides(cls: type[CerebrasBase]) -> None:
    config = {"class_name": cls.class_name(), "model": "m", "temperature": 1}
    assert cls.from_config(config, temperature=0) == cls(model="m", temperature=0)
    assert config == {"class_name": cls.class_name(), "model": "m", "temperature": 1}


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ("openai:gpt", "provider must be 'cerebras'"),
        ("cerebras:", "no model"),
        ("", "no model"),
        ({"class_name": "OpenAI", "model": "m"}, "for 'OpenAI', not for 'Cerebras'"),
        ({"model": "m", "temprature": 1}, "did you mean 'temperature'"),
    ],
)
def test_from_config_refuses_what_is_for_something_else(config: Any, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Cerebras.from_config(config)


def test_a_dump_of_the_openai_class_loads_with_the_class_name_changed() -> None:
    llm = load_llm({"class_name": "Cerebras", **OPENAI_DUMP})
    assert isinstance(llm, Cerebras)
    assert (llm.temperature, llm.max_tokens, llm.max_retries, llm.timeout) == (0.1, 256, 3, 60.0)
    assert llm.top_logprobs is None


def test_a_dump_of_the_incumbent_loads_unchanged() -> None:
    llm = load_llm({"class_name": "Cerebras", **INCUMBENT_DUMP})
    assert isinstance(llm, Cerebras)
    assert llm._client().base_url == "https://api.cerebras.ai"
    assert llm.metadata.context_window == 3900


# ---- the migration table of the documentation ----

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "llamaindex.md"
ROW = re.compile(r"^\| `(?P<keyword>\w+)` \| (?P<family>[^|]+) \| (?P<here>[^|]+) \|$", re.MULTILINE)

OPENAI_KEYWORDS = {
    *OPENAI_DUMP, "callback_manager", "http_client", "async_http_client", "openai_client", "async_openai_client",
    "messages_to_prompt", "completion_to_prompt", "output_parser",
}  # fmt: skip
INCUMBENT_KEYWORDS = {*OPENAI_KEYWORDS, *INCUMBENT_DUMP}


def rows() -> dict[str, str]:
    """The table of `docs/llamaindex.md`: keyword to what becomes of it."""
    if not DOCUMENT.exists():
        pytest.skip("the documentation is not beside the tests")
    return {match["keyword"]: match["here"].strip() for match in ROW.finditer(DOCUMENT.read_text(encoding="utf-8"))}


def test_migration_table_has_every_keyword_of_both_classes() -> None:
    assert set(rows()) >= INCUMBENT_KEYWORDS


def test_migration_table_is_what_the_code_does() -> None:
    for keyword, here in rows().items():
        if here == "the same":
            assert keyword in Cerebras.model_fields, keyword
        elif here.startswith("`"):
            assert ALIASES[keyword] == here.strip("`"), keyword
        else:
            assert keyword in WITHOUT_EFFECT or keyword in REFUSED, keyword
            assert here.startswith("no effect"), keyword


def test_a_keyword_that_no_class_has_is_refused() -> None:
    with pytest.raises(ValidationError, match="unknown keyword"):
        Cerebras(model="m", engine="davinci")

"""Profiles of today's models: what consumers read from them, and that they go with the model."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any, get_type_hints

import pytest
from langchain_core.language_models import ModelProfile
from langchain_core.runnables import ConfigurableField

from cerebras_ext.catalog import DEFAULT_CONTEXT_WINDOW, MODELS, context_window, find_model
from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.profiles import profile_for
from tests.langchain.models import Service

TODAY = ("gpt-oss-120b", "qwen-3.8-27b", "gemma-4-31b", "zai-glm-4.7")
LEFT_OUT = {"structured_output", "release_date", "last_updated"}


def made(**fields: Any) -> Any:
    return ChatCerebras(**{"model": "gpt-oss-120b", "api_key": "k", **fields})


@pytest.mark.parametrize("model", TODAY)
def test_profile_has_every_key_but_those_that_are_not_known(model: str) -> None:
    profile = made(model=model).profile

    unknown = {
        "qwen-3.8-27b": {"max_output_tokens", "open_weights"},
        "gemma-4-31b": {"status"},
        "zai-glm-4.7": {"status", "reasoning_effort_default"},
    }
    assert profile.keys() == get_type_hints(ModelProfile).keys() - LEFT_OUT - unknown.get(model, set())


def test_structured_output_is_left_out_because_agents_would_combine_it_with_tools() -> None:
    assert [model for model in MODELS if "structured_output" in (profile_for(model) or {})] == []


def test_facts_of_the_models() -> None:
    assert {model: info.context_window for model, info in MODELS.items()} == {
        "gpt-oss-120b": 131_000,
        "qwen-3.8-27b": 131_072,
        "gemma-4-31b": 131_072,
        "zai-glm-4.7": 131_072,
    }
    profile = made().profile
    assert profile["max_input_tokens"] == 131_000
    assert profile["max_output_tokens"] == 40_960
    assert profile["reasoning_effort_levels"] == ["low", "medium", "high"]
    assert profile["reasoning_effort_default"] == "medium"
    assert (profile["image_inputs"], made(model="gemma-4-31b").profile["image_inputs"]) == (False, True)


def test_unknown_models_work_without_a_profile() -> None:
    service = Service()
    model = service.model(ChatCerebras, model="brand-new-1")

    assert model.profile is None
    assert model.invoke("q").text == "ok"
    assert (find_model("brand-new-1"), context_window("brand-new-1")) == (None, DEFAULT_CONTEXT_WINDOW)
    assert DEFAULT_CONTEXT_WINDOW >= 8192


def test_profile_of_the_user_is_kept_whatever_the_model() -> None:
    mine: ModelProfile = {"max_input_tokens": 5}
    model = made(profile=mine)

    assert model.profile == mine
    assert model.model_copy(update={"model": "gemma-4-31b"}).profile == mine
    assert model.bind(model="gemma-4-31b").profile == mine
    configurable = model.configurable_fields(model=ConfigurableField("model"))
    assert configurable.with_config(configurable={"model": "gemma-4-31b"}).profile == mine


def test_profiles_are_copies() -> None:
    made().profile["reasoning_effort_levels"].append("x")
    made().profile["max_input_tokens"] = 1

    assert made().profile["max_input_tokens"] == 131_000
    assert made().profile["reasoning_effort_levels"] == ["low", "medium", "high"]


def test_profile_follows_the_model() -> None:
    model = made()
    expected = made(model="gemma-4-31b").profile

    assert model.model_copy(update={"model": "gemma-4-31b"}).profile == expected
    assert model.bind(model="gemma-4-31b").profile == expected
    assert model.bind(model="brand-new-1").profile is None
    assert model.bind(temperature=0).bind(model="gemma-4-31b").profile == expected
    assert model.bind_tools([], temperature=0).bind(model="gemma-4-31b").with_config(tags=["t"]).profile == expected
    assert model.profile["name"] == "GPT OSS 120B"
    model.model = "gemma-4-31b"
    assert model.profile == expected


def test_profile_follows_a_model_that_is_configured_at_run_time() -> None:
    service = Service()
    model = service.model(ChatCerebras, model="gpt-oss-120b").configurable_fields(model=ConfigurableField("model"))

    chosen, _ = model.prepare({"configurable": {"model": "gemma-4-31b"}})
    assert chosen.profile["name"] == "Gemma 4 31B"
    assert model.prepare({"configurable": {"model": "brand-new-1"}})[0].profile is None
    assert model.invoke("q", {"configurable": {"model": "brand-new-1"}}).text == "ok"
    assert service.bodies[0]["model"] == "brand-new-1"


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_still_know_where_their_profile_is_from(make: Any) -> None:
    twin = make(made())

    assert twin.model_copy(update={"model": "gemma-4-31b"}).profile["name"] == "Gemma 4 31B"


def test_no_key_is_unknown_to_the_installed_core() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for model in MODELS:
            made(model=model)

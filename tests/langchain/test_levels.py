"""What the levels of parameters come to is the same whether there is something to merge or not."""

from __future__ import annotations

import inspect
from types import FunctionType
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel

from cerebras_ext.body import merge_levels
from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from tests.langchain.models import CLASSES, KEY

both = pytest.mark.parametrize("cls", CLASSES)
Cls = type[CerebrasBase]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0, "stop": ["x"], "max_tokens": 5, "seed": 0, "user": ""},
    {"extra_body": {"temperature": 1, "x": 2}, "temperature": 0.5},
    {"model_kwargs": {"y": 1}, "extra_body": {"y": 2}},
    {"logit_bias": {"1": 2.0}, "stream_options": {"include_usage": True}},
]


@both
@pytest.mark.parametrize("settings", SETTINGS)
def test_nothing_to_merge_gives_what_a_merge_gives(cls: Cls, settings: dict[str, Any]) -> None:
    model = cls(model="m", api_key=KEY, **settings)
    for stop, options in ((None, {}), (["s"], {}), (None, {"top_p": 0.5, "timeout": 3}), (["s"], {"max_tokens": 1})):
        merged = merge_levels(model._constructor_level(), model._call_level(stop, options))
        assert model._merged(stop, options) == merged
        assert list(model._merged(stop, options)) == list(merged)


@both
def test_what_is_merged_belongs_to_the_call(cls: Cls) -> None:
    model = cls(model="m", api_key=KEY, temperature=0.5)
    model._merged(None, {})["temperature"] = 1
    model._parameters({})["model"] = "other"
    assert model._merged(None, {}) == {"model": "m", "temperature": 0.5}


@both
def test_values_that_are_set_later_count(cls: Cls) -> None:
    model: Any = cls(model="m", api_key=KEY)
    model.temperature = 0.25
    model.model_kwargs["x"] = 1
    assert model._merged(None, {}) == {"model": "m", "temperature": 0.25, "extra_body": {"x": 1}}
    assert model.model_copy(update={"seed": 7})._merged(None, {})["seed"] == 7


def test_fields_that_a_subclass_adds_or_changes_are_sent() -> None:
    class Own(ChatCerebras):
        temperature: float | None = 0.75
        max_completion_tokens: int | None = None
        shade: str = "blue"

    assert Own(model="m", api_key=KEY)._merged(None, {}) == {"model": "m", "temperature": 0.75}
    limited = Own(model="m", api_key=KEY, max_completion_tokens=4)
    assert limited._merged(None, {})["max_completion_tokens"] == 4
    limited.max_tokens = 5
    with pytest.raises(ValueError, match="max_tokens"):
        limited._merged(None, {})


def test_base_classes_of_ones_own_need_not_say_which_request_they_make() -> None:
    class Own(CerebrasBase):
        shade: str = "blue"
        seed: int | None = 7

    class OwnChat(Own, ChatCerebras):
        pass

    class OwnText(Own, CerebrasLLM):
        pass

    for cls in (OwnChat, OwnText):
        assert cls(model="m", api_key=KEY, shade="red")._merged(None, {}) == {"model": "m", "seed": 7}


@both
def test_password_of_the_address_is_not_in_the_parameters(cls: Cls) -> None:
    model = cls(model="m", api_key=KEY, base_url="https://ann:secret@host/v1")
    assert model._parameters({})["base_url"] == "https://***@host"
    assert cls(model="m", api_key=KEY, base_url="https://host")._parameters({})["base_url"] == "https://host"


@pytest.mark.parametrize("options", [{}, {"temperature": 1, "tools": [{}]}])
@pytest.mark.parametrize("stop", [None, ["x"]])
def test_traced_parameters_are_those_of_langchain_core(stop: list[str] | None, options: dict[str, Any]) -> None:
    class Own(ChatCerebras):
        def dict(self, **kwargs: Any) -> dict[str, Any]:
            return {"own": True}

    model = ChatCerebras(model="m", api_key=KEY, temperature=0.5)
    core = BaseChatModel._get_invocation_params(model, stop, **options)
    assert model._get_invocation_params(stop, **options) == core
    assert Own(model="m", api_key=KEY)._get_invocation_params()["own"]


@both
def test_signatures_that_are_asked_for_at_each_call_are_kept(cls: Cls) -> None:
    for name in ("_generate", "_agenerate"):
        method = vars(cls)[name]
        assert method.__signature__ == inspect.signature(_unsigned(method))
        assert "run_manager" in inspect.signature(getattr(cls(model="m", api_key=KEY), name)).parameters


def _unsigned(method: Any) -> Any:
    """The same function without the signature that is kept with it."""
    twin: Any = FunctionType(method.__code__, method.__globals__, method.__name__, method.__defaults__)
    twin.__annotations__ = method.__annotations__
    return twin

"""What both classes share: constructor keywords, levels of settings, metadata, what is told about an LLM."""

from __future__ import annotations

import difflib
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import LLM
from pydantic import SecretStr, ValidationError

from cerebras_ext import catalog
from cerebras_ext.errors import MissingAPIKeyError, RequestValidationError
from cerebras_ext.settings import SettingsOptions
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from llamaindex_cerebras_ext.base import CerebrasBase
from llamaindex_cerebras_ext.keywords import ALIASES, REFUSED, WITHOUT_EFFECT
from tests.llamaindex.scripted import sent_key

CLASSES = [Cerebras, CerebrasCompletion]
KEY = "csk-PLANTED-0123456789"


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def cls(request: pytest.FixtureRequest) -> type[CerebrasBase]:
    found: type[CerebrasBase] = request.param
    return found


# ---- class and metadata ----


def test_class_hierarchy_is_what_agents_and_programs_look_for() -> None:
    assert issubclass(Cerebras, FunctionCallingLLM)
    assert issubclass(CerebrasCompletion, LLM)
    assert not issubclass(CerebrasCompletion, FunctionCallingLLM)
    assert BaseLLM in Cerebras.__mro__


def test_class_names_are_stable_and_apart() -> None:
    assert Cerebras.class_name() == "Cerebras"
    assert CerebrasCompletion.class_name() == "CerebrasCompletion"


@pytest.mark.parametrize("name", ["chat", "achat", "stream_chat", "astream_chat"])
@pytest.mark.parametrize("kind", ["chat", "complete"])
def test_each_public_method_is_defined_once_in_the_hierarchy(name: str, kind: str, cls: type[CerebrasBase]) -> None:
    # A second definition would be wrapped in a second span, and every call would be traced twice.
    name = name.replace("chat", kind)
    ours = [
        base for base in cls.__mro__ if name in vars(base) and base.__module__.startswith("llamaindex_cerebras_ext")
    ]
    assert ours == [cls]


@pytest.mark.parametrize("model", ["gpt-oss-120b", "qwen-3.8-27b"])
def test_context_window_of_a_known_model_is_from_the_catalog(cls: type[CerebrasBase], model: str) -> None:
    assert cls(model=model).metadata.context_window == catalog.MODELS[model].context_window >= 65_536


def test_context_window_of_an_unknown_model_is_a_careful_default_not_an_error(cls: type[CerebrasBase]) -> None:
    assert cls(model="brand-new-1").metadata.context_window >= 8192


def test_context_window_given_by_argument_wins(cls: type[CerebrasBase]) -> None:
    assert cls(model="gpt-oss-120b", context_window=5).metadata.context_window == 5


def test_metadata_says_what_the_class_can() -> None:
    chat, text = Cerebras(model="m").metadata, CerebrasCompletion(model="m").metadata
    assert (chat.is_chat_model, chat.is_function_calling_model, chat.model_name) == (True, True, "m")
    assert (text.is_chat_model, text.is_function_calling_model, text.model_name) == (False, False, "m")


def test_function_calling_can_be_turned_off() -> None:
    assert Cerebras(model="m", is_function_calling_model=False).metadata.is_function_calling_model is False


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, -1),
        ({"max_tokens": 500}, 500),
        ({"additional_kwargs": {"max_tokens": 400}, "max_tokens": 500}, 400),
        ({"max_tokens": -1}, -1),
        ({"max_tokens": 9000, "context_window": 10_000}, 5000),  # more would leave PromptHelper no room for a prompt
    ],
)
def test_num_output_is_the_token_limit(cls: type[CerebrasBase], fields: dict[str, Any], expected: int) -> None:
    assert cls(model="m", **fields).metadata.num_output == expected


def test_num_output_reads_the_new_name_of_the_limit_too() -> None:
    assert Cerebras(model="m", max_completion_tokens=300).metadata.num_output == 300


def test_payload_for_events_tells_model_and_temperature_and_no_secret(cls: type[CerebrasBase]) -> None:
    payload = cls(model="m", temperature=0.5, api_key=KEY, default_headers={"x-key": KEY}).to_payload()
    assert payload["class_name"] == cls.class_name()
    assert payload["model"] == payload["model_name"] == "m"
    assert payload["temperature"] == 0.5
    assert KEY not in repr(payload)
    assert "temperature" not in cls(model="m").to_payload()


# ---- constructor keywords ----


def test_a_misspelt_keyword_is_refused_with_the_nearest_name(cls: type[CerebrasBase]) -> None:
    with pytest.raises(ValidationError, match=r"temprature: unknown keyword .* did you mean 'temperature'"):
        cls(model="m", temprature=1)


def test_several_unknown_keywords_are_told_at_once(cls: type[CerebrasBase]) -> None:
    with pytest.raises(ValidationError) as caught:
        cls(model="m", aaaa=1, zzzz=2)
    assert "aaaa" in str(caught.value)
    assert "zzzz" in str(caught.value)
    assert "extra_body" in str(caught.value)


def test_a_complaint_about_keywords_does_not_show_the_key(cls: type[CerebrasBase]) -> None:
    for wrong in ({"temprature": 1}, {"temperature": 9}, {"timeout": "never"}, {"api_kee": KEY}):
        with pytest.raises(ValidationError) as caught:
            cls(model="m", api_key=KEY, **wrong)
        assert KEY not in str(caught.value)


@pytest.mark.parametrize("model", ["", None])
def test_a_model_is_needed(cls: type[CerebrasBase], model: Any) -> None:
    with pytest.raises(ValidationError, match="model"):
        cls(model=model)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"temperature": 2.5}, r"temperature: .*less than or equal to 2 \(got 2.5\)"),
        ({"top_p": -0.1}, "top_p: "),
        ({"stop": ["a"] * 5}, "stop"),
        ({"additional_kwargs": {"temperature": 2.5}}, "temperature: "),
        ({"additional_kwargs": {"seeed": 1}}, "seeed: unknown field; did you mean 'seed'"),
        ({"additional_kwargs": {"transport": "httptools"}}, "transport: a setting of the client or model"),
        ({"timeout": -1}, "timeout: must be a positive number"),
        ({"queue_threshold": 1}, "queue_threshold: must be 50 to 20000"),
        ({"api_base": "ftp://x"}, "must be an http or https URL"),
        ({"max_retries": -1}, "max_retries"),
        ({"payload": "xml"}, "payload"),
        ({"context_window": 0}, "context_window"),
    ],
)
def test_values_out_of_range_are_refused_when_the_llm_is_made(
    cls: type[CerebrasBase], fields: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError, match=text):
        cls(model="m", **fields)


@pytest.mark.parametrize("name", ["transport", "payload", "coalesce", "http2", "max_retries", "verify", "timeout"])
def test_a_setting_that_is_none_is_not_set(cls: type[CerebrasBase], name: str) -> None:
    assert getattr(cls(model="m", **{name: None}), name) == getattr(cls(model="m"), name)
    assert cls.from_config({"model": "m", name: None}).to_dict() == cls(model="m").to_dict()


@pytest.mark.parametrize(("alias", "name"), [item for item in ALIASES.items() if item[1] != "model"])
def test_other_names_of_fields_are_taken(cls: type[CerebrasBase], alias: str, name: str) -> None:
    values: dict[str, Any] = {
        "api_base": "http://localhost:1",
        "api_key": KEY,
        "timeout": 3.0,
        "max_tokens": 7,
        "default_headers": {"a": "b"},
        "async_http_client": None,
    }
    value = values[name]
    kept = getattr(cls(**{"model": "m", alias: value}), name)
    assert kept == (SecretStr(value) if name == "api_key" else value)
    assert cls(**{"model": "m", alias: value, name: value}) == cls(**{"model": "m", name: value})


def test_what_is_checked_at_construction_may_change_in_between(
    cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CEREBRAS_BASE_URL", "https://first.example")
    bundle = tmp_path / "ca.pem"
    bundle.write_text("")
    for _ in range(2):
        cls(model="m", max_retries=1)
        cls(model="m", verify=str(bundle))

    monkeypatch.setenv("CEREBRAS_BASE_URL", "no address")
    with pytest.raises(ValidationError, match="base_url"):
        cls(model="m", max_retries=1)
    monkeypatch.delenv("CEREBRAS_BASE_URL")
    bundle.unlink()
    with pytest.raises(ValidationError, match="verify"):
        cls(model="m", verify=str(bundle))
    for _ in range(2):
        with pytest.raises(ValidationError, match="api_base"):
            cls(model="m", api_base="no address")


def test_defaults_of_subclasses_are_checked_like_arguments(cls: type[CerebrasBase]) -> None:
    class Hot(cls):  # type: ignore[misc,valid-type]
        temperature: float | None = 9.0

    with pytest.raises(ValidationError, match="temperature"):
        Hot(model="m")
    assert Hot(model="m", temperature=1).temperature == 1


def test_two_names_of_a_field_with_different_values_are_refused(cls: type[CerebrasBase]) -> None:
    with pytest.raises(ValidationError, match="api_base and base_url: two names of one setting"):
        cls(model="m", api_base="http://a", base_url="http://b")
    with pytest.raises(ValidationError, match="base_url and api_base: two names of one setting"):
        cls(model="m", base_url="http://a", api_base="http://b")


@pytest.mark.parametrize("names", [("api_base", "base_url"), ("base_url", "api_base")])
def test_none_under_one_name_of_a_field_says_nothing(cls: type[CerebrasBase], names: tuple[str, str]) -> None:
    llm = cls(model="m", **{names[0]: None, names[1]: "http://host:1"})
    assert llm.api_base == "http://host:1"
    assert cls(model="m", **{names[1]: "http://host:1", names[0]: None}).api_base == "http://host:1"


def test_none_for_additional_kwargs_is_no_options_as_in_the_openai_class(cls: type[CerebrasBase]) -> None:
    assert cls(model="m", additional_kwargs=None).additional_kwargs == {}


def test_model_name_is_another_name_of_model(cls: type[CerebrasBase]) -> None:
    assert cls.model_validate({"model_name": "m"}).model == "m"


@pytest.mark.parametrize(
    "keywords",
    [
        {"reuse_client": False},
        {"api_version": ""},
        {"modalities": ["text"]},
        {"audio_config": None},
        {"openai_client": None, "async_openai_client": None},
        {"tokenizer": None},
        {"should_use_structured_outputs": True},
        {"top_logprobs": 0},
        {"class_name": "OpenAI"},
    ],
)
def test_keywords_of_the_openai_family_that_change_nothing_are_taken(keywords: dict[str, Any]) -> None:
    assert Cerebras(model="m", **keywords) == Cerebras(model="m")


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("api_version", "2024-01-01"),
        ("modalities", ["text", "audio"]),
        ("audio_config", {}),
        ("openai_client", object()),
        ("async_openai_client", object()),
        ("tokenizer", "gpt2"),
        ("should_use_structured_outputs", False),
        ("is_chat_model", False),
    ],
)
def test_keywords_that_would_change_something_are_refused_with_the_way_out(keyword: str, value: Any) -> None:
    with pytest.raises(ValidationError) as caught:
        Cerebras(model="m", **{keyword: value})
    assert f"{keyword}: {REFUSED[keyword]}" in str(caught.value)


def test_every_keyword_that_may_be_refused_has_its_reason() -> None:
    assert set(WITHOUT_EFFECT) <= set(REFUSED)


def test_the_kind_of_model_can_be_said_when_it_is_right(cls: type[CerebrasBase]) -> None:
    is_chat = cls is Cerebras
    assert cls(model="m", is_chat_model=is_chat).metadata.is_chat_model is is_chat


def test_every_request_field_is_a_constructor_field(cls: type[CerebrasBase]) -> None:
    decided_by_methods = {"messages", "prompt", "stream"}
    assert set(cls.request_type.model_fields) - decided_by_methods <= set(cls.model_fields)


def test_request_fields_of_the_class_have_the_descriptions_of_the_request(cls: type[CerebrasBase]) -> None:
    for name, info in cls.request_type.model_fields.items():
        if name in cls.model_fields:
            assert cls.model_fields[name].description == info.description, name


def test_no_two_fields_are_so_alike_that_the_nearest_name_would_mislead(cls: type[CerebrasBase]) -> None:
    for name in cls.model_fields:
        assert difflib.get_close_matches(name, cls.model_fields, n=1)[0] == name


def test_fields_have_json_schemas_because_llms_stand_in_schemas_of_other_components(cls: type[CerebrasBase]) -> None:
    schema = cls.model_json_schema()
    assert schema["properties"]["class_name"]["default"] == cls.class_name()
    assert schema["properties"]["model"]["type"] == "string"
    assert "http_client" not in schema["properties"]


# ---- levels of settings ----


def test_a_call_wins_over_additional_kwargs_and_those_over_the_constructor(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", temperature=0.1, seed=1, top_p=0.1, additional_kwargs={"seed": 2, "top_p": 0.2})
    assert llm._merged({"top_p": 0.3}) == {"model": "m", "temperature": 0.1, "seed": 2, "top_p": 0.3}


def test_none_says_nothing_at_any_level(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", seed=1, additional_kwargs={"seed": None})
    assert llm._merged({"seed": None}) == {"model": "m", "seed": 1}


def test_merging_changes_nothing_of_the_callers(cls: type[CerebrasBase]) -> None:
    extra = {"extra_body": {"a": 1}}
    llm = cls(model="m", additional_kwargs=extra)
    call = {"extra_body": {"b": 2}}
    assert llm._merged(call)["extra_body"] == {"a": 1, "b": 2}
    assert (extra, call, llm.additional_kwargs) == ({"extra_body": {"a": 1}}, {"extra_body": {"b": 2}}, extra)


@pytest.mark.parametrize("name", ["stream", "messages"])
def test_what_the_method_decides_cannot_be_an_option(name: str) -> None:
    with pytest.raises(RequestValidationError, match=f"{name}: decided by the method"):
        Cerebras(model="m")._merged({name: True}, messages=[])


def test_fields_set_later_count(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m")
    llm.model = "other"
    assert llm._merged({}) == {"model": "other"}


# ---- clients ----


def test_clients_are_made_at_first_use_and_kept(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", api_key=KEY)
    assert llm._clients.sync_client is None
    assert llm._clients.async_client is None
    assert llm._client() is llm._client()
    assert llm._async_client() is llm._async_client()


def test_a_changed_setting_takes_effect_at_the_next_call(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", api_key=KEY, api_base="http://a", default_headers={"x": "1"})
    first = llm._client()
    llm.api_base = "http://b"
    assert llm._client().base_url == "http://b"
    assert llm.default_headers is not None
    second = llm._client()
    llm.default_headers["x"] = "2"
    assert llm._client() is not second is not first


def test_settings_reach_the_client(cls: type[CerebrasBase]) -> None:
    context = ssl.create_default_context()
    timeout = httpx.Timeout(9, connect=1)
    llm = cls(
        model="m", api_key=KEY, api_base="http://h/v1", timeout=timeout, max_retries=7, max_retry_wait=3,
        default_headers={"x": "y"}, proxy="http://p", verify=context, payload="gzip", queue_threshold=60,
        stream_idle_timeout=4, http2=False,
    )  # fmt: skip
    for client in (llm._client(), llm._async_client()):
        settings = client._settings
        assert settings.base_url == "http://h"
        assert settings.timeout == timeout
        assert (settings.retries.max_retries, settings.retries.max_retry_wait) == (7, 3)
        assert settings.default_headers == (("x", "y"),)
        assert (settings.connection.proxy, settings.connection.verify) == ("http://p", context)
        assert (settings.payload, settings.queue_threshold, settings.stream_idle_timeout) == ("gzip", 60, 4)


def test_every_setting_of_a_client_is_a_field(cls: type[CerebrasBase]) -> None:
    renamed = {"base_url": "api_base"}
    assert {renamed.get(name, name) for name in SettingsOptions.__annotations__} <= set(cls.model_fields)


def test_base_url_from_the_environment(cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_BASE_URL", "http://from-env/v1")
    assert cls(model="m", api_key=KEY)._client().base_url == "http://from-env"


def test_a_missing_key_is_told_at_construction(cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CEREBRAS_API_KEY", raising=False)
    with pytest.raises(MissingAPIKeyError, match="CEREBRAS_API_KEY"):
        cls(model="m")


def test_a_dump_loads_without_a_key_and_tells_at_the_first_call(
    cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CEREBRAS_API_KEY", raising=False)
    llm = cls.from_dict(cls(model="m", api_key=KEY).to_dict())
    with pytest.raises(MissingAPIKeyError, match="CEREBRAS_API_KEY"):
        llm.complete("q")


def test_the_key_may_be_a_function(cls: type[CerebrasBase]) -> None:
    asked = []

    def key() -> str:
        asked.append(1)
        return KEY

    llm = cls(model="m", api_key=key)
    assert not asked
    assert sent_key(llm) == KEY


@pytest.mark.parametrize("name", ["api_base", "base_url"])
def test_a_bad_address_is_told_by_the_name_that_was_given(cls: type[CerebrasBase], name: str) -> None:
    with pytest.raises(ValidationError, match=f"{name}: must be an http or https URL"):
        cls(model="m", **{name: "ftp://x"})


def test_arguments_have_names(cls: type[CerebrasBase]) -> None:
    untyped: Any = cls
    with pytest.raises(TypeError, match=rf"{cls.__name__} takes keywords only: write {cls.__name__}\(model=\.\.\.\)"):
        untyped("m")

"""The table of defaults in docs/configuration.md says what the code does."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pytest

from cerebras_ext import Client
from cerebras_ext.settings import SettingsOptions, resolve_settings
from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from tests.docs.blocks import ROOT

if TYPE_CHECKING:
    from cerebras_ext.emulator import Emulator

VARIABLES = ("CEREBRAS_BASE_URL", "CEREBRAS_API_BASE", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


def table() -> dict[str, str]:
    rows = {}
    for line in (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            setting, default, _ = (cell.strip() for cell in line.strip("|").split(" | "))
            rows[setting.replace("`", "")] = default.strip("`")
    return rows


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_defaults_are_those_of_the_table(clean: None) -> None:
    settings = resolve_settings()

    assert table() == {
        "api_key": "CEREBRAS_API_KEY",
        "base_url": settings.base_url,
        "timeout": str(settings.timeout.read),
        "timeout to connect": str(settings.timeout.connect),
        "max_retries": str(settings.retries.max_retries),
        "max_retry_wait": str(settings.retries.max_retry_wait),
        "payload": settings.payload,
        "queue_threshold": "not sent" if settings.queue_threshold is None else "",
        "stream_idle_timeout": "no limit" if settings.stream_idle_timeout is None else "",
        "default_headers": "none" if not settings.default_headers else "",
        "proxy": "from the environment" if settings.connection.proxy is None else "",
        "verify": str(settings.connection.verify),
        "http2": str(settings.connection.http2),
        "transport": settings.connection.transport,
        "coalesce": str(settings.coalesce),
    }


def test_table_has_every_setting() -> None:
    named = {name.split()[0] for name in table()}

    assert set(SettingsOptions.__annotations__) - named == set()


def test_proxy_comes_from_the_environment(clean: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")

    assert resolve_settings().connection.proxy == "http://proxy.example:3128"


CHAT_ONLY = {"model": "gpt-oss-120b", "messages": [{"role": "user", "content": "Hello"}]}
PROMPT_ONLY = {"model": "gpt-oss-120b", "prompt": "Hello"}


def stream_of(model: Any, method: str, argument: Any) -> None:
    result = getattr(model, method)(argument)
    if inspect.isgenerator(result):
        list(result)


@pytest.mark.parametrize(
    ("make", "method", "body"),
    [
        (ChatCerebras, "invoke", CHAT_ONLY),
        (ChatCerebras, "stream", {**CHAT_ONLY, "stream": True}),
        (Cerebras, "complete", CHAT_ONLY),
        (Cerebras, "stream_complete", {**CHAT_ONLY, "stream": True}),
        (CerebrasLLM, "stream", {**PROMPT_ONLY, "stream": True}),
        (CerebrasCompletion, "complete", PROMPT_ONLY),
        (CerebrasCompletion, "stream_complete", {**PROMPT_ONLY, "stream": True}),
    ],
)
def test_nothing_is_sent_that_was_not_set(make: Any, method: str, body: dict[str, Any], emulator: Emulator) -> None:
    stream_of(make(model="gpt-oss-120b"), method, "Hello")

    assert [request.body for request in emulator.requests] == [body]


def test_llm_sends_its_prompts_in_one_request_and_nothing_else(emulator: Emulator) -> None:
    CerebrasLLM(model="gpt-oss-120b").generate(["Hello", "Bye"])

    assert [request.body for request in emulator.requests] == [{"model": "gpt-oss-120b", "prompt": ["Hello", "Bye"]}]


def test_core_sends_nothing_that_was_not_set(emulator: Emulator) -> None:
    client = Client()
    client.chat(**CHAT_ONLY)
    list(client.stream_complete(**PROMPT_ONLY))

    assert [request.body for request in emulator.requests] == [CHAT_ONLY, {**PROMPT_ONLY, "stream": True}]

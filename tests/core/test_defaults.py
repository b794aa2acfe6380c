"""What is sent, and what holds, when nothing is set."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import httpx
import pytest

from cerebras_ext import ChatRequest, Client, CompletionRequest, __version__
from cerebras_ext.retry import RetryPolicy
from cerebras_ext.settings import ConnectionSettings, Settings, resolve_settings
from tests.support import KEY, STREAMS, WAYS, Server, Way


def test_default_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert resolve_settings() == Settings(
        base_url="https://api.cerebras.ai",
        timeout=httpx.Timeout(60.0, connect=5.0),
        retries=RetryPolicy(max_retries=2, max_retry_wait=60.0),
        connection=ConnectionSettings(tls=True, proxy=None, verify=True, http2=False),
        default_headers=(),
        payload="json",
        queue_threshold=None,
        stream_idle_timeout=None,
        timeout_is_default=True,
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_nothing_but_the_least_is_sent(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    way.ask(options)
    (received,) = server.requests
    assert received.json == {**way.fields, **({"stream": True} if way.stream else {})}
    assert (received.method, received.path) == ("POST", way.path)
    assert {name: value for name, value in received.headers.items() if name not in ("host", "content-length")} == {
        "authorization": f"Bearer {KEY}",
        "accept": "application/json",
        "accept-encoding": "identity" if way.stream else "gzip, deflate",
        "user-agent": received.headers["user-agent"],
        "x-cerebras-3rd-party-integration": "cerebras-ext",
        "connection": "keep-alive",
        "content-type": "application/json",
    }
    assert received.headers["user-agent"].startswith(f"cerebras-ext/{__version__} ")


@pytest.mark.parametrize("request_type", [ChatRequest, CompletionRequest])
def test_no_field_has_a_default_that_is_sent(request_type: Any) -> None:
    for name, field in request_type.model_fields.items():
        assert field.is_required() == (name in ("model", "messages", "prompt")), name
        assert field.is_required() or field.default is None, name


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_usage_comes_without_asking_for_it(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    assert way.ask(options).response.usage.total_tokens == 3
    assert "stream_options" not in server.requests[0].json


@pytest.mark.parametrize("model", ["brand-new-1", "gpt-oss-120b", "", "zai-glm-4.7"])
def test_model_names_decide_nothing(server: Server, options: dict[str, Any], model: str) -> None:
    if not model:
        with pytest.raises(ValueError, match="model"):
            Client(**options).chat(model=model, messages=[{"role": "user", "content": "q"}])
        return
    server.script = [WAYS[0].answer()]
    messages = [{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}]
    WAYS[0].ask(options, model=model, messages=messages, clear_thinking=True, reasoning_effort="none")
    assert server.requests[0].json == {
        "model": model, "messages": messages, "clear_thinking": True, "reasoning_effort": "none",
    }  # fmt: skip


def test_the_environment_is_not_read_at_import() -> None:
    code = (
        "import os; before = dict(os.environ)\n"
        "import cerebras_ext, cerebras_ext.client\n"
        "os.environ['CEREBRAS_API_KEY'] = 'later'; os.environ['CEREBRAS_BASE_URL'] = 'http://later:1'\n"
        "client = cerebras_ext.Client()\n"
        "assert client.base_url == 'http://later:1' and client._key().get_secret_value() == 'later'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

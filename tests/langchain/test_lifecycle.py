"""Copies, pickles, connections and ends of both models."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import gc
import pickle
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import httpx
import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.rate_limiters import InMemoryRateLimiter
from pydantic import SecretStr

from cerebras_ext.errors import (
    ClientClosedError,
    MissingAPIKeyError,
)
from langchain_cerebras_ext import ChatCerebras, connection
from langchain_cerebras_ext.base import CerebrasBase
from langchain_cerebras_ext.errors import ERROR_TYPES
from langchain_cerebras_ext.llm import CerebrasLLM
from tests.langchain.models import CLASSES, KEY, PATHS, Service, ask
from tests.support import Answer, Server

both = pytest.mark.parametrize("cls", CLASSES)
paths = pytest.mark.parametrize("path", PATHS)
Cls = type[CerebrasBase]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CEREBRAS_API_KEY", "CEREBRAS_BASE_URL", "CEREBRAS_API_BASE"):
        monkeypatch.delenv(name, raising=False)


# ---- copies and pickles ----

COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "cloudpickle": lambda model: cloudpickle.loads(cloudpickle.dumps(model)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda model: model.model_copy(),
    "deep model_copy": lambda model: model.model_copy(deep=True),
}
copies = pytest.mark.parametrize("make", COPIES.values(), ids=COPIES.keys())
ANSWERS = {
    ChatCerebras: b'{"choices":[{"index":0,"finish_reason":"stop","message":{"content":"ok"}}]}',
    CerebrasLLM: b'{"choices":[{"index":0,"finish_reason":"stop","text":"ok"}]}',
}


@contextlib.contextmanager
def served(cls: Cls) -> Iterator[Server]:
    with contextlib.closing(Server()) as server:
        server.script = [Answer((ANSWERS[cls],))]
        yield server


@both
@copies
@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
async def test_copies_and_pickles_work_and_are_equal(cls: Cls, make: Callable[[Any], Any], used: bool) -> None:
    with served(cls) as server:
        model: Any = cls(model="m", api_key=KEY, base_url=server.url, temperature=0.5, max_retries=0, metadata={"a": 1})
        if used:
            assert str(model.invoke("q")).startswith(("ok", "content='ok'"))
            await model.ainvoke("q")
        twin = make(model)
        assert twin == model
        assert twin.api_key.get_secret_value() == KEY
        assert await ask(twin, "invoke") == await ask(twin, "ainvoke") == "ok"


@both
@pytest.mark.parametrize("name", ["copy", "deepcopy", "model_copy"])
def test_copies_share_a_client_of_the_user_and_what_cannot_be_copied(cls: Cls, name: str) -> None:
    service = Service()
    extra: dict[str, Any] = {}
    if cls is ChatCerebras:
        extra["rate_limiter"] = InMemoryRateLimiter(requests_per_second=1e6)
    model = service.model(cls, cache=InMemoryCache(), verify=ssl.create_default_context(), **extra)
    twin = COPIES[name](model)

    twin.invoke("q")
    for field in ("http_client", "http_async_client", "verify", "cache", *extra):
        assert getattr(twin, field) is getattr(model, field)
    assert not model.http_client.is_closed


@both
@pytest.mark.parametrize("field", ["http_client", "http_async_client", "verify"])
def test_pickle_refuses_what_belongs_to_a_process_and_says_what_to_do(cls: Cls, field: str) -> None:
    values = {
        "http_client": httpx.Client(),
        "http_async_client": httpx.AsyncClient(),
        "verify": ssl.create_default_context(),
    }
    with pytest.raises(TypeError, match=field):
        pickle.dumps(cls(model="m", api_key="k", **{field: values[field]}))


@both
def test_key_of_the_environment_stays_there_and_an_explicit_one_travels(
    cls: Cls, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    of_environment = pickle.dumps(cls(model="m"))
    assert KEY.encode() not in of_environment
    assert KEY.encode() in pickle.dumps(cls(model="m", api_key=KEY))

    assert pickle.loads(of_environment) == cls(model="m")
    monkeypatch.setenv("CEREBRAS_API_KEY", "csk-of-the-worker")
    worker = pickle.loads(of_environment)
    assert worker.api_key.get_secret_value() == "csk-of-the-worker"
    monkeypatch.delenv("CEREBRAS_API_KEY")
    keyless = pickle.loads(of_environment)
    with pytest.raises(MissingAPIKeyError):
        keyless.invoke("q")


@both
def test_other_values_get_another_client(cls: Cls) -> None:
    first, second = Service(), Service()
    model = first.model(cls)
    model.invoke("q")
    moved = model.model_copy(update={"http_client": second.model(cls).http_client, "api_key": SecretStr("csk-other")})
    moved.invoke("q")
    model.api_key = SecretStr("csk-third")
    model.invoke("q")

    assert [request.headers["authorization"] for request in first.requests] == [f"Bearer {KEY}", "Bearer csk-third"]
    assert [request.headers["authorization"] for request in second.requests] == ["Bearer csk-other"]


# ---- connections ----

SETTINGS: dict[str, Any] = {
    "base_url": "https://gateway.example",
    "timeout": 3.0,
    "max_retries": 1,
    "max_retry_wait": 5.0,
    "default_headers": {"x-a": "1"},
    "proxy": "http://proxy.example:1",
    "verify": False,
    "http2": False,
    "payload": "gzip",
    "queue_threshold": 50,
    "stream_idle_timeout": 2.0,
    "transport": "httpx",
    "coalesce": True,
}


@both
def test_every_connection_setting_reaches_both_clients(cls: Cls, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []
    for name in ("Client", "AsyncClient"):
        monkeypatch.setattr(connection, name, lambda **options: given.append(options))
    model: Any = cls(model="m", api_key=KEY, **SETTINGS)

    assert SETTINGS.keys() == set(connection.CONNECTION_FIELDS) <= cls.model_fields.keys()
    assert (model._sync_client, model._async_client) == (None, None)
    for options in given:
        assert {name: options[name] for name in SETTINGS} == SETTINGS
        assert options["api_key"].get_secret_value() == KEY
        assert options["error_types"] is ERROR_TYPES
    assert [options.keys() & {"http_client", "http_async_client"} for options in given] == [
        {"http_client"},
        {"http_async_client"},
    ]


@both
def test_instances_with_equal_settings_share_connections(cls: Cls) -> None:
    with served(cls) as server:
        for number in range(20):
            model: Any = cls(model="m", api_key=KEY, base_url=server.url)
            model.invoke("q")
            del model
            if number == 10:
                gc.collect()
        assert len(server.requests) == 20
        assert server.connections <= 2


@both
@paths
async def test_client_of_the_user_is_used_and_never_closed(cls: Cls, path: str) -> None:
    service = Service()
    with service.model(cls) as model:
        await ask(model, path)
    async with model:
        pass

    assert len(service.requests) == 1
    assert not model.http_client.is_closed
    assert not model.http_async_client.is_closed


@both
async def test_closed_model_refuses_calls(cls: Cls) -> None:
    model = Service().model(cls)
    model.close()
    with pytest.raises(ClientClosedError):
        model.invoke("q")
    assert await ask(model, "ainvoke") == "ok"
    await model.aclose()
    with pytest.raises(ClientClosedError):
        await model.ainvoke("q")


@both
@copies
def test_closing_a_copy_leaves_the_original_open(cls: Cls, make: Callable[[Any], Any]) -> None:
    with served(cls) as server:
        model: Any = cls(model="m", api_key=KEY, base_url=server.url)
        model.invoke("q")
        make(model).close()
        assert model.invoke("q")


@both
def test_one_instance_works_in_many_loops(cls: Cls) -> None:
    with served(cls) as server:
        model: Any = cls(model="m", api_key=KEY, base_url=server.url)
        for _ in range(3):
            asyncio.run(model.ainvoke("q"))
        assert model.invoke("q")
        assert len(server.requests) == 4


def test_nothing_is_said_at_exit() -> None:
    code = (
        "import asyncio, warnings; warnings.simplefilter('error');"
        "from langchain_cerebras_ext import ChatCerebras;"
        "m = ChatCerebras(model='m', api_key='k', base_url='http://127.0.0.1:9', max_retries=0);"
        "\ntry: m.invoke('q')\nexcept Exception as e: print(type(e).__name__)"
        "\ntry: asyncio.run(m.ainvoke('q'))\nexcept Exception as e: print(type(e).__name__)"
    )
    done = subprocess.run([sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, check=False)

    assert done.stdout.split() == ["APIConnectionError"] * 2
    assert "Warning" not in done.stderr

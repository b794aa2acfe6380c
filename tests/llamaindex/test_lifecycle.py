"""The life of our instances: cost, secrets in every dump, clients of the user's, worker processes, the end."""

from __future__ import annotations

import copy
import json
import logging
import os
import pickle
import ssl
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import httpx
import pytest
from llama_index.core.extractors import SummaryExtractor
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode

from cerebras_ext.emulator import Emulator
from cerebras_ext.errors import ServerError
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from llamaindex_cerebras_ext.base import CerebrasBase
from tests.llamaindex.scripted import ask, last, scripted, sent_key, whole

CLASSES = [Cerebras, CerebrasCompletion]
KEY = "csk-PLANTED-0123456789"


@pytest.fixture(params=CLASSES, ids=lambda cls: cls.__name__)
def cls(request: pytest.FixtureRequest) -> type[CerebrasBase]:
    found: type[CerebrasBase] = request.param
    return found


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator() as running:
        yield running


# ---- cost ----


def test_an_instance_costs_microseconds_and_opens_nothing(cls: type[CerebrasBase]) -> None:
    cls(model="m")
    rounds = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(50):
            cls(model="m", temperature=0.5)
        rounds.append((time.perf_counter() - started) / 50)
    assert min(rounds) < 0.002


def test_instances_with_equal_settings_share_their_connections(emulator: Emulator) -> None:
    emulator.reset()
    before = emulator.connections_opened
    for _ in range(20):
        Cerebras(model="gpt-oss-120b", api_key=KEY, api_base=emulator.base_url).complete("q")
    assert emulator.connections_opened - before <= 1


def test_closing_is_no_end_for_the_instance(emulator: Emulator) -> None:
    llm = Cerebras(model="gpt-oss-120b", api_key=KEY, api_base=emulator.base_url)
    assert llm.complete("q").text
    llm.close()
    llm.close()
    assert llm.complete("q").text


async def test_closing_async_gives_the_connections_back(emulator: Emulator) -> None:
    emulator.reset()
    open_before = emulator.connections_open
    llm = Cerebras(model="gpt-oss-120b", api_key=KEY, api_base=emulator.base_url, default_headers={"x": "own"})
    assert (await llm.acomplete("q")).text
    await llm.aclose()
    emulator.wait_until(lambda emulator: emulator.connections_open <= open_before)
    assert (await llm.acomplete("q")).text
    await llm.aclose()


# ---- secrets ----


def everything_shown(llm: CerebrasBase) -> str:
    return "\n".join(
        [repr(llm), str(llm), llm.to_json(), str(llm.to_dict()), llm.model_dump_json(), json.dumps(llm.to_payload())]
    )


def test_secrets_in_settings_are_shown_nowhere(cls: type[CerebrasBase]) -> None:
    llm = cls(
        model="m",
        api_key=KEY,
        api_base=f"http://user:{KEY}@host:1/v1",
        proxy=f"http://user:{KEY}@proxy:2",
        default_headers={"X-Api-Key": KEY, "Authorization": KEY, "X-Auth": KEY, "Cookie": KEY, "x-trace": "visible"},
    )
    shown = everything_shown(llm)
    assert KEY not in shown
    assert "PLANTED" not in shown
    assert llm.to_dict()["default_headers"] == {"x-trace": "visible"}
    assert llm.to_dict()["api_base"] == "http://host:1/v1"
    assert llm.to_dict()["proxy"] == "http://proxy:2"


def test_a_masked_key_is_never_taken_for_a_key(cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    llm = cls.from_dict(cls(model="m", api_key="csk-given-0123456789").to_dict())
    assert sent_key(llm) == KEY


def test_a_given_key_travels_in_a_pickle_because_workers_need_it(cls: type[CerebrasBase]) -> None:
    data = pickle.dumps(cls(model="m", api_key=KEY))
    assert KEY.encode() in data
    assert sent_key(pickle.loads(data)) == KEY


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_a_key_from_the_environment_does_not_travel(
    cls: type[CerebrasBase], monkeypatch: pytest.MonkeyPatch, dumps: Any
) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    llm = cls(model="m")
    assert sent_key(llm) == KEY
    assert KEY.encode() not in dumps(llm)
    monkeypatch.setenv("CEREBRAS_API_KEY", "csk-there-0123456789")
    assert sent_key(pickle.loads(dumps(llm))) == "csk-there-0123456789"


def test_errors_do_not_show_the_key() -> None:
    llm, _ = scripted(
        httpx.Response(401, json={"message": f"Wrong API Key {KEY}", "code": "wrong_api_key"}), api_key=KEY
    )
    with pytest.raises(Exception) as caught:  # noqa: PT011
        llm.complete("q")
    assert KEY not in str(caught.value) + repr(caught.value)


@pytest.mark.parametrize("path", ["chat", "achat", "stream_chat", "astream_chat"])
async def test_logs_and_tracebacks_do_not_show_the_key(path: str, caplog: pytest.LogCaptureFixture) -> None:
    llm, _ = scripted(httpx.Response(503, json={"message": "busy"}), api_key=KEY, max_retries=1, max_retry_wait=0)
    with caplog.at_level(logging.DEBUG), pytest.raises(ServerError) as caught:
        await last(llm, path, ask())
    shown = "".join(traceback.format_exception(caught.value)) + repr(vars(caught.value))
    assert "PLANTED" not in caplog.text + shown


# ---- what has no plain form ----


def test_a_timeout_object_is_stored_as_its_limits_and_read_again(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", timeout=httpx.Timeout(9, connect=1))
    assert llm.to_dict()["timeout"] == {"connect": 1, "read": 9, "write": 9, "pool": 9}
    assert cls.from_json(llm.to_json()) == llm


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda llm: llm.model_copy(deep=True)])
def test_copies_share_the_user_s_http_clients(copied: Any) -> None:
    llm, wire = scripted(whole({"content": "a"}))
    twin = copied(llm)
    assert twin.http_client is llm.http_client
    assert twin.async_http_client is llm.async_http_client
    assert twin.chat(ask()).message.content == "a"
    assert len(wire.bodies) == 1


@pytest.mark.parametrize("name", ["http_client", "async_http_client"])
def test_pickling_refuses_to_lose_the_user_s_http_client(cls: type[CerebrasBase], name: str) -> None:
    client: Any = httpx.Client() if name == "http_client" else httpx.AsyncClient()
    llm = cls(**{"model": "m", name: client})
    with pytest.raises(TypeError, match=f"with this {name} cannot be pickled"):
        pickle.dumps(llm)


@pytest.mark.parametrize(
    ("name", "value"), [("api_key", lambda: KEY), ("verify", ssl.create_default_context())], ids=["api_key", "verify"]
)
@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
def test_pickling_refuses_to_lose_whom_to_trust_and_with_which_key(
    cls: type[CerebrasBase], name: str, value: Any, dumps: Any
) -> None:
    llm = cls(model="m", **{name: value})
    with pytest.raises(TypeError, match=f"with this {name} cannot be pickled"):
        dumps(llm)
    assert getattr(llm, name) is value


def test_pickling_changes_nothing_of_the_instance(cls: type[CerebrasBase]) -> None:
    llm = cls(model="m", completion_to_prompt=lambda prompt: f"<{prompt}>")
    before = dict(llm.__dict__)
    assert pickle.loads(pickle.dumps(llm)).model == "m"
    assert llm.__dict__ == before


def key_of_a_module() -> str:
    return KEY


def test_a_key_function_of_a_module_travels_in_a_pickle(cls: type[CerebrasBase]) -> None:
    assert sent_key(pickle.loads(pickle.dumps(cls(model="m", api_key=key_of_a_module)))) == KEY


def test_the_user_s_http_client_is_used_and_left_open() -> None:
    llm, wire = scripted(whole({"content": "a"}))
    assert llm.complete("q").text == "a"
    llm.close()
    assert len(wire.requests) == 1
    assert llm.http_client is not None
    assert not llm.http_client.is_closed


@pytest.mark.skipif("rate_limiter" not in Cerebras.model_fields, reason="core has no rate limiter yet")
def test_copies_share_the_rate_limiter_so_that_the_limit_holds(cls: type[CerebrasBase]) -> None:
    limiter = object()
    assert copy.deepcopy(cls(model="m", rate_limiter=limiter)).rate_limiter is limiter


def test_instances_with_other_settings_or_of_another_class_are_not_equal() -> None:
    first = Cerebras(model="m", temperature=0.5)
    assert first == Cerebras(model="m", temperature=0.5)
    assert first != Cerebras(model="m")
    assert first != Cerebras(model="m", temperature=0.5, api_key=KEY)
    assert first != CerebrasCompletion(model="m", temperature=0.5)
    assert first != "m"


# ---- processes ----


@pytest.mark.slow
def test_spawned_workers_of_an_ingestion_pipeline_use_the_llm(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    emulator.reset()
    monkeypatch.setenv("CEREBRAS_BASE_URL", emulator.base_url)
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    llm = Cerebras(model="gpt-oss-120b")
    llm.complete("used before it is pickled")
    pipeline = IngestionPipeline(transformations=[SummaryExtractor(llm=llm, show_progress=False)])
    nodes = pipeline.run(nodes=[TextNode(text="one"), TextNode(text="two")], num_workers=2)
    assert all(node.metadata["section_summary"] for node in nodes)
    assert len(emulator.requests) == 3
    assert "unpickleable" not in caplog.text


PROGRAM = """
import asyncio, sys, threading
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion

async def stream(llm):
    async for _ in await llm.astream_complete("q"):
        break
    return (await llm.acomplete("q")).text

for cls in (Cerebras, CerebrasCompletion):
    llm = cls(model="gpt-oss-120b")
    assert llm.complete("q").text
    next(llm.stream_complete("q"))
    assert asyncio.run(stream(llm))
    thread = threading.Thread(target=lambda: asyncio.run(stream(llm)))
    thread.start()
    thread.join()
print("done")
"""


@pytest.mark.slow
def test_there_are_no_warnings_at_the_end_of_the_program(emulator: Emulator) -> None:
    environment = {**os.environ, "CEREBRAS_BASE_URL": emulator.base_url, "CEREBRAS_API_KEY": KEY}
    command = [sys.executable, "-W", "always::ResourceWarning", "-W", "always::RuntimeWarning", "-c", PROGRAM]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n")
    assert ended.stderr == ""

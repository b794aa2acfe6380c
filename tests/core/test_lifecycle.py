"""The life of clients: event loops, threads, forks, pickles, shared connections, cost, and a silent exit."""

from __future__ import annotations

import asyncio
import copy
import gc
import importlib
import os
import pickle
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.connections import registry, ssl_context
from cerebras_ext.errors import ClientClosedError, MissingAPIKeyError
from cerebras_ext.pools import _closing, close_shielded
from cerebras_ext.settings import resolve_settings
from tests.support import KEY, WAYS, Server, Way, wait_for

SYNC = [way for way in WAYS if not way.is_async]
ASYNC = [way for way in WAYS if way.is_async]
AnyClient = type[Client] | type[AsyncClient]
CLIENTS = [Client, AsyncClient]


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors in /proc")


# ---- event loops ----


@pytest.mark.slow
@needs_proc
def test_a_thousand_loops_leave_no_descriptor_and_no_warning(server: Server, options: dict[str, Any]) -> None:
    client = AsyncClient(**options)
    way, streamed = (next(w for w in ASYNC if w.endpoint == "chat" and w.stream is s) for s in (False, True))

    def thousand_loops() -> None:
        before = 0
        for number in range(1000):
            chosen = streamed if number % 2 else way
            server.script = [chosen.answer()]
            asyncio.run(chosen.ask_async(client, chosen.fields))
            if number % 100 == 99:
                gc.collect()
                before = before or descriptors()
                wait_for(lambda limit=before: server.open_connections == 0 and descriptors() <= limit)  # type: ignore[misc]

    gc.collect()  # what earlier tests left is not of this one; nor is the loop that they gave to the main thread
    with warnings.catch_warnings(record=True) as caught, ThreadPoolExecutor(1) as thread:
        warnings.simplefilter("always")
        thread.submit(thousand_loops).result()
    assert [str(warning.message) for warning in caught] == []
    assert len(server.requests) == 1000


def close_without_shutdown(loop: asyncio.AbstractEventLoop) -> None:
    """Close a loop as careless programs do: its asynchronous generators are never told."""
    loop.close()


@needs_proc
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_loops_closed_without_shutdown_are_pruned_at_the_next_call(server: Server, options: dict[str, Any]) -> None:
    way = ASYNC[0]
    server.script = [way.answer()]
    client = AsyncClient(**options)
    for _ in range(5):
        loop = asyncio.new_event_loop()
        loop.run_until_complete(way.ask_async(client, way.fields))
        close_without_shutdown(loop)
    asyncio.run(way.ask_async(client, way.fields))
    assert not [loop for loop in registry._loops if loop.is_closed()]
    del loop
    gc.collect()
    wait_for(lambda: server.open_connections == 0)


@pytest.mark.parametrize("way", ASYNC, ids=str)
def test_one_client_in_many_loops_and_threads_and_mixed_with_sync(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [way.answer()]
    client = AsyncClient(**options)

    async def calls() -> list[str]:
        return [(await way.ask_async(client, way.fields)).response.text for _ in range(3)]

    answers = [asyncio.run(calls()), asyncio.run(calls())]
    assert server.connections == 2
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(calls()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    sync = Way(way.endpoint, way.stream, False)
    twin = Client(**options)
    assert [sync.ask_sync(twin, sync.fields).response.text for _ in range(3)] == ["ok"] * 3
    for thread in threads:
        thread.join()
    assert answers == [["ok"] * 3] * 10
    assert server.connections <= 2 + 8 + 1
    twin.close()


async def test_connections_are_reused_inside_a_loop(server: Server, options: dict[str, Any]) -> None:
    server.script = [ASYNC[0].answer()]
    for _ in range(10):
        await ASYNC[0].ask_async(AsyncClient(**options), ASYNC[0].fields)
    assert server.connections == 1


async def test_many_calls_at_once_share_what_there_is(server: Server, options: dict[str, Any]) -> None:
    server.script = [ASYNC[0].answer()]
    client = AsyncClient(**options)
    for _ in range(2):
        outcomes = await asyncio.gather(*(ASYNC[0].ask_async(client, ASYNC[0].fields) for _ in range(60)))
        assert [outcome.response.text for outcome in outcomes] == ["ok"] * 60
    assert server.connections <= 60


@needs_proc
def test_the_connections_of_a_loop_end_with_it(server: Server, options: dict[str, Any]) -> None:
    server.script = [ASYNC[0].answer()]
    asyncio.run(ASYNC[0].ask_async(AsyncClient(**options), ASYNC[0].fields))
    wait_for(lambda: server.open_connections == 0)
    assert not [loop for loop in registry._loops if not loop.is_running()]


# ---- sharing ----


def test_equal_settings_share_connections_and_keys_never_mix(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer(headers={"set-cookie": "__cf_bm=secret; Path=/"})]
    for number in range(50):
        SYNC[0].ask({**options, "api_key": f"key-{number}", "timeout": 1 + number, "payload": "gzip"})
    assert server.connections == 1
    assert [received.headers["authorization"] for received in server.requests] == [
        f"Bearer key-{number}" for number in range(50)
    ]
    assert not [received for received in server.requests if "cookie" in received.headers]


async def test_cookies_and_keys_never_mix_async(server: Server, options: dict[str, Any]) -> None:
    server.script = [ASYNC[0].answer(headers={"set-cookie": "__cf_bm=secret; Path=/"})]

    async def call(number: int) -> None:
        await ASYNC[0].ask_async(
            AsyncClient(**{**options, "api_key": f"key-{number}"}), {**ASYNC[0].fields, "user": str(number)}
        )

    await asyncio.gather(*(call(number) for number in range(40)))
    await call(40)
    assert {received.json["user"]: received.headers["authorization"] for received in server.requests} == {
        str(number): f"Bearer key-{number}" for number in range(41)
    }
    assert not [received for received in server.requests if "cookie" in received.headers]


def test_other_connection_settings_do_not_share(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer()]
    SYNC[0].ask(options)
    SYNC[0].ask({**options, "verify": False})
    assert server.connections == 2


def test_dropping_a_client_does_not_close_what_others_use(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer()]
    other = Client(**options)
    SYNC[0].ask_sync(other, SYNC[0].fields)
    client = Client(**options)
    SYNC[0].ask_sync(client, SYNC[0].fields)
    del client
    gc.collect()
    with Client(**options) as third:
        SYNC[0].ask_sync(third, SYNC[0].fields)
    SYNC[0].ask_sync(other, SYNC[0].fields)
    assert server.connections == 1


def test_the_last_client_closes_the_connections(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer()]
    mine = {**options, "verify": False}
    with Client(**mine) as client:
        SYNC[0].ask_sync(client, SYNC[0].fields)
        assert server.open_connections == 1
    wait_for(lambda: server.open_connections == 0)
    client.close()
    with pytest.raises(ClientClosedError, match="make a new one"):
        SYNC[0].ask_sync(client, SYNC[0].fields)


async def test_the_last_async_client_closes_the_connections(server: Server, options: dict[str, Any]) -> None:
    server.script = [ASYNC[0].answer()]
    async with AsyncClient(**options) as client:
        await ASYNC[0].ask_async(client, ASYNC[0].fields)
        assert server.open_connections == 1
    await asyncio.to_thread(wait_for, lambda: server.open_connections == 0)
    await client.aclose()
    with pytest.raises(ClientClosedError):
        await ASYNC[0].ask_async(client, ASYNC[0].fields)


def test_warming_opens_the_connection_that_the_first_call_uses(server: Server, options: dict[str, Any]) -> None:
    mine = {**options, "verify": False}
    client = Client(**mine)
    assert client.warm() is True
    server.script = [SYNC[0].answer()]
    SYNC[0].ask_sync(client, SYNC[0].fields)
    assert (server.connections, server.requests[0].path) == (1, "/v1/tcp_warming")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    client.close()

    async def main() -> None:
        twin = AsyncClient(**options)
        assert await twin.warm() is True
        await twin.models()

    asyncio.run(main())
    assert server.connections == 2


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", None])
def test_warming_never_raises(server: Server, url: str | None) -> None:
    server.script[0].status = 500
    options: dict[str, Any] = {"api_key": KEY, "base_url": url or server.url}
    assert Client(**options).warm() is False
    assert asyncio.run(AsyncClient(**options).warm()) is False
    assert len(server.requests) == (0 if url else 2)


# ---- pickles and copies ----


def by_pickle(client: Any) -> Any:
    return pickle.loads(pickle.dumps(client))


def by_cloudpickle(client: Any) -> Any:
    return pickle.loads(pytest.importorskip("cloudpickle").dumps(client))


COPIES: list[Callable[[Any], Any]] = [by_pickle, by_cloudpickle, copy.copy, copy.deepcopy]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("again", COPIES)
@pytest.mark.parametrize("used", [False, True], ids=["new", "used"])
def test_clients_survive_copying(
    server: Server, options: dict[str, Any], way: Way, again: Callable[[Any], Any], used: bool
) -> None:
    server.script = [way.answer()]
    full = {**options, "default_headers": {"x-own": "1"}, "timeout": httpx.Timeout(7), "max_retries": 5}
    client: Any = AsyncClient(**full) if way.is_async else Client(**full)

    def ask(client: Any) -> str:
        outcome = asyncio.run(way.ask_async(client, way.fields)) if way.is_async else way.ask_sync(client, way.fields)
        return str(outcome.response.text)

    if used:
        assert ask(client) == "ok"
    twin = again(client)
    assert twin._settings == client._settings
    assert (ask(twin), ask(client)) == ("ok", "ok")
    assert server.requests[-1].headers["x-own"] == "1"
    assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize("dump", ["pickle", "cloudpickle"])
def test_a_key_from_the_environment_never_travels(make: AnyClient, dump: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    module = importlib.import_module(dump)
    client = make()
    data = module.dumps(client)
    assert KEY.encode() not in data
    assert KEY.encode() in module.dumps(make(api_key=KEY))
    monkeypatch.setenv("CEREBRAS_API_KEY", "there")
    assert pickle.loads(data)._key().get_secret_value() == "there"
    assert client._key().get_secret_value() == KEY
    monkeypatch.delenv("CEREBRAS_API_KEY")
    with pytest.raises(MissingAPIKeyError):
        pickle.loads(data)._key()


@pytest.mark.parametrize("make", CLIENTS)
def test_a_key_is_never_shown(make: AnyClient) -> None:
    client = make(api_key=KEY, base_url="http://user:pa55w0rd@h")
    shown = repr(client) + str(client) + repr(client._settings) + repr(vars(client))
    assert KEY not in shown
    assert "pa55w0rd" not in repr(client)


def test_a_client_of_the_users_is_shared_by_copies_and_refused_by_pickle() -> None:
    with httpx.Client() as http:
        client = Client(api_key=KEY, http_client=http)
        assert copy.copy(client)._http is http
        assert copy.deepcopy(client)._http is http
        with pytest.raises(TypeError, match="cannot be pickled: pass settings instead"):
            pickle.dumps(client)


# ---- forks ----


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_never_uses_its_parents_connections(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer()]
    client = Client(**options)
    SYNC[0].ask_sync(client, SYNC[0].fields)
    assert server.connections == 1
    child = os.fork()
    if child == 0:
        code = 1
        try:
            good = SYNC[0].ask_sync(client, SYNC[0].fields).response.text == "ok"
            good = (
                good and asyncio.run(ASYNC[0].ask_async(AsyncClient(**options), ASYNC[0].fields)).response.text == "ok"
            )
            code = 0 if good else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.connections == 3
    SYNC[0].ask_sync(client, SYNC[0].fields)
    assert server.connections == 3


# ---- cost ----


@pytest.mark.parametrize("make", CLIENTS)
def test_making_a_client_opens_nothing_and_costs_microseconds(make: AnyClient) -> None:
    threads, pools = threading.active_count(), len(registry._sync)
    before = descriptors() if os.path.isdir("/proc/self/fd") else 0
    make(api_key=KEY)
    rounds = []
    for _ in range(5):
        started = time.perf_counter()
        made = [make(api_key=KEY) for _ in range(200)]
        rounds.append((time.perf_counter() - started) / 200)
        del made
    assert min(rounds) < 0.002
    assert threading.active_count() <= threads
    assert len(registry._sync) == pools
    assert not before or descriptors() <= before


def test_no_tls_context_is_made_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("made a TLS context")

    monkeypatch.setattr("ssl.create_default_context", refuse)
    monkeypatch.setattr("httpx.create_ssl_context", refuse)
    monkeypatch.setattr("ssl.SSLContext", refuse)
    Client(api_key=KEY)
    AsyncClient(api_key=KEY)


def test_one_tls_context_serves_a_process() -> None:
    first = ssl_context(resolve_settings().connection)
    assert ssl_context(resolve_settings(base_url="https://other").connection) is first
    assert ssl_context(resolve_settings(verify=False).connection) is not first


# ---- exit ----

EXIT = """
import asyncio, sys, threading
from cerebras_ext import AsyncClient, Client
url, kind = sys.argv[1:]
ask = {"model": "m", "messages": [{"role": "user", "content": "q"}]}
client, twin = Client(api_key="k", base_url=url), AsyncClient(api_key="k", base_url=url)
async def one():
    if kind == "abandoned":
        async for _ in twin.stream_chat(ask):
            return
    await twin.chat(ask)
if kind == "abandoned":
    kept = iter(client.stream_chat(ask)); next(kept)
    asyncio.run(one())
else:
    client.chat(ask)
    asyncio.run(one()); asyncio.run(one())
    threads = [threading.Thread(target=lambda: asyncio.run(one())) for _ in range(3)]
    [thread.start() for thread in threads]
    if kind == "open-loop":
        loop = asyncio.new_event_loop(); loop.run_until_complete(one())
        loop.run_until_complete(loop.shutdown_asyncgens()); loop.close()
    [thread.join() for thread in threads]
"""


@pytest.mark.parametrize("kind", ["plain", "open-loop", "abandoned"])
def test_a_program_ends_in_silence(server: Server, kind: str) -> None:
    streamed = next(way for way in SYNC if way.stream and way.endpoint == "chat")
    server.script = [streamed.answer() if kind == "abandoned" else SYNC[0].answer()]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", EXIT, server.url, kind],
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr.decode(), done.returncode) == (b"", "", 0)


def test_clients_made_and_dropped_leave_no_memory_behind(server: Server, options: dict[str, Any]) -> None:
    server.script = [SYNC[0].answer()]
    for _ in range(30):
        SYNC[0].ask(options)
    gc.collect()
    assert len(registry._sync[resolve_settings(base_url=server.url).connection].users) <= 2


def test_what_a_dead_loop_left_unclosed_is_forgotten(server: Server, options: dict[str, Any]) -> None:
    async def never() -> None:
        await asyncio.Event().wait()

    loop = asyncio.new_event_loop()
    closing = loop.create_task(close_shielded(never()))
    loop.run_until_complete(asyncio.sleep(0.01))
    closing.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    assert [task for task in _closing if task.get_loop() is loop]
    for task in list(_closing):
        if task.get_loop() is loop:
            task.remove_done_callback(_closing.discard)
            task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    server.script = [ASYNC[0].answer()]
    asyncio.run(ASYNC[0].ask_async(AsyncClient(**options), ASYNC[0].fields))
    assert not [task for task in _closing if task.get_loop() is loop]

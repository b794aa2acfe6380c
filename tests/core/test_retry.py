"""Retries: one layer, exactly as many as allowed, never after the first delta, waits that the service asks for."""

from __future__ import annotations

import asyncio
import email.utils
import random
import threading
import time
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client, errors
from cerebras_ext.classify import parse_retry_after
from cerebras_ext.retry import RetryPolicy, RetryState
from tests.support import DONE, STREAMS, WAYS, WHOLE, Answer, Cut, Server, Way, chat_event, event, wait_for

SYNC_WAYS = [way for way in WAYS if not way.is_async]
BUSY = {"error": {"message": "busy"}, "status_code": 503}


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_exactly_one_plus_max_retries_requests(
    server: Server, options: dict[str, Any], naps: list[float], way: Way, status: int, retries: int
) -> None:
    server.script = [Answer((b'{"message":"busy"}',), status)]
    with pytest.raises(errors.APIStatusError, match="busy"):
        way.ask({**options, "max_retries": retries})
    assert len(server.requests) == 1 + retries
    assert len({(received.body, received.path) for received in server.requests}) == 1
    assert len(naps) == retries


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 413, 415, 422])
def test_refusals_are_not_repeated(server: Server, options: dict[str, Any], way: Way, status: int) -> None:
    server.script = [Answer((b'{"message":"no"}',), status)]
    with pytest.raises(errors.APIStatusError, match="no"):
        way.ask(options)
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(("told", "status", "requests"), [("false", 503, 1), ("true", 400, 3), ("true", 402, 3)])
def test_x_should_retry_wins_over_the_status(
    server: Server, options: dict[str, Any], naps: list[float], way: Way, told: str, status: int, requests: int
) -> None:
    server.script = [Answer((b"{}",), status, {"x-should-retry": told})]
    with pytest.raises(errors.APIStatusError):
        way.ask(options)
    assert len(server.requests) == requests


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_good_answer_after_bad_ones(server: Server, options: dict[str, Any], naps: list[float], way: Way) -> None:
    server.script = [Answer((b"{}",), 500), Answer((b"{}",), 429), way.answer()]
    assert way.ask(options).response.text == "ok"
    assert len(server.requests) == 3


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_refused_connections_are_repeated(naps: list[float], way: Way) -> None:
    with pytest.raises(errors.APIConnectionError, match=r"127\.0\.0\.1:9 .*ConnectError"):
        way.ask({"api_key": "k", "base_url": "http://127.0.0.1:9"})
    assert len(naps) == 2


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_connection_that_is_cut_before_any_output_is_repeated(
    server: Server, options: dict[str, Any], naps: list[float], way: Way
) -> None:
    head = way.answer().pieces[0] if not way.stream else chat_event(role="assistant")
    assert isinstance(head, bytes)
    server.script = [Answer((head[:10], Cut(), head)), way.answer()]
    outcome = way.ask(options)
    assert outcome.response.text == "ok"
    assert len(server.requests) == 2


@pytest.mark.parametrize("way", SYNC_WAYS, ids=str)
def test_a_connection_that_the_server_gave_up_is_not_used_again(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    good = way.answer()
    server.script = [Answer((*good.pieces, Cut()), framing="length"), good]
    client = Client(**options, max_retries=0)
    assert way.ask_sync(client, way.fields).response.text == "ok"
    wait_for(lambda: server.open_connections == 0)
    assert way.ask_sync(client, way.fields).response.text == "ok"
    assert server.connections == 2


# ---- streams: before and after the first delta ----

SILENT = [b"", b": ping\n\n", b"data: null\n\n"]


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize(
    "failing",
    [(event(BUSY),), (event(BUSY, "error"),), (), (DONE,), (Cut(), b"x")],
    ids=["event", "named-event", "empty", "only-done", "cut"],
)
@pytest.mark.parametrize("lead", [*SILENT, "role"], ids=["nothing", "comment", "null", "role"])
def test_a_stream_that_fails_before_its_first_delta_is_repeated(
    server: Server, options: dict[str, Any], naps: list[float], way: Way, failing: tuple[Any, ...], lead: Any
) -> None:
    if lead == "role":
        lead = chat_event(role="assistant", content="") if way.endpoint == "chat" else way.piece("")
    server.script = [Answer((lead, *failing), framing="close"), way.answer()]
    outcome = way.ask(options)
    assert [getattr(delta, "content", None) or getattr(delta, "text", "") for delta in outcome.deltas] == ["ok", ""]
    assert len(server.requests) == 2


DELTAS: list[dict[str, Any]] = [
    {"content": "a"},
    {"reasoning": "r"},
    {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}]},
]


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("failing", [(event(BUSY),), (), (DONE,), (Cut(), b"x")], ids=["event", "end", "done", "cut"])
@pytest.mark.parametrize("delta", DELTAS, ids=lambda delta: next(iter(delta)))
def test_a_stream_is_never_repeated_after_its_first_delta(
    server: Server, options: dict[str, Any], way: Way, failing: tuple[Any, ...], delta: dict[str, Any]
) -> None:
    first = chat_event(**delta) if way.endpoint == "chat" else way.piece("a")
    server.script = [Answer((first, *failing), framing="chunked"), way.answer()]
    with pytest.raises(errors.CerebrasError):
        way.ask(options)
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("retries", [0, 2])
def test_all_kinds_of_failure_of_a_stream_share_one_budget(
    server: Server, options: dict[str, Any], naps: list[float], way: Way, retries: int
) -> None:
    server.script = [Answer((event(BUSY),)), Answer((b"{}",), 503), Answer((event(BUSY),)), way.answer()]
    with pytest.raises(errors.ServerError):
        way.ask({**options, "max_retries": retries})
    assert len(server.requests) == 1 + retries


@pytest.mark.parametrize("way", WHOLE, ids=str)
def test_all_kinds_of_failure_of_an_answer_share_one_budget(
    server: Server, options: dict[str, Any], naps: list[float], way: Way
) -> None:
    server.script = [
        Answer((b'{"error":"x","status_code":503}',)), Answer((b"{}",), 503), Answer((b"{", Cut(), b"}")), way.answer(),
    ]  # fmt: skip
    with pytest.raises(errors.APIConnectionError):
        way.ask(options)
    assert len(server.requests) == 3


# ---- waits ----


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry-after-ms": "660"}, 0.66),
        ({"retry-after-ms": "660", "retry-after": "9"}, 0.66),
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"Retry-After": "60"}, 60.0),
    ],
)
def test_the_wait_that_the_service_asks_for_is_taken(
    server: Server, options: dict[str, Any], naps: list[float], way: Way, headers: dict[str, str], wait: float
) -> None:
    server.script = [Answer((b"{}",), 429, headers), way.answer()]
    way.ask(options)
    assert naps == [wait]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_wait_above_the_cap_is_raised_at_once(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b"{}",), 429, {"retry-after": "86399"}), way.answer()]
    with pytest.raises(errors.RateLimitError) as caught:
        way.ask(options)
    assert (caught.value.retry_after, caught.value.is_retryable, len(server.requests)) == (86399.0, False, 1)


def test_the_cap_can_be_moved(server: Server, options: dict[str, Any], naps: list[float]) -> None:
    server.script = [Answer((b"{}",), 429, {"retry-after": "90"}), WAYS[0].answer()]
    WAYS[0].ask({**options, "max_retry_wait": 100})
    assert naps == [90.0]
    server.script = [Answer((b"{}",), 429, {"retry-after": "0.1"}), WAYS[0].answer()]
    with pytest.raises(errors.RateLimitError):
        WAYS[0].ask({**options, "max_retry_wait": 0})


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "5"}, 5.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "x", "retry-after": "1"}, 1.0),
        ({"retry-after-ms": "-1", "retry-after": "1"}, 1.0),
        ({"retry-after": email.utils.formatdate(1000, usegmt=True)}, 0.0),
        ({"retry-after": email.utils.formatdate(2030, usegmt=True)}, 30.0),
        ({"retry-after": "Mon, 99 Foo 2026 99:99:99 GMT"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_the_forms_of_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(headers, now=2000) == seconds


def test_waits_double_to_a_limit_with_up_to_a_quarter_off() -> None:
    waits = set()
    for seed in range(50):
        state = RetryState(RetryPolicy(9), random.Random(seed))
        taken = [state.delay(errors.APIConnectionError("x")) for _ in range(10)]
        assert taken.pop() is None
        for number, wait in enumerate(taken):
            full = min(0.5 * 2**number, 8.0)
            assert wait is not None
            assert 0.75 * full <= wait <= full
        waits.add(taken[0])
    assert len(waits) == 50


def test_many_retries_do_not_overflow() -> None:
    state = RetryState(RetryPolicy(10_000))
    assert all((state.delay(errors.APIConnectionError("x")) or 0) <= 8 for _ in range(5000))


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (errors.APITimeoutError("x"), True),
        (errors.APIConnectionError("x"), True),
        (errors.StreamTruncatedError("x"), True),
        (errors.APIResponseError("x"), False),
        (errors.RequestValidationError("x"), False),
        (errors.MissingAPIKeyError(), False),
    ],
)
def test_which_failures_without_a_status_are_repeated(error: errors.CerebrasError, again: bool) -> None:
    assert (RetryState(RetryPolicy(1)).delay(error) is not None) is again


# ---- cancellation and interruption while waiting ----


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_async], ids=str)
def test_cancelling_during_a_wait_is_immediate_and_sends_nothing_more(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [Answer((b"{}",), 429, {"retry-after": "50"})]

    async def main() -> float:
        task = asyncio.create_task(way.ask_async(AsyncClient(**options), way.fields))
        await asyncio.to_thread(wait_for, lambda: bool(server.requests))
        await asyncio.sleep(0.02)
        started = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - started

    assert asyncio.run(main()) < 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if way.is_async], ids=str)
def test_a_deadline_of_the_callers_ends_the_wait(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b"{}",), 429, {"retry-after": "50"})]

    async def main() -> None:
        async with asyncio.timeout(0.1):
            await way.ask_async(AsyncClient(**options), way.fields)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert len(server.requests) == 1


def test_errors_of_others_are_neither_mapped_nor_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    class OwnError(Exception):
        pass

    calls = []

    def fail(*_: Any) -> Any:
        calls.append(1)
        raise OwnError

    monkeypatch.setattr("cerebras_ext.connections.SharedTransport.handle_request", fail)
    with pytest.raises(OwnError):
        Client(api_key="k").models()
    assert calls == [1]


def test_model_lists_are_repeated_too(server: Server, options: dict[str, Any], naps: list[float]) -> None:
    server.script = [Answer((b"{}",), 503), Answer((b'{"object":"list","data":[{"id":"a"},{"id":"b"}]}',))]
    assert Client(**options).models().ids == ["a", "b"]
    server.script = [Answer((b"{}",), 503), Answer((b'{"data":[{"id":"a"}]}',))]
    assert asyncio.run(AsyncClient(**options).models()).ids == ["a"]
    assert [received.path for received in server.requests] == ["/v1/models"] * 4
    assert {received.method for received in server.requests} == {"GET"}


def test_calls_in_threads_have_budgets_of_their_own(server: Server, options: dict[str, Any], naps: list[float]) -> None:
    server.script = [Answer((b"{}",), 503)]
    client = Client(**options)

    def call() -> None:
        with pytest.raises(errors.ServerError):
            WAYS[0].ask_sync(client, WAYS[0].fields)

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(server.requests) == 24

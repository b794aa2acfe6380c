"""Events, spans, errors and early ends: each call is told once, whichever public method it was."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.schema import EventPayload
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMChatStartEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
    LLMCompletionStartEvent,
)
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler

from cerebras_ext.errors import APIResponseError, BadRequestError, RateLimitError, ServerError, StreamTruncatedError
from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.observers import Events, Legacy, observed_fixture  # noqa: F401
from tests.llamaindex.scripted import (
    COMPLETE_PATHS,
    PATHS,
    STREAMS,
    USAGE,
    ask,
    both,
    chunk,
    last,
    responses,
    scripted,
    streamed,
    whole,
)

KINDS = {
    True: (LLMChatStartEvent, LLMChatInProgressEvent, LLMChatEndEvent),
    False: (LLMCompletionStartEvent, LLMCompletionInProgressEvent, LLMCompletionEndEvent),
}
ANSWER = both({"content": "ab"}, {"content": "a"}, {"content": "b"})


def argument(path: str) -> Any:
    return "q" if path in COMPLETE_PATHS else ask()


@pytest.mark.parametrize("path", [*PATHS, *COMPLETE_PATHS])
async def test_one_call_is_one_event_and_one_span(path: str, observed: tuple[Events, SimpleSpanHandler]) -> None:
    events, spans = observed
    legacy = Legacy()
    llm, wire = scripted(ANSWER, callback_manager=CallbackManager([legacy]))
    found = await responses(llm, path, argument(path))
    starts, steps, ends = (events.of(kind) for kind in KINDS[path in PATHS])
    assert len(starts) == len(ends) == 1
    assert ends[0].response == found[-1]
    assert [event.response for event in steps] == (found if "stream" in path else [])
    others = [event for kind in KINDS[path not in PATHS] for event in events.of(kind)]
    assert others == events.of(ExceptionEvent) == []
    assert [span.id_.partition("-")[0] for span in spans.completed_spans] == [f"Cerebras.{path}"]
    assert [what for what, _ in legacy.told] == ["start", "end"]
    answer = EventPayload.RESPONSE if path in PATHS else EventPayload.COMPLETION
    assert legacy.told[1][1][answer] == found[-1]
    assert len(wire.bodies) == 1


@pytest.mark.parametrize("path", [*PATHS, *COMPLETE_PATHS])
async def test_start_event_names_model_and_temperature_and_no_key(
    path: str, observed: tuple[Events, SimpleSpanHandler]
) -> None:
    llm, _ = scripted(ANSWER, api_key="csk-PLANTED", temperature=0.25)
    await last(llm, path, argument(path), seed=3)
    (start,) = observed[0].of(KINDS[path in PATHS][0])
    assert start.model_dict["class_name"] == "Cerebras"
    assert (start.model_dict["model"], start.model_dict["temperature"]) == ("some-model", 0.25)
    assert start.additional_kwargs["seed"] == 3
    assert "PLANTED" not in repr([event.model_dump() for event in observed[0]._kept])


def test_public_methods_are_defined_once_in_the_hierarchy() -> None:
    for name in (*PATHS, *COMPLETE_PATHS):
        owners = [owner for owner in Cerebras.__mro__ if name in vars(owner)]
        assert owners[0] is Cerebras
        assert all(getattr(vars(owner)[name], "__isabstractmethod__", False) for owner in owners[1:]), name


# ---- kinds of methods and generators ----


async def test_sync_stream_is_a_generator_and_async_stream_a_coroutine_of_one() -> None:
    llm, _ = scripted(streamed({"content": "a"}))
    for name, value in (("stream_chat", ask()), ("stream_complete", "q")):
        gen = getattr(llm, name)(value)
        assert isinstance(gen, Generator)
        gen.close()
        method = getattr(llm, f"a{name}")
        assert inspect.iscoroutinefunction(inspect.unwrap(method))
        stream = await method(value)
        assert isinstance(stream, AsyncGenerator)
        await stream.aclose()


@pytest.mark.parametrize("path", STREAMS)
async def test_stream_is_requested_before_the_method_returns(path: str) -> None:
    llm, wire = scripted(streamed({"content": "a"}))
    gen = getattr(llm, path)(ask())
    if path == "astream_chat":
        gen = await gen
    assert len(wire.bodies) == 1
    if path == "astream_chat":
        await gen.aclose()
    else:
        gen.close()


@pytest.mark.parametrize("keyword", ["messages", "prompt"])
async def test_arguments_may_be_keywords(keyword: str) -> None:
    llm, wire = scripted(ANSWER)
    value: Any = ask() if keyword == "messages" else "q"
    paths = PATHS if keyword == "messages" else COMPLETE_PATHS
    for path in paths:
        found = getattr(llm, path)(**{keyword: value})
        if path.startswith("a"):
            found = await found
        if "astream" in path:
            _ = [item async for item in found]
        elif "stream" in path:
            _ = list(found)
    assert len(wire.bodies) == 4


# ---- errors ----


def refused(status: int, **headers: str) -> httpx.Response:
    return httpx.Response(status, json={"message": "no", "type": "t", "param": "p", "code": "c"}, headers=headers)


@pytest.mark.parametrize("path", [*PATHS, *COMPLETE_PATHS])
async def test_refusal_is_told_once_and_drops_the_span(path: str, observed: tuple[Events, SimpleSpanHandler]) -> None:
    legacy = Legacy()
    llm, wire = scripted(refused(429), callback_manager=CallbackManager([legacy]))
    with pytest.raises(RateLimitError) as caught:
        await last(llm, path, argument(path))
    assert (caught.value.status_code, caught.value.code) == (429, "c")
    assert [what for what, _ in legacy.told] == ["start", "end"]
    assert legacy.told[1][1][EventPayload.EXCEPTION] is caught.value
    assert [span.id_.partition("-")[0] for span in observed[1].dropped_spans] == [f"Cerebras.{path}"]
    assert observed[0].of(KINDS[path in PATHS][2]) == []
    assert len(wire.bodies) == 1


ERROR_EVENT = {
    "error": {"message": "boom", "code": "x", "type": "server_error", "param": "", "id": ""},
    "status_code": 500,
}


@pytest.mark.parametrize("path", STREAMS)
async def test_error_inside_a_stream_comes_after_the_text_and_is_told_once(
    path: str, observed: tuple[Events, SimpleSpanHandler]
) -> None:
    legacy = Legacy()
    llm, wire = scripted(
        [chunk({"content": "par"}), ERROR_EVENT], callback_manager=CallbackManager([legacy]), max_retries=2
    )
    seen: list[str] = []
    with pytest.raises(ServerError, match="boom"):
        await collect(llm, path, seen)
    assert seen == ["par"]
    assert len(wire.bodies) == 1, "what has begun is not repeated"
    assert [what for what, _ in legacy.told] == ["start", "end"]
    assert len(observed[0].of(ExceptionEvent)) == 1
    assert observed[0].of(LLMChatEndEvent) == []


async def collect(llm: Cerebras, path: str, seen: list[str]) -> None:
    """Keep the deltas of a stream, also of one that fails."""
    if path == "astream_chat":
        async for item in await llm.astream_chat(ask()):
            seen += [item.delta or ""]
    else:
        for item in llm.stream_chat(ask()):
            seen += [item.delta or ""]


@pytest.mark.parametrize("path", STREAMS)
async def test_stream_without_a_finish_reason_is_no_success(path: str) -> None:
    llm, _ = scripted(streamed({"content": "par"}, finish_reason=None))
    seen: list[str] = []
    with pytest.raises(StreamTruncatedError):
        await collect(llm, path, seen)
    assert seen == ["par"]


@pytest.mark.parametrize("path", STREAMS)
async def test_error_before_the_first_text_is_retried_unseen(path: str) -> None:
    broken: list[Any] = [{**ERROR_EVENT, "status_code": 503}]
    llm, wire = scripted(broken, streamed({"content": "a"}), max_retries=1, max_retry_wait=0.01)
    seen: list[str] = []
    await collect(llm, path, seen)
    assert "".join(seen) == "a"
    assert len(wire.bodies) == 2
    assert wire.bodies[0] == wire.bodies[1]


@pytest.mark.parametrize("max_retries", [0, 2])
@pytest.mark.parametrize("path", PATHS)
async def test_there_is_one_layer_of_retries(path: str, max_retries: int) -> None:
    llm, wire = scripted(refused(429, **{"retry-after": "0"}), max_retries=max_retries)
    with pytest.raises(RateLimitError):
        await last(llm, path, ask())
    assert len(wire.bodies) == 1 + max_retries


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("as_event", [True, False])
async def test_error_object_in_a_200_is_an_error(path: str, as_event: bool) -> None:
    error = {**ERROR_EVENT, "status_code": 503}
    llm, _ = scripted(lambda body: [error] if as_event and body.get("stream") else error)
    with pytest.raises(ServerError) as caught:
        await last(llm, path, ask())
    assert caught.value.status_code == 503


@pytest.mark.parametrize("path", ["chat", "achat", "complete", "acomplete"])
async def test_answer_without_choices_is_a_typed_error_with_its_usage(path: str) -> None:
    llm, _ = scripted({**whole({}), "choices": []})
    with pytest.raises(APIResponseError) as caught:
        await last(llm, path, argument(path))
    assert (caught.value.response_id, caught.value.usage) == ("chatcmpl-1", USAGE)


@pytest.mark.parametrize("path", PATHS)
async def test_history_that_was_trimmed_badly_is_named_in_the_refusal(path: str) -> None:
    message = ChatMessage(role="tool", content="7", additional_kwargs={"tool_call_id": "gone"})
    llm, _ = scripted(httpx.Response(400, content=b""))
    with pytest.raises(BadRequestError, match=r"message 1 .*'gone'"):
        await last(llm, path, [*ask(), message, *ask()])


# ---- what the framework adds ----


class Limiter:
    """Counts how often a call asks to go on."""

    def __init__(self) -> None:
        self.asked = 0

    def acquire(self) -> None:
        self.asked += 1

    async def async_acquire(self) -> None:
        self.asked += 1


@pytest.mark.skipif("rate_limiter" not in Cerebras.model_fields, reason="this core has no rate limiter")
@pytest.mark.parametrize("path", [*PATHS, *COMPLETE_PATHS])
async def test_rate_limiter_is_asked_once_a_call(path: str) -> None:
    limiter = Limiter()
    llm, _ = scripted(ANSWER, rate_limiter=limiter)
    await last(llm, path, argument(path))
    assert limiter.asked == 1


async def test_async_calls_run_side_by_side() -> None:
    waiting = 0
    all_here = asyncio.Event()

    async def handle(request: httpx.Request) -> httpx.Response:
        nonlocal waiting
        waiting += 1
        if waiting == 3:
            all_here.set()
        await asyncio.wait_for(all_here.wait(), 5)
        return httpx.Response(200, json=whole({"content": "a"}))

    http = httpx.AsyncClient(transport=httpx.MockTransport(handle))
    llm = Cerebras(model="m", api_key="k", async_http_client=http)
    found = await asyncio.gather(llm.achat(ask()), llm.acomplete("q"), llm.achat(ask()))
    assert len(found) == 3

"""What instrumentation and callbacks are told: once a call, and with the real responses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, EventPayload
from llama_index.core.llms.llm import LLM

from cerebras_ext.emulator import Fault
from tests.llamaindex.conformance.listening import Callbacks, Listener
from tests.llamaindex.conformance.service import CHAT_PATHS, PATHS, STREAMS, Service, ask, chunks, question, text_of
from tests.llamaindex.conformance.subjects import KEY


def kind_of(path: str) -> str:
    return "LLMChat" if path in CHAT_PATHS else "LLMCompletion"


@pytest.mark.parametrize("path", PATHS)
async def test_one_call_is_one_start_and_one_end(service: Service, listener: Listener, path: str) -> None:
    service.says(path, "a", "b")
    found = await ask(service.make(), path)
    kind = kind_of(path)
    assert listener.names()[0] == f"{kind}StartEvent"
    assert listener.names()[-1] == f"{kind}EndEvent"
    in_progress = len(found) if "stream" in path else 0
    assert listener.names()[1:-1] == [f"{kind}InProgressEvent"] * in_progress


@pytest.mark.parametrize("path", PATHS)
async def test_one_call_is_one_span(service: Service, listener: Listener, path: str) -> None:
    service.says(path, "a", "b")
    await ask(service.make(), path)
    assert listener.span_methods == [path]
    assert {event.span_id for event in listener.of("LLMChatStartEvent", "LLMCompletionStartEvent")} == {
        event.span_id for event in listener.of("LLMChatEndEvent", "LLMCompletionEndEvent")
    }


@pytest.mark.parametrize("path", PATHS)
async def test_the_end_has_the_whole_response(service: Service, listener: Listener, path: str) -> None:
    service.says(path, "a", "b")
    found = await ask(service.make(), path)
    (end,) = listener.of("LLMChatEndEvent", "LLMCompletionEndEvent")
    assert end.response == found[-1]
    assert text_of(end.response) == "ab"


@pytest.mark.parametrize("path", PATHS)
async def test_the_start_has_model_temperature_and_options_and_no_key(
    service: Service, listener: Listener, path: str
) -> None:
    service.says(path, "a")
    await ask(service.make(temperature=0.25), path, question(path), seed=3)
    (start,) = listener.of("LLMChatStartEvent", "LLMCompletionStartEvent")
    # Older cores tell the whole dictionary of the instance.
    assert start.model_dict.get("model_name", start.model_dict.get("model")) == "gpt-oss-120b"
    assert start.model_dict["temperature"] == 0.25
    assert start.additional_kwargs["seed"] == 3
    assert KEY not in repr(listener.events)
    assert KEY not in "".join(event.model_dump_json() for event in listener.events)


@pytest.mark.parametrize("path", PATHS)
async def test_older_callbacks_are_told_once(service: Service, path: str) -> None:
    callbacks = Callbacks()
    service.says(path, "a", "b")
    found = await ask(service.make(callback_manager=CallbackManager([callbacks])), path)
    assert len(callbacks.starts) == len(callbacks.ends) == 1
    payload = EventPayload.RESPONSE if path in CHAT_PATHS else EventPayload.COMPLETION
    assert callbacks.ends[0][payload] == found[-1]


class Limiter:
    """Counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = 0

    def acquire(self) -> None:
        self.asked += 1

    async def async_acquire(self) -> None:
        self.asked += 1


@pytest.mark.skipif("rate_limiter" not in LLM.model_fields, reason="core has no rate limiter yet")
@pytest.mark.parametrize("path", PATHS)
async def test_the_rate_limiter_is_asked_once_a_call(service: Service, path: str) -> None:
    limiter = Limiter()
    service.says(path, "a", "b")
    await ask(service.make(rate_limiter=limiter), path)
    assert limiter.asked == 1


# ---- errors and early ends ----


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_failing_service_is_asked_once_and_as_often_again_as_allowed(
    service: Service, path: str, retries: int
) -> None:
    service.emulator.fail(429, headers={"retry-after": "0"}, times=None)
    with pytest.raises(Exception) as caught:  # noqa: PT011
        await ask(service.make(max_retries=retries), path)
    assert getattr(caught.value, "status_code", None) == 429
    assert len(service.bodies) == 1 + retries


@pytest.mark.parametrize("path", PATHS)
async def test_a_refused_request_is_raised_and_told_once(service: Service, listener: Listener, path: str) -> None:
    callbacks = Callbacks()
    service.emulator.fail(400)
    llm = service.make(callback_manager=CallbackManager([callbacks]))
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which class is the integration's choice
        await ask(llm, path)
    assert getattr(caught.value, "status_code", None) == 400
    assert [payload[EventPayload.EXCEPTION] for payload in callbacks.ends] == [caught.value]
    # The request is made before a stream is returned, so that the error ends the span of the call.
    assert listener.failed_span_methods == [path]
    assert listener.span_methods == []


@pytest.mark.parametrize("path", STREAMS)
async def test_an_error_inside_a_stream_is_raised_and_told_once(
    service: Service, listener: Listener, path: str
) -> None:
    callbacks = Callbacks()
    service.breaks({"content": "a"}, {"content": "b"})
    llm = service.make(callback_manager=CallbackManager([callbacks]))
    seen = []
    with pytest.raises(Exception) as caught:  # noqa: PT011, PT012 - the error comes while the stream is read
        async for chunk in chunks(llm, path, question(path)):
            seen.append(text_of(chunk))  # noqa: PERF401 - what came before the error is kept
    assert seen[-1] == "ab"
    assert [payload[EventPayload.EXCEPTION] for payload in callbacks.ends] == [caught.value]
    assert [event.exception for event in listener.of("ExceptionEvent")] == [caught.value]
    assert not listener.of("LLMChatEndEvent", "LLMCompletionEndEvent")


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_without_an_end_is_not_a_success(service: Service, listener: Listener, path: str) -> None:
    deltas = list(service.events({"content": "a"}, finish_reason=None))
    service.emulator.respond(stream=deltas)
    with pytest.raises(ConnectionError):
        await ask(service.make(), path)
    assert not listener.of("LLMChatEndEvent", "LLMCompletionEndEvent")


async def _close(llm: Any, path: str) -> None:
    if path.startswith("a"):
        stream = await getattr(llm, path)(question(path))
        await anext(stream)
        await stream.aclose()
    else:
        generator = getattr(llm, path)(question(path))
        next(generator)
        generator.close()


async def _throw(llm: Any, path: str) -> None:
    try:
        async for _chunk in chunks(llm, path, question(path)):
            raise KeyError
    except KeyError:
        pass


async def _drop_unread(llm: Any, path: str) -> None:
    made = getattr(llm, path)(question(path))
    if path.startswith("a"):
        made = await made
    del made


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("leave", [_close, _throw, _drop_unread])
async def test_leaving_a_stream_early_ends_its_connection(
    service: Service, path: str, leave: Callable[[Any, str], Awaitable[None]]
) -> None:
    emulator = service.emulator
    emulator.script(Fault(stream=list(service.events({"content": "a"}, {"content": "b"})), stall_after_chunks=3))
    llm = service.make()
    await leave(llm, path)
    # The rest of the answer is held back, so only our side can have ended the connection.
    await asyncio.to_thread(emulator.wait_until, lambda emulator: emulator.stalled_replies == 0)
    service.says(path, "next")
    assert text_of((await ask(llm, path))[-1]) == "next"


@pytest.mark.parametrize("path", STREAMS)
async def test_closing_a_stream_early_is_told_once_and_as_no_success(
    service: Service, listener: Listener, path: str
) -> None:
    callbacks = Callbacks()
    service.says(path, *"abcdef")
    await _close(service.make(callback_manager=CallbackManager([callbacks])), path)
    assert len(callbacks.starts) == len(callbacks.ends) == 1
    assert isinstance(callbacks.ends[0][EventPayload.EXCEPTION], GeneratorExit)
    assert not listener.of("LLMChatEndEvent", "LLMCompletionEndEvent")

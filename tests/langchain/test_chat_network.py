"""The chat model over real connections to the emulator: faults, retries, limits, closing, images, many at once."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from langchain_core.messages import HumanMessage

from cerebras_ext.emulator import Emulator, Fault
from langchain_cerebras_ext import CerebrasLLM, ChatCerebras, errors
from tests.langchain.service import ALL_PATHS, PATHS, merged

MODEL = "gpt-oss-120b"
SHAPE = {"content-type": "application/json", "retry-after-ms": "1"}
STREAM_PATHS = [path for path in ALL_PATHS if "stream" in path]


@pytest.fixture(scope="module")
def shared_emulator() -> Iterator[Emulator]:
    with Emulator() as emu:
        yield emu


@pytest.fixture
def emu(shared_emulator: Emulator) -> Emulator:
    shared_emulator.reset()
    return shared_emulator


def model_of(emu: Emulator, **fields: Any) -> ChatCerebras:
    return ChatCerebras(**{"model": MODEL, "api_key": "csk-any-key", "base_url": emu.base_url, **fields})


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_every_path_answers_over_a_real_connection(emu: Emulator, path: str) -> None:
    message = await ALL_PATHS[path](model_of(emu), "hi")
    assert message.text
    assert message.additional_kwargs["reasoning_content"]
    assert message.response_metadata["model_name"] == MODEL
    assert message.usage_metadata["total_tokens"] > 0
    assert emu.requests[-1].body.get("stream", False) is ("stream" in path)


@pytest.mark.parametrize("path", PATHS)
async def test_busy_service_is_asked_again_and_no_more_often_than_told(emu: Emulator, path: str) -> None:
    emu.script(Fault(status=503, headers=SHAPE, times=2))
    assert (await PATHS[path](model_of(emu, max_retries=2), "hi")).text
    assert len(emu.requests) == 3
    emu.reset()
    emu.script(Fault(status=503, headers=SHAPE, times=None))
    with pytest.raises(errors.ServerError):
        await PATHS[path](model_of(emu, max_retries=1), "hi")
    assert len(emu.requests) == 2


@pytest.mark.parametrize("path", ["stream", "astream"])
async def test_stream_that_breaks_in_the_middle_is_not_asked_for_again(emu: Emulator, path: str) -> None:
    emu.script(Fault(cut_after_chunks=4, cut="reset"))
    seen: list[str] = []

    async def read() -> None:
        model = model_of(emu, max_retries=2)
        if path == "stream":
            seen.extend(chunk.text for chunk in model.stream("hi"))
        else:
            async for chunk in model.astream("hi"):
                seen.append(chunk.text)  # noqa: PERF401

    with pytest.raises(errors.APIConnectionError):
        await read()
    assert seen
    assert len(emu.requests) == 1


@pytest.mark.parametrize("path", STREAM_PATHS)
async def test_silence_in_a_stream_is_a_timeout(emu: Emulator, path: str) -> None:
    emu.script(Fault(stall_after_chunks=3))
    with pytest.raises(errors.APITimeoutError) as caught:
        await ALL_PATHS[path](model_of(emu, timeout=0.05, max_retries=0), "hi")
    assert isinstance(caught.value, TimeoutError)
    emu.release()


CHUNK = {"id": "c", "created": 1, "model": MODEL, "choices": [{"index": 0, "delta": {"content": "a"}}]}
LAST = {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("path", STREAM_PATHS)
async def test_comments_do_not_keep_a_stream_alive_for_ever(emu: Emulator, path: str) -> None:
    emu.script(Fault(stream=[CHUNK, *[": ping\n\n"] * 100], chunk_delay=0.01))
    with pytest.raises(errors.APITimeoutError, match="no event of the stream for"):
        await ALL_PATHS[path](model_of(emu, stream_idle_timeout=0.05, max_retries=0), "hi")


@pytest.mark.parametrize("path", STREAM_PATHS)
async def test_a_healthy_stream_may_last_longer_than_the_timeout(emu: Emulator, path: str) -> None:
    emu.script(Fault(stream=[*[CHUNK] * 8, LAST, "data: [DONE]\n\n"], chunk_delay=0.06))
    assert (await ALL_PATHS[path](model_of(emu, timeout=0.4, max_retries=0), "hi")).text == "a" * 8


ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


def test_streams_left_early_give_the_only_connection_back(emu: Emulator) -> None:
    with httpx.Client(limits=ONE, timeout=httpx.Timeout(5.0, pool=2.0)) as client:
        model = model_of(emu, http_client=client)
        for _ in range(5):
            stream = model.stream("hi")
            next(stream)
            stream.close()  # type: ignore[attr-defined]
        for _ in range(5):
            for _chunk in model.stream("hi"):
                break
        assert model.invoke("hi").text
        assert not client.is_closed
        model.close()
        assert not client.is_closed


async def test_async_streams_left_early_give_the_only_connection_back(emu: Emulator) -> None:
    async with httpx.AsyncClient(limits=ONE, timeout=httpx.Timeout(5.0, pool=2.0)) as client:
        model = model_of(emu, http_async_client=client)
        for _ in range(5):
            stream = model.astream("hi")
            await anext(stream)
            await stream.aclose()  # type: ignore[attr-defined]
        assert (await model.ainvoke("hi")).text
        await model.aclose()
        assert not client.is_closed


async def leave_chunks(emu: Emulator) -> None:
    async for _ in model_of(emu).astream("hi"):
        break


async def leave_text(emu: Emulator) -> None:
    async for _ in CerebrasLLM(model=MODEL, api_key="csk-any-key", base_url=emu.base_url).astream("hi"):
        break


async def leave_events(emu: Emulator) -> None:
    async for _ in await model_of(emu).astream_events("hi", version="v3"):
        break


async def leave_the_hook(emu: Emulator) -> None:
    async for _ in model_of(emu)._astream_chat_model_events([HumanMessage("hi")]):
        break


@pytest.mark.parametrize("leave", [leave_chunks, leave_text, leave_events, leave_the_hook])
def test_a_loop_that_ends_after_a_stream_was_left_has_nothing_to_complain_of(leave: Any) -> None:
    complaints: list[dict[str, Any]] = []

    async def main(emu: Emulator) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        await leave(emu)

    with Emulator(pace=0.005) as emu:
        for _ in range(3):
            asyncio.run(main(emu))
    assert not complaints


async def test_a_cancelled_stream_closes_its_connection() -> None:
    reached = asyncio.Event()

    async def read(model: ChatCerebras) -> None:
        async for _ in model.astream("hi"):
            reached.set()

    with Emulator() as emu:  # of its own: connections of other tests may still be kept alive
        emu.script(Fault(stall_after_chunks=3))
        task = asyncio.create_task(read(model_of(emu)))
        await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(emu.wait_until, lambda emu: emu.connections_open == 0)


async def test_many_calls_at_once_keep_their_answers_apart(emu: Emulator) -> None:
    model = model_of(emu)
    prompts = [f"Say the word w{number} and nothing else" for number in range(20)]
    alone = [(await model.ainvoke(prompt)).text for prompt in prompts[:3]]
    answers = await model.abatch(prompts)
    assert [answer.text for answer in answers[:3]] == alone
    streams = await asyncio.gather(*(PATHS["astream"](model, prompt) for prompt in prompts))
    assert [message.text for message in streams] == [answer.text for answer in answers]
    assert [message.text for message in model.batch(prompts)] == [answer.text for answer in answers]


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(32)).decode()


@pytest.mark.parametrize("path", PATHS)
async def test_refused_image_url_has_a_hint(emu: Emulator, path: str) -> None:
    prompt = [HumanMessage([{"type": "image", "url": "https://example.com/cat.png"}])]
    refused = {"message": "image_url must be a data URI", "type": "invalid_request_error", "code": "wrong_api_format"}
    emu.script(Fault(status=400, body=refused))
    with pytest.raises(errors.BadRequestError, match=r"Hint: .*data URIs"):
        await PATHS[path](model_of(emu, model="gemma-4-31b"), prompt)
    assert emu.requests[0].body["messages"][0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_tools_with_response_format_are_sent_as_asked_and_refused_with_a_hint(emu: Emulator, path: str) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}
    emu.script(Fault(status=400))
    with pytest.raises(errors.BadRequestError, match=r"Hint: .*tools together with response_format"):
        await PATHS[path](model_of(emu), "hi", tools=[tool], response_format={"type": "json_object"})
    assert {"tools", "response_format"} <= emu.requests[0].body.keys()


@pytest.mark.parametrize("payload", ["gzip", "msgpack", "msgpack+gzip"])
@pytest.mark.parametrize("path", PATHS)
async def test_other_encodings_send_the_same_request(emu: Emulator, path: str, payload: str) -> None:
    if "msgpack" in payload:
        pytest.importorskip("ormsgpack", reason="msgpack bodies need the extra of that name")
    await PATHS[path](model_of(emu), "x" * 2000)
    await PATHS[path](model_of(emu, payload=payload), "x" * 2000)
    plain, encoded = emu.requests
    assert plain.body == encoded.body
    assert (plain.encoding, encoded.encoding) == ("json", payload)


def test_models_made_alike_share_connections() -> None:
    with Emulator() as emu:
        for _ in range(5):
            model_of(emu).invoke("hi")
            merged(list(model_of(emu).stream("hi")))
        assert emu.connections_opened == 1

"""What the eight methods send and return."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from llama_index.core.base.llms.types import ChatResponse, CompletionResponse, MessageRole, TextBlock
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler

from tests.llamaindex.conformance.service import (
    CHAT_PATHS,
    COMPLETE_PATHS,
    PATHS,
    STREAMS,
    USAGE,
    Service,
    ask,
    question,
    text_of,
)


def prompt_of(service: Service, body: dict[str, Any]) -> Any:
    return body["messages"] if service.subject.endpoint == "chat" else body["prompt"]


# ---- requests ----


@pytest.mark.parametrize("path", PATHS)
async def test_only_what_was_set_is_sent(service: Service, path: str) -> None:
    service.says(path, "a")
    await ask(service.make(), path)
    allowed = {"model", "messages", "prompt", "stream", "stream_options"}
    assert set(service.body) <= allowed
    assert service.body["model"] == "gpt-oss-120b"
    assert service.body.get("stream", False) is ("stream" in path)
    assert not any(value is None for value in service.body.values())


@pytest.mark.needs("chat")
@pytest.mark.parametrize("path", COMPLETE_PATHS)
async def test_complete_asks_with_one_user_message(service: Service, path: str) -> None:
    service.says(path, "a")
    await ask(service.make(), path, "some text")
    assert service.body["messages"] == [{"role": "user", "content": "some text"}]


@pytest.mark.parametrize("path", PATHS)
async def test_settings_of_the_constructor_are_sent_and_a_call_wins(service: Service, path: str) -> None:
    llm = service.make(temperature=0.25, additional_kwargs={"seed": 1, "top_p": 0.5})
    service.says(path, "a")
    await ask(llm, path, question(path), seed=2)
    assert (service.body["temperature"], service.body["seed"], service.body["top_p"]) == (0.25, 2, 0.5)


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_of_the_caller_s_is_changed(service: Service, path: str) -> None:
    additional = {"seed": 1, "logit_bias": {"5": 1.0}}
    argument, options = question(path), {"stop": ["x"]}
    before = copy.deepcopy((additional, argument, options))
    llm = service.make(additional_kwargs=additional)
    for _ in range(2):
        service.says(path, "a")
        await ask(llm, path, argument, **options)
    assert (additional, argument, options) == before
    assert service.bodies[0] == service.bodies[1]


@pytest.mark.parametrize("path", COMPLETE_PATHS)
@pytest.mark.parametrize("formatted", [False, True])
async def test_completion_to_prompt_is_applied_once_unless_formatted(
    service: Service, path: str, formatted: bool
) -> None:
    service.says(path, "a")
    await ask(service.make(completion_to_prompt=lambda text: f"<{text}>"), path, "q", formatted=formatted)
    sent = prompt_of(service, service.body)
    assert (sent if isinstance(sent, str) else sent[0]["content"]) == ("q" if formatted else "<q>")


@pytest.mark.parametrize("path", PATHS)
async def test_arguments_may_be_given_by_name(service: Service, path: str) -> None:
    service.says(path, "a")
    name = "prompt" if "complete" in path else "messages"
    method = getattr(service.make(), path)
    result = method(**{name: question(path)})
    if inspect.isawaitable(result):
        result = await result
    if isinstance(result, AsyncGenerator):
        result = [chunk async for chunk in result][-1]
    elif isinstance(result, Generator):
        result = list(result)[-1]
    assert text_of(result) == "a"


# ---- kinds of objects ----


@pytest.mark.parametrize("path", STREAMS)
async def test_streams_are_generators_as_core_s_callbacks_need_them(service: Service, path: str) -> None:
    service.says(path, "a")
    made = getattr(service.make(), path)(question(path))
    if path.startswith("a"):
        assert inspect.isawaitable(made)
        stream = await made
        assert isinstance(stream, AsyncGenerator)
        assert [chunk async for chunk in stream]
    else:
        assert isinstance(made, Generator)
        assert list(made)


@pytest.mark.parametrize("path", PATHS)
async def test_responses_are_of_the_kind_of_the_method(service: Service, path: str) -> None:
    service.says(path, "a", "b")
    kind = CompletionResponse if path in COMPLETE_PATHS else ChatResponse
    assert {type(response) for response in await ask(service.make(), path)} == {kind}


# ---- content ----


@pytest.mark.parametrize("path", PATHS)
async def test_the_text_is_returned(service: Service, path: str) -> None:
    service.says(path, "Hel", "lo", " wörld\n")
    assert text_of((await ask(service.make(), path))[-1]) == "Hello wörld\n"


@pytest.mark.parametrize("path", CHAT_PATHS)
async def test_the_message_is_the_assistant_s_with_one_text_block(service: Service, path: str) -> None:
    service.says(path, "a", "b", "c")
    for response in await ask(service.make(), path):
        assert response.message.role == MessageRole.ASSISTANT
        assert [type(block) for block in response.message.blocks if block.block_type != "thinking"] == [TextBlock]
        assert "tool_calls" not in response.message.additional_kwargs


@pytest.mark.parametrize("path", STREAMS)
async def test_chunks_are_cumulative_and_deltas_are_what_is_new(service: Service, path: str) -> None:
    service.says(path, "a", "b", "c")
    found = await ask(service.make(), path)
    assert "".join(chunk.delta for chunk in found) == "abc"
    text = ""
    for chunk in found:
        assert isinstance(chunk.delta, str)
        text += chunk.delta
        assert text_of(chunk) == text


@pytest.mark.parametrize("path", STREAMS)
async def test_chunks_are_snapshots_that_later_ones_do_not_change(service: Service, path: str) -> None:
    service.says(path, "a", "b", "c")
    llm = service.make()
    dumps, kept = [], []
    if path.startswith("a"):
        async for chunk in await getattr(llm, path)(question(path)):
            kept.append(chunk)
            dumps.append(chunk.model_dump())
    else:
        for chunk in getattr(llm, path)(question(path)):
            kept.append(chunk)
            dumps.append(chunk.model_dump())
    assert [chunk.model_dump() for chunk in kept] == dumps


@pytest.mark.parametrize("path", PATHS)
async def test_an_empty_answer_is_an_empty_text_not_none(service: Service, path: str) -> None:
    service.says(path)
    found = await ask(service.make(), path)
    assert text_of(found[-1]) == ""
    assert str(found[-1]) in ("", "assistant: ")


# ---- raw and usage ----


@pytest.mark.parametrize("path", PATHS)
async def test_the_last_raw_has_id_model_finish_reason_and_usage_together(service: Service, path: str) -> None:
    service.says(path, "a", "b", finish_reason="length")
    raw = (await ask(service.make(), path))[-1].raw
    assert type(raw) is dict
    assert (raw["id"], raw["model"], raw["choices"][0]["finish_reason"]) == ("chatcmpl-1", "served-model", "length")
    assert raw["usage"] == USAGE


@pytest.mark.parametrize("path", PATHS)
async def test_token_counts_are_in_additional_kwargs(service: Service, path: str) -> None:
    service.says(path, "a")
    counts = (await ask(service.make(), path))[-1].additional_kwargs
    assert {name: counts[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
        "prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18
    }  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
async def test_the_token_counting_handler_reads_exact_counts(service: Service, path: str) -> None:
    handler = TokenCountingHandler()
    service.says(path, "a", "b")
    await ask(service.make(callback_manager=CallbackManager([handler])), path)
    assert [(event.prompt_token_count, event.completion_token_count) for event in handler.llm_token_counts] == [(11, 7)]


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_without_usage_does_not_disturb_the_token_counting_handler(service: Service, path: str) -> None:
    handler = TokenCountingHandler()
    service.says(path, "a", "b", usage=None)
    response = (await ask(service.make(callback_manager=CallbackManager([handler])), path))[-1]
    assert text_of(response) == "ab"
    assert "usage" not in response.raw or response.raw["usage"] is None
    assert len(handler.llm_token_counts) == 1


# ---- thinking ----


@pytest.mark.needs("reasoning")
@pytest.mark.parametrize("path", CHAT_PATHS)
async def test_thinking_comes_before_the_text_and_is_told_as_it_grows(service: Service, path: str) -> None:
    service.says(path, "an", "swer", reasoning="hm")
    found = await ask(service.make(), path)
    kinds = [block.block_type for block in found[-1].message.blocks]
    assert kinds == ["thinking", "text"]
    assert found[-1].message.blocks[0].content == "hm"
    assert found[-1].message.content == "answer"
    if "stream" in path:
        assert "".join(chunk.additional_kwargs.get("thinking_delta") or "" for chunk in found) == "hm"
        assert "".join(chunk.delta for chunk in found) == "answer"

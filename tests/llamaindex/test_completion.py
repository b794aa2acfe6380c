"""`CerebrasCompletion`: what is sent and what is returned, on all of its paths."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import (
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CompletionResponse,
    ImageBlock,
    LogProb,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel, ValidationError

from cerebras_ext.errors import BadRequestError, RequestValidationError, StreamTruncatedError
from cerebras_ext.types import CompletionRequest
from llamaindex_cerebras_ext import CerebrasCompletion
from llamaindex_cerebras_ext.completion_wire import messages_to_prompt
from tests.llamaindex.scripted import TIME, USAGE, last, responses
from tests.llamaindex.scripted_text import (
    ALL_PATHS,
    CHAT_PATHS,
    COMPLETE_PATHS,
    STREAMS,
    argument,
    both,
    event,
    scripted_text,
    streamed,
    text_of,
    whole,
)

VALUES: dict[str, Any] = {
    "best_of": 3, "echo": True, "frequency_penalty": 0.5, "grammar_root": "root", "logit_bias": {"7": 1.0},
    "logprobs": 2, "max_tokens": 9, "min_tokens": 1, "n": 2, "presence_penalty": 0.5, "prompt_cache_key": "k",
    "reasoning_format": "parsed", "return_raw_tokens": True, "seed": 3, "stop": ["a"], "suffix": "s",
    "stream_options": {"include_usage": True}, "temperature": 0.5, "top_p": 0.5, "user": "u",
}  # fmt: skip
SENT_WITH_STREAMS = {"stream_options"}
NOT_STREAMED = {"best_of", "n"}


# ---- fields ----


def test_there_is_a_value_for_every_field() -> None:
    assert set(VALUES) == set(CompletionRequest.model_fields) - {"model", "prompt", "stream", "extra_body"}


@pytest.mark.parametrize("level", ["constructor", "additional_kwargs", "call"])
@pytest.mark.parametrize("path", ["complete", "acomplete", "stream_complete", "achat", "astream_chat"])
async def test_every_field_reaches_the_wire_from_every_level(level: str, path: str) -> None:
    for name, value in VALUES.items():
        constructor = {"constructor": {name: value}, "additional_kwargs": {"additional_kwargs": {name: value}}}
        llm, wire = scripted_text(both("a"), **constructor.get(level, {}))
        await last(llm, path, argument(path), **({name: value} if level == "call" else {}))
        expected = {"model": "some-model", "prompt": wire.body["prompt"], name: value}
        if "stream" in path and name not in NOT_STREAMED:
            expected["stream"] = True
        elif name in SENT_WITH_STREAMS:
            del expected[name]
        assert wire.body == expected


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_nothing_is_sent_that_was_not_set(path: str) -> None:
    llm, wire = scripted_text(both("a"))
    await last(llm, path, argument(path))
    prompt = "q" if path in COMPLETE_PATHS else "User: q\n\nAssistant:"
    stream = {"stream": True} if path in STREAMS else {}
    assert wire.body == {"model": "some-model", "prompt": prompt, **stream}


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_extra_body_sends_what_the_library_does_not_know(path: str) -> None:
    llm, wire = scripted_text(both("a"), extra_body={"brand_new": 1})
    await last(llm, path, argument(path), extra_body={"newer": None})
    assert (wire.body["brand_new"], wire.body["newer"]) == (1, None)


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_an_unknown_option_of_a_call_is_refused_before_anything_is_sent(path: str) -> None:
    llm, wire = scripted_text(both("a"))
    with pytest.raises(RequestValidationError, match="did you mean 'temperature'"):
        await last(llm, path, argument(path), temprature=1)
    assert wire.bodies == []


def test_max_completion_tokens_is_no_field_of_this_endpoint() -> None:
    with pytest.raises(ValidationError, match="max_completion_tokens"):
        CerebrasCompletion(model="m", max_completion_tokens=3)


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_call_options_reach_the_request(path: str) -> None:
    llm, wire = scripted_text(both("a"))
    await last(llm, path, argument(path), extra_headers={"x-a": "b"}, queue_threshold=60, timeout=7)
    request = wire.requests[0]
    assert request.headers["x-a"] == "b"
    assert request.headers["queue_threshold"] == "60"
    assert request.extensions["timeout"]["read"] == 7


# ---- prompts ----


@pytest.mark.parametrize("path", COMPLETE_PATHS)
async def test_completion_to_prompt_is_applied_unless_the_prompt_is_formatted(path: str) -> None:
    llm, wire = scripted_text(both("a"), completion_to_prompt=lambda text: f"<{text}>")
    await last(llm, path, "q")
    await last(llm, path, "q", formatted=True)
    assert [body["prompt"] for body in wire.bodies] == ["<q>", "q"]


@pytest.mark.parametrize("path", COMPLETE_PATHS)
async def test_token_ids_are_a_prompt(path: str) -> None:
    llm, wire = scripted_text(both("a"), completion_to_prompt=lambda text: f"<{text}>")
    await last(llm, path, (1, 2, 3))
    assert wire.body["prompt"] == [1, 2, 3]


@pytest.mark.parametrize("path", CHAT_PATHS)
async def test_messages_to_prompt_of_the_user_writes_the_conversation(path: str) -> None:
    llm, wire = scripted_text(
        both("a"),
        messages_to_prompt=lambda messages: f"{len(messages)}!",
        completion_to_prompt=lambda text: f"<{text}>",
    )
    await last(llm, path, argument(path))
    assert wire.body["prompt"] == "1!"


def test_none_for_messages_to_prompt_means_the_default() -> None:
    llm = CerebrasCompletion(model="m", messages_to_prompt=None, completion_to_prompt=None)
    assert llm._written([ChatMessage(content="q")]) == "User: q\n\nAssistant:"
    assert llm._prompt("q", formatted=False) == "q"


def test_predict_puts_the_system_prompt_in_front_and_formats_once() -> None:
    llm, wire = scripted_text(both("a"), system_prompt="Be brief.", completion_to_prompt=lambda text: f"<{text}>")
    assert llm.predict(PromptTemplate("say {word}"), word="x") == "a"
    assert wire.body["prompt"] == "Be brief.\n\n<say x>"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (ChatMessage(role=MessageRole.SYSTEM, content="Be brief."), "System: Be brief."),
        (ChatMessage(role=MessageRole.DEVELOPER, content="d"), "System: d"),
        (ChatMessage(role=MessageRole.CHATBOT, content="c"), "Assistant: c"),
        (ChatMessage(role=MessageRole.MODEL, content="c"), "Assistant: c"),
        (ChatMessage(role=MessageRole.FUNCTION, content="c"), "Tool: c"),
        (ChatMessage(role=MessageRole.ASSISTANT, content=None), "Assistant:"),
        (ChatMessage(role=MessageRole.USER, blocks=[]), "User:"),
        (ChatMessage(role=MessageRole.USER, blocks=[TextBlock(text="a"), TextBlock(text="b")]), "User: a\nb"),
        (
            ChatMessage(role=MessageRole.ASSISTANT, blocks=[ThinkingBlock(content="hm"), TextBlock(text="a")]),
            "Assistant: a",
        ),
        (
            ChatMessage(role=MessageRole.ASSISTANT, blocks=[ToolCallBlock(tool_name="f", tool_kwargs={"x": "ü"})]),
            'Assistant: [calls f with {"x": "ü"}]',
        ),
        (
            ChatMessage(
                role=MessageRole.ASSISTANT,
                content="a",
                additional_kwargs={"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"x":1}'}}]},
            ),
            'Assistant: a\n[calls f with {"x":1}]',
        ),
        (
            ChatMessage(blocks=[TextBlock(text="a"), CachePoint(cache_control=CacheControl(type="ephemeral"))]),
            "User: a",
        ),
        (
            ChatMessage(blocks=[CitableBlock(title="t", source="s", content=[TextBlock(text="a")])]),
            "User: t (s):\na",
        ),
        (ChatMessage(role=MessageRole.TOOL, content="5", additional_kwargs={"tool_call_id": "1"}), "Tool: 5"),
    ],
)
def test_default_rendering_of_a_turn(message: ChatMessage, text: str) -> None:
    assert messages_to_prompt([message]) == f"{text}\n\nAssistant:"


def test_a_block_that_text_has_no_form_for_is_refused() -> None:
    message = ChatMessage(blocks=[ImageBlock(url="http://x/y.png")])
    with pytest.raises(ValueError, match=r"message 0 \(user\): an image block is not accepted"):
        messages_to_prompt([message])


# ---- responses ----

RAW = {
    "id": "chatcmpl-1",
    "created": 1,
    "model": "served-model",
    "system_fingerprint": "fp_1",
    "object": "text_completion",
    "usage": USAGE,
    "time_info": TIME,
}
COUNTS = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_the_response_has_text_raw_and_token_counts(path: str) -> None:
    llm, _ = scripted_text(both("Hel", "lo"))
    response = await last(llm, path, argument(path))
    assert text_of(response) == "Hello"
    assert type(response.raw) is dict
    assert {key: value for key, value in response.raw.items() if key != "choices"} == RAW
    choice = response.raw["choices"][0]
    assert (choice["index"], choice["text"], choice["finish_reason"]) == (0, "Hello", "stop")
    assert COUNTS.items() <= response.additional_kwargs.items()
    assert response.additional_kwargs["prompt_tokens_details"] == {"cached_tokens": 4}
    assert response.additional_kwargs["finish_reason"] == "stop"


@pytest.mark.parametrize("path", CHAT_PATHS)
async def test_chat_answers_with_one_text_block_of_the_assistant(path: str) -> None:
    llm, _ = scripted_text(both("Hel", "lo"))
    message = (await last(llm, path, argument(path))).message
    assert message.role == MessageRole.ASSISTANT
    assert message.blocks == [TextBlock(text="Hello")]
    assert message.additional_kwargs == {}


@pytest.mark.parametrize("path", STREAMS)
async def test_chunks_have_the_text_so_far_and_what_is_new(path: str) -> None:
    llm, _ = scripted_text(streamed("a", "", "b", "c"))
    chunks = await responses(llm, path, argument(path))
    assert [(text_of(chunk), chunk.delta) for chunk in chunks] == [("a", "a"), ("ab", "b"), ("abc", "c"), ("abc", "")]


@pytest.mark.parametrize("path", STREAMS)
async def test_an_empty_answer_is_an_empty_text(path: str) -> None:
    llm, _ = scripted_text(streamed())
    chunks = await responses(llm, path, argument(path))
    assert [(text_of(chunk), chunk.delta) for chunk in chunks] == [("", "")]


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_an_answer_without_usage_says_so_and_invents_nothing(path: str) -> None:
    llm, _ = scripted_text(both("a", usage=None))
    response = await last(llm, path, argument(path))
    assert response.raw["usage"] is None
    assert not COUNTS.keys() & response.additional_kwargs.keys()


LOGPROBS = {
    "text_offset": [1, 2],
    "token_logprobs": [None, -0.5],
    "tokens": ["q", "a"],
    "top_logprobs": [None, {"a": -0.5, "b": -1.5}],
}
READ_LOGPROBS = [[], [LogProb(token="a", logprob=-0.5), LogProb(token="b", logprob=-1.5)]]


@pytest.mark.parametrize("path", ["complete", "acomplete", "chat", "achat"])
async def test_logprobs_are_one_list_a_token_the_token_itself_first(path: str) -> None:
    llm, _ = scripted_text(whole("qa", logprobs=LOGPROBS), logprobs=2, echo=True)
    assert (await last(llm, path, argument(path))).logprobs == READ_LOGPROBS


@pytest.mark.parametrize("path", STREAMS)
async def test_logprobs_of_a_stream_are_on_its_chunks_and_all_on_the_last(path: str) -> None:
    first = {"tokens": ["q"], "token_logprobs": [None], "top_logprobs": [None], "text_offset": [0]}
    second = {"tokens": ["a"], "token_logprobs": [-0.5], "top_logprobs": [{"a": -0.5, "b": -1.5}], "text_offset": [1]}
    llm, _ = scripted_text([event("q", logprobs=first), event("a", logprobs=second), *streamed()])
    chunks = await responses(llm, path, argument(path))
    assert [chunk.logprobs for chunk in chunks] == [READ_LOGPROBS[:1], READ_LOGPROBS[1:], READ_LOGPROBS]


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_raw_tokens_are_on_the_response(path: str) -> None:
    llm, _ = scripted_text(
        [event(tokens=[1, 2]), event(tokens=[3]), *streamed()] if path in STREAMS else whole("", tokens=[1, 2, 3]),
        return_raw_tokens=True,
    )
    chunks = await responses(llm, path, argument(path))
    assert chunks[-1].additional_kwargs["tokens"] == [1, 2, 3]
    if path in STREAMS:
        assert [chunk.additional_kwargs["tokens"] for chunk in chunks[:-1]] == [[1, 2], [3]]


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("option", [{"best_of": 2}, {"n": 2}, {"best_of": 3, "n": 2}])
async def test_what_cannot_be_streamed_is_one_request_and_one_piece(path: str, option: dict[str, int]) -> None:
    llm, wire = scripted_text(whole("first", "second"))
    chunks = await responses(llm, path, argument(path), **option)
    assert "stream" not in wire.body
    assert [(text_of(chunk), chunk.delta) for chunk in chunks] == [("first", "first"), ("first", "")]
    assert [choice["text"] for choice in chunks[-1].raw["choices"]] == ["first", "second"]


# ---- errors ----

ERROR = {"message": "no", "type": "invalid_request_error", "param": "p", "code": "wrong_api_format"}


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_a_refusal_is_raised_when_the_method_is_called(path: str) -> None:
    llm, _ = scripted_text(httpx.Response(400, json=ERROR))
    method = getattr(llm, path)
    with pytest.raises(BadRequestError) as caught:
        # The streams are not read: the request has been sent when they are returned.
        await method(argument(path)) if path.startswith("a") else method(argument(path))
    assert caught.value.status_code == 400


async def read_into(seen: list[Any], llm: CerebrasCompletion, path: str) -> None:
    """Keep the texts of a stream as they come, so that those before an error are known."""
    if path.startswith("a"):
        async for chunk in await getattr(llm, path)(argument(path)):
            seen.append(text_of(chunk))  # noqa: PERF401
    else:
        for chunk in getattr(llm, path)(argument(path)):
            seen.append(text_of(chunk))  # noqa: PERF401


@pytest.mark.parametrize("path", STREAMS)
async def test_a_stream_without_an_end_is_an_error_after_what_came(path: str) -> None:
    llm, _ = scripted_text(streamed("a", finish_reason=None))
    seen: list[Any] = []
    with pytest.raises(StreamTruncatedError):
        await read_into(seen, llm, path)
    assert seen == ["a"]


# ---- several prompts ----


@pytest.mark.parametrize("is_async", [False, True])
async def test_several_prompts_are_one_request(is_async: bool) -> None:
    answer = whole("A", "B")
    answer["choices"].reverse()
    llm, wire = scripted_text(answer, completion_to_prompt=lambda text: f"<{text}>")
    found = await llm.acomplete_batch(["a", "b"], seed=1) if is_async else llm.complete_batch(["a", "b"], seed=1)
    assert wire.body == {"model": "some-model", "prompt": ["<a>", "<b>"], "seed": 1}
    assert [response.text for response in found] == ["A", "B"]
    assert [response.raw["choices"][0]["index"] for response in found] == [0, 1]  # type: ignore[index]
    assert all(type(response) is CompletionResponse and len(response.raw["choices"]) == 1 for response in found)  # type: ignore[index]


@pytest.mark.parametrize("is_async", [False, True])
async def test_token_counts_of_a_batch_are_not_added_up(is_async: bool) -> None:
    llm, _ = scripted_text(whole("A", "B"))
    found = await llm.acomplete_batch(["a", "b"]) if is_async else llm.complete_batch(["a", "b"])
    assert [response.raw["usage"] for response in found] == [USAGE, USAGE]  # type: ignore[index]
    assert [response.additional_kwargs for response in found] == [{"finish_reason": "stop"}] * 2


def test_a_batch_may_be_of_token_ids_and_of_several_choices() -> None:
    llm, wire = scripted_text(whole("A1", "A2", "B1", "B2"))
    found = llm.complete_batch([[1], (2, 3)], n=2)
    assert wire.body == {"model": "some-model", "prompt": [[1], [2, 3]], "n": 2}
    assert [response.text for response in found] == ["A1", "A2", "B1", "B2"]


async def test_no_prompts_are_no_request() -> None:
    llm, wire = scripted_text(whole("A"))
    assert llm.complete_batch([]) == await llm.acomplete_batch([]) == []
    assert wire.bodies == []


# ---- structured prediction by way of text ----


class City(BaseModel):
    name: str


async def test_structured_predict_is_core_s_program_for_text_models() -> None:
    llm, wire = scripted_text(whole(json.dumps({"name": "Paris"})))
    prompt = PromptTemplate("Capital of {country}?")
    assert llm.structured_predict(City, prompt, country="France") == City(name="Paris")
    assert await llm.astructured_predict(City, prompt, country="France") == City(name="Paris")
    assert "Capital of France?" in wire.bodies[0]["prompt"]
    assert '"name"' in wire.bodies[0]["prompt"]

"""What the chat class gives back: blocks, deltas, raw, token counts, log probabilities, the same on every path."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    LogProb,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)

from cerebras_ext.errors import APIResponseError
from tests.llamaindex.scripted import (
    COMPLETE_PATHS,
    PATHS,
    STREAMS,
    TIME,
    USAGE,
    ask,
    both,
    call,
    chunk,
    last,
    responses,
    scripted,
    streamed,
    texts,
    whole,
)

ARGUMENTS = '{"city": "Bern"}'
MESSAGE = {
    "content": "Hello",
    "reasoning": "think",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}],
}
DELTAS = (
    {"reasoning": "th"},
    {"reasoning": "ink"},
    {"content": "Hel"},
    {"content": "lo"},
    {"tool_calls": [call(0, "c1", "weather", "")]},
    {"tool_calls": [call(0, None, None, '{"city"')]},
    {"tool_calls": [call(0, None, None, ': "Bern"}')]},
)


def shape(response: ChatResponse) -> list[str]:
    return [block.block_type for block in response.message.blocks]


@pytest.mark.parametrize("path", PATHS)
async def test_every_path_gives_the_same_answer(path: str) -> None:
    llm, _ = scripted(both(MESSAGE, *DELTAS, finish_reason="tool_calls"))
    response = await last(llm, path, ask())
    assert response.message == ChatMessage(
        role="assistant",
        blocks=[
            ThinkingBlock(content="think", num_tokens=2),
            TextBlock(text="Hello"),
            ToolCallBlock(tool_call_id="c1", tool_name="weather", tool_kwargs={"city": "Bern"}),
        ],
        additional_kwargs={"tool_calls": MESSAGE["tool_calls"]},
    )
    expected = whole(MESSAGE, finish_reason="tool_calls")
    assert response.raw == expected
    assert type(response.raw) is dict
    assert response.additional_kwargs == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "cached_tokens": 4,
        "reasoning_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
    }
    json.dumps(response.raw)


@pytest.mark.parametrize("path", PATHS)
async def test_last_chunk_carries_id_model_finish_reason_usage_and_timing_together(path: str) -> None:
    llm, _ = scripted(both({"content": "a"}, {"content": "a"}))
    raw = (await last(llm, path, ask())).raw
    assert (raw["id"], raw["model"], raw["system_fingerprint"]) == ("chatcmpl-1", "served-model", "fp_1")
    assert raw["choices"][0]["finish_reason"] == "stop"
    assert (raw["usage"], raw["time_info"]) == (USAGE, TIME)


@pytest.mark.parametrize("path", STREAMS)
async def test_stream_is_cumulative_with_new_text_as_delta(path: str) -> None:
    llm, _ = scripted(streamed(*DELTAS, finish_reason="tool_calls"))
    chunks = await responses(llm, path, ask())
    assert [chunk.delta for chunk in chunks] == ["", "", "Hel", "lo", "", "", "", ""]
    assert texts(chunks) == ["", "", "Hel", "Hello", "Hello", "Hello", "Hello", "Hello"]
    assert [chunk.additional_kwargs.get("thinking_delta") for chunk in chunks] == ["th", "ink", *[None] * 6]
    assert [shape(chunk) for chunk in chunks] == [["thinking", "text"]] * 4 + [["thinking", "text", "tool_call"]] * 4
    arguments = [chunk.message.blocks[2].tool_kwargs for chunk in chunks[4:]]
    assert arguments == ["", '{"city"', ARGUMENTS, {"city": "Bern"}]


@pytest.mark.parametrize("path", STREAMS)
async def test_deltas_of_one_read_are_joined_when_asked_for(path: str) -> None:
    llm, _ = scripted(streamed(*DELTAS, finish_reason="tool_calls"))
    joined, _ = scripted(streamed(*DELTAS, finish_reason="tool_calls"), coalesce=True)
    single, fewer = await responses(llm, path, ask()), await responses(joined, path, ask())
    assert [item.delta for item in fewer] == ["", "Hello", "", "", "", ""]
    assert fewer[0].additional_kwargs["thinking_delta"] == "think"
    assert fewer[-1] == single[-1]


@pytest.mark.parametrize("path", STREAMS)
async def test_chunks_are_snapshots(path: str) -> None:
    llm, _ = scripted(streamed(*DELTAS, finish_reason="tool_calls"))
    seen, kept = [], []
    gen = getattr(llm, path)(ask())
    chunks = [item async for item in await gen] if path == "astream_chat" else gen
    for item in chunks:
        kept.append(item)
        seen.append(item.model_dump_json())
    assert [item.model_dump_json() for item in kept] == seen
    assert [len(item.message.additional_kwargs.get("tool_calls", [])) for item in kept] == [0] * 4 + [1] * 4


@pytest.mark.parametrize("path", PATHS)
async def test_tool_calls_key_is_absent_without_calls(path: str) -> None:
    llm, _ = scripted(both({"content": "a"}, {"content": "a"}))
    for response in await responses(llm, path, ask()):
        assert "tool_calls" not in response.message.additional_kwargs


@pytest.mark.parametrize("path", PATHS)
async def test_message_survives_storage(path: str) -> None:
    llm, _ = scripted(both(MESSAGE, *DELTAS))
    message = (await last(llm, path, ask())).message
    assert ChatMessage.model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "text", ["a\u2028b\u2029c\u0085d\x0ce\x1cf", "\U0001f600 \u0000 z", "x" * 50_000], ids=["lines", "odd", "long"]
)
async def test_text_of_any_script_is_unharmed(path: str, text: str) -> None:
    def answer(body: dict[str, Any]) -> Any:
        if not body.get("stream"):
            return whole({"content": text})
        lines = [json.dumps(event, ensure_ascii=False) for event in streamed({"content": text})]
        content = "".join(f"data: {line}\n\n" for line in lines).encode()
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=content)

    llm, _ = scripted(answer)
    assert (await last(llm, path, ask())).message.content == text


# ---- content is a string ----


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("message", "deltas"),
    [
        (
            {"reasoning": "r", "tool_calls": MESSAGE["tool_calls"]},
            [{"reasoning": "r"}, {"tool_calls": [call(0, "c1", "weather", ARGUMENTS)]}],
        ),
        ({"content": None, "reasoning": "42"}, [{"reasoning": "42"}]),
        ({"content": ""}, []),
        ({}, [{}]),
    ],
    ids=["tool call only", "reasoning only", "empty", "nothing"],
)
async def test_content_and_delta_are_always_strings(path: str, message: Any, deltas: Any) -> None:
    llm, _ = scripted(both(message, *deltas))
    for response in await responses(llm, path, ask()):
        assert response.message.content == ""
        assert str(response) == "assistant: "
        assert response.delta == "" or path in ("chat", "achat")
        assert sum(isinstance(block, TextBlock) for block in response.message.blocks) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_tool_only_answer_keeps_its_thinking_first(path: str) -> None:
    message = {"reasoning": "r", "tool_calls": MESSAGE["tool_calls"]}
    deltas = [{"reasoning": "r"}, {"tool_calls": [call(0, "c1", "weather", ARGUMENTS)]}]
    llm, wire = scripted(both(message, *deltas, finish_reason="tool_calls"))
    first = await last(llm, path, ask())
    assert shape(first) == ["thinking", "text", "tool_call"]
    await last(
        llm,
        path,
        [*ask(), first.message, ChatMessage(role="tool", content="7", additional_kwargs={"tool_call_id": "c1"})],
    )
    assert wire.bodies[1]["messages"][1] == {"role": "assistant", **message}


@pytest.mark.parametrize("path", PATHS)
async def test_answer_cut_off_while_thinking_is_a_normal_message(path: str) -> None:
    llm, wire = scripted(both({"content": "", "reasoning": "long"}, {"reasoning": "long"}, finish_reason="length"))
    response = await last(llm, path, ask())
    assert response.message.content == ""
    assert response.raw["choices"][0]["finish_reason"] == "length"
    assert response.additional_kwargs["reasoning_tokens"] == 2
    assert len(wire.bodies) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_other_spelling_of_reasoning_is_read(path: str) -> None:
    llm, _ = scripted(
        both({"content": "4", "reasoning_content": "2+2"}, {"reasoning_content": "2+2"}, {"content": "4"})
    )
    assert (await last(llm, path, ask())).message.blocks[0].content == "2+2"


async def test_thoughts_and_text_may_alternate() -> None:
    llm, _ = scripted(streamed({"content": "a", "reasoning": "x"}, {"reasoning": "y"}, {"content": "b"}))
    chunks = await responses(llm, "stream_chat", ask())
    assert [(item.delta, item.additional_kwargs.get("thinking_delta")) for item in chunks[:3]] == [
        ("a", "x"),
        ("", "y"),
        ("b", None),
    ]
    assert [
        block.model_dump()[key] for block, key in zip(chunks[-1].message.blocks, ("content", "text"), strict=True)
    ] == ["xy", "ab"]


# ---- think tags in text ----


@pytest.mark.parametrize("path", PATHS)
async def test_think_tags_in_text_are_left_alone(path: str) -> None:
    text = "<think>a</think>b"
    llm, _ = scripted(both({"content": text}, *[{"content": letter} for letter in text]))
    response = await last(llm, path, ask())
    assert response.message.content == text
    assert shape(response) == ["text"]


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("path", PATHS)
async def test_think_block_moves_to_thinking_when_asked_for(path: str, size: int) -> None:
    text = "<think>\na <b>\n</think>\n\nanswer "
    pieces = [{"content": text[start : start + size]} for start in range(0, len(text), size)]
    llm, _ = scripted(both({"content": text}, *pieces), split_think_tags=True)
    chunks = await responses(llm, path, ask())
    assert chunks[-1].message.content == "answer "
    assert chunks[-1].message.blocks[0].content == "a <b>"
    if path in STREAMS:
        assert "".join(item.delta for item in chunks) == "answer "
        assert "".join(item.additional_kwargs.get("thinking_delta", "") for item in chunks) == "a <b>"


# ---- usage ----


@pytest.mark.parametrize("path", PATHS)
async def test_missing_usage_is_none_and_nothing_is_invented(path: str) -> None:
    llm, _ = scripted(both({"content": "a"}, {"content": "a"}, usage=None))
    response = await last(llm, path, ask())
    assert response.raw["usage"] is None
    assert response.additional_kwargs == {}


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("where", ["every chunk", "chunk of its own"])
async def test_usage_is_the_last_one_wherever_it_comes(path: str, where: str) -> None:
    counts = [{"prompt_tokens": 10, "completion_tokens": number, "total_tokens": 10 + number} for number in (1, 2, 3)]
    if where == "every chunk":
        events = [{**chunk({"content": letter}), "usage": usage} for letter, usage in zip("abc", counts, strict=True)]
        events.append(chunk({}, finish_reason="stop"))
    else:
        events = [
            chunk({"content": "abc"}),
            chunk({}, finish_reason="stop"),
            {"id": "x", "choices": [], "usage": counts[2]},
        ]
    llm, _ = scripted(events)
    response = await last(llm, path, ask())
    assert response.raw["usage"] == counts[2]
    assert response.additional_kwargs == counts[2]
    assert response.raw["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("path", STREAMS)
async def test_chunks_without_choices_are_skipped(path: str) -> None:
    events: list[Any] = [
        {"choices": None}, chunk({"content": "a"}), {"id": "c"}, {"choices": []}, chunk({"content": "b"}),
        chunk({}, finish_reason="stop"), {"choices": [], "usage": USAGE},
    ]  # fmt: skip
    llm, _ = scripted(events)
    chunks = await responses(llm, path, ask())
    assert [item.delta for item in chunks] == ["a", "b", ""]
    assert chunks[-1].raw["usage"] == USAGE


@pytest.mark.parametrize("path", STREAMS)
async def test_finish_reason_that_comes_twice_counts_once(path: str) -> None:
    end = {**chunk({}, finish_reason="stop"), "usage": USAGE}
    llm, _ = scripted([chunk({"content": "a"}), end, end])
    response = await last(llm, path, ask())
    assert response.raw["choices"][0]["finish_reason"] == "stop"
    assert response.raw["model"] == "served-model"
    assert response.raw["usage"] == USAGE


# ---- log probabilities ----

LOGPROBS = {
    "content": [
        {
            "token": "a",
            "logprob": -0.1,
            "bytes": [97],
            "top_logprobs": [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -2.0}],
        },
        {"token": "z", "logprob": -3.0, "bytes": None, "top_logprobs": []},
    ]
}
REASONING_LOGPROBS = {"content": [{"token": "r", "logprob": -0.5}]}
EXPECTED_LOGPROBS = [
    [LogProb(token="a", logprob=-0.1, bytes=[97]), LogProb(token="b", logprob=-2.0)],
    [LogProb(token="z", logprob=-3.0)],
]


def with_logprobs(body: dict[str, Any]) -> Any:
    if not body.get("stream"):
        return whole({"content": "az"}, logprobs=LOGPROBS, reasoning_logprobs=REASONING_LOGPROBS)
    first, second = LOGPROBS["content"]
    return [
        chunk({"reasoning": "r"}, reasoning_logprobs=REASONING_LOGPROBS),
        chunk({"content": "a"}, logprobs={"content": [first]}),
        chunk({"content": "z"}, logprobs={"content": [second]}),
        chunk({}, finish_reason="stop"),
    ]


@pytest.mark.parametrize("path", [*PATHS, *COMPLETE_PATHS])
async def test_logprobs_are_kept(path: str) -> None:
    llm, _ = scripted(with_logprobs)
    argument = "q" if path in COMPLETE_PATHS else ask()
    found = await responses(llm, path, argument)
    assert found[-1].logprobs == EXPECTED_LOGPROBS
    choice = found[-1].raw["choices"][0]
    assert (choice["logprobs"], choice["reasoning_logprobs"]) == (LOGPROBS, REASONING_LOGPROBS)
    if "stream" in path:
        assert [item.logprobs for item in found[:-1]] == [None, [EXPECTED_LOGPROBS[0]], [EXPECTED_LOGPROBS[1]]]


@pytest.mark.parametrize("path", STREAMS)
async def test_logprobs_that_are_none_are_skipped_until_the_answer_is_refused(path: str) -> None:
    llm, _ = scripted([chunk({"content": "a"}, logprobs={"content": [None]}), chunk({}, finish_reason="stop")])
    with pytest.raises(APIResponseError):
        await responses(llm, path, ask())


# ---- complete ----


@pytest.mark.parametrize("path", COMPLETE_PATHS)
async def test_complete_gives_text_raw_counts_and_calls(path: str) -> None:
    llm, wire = scripted(both(MESSAGE, *DELTAS))
    found = await responses(llm, path, "the prompt")
    assert wire.body["messages"] == [{"role": "user", "content": "the prompt"}]
    response = found[-1]
    assert response.text == "Hello"
    assert response.raw == whole(MESSAGE)
    assert response.additional_kwargs["total_tokens"] == 15
    assert response.additional_kwargs["tool_calls"] == MESSAGE["tool_calls"]
    if "stream" in path:
        assert "".join(item.delta for item in found) == "Hello"
        assert [item.text for item in found][2:4] == ["Hel", "Hello"]


@pytest.mark.parametrize("path", COMPLETE_PATHS)
async def test_completion_to_prompt_is_applied_unless_formatted(path: str) -> None:
    llm, wire = scripted(both({"content": "a"}, {"content": "a"}), completion_to_prompt=lambda text: f"[{text}]")
    await last(llm, path, "p")
    await last(llm, path, "p", formatted=True)
    assert [body["messages"][0]["content"] for body in wire.bodies] == ["[p]", "p"]


# ---- what is never streamed ----


@pytest.mark.parametrize("path", STREAMS)
@pytest.mark.parametrize("fields", [{"response_format": {"type": "json_object"}}, {"n": 2}], ids=["json_object", "n"])
async def test_request_that_cannot_be_streamed_is_one_request_and_one_chunk(path: str, fields: Any) -> None:
    llm, wire = scripted(whole({**MESSAGE, "content": "{}"}))
    chunks = await responses(llm, path, ask(), **fields)
    assert "stream" not in wire.body
    assert len(chunks) == 1
    assert chunks[0].delta == chunks[0].message.content == "{}"
    assert chunks[0].additional_kwargs["thinking_delta"] == "think"
    assert chunks[0].raw["usage"] == USAGE
    assert llm.get_tool_calls_from_response(chunks[0])[0].tool_kwargs == {"city": "Bern"}


async def test_second_answer_of_n_is_in_raw_only() -> None:
    answer = whole({"content": "first"})
    answer["choices"].append(
        {"index": 1, "finish_reason": "stop", "message": {"role": "assistant", "content": "second"}}
    )
    llm, _ = scripted(answer)
    for path in PATHS:
        response = await last(llm, path, ask(), n=2)
        assert response.message.content == "first"
        assert response.raw["choices"][1]["message"]["content"] == "second"


@pytest.mark.parametrize("path", PATHS)
async def test_call_without_an_id_gets_one_that_stays(path: str) -> None:
    nameless = {"type": "function", "function": {"name": "f", "arguments": "{}"}}
    llm, _ = scripted(both({"tool_calls": [nameless]}, {"tool_calls": [{**nameless, "index": 0}]}))
    found = await responses(llm, path, ask())
    ids = {block.tool_call_id for item in found for block in item.message.blocks if isinstance(block, ToolCallBlock)}
    ids |= {entry["id"] for item in found for entry in item.message.additional_kwargs["tool_calls"]}
    assert len(ids) == 1
    assert all(ids)

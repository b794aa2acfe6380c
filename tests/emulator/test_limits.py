"""Fields that shape an answer: limits, stop sequences, choices, reasoning, log probabilities, both endpoints."""

from __future__ import annotations

import math
from typing import Any

import pytest

from cerebras_ext.emulator import Emulator
from tests.emulator.support import CHAT, COMPLETIONS, MODEL, ask, chat_body, complete, events, post, say, user

COUNT = "Count to 20"
NUMBERS = ", ".join(map(str, range(1, 21)))


def test_stop_sequences_are_removed(emu: Emulator) -> None:
    choice = ask(emu, COUNT, stop=["12", ", 8"])
    assert (choice["message"]["content"], choice["finish_reason"]) == ("1, 2, 3, 4, 5, 6, 7", "stop")
    assert say(emu, COUNT, stop=", 3") == "1, 2"
    assert say(emu, COUNT, stop=[]) == NUMBERS
    assert say(emu, COUNT, stop=None) == NUMBERS


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_token_limit_cuts_and_is_exact(emu: Emulator, field: str) -> None:
    answer = post(emu, CHAT, chat_body(COUNT, model="gemma-4-31b", **{field: 10})).json()
    assert answer["choices"][0]["finish_reason"] == "length"
    assert NUMBERS.startswith(answer["choices"][0]["message"]["content"])
    assert answer["usage"]["completion_tokens"] == 10
    assert ask(emu, COUNT, **{field: -1})["finish_reason"] == "stop"


def test_reasoning_may_use_up_the_limit(emu: Emulator) -> None:
    answer = post(emu, CHAT, chat_body(COUNT, max_completion_tokens=4)).json()
    (choice,) = answer["choices"]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("length", "")
    assert answer["usage"]["completion_tokens_details"]["reasoning_tokens"] == 4


@pytest.mark.parametrize("field", ["min_tokens", "min_completion_tokens"])
def test_the_minimum_is_reached(emu: Emulator, field: str) -> None:
    answer = post(emu, CHAT, chat_body("hello", **{field: 300})).json()
    assert answer["usage"]["completion_tokens"] == 300
    assert answer["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_several_choices(emu: Emulator, stream: bool) -> None:
    body = chat_body("What is 2 + 2?", n=3, stream=stream)
    answer = post(emu, CHAT, body)
    found: dict[int, str] = {}
    reasons: dict[int, str] = {}
    for part in events(answer.text) if stream else [answer.json()]:
        for choice in part["choices"]:
            piece = choice.get("delta") or choice.get("message") or {}
            found[choice["index"]] = found.get(choice["index"], "") + piece.get("content", "")
            if "finish_reason" in choice:
                reasons[choice["index"]] = choice["finish_reason"]
    assert sorted(found) == [0, 1, 2]
    assert len(set(found.values())) == 3
    assert all("2 + 2 = 4" in text for text in found.values())
    assert set(reasons.values()) == {"stop"}


def test_seed_and_temperature(emu: Emulator) -> None:
    question = "What is 2 + 2?"
    assert say(emu, question, seed=1) == say(emu, question, seed=1) != say(emu, question, seed=2)
    assert say(emu, question, seed=1, temperature=0) == say(emu, question, seed=2, temperature=0)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("include", [None, True, False])
def test_usage_comes_with_the_last_chunk_whatever_is_asked(emu: Emulator, stream: bool, include: bool | None) -> None:
    options = {} if include is None else {"stream_options": {"include_usage": include}}
    answer = post(emu, CHAT, chat_body("hello", stream=stream, **options))
    parts = events(answer.text) if stream else [answer.json()]
    assert ["usage" in part for part in parts] == [False] * (len(parts) - 1) + [True]
    usage = parts[-1]["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    times = parts[-1]["time_info"]
    assert times["total_time"] >= times["queue_time"] + times["prompt_time"] + times["completion_time"]


def test_a_stream_and_a_whole_answer_say_the_same(emu: Emulator) -> None:
    body = chat_body("Count to 50", model="qwen-3.8-27b", logprobs=True, top_logprobs=2)
    message = post(emu, CHAT, body).json()["choices"][0]
    stream = [part["choices"][0] for part in events(post(emu, CHAT, body | {"stream": True}).text)]
    for name, extra in (("content", "logprobs"), ("reasoning", "reasoning_logprobs")):
        assert "".join(part["delta"].get(name, "") for part in stream) == message["message"][name]
        pieces = [entry for part in stream if extra in part for entry in part[extra]["content"]]
        assert pieces == message[extra]["content"]


@pytest.mark.parametrize(
    ("model", "fields", "shown"),
    [
        (MODEL, {}, True),
        (MODEL, {"reasoning_format": "parsed"}, True),
        (MODEL, {"reasoning_format": "text_parsed"}, True),
        (MODEL, {"reasoning_format": "hidden"}, False),
        ("gemma-4-31b", {}, None),
        ("gemma-4-31b", {"reasoning_effort": "high"}, True),
        ("qwen-3.8-27b", {}, True),
        ("qwen-3.8-27b", {"reasoning_effort": "none"}, None),
        ("zai-glm-4.7", {"disable_reasoning": True}, None),
    ],
)
def test_reasoning_is_shown_hidden_or_not_there(
    emu: Emulator, model: str, fields: dict[str, Any], shown: bool | None
) -> None:
    answer = post(emu, CHAT, chat_body("What is 2 + 2?") | {"model": model} | fields).json()
    message = answer["choices"][0]["message"]
    assert ("reasoning" in message) == bool(shown)
    assert message["content"] == "2 + 2 = 4"
    assert (answer["usage"]["completion_tokens_details"]["reasoning_tokens"] > 0) == (shown is not None)


def test_raw_reasoning_stands_in_the_content(emu: Emulator) -> None:
    glm = say(emu, "What is 2 + 2?", model="zai-glm-4.7", reasoning_format="raw")
    assert glm.startswith("<think>")
    assert glm.endswith("</think>\n\n2 + 2 = 4")
    oss = ask(emu, "What is 2 + 2?", reasoning_format="raw")["message"]
    assert oss["content"].endswith("2 + 2 = 4")
    assert "<think>" not in oss["content"]
    assert "reasoning" not in oss


def test_higher_effort_reasons_more(emu: Emulator) -> None:
    lengths = [
        len(ask(emu, "hello", reasoning_effort=effort)["message"]["reasoning"]) for effort in ("low", "medium", "high")
    ]
    assert lengths == sorted(set(lengths))


def test_log_probabilities_of_chat(emu: Emulator) -> None:
    choice = ask(emu, "Count to 5", model="qwen-3.8-27b", logprobs=True, top_logprobs=3)
    content = choice["logprobs"]["content"]
    assert "".join(entry["token"] for entry in content) == choice["message"]["content"]
    for entry in content:
        assert bytes(entry["bytes"]).decode() == entry["token"]
        assert entry["top_logprobs"][0]["token"] == entry["token"]
        values = [other["logprob"] for other in entry["top_logprobs"]]
        assert values == sorted(values, reverse=True)
        assert values[0] == entry["logprob"] <= 0
        assert sum(map(math.exp, values)) <= 1 + 1e-9
    reasoning = choice["reasoning_logprobs"]["content"]
    assert "".join(entry["token"] for entry in reasoning) == choice["message"]["reasoning"]


def test_gpt_oss_ignores_logprobs(emu: Emulator) -> None:
    assert "logprobs" not in ask(emu, "hello", logprobs=True, top_logprobs=5)


def test_predicted_tokens_are_counted(emu: Emulator) -> None:
    prediction = {"type": "content", "content": [{"type": "text", "text": "1, 2, 3 zebra"}]}
    details = post(emu, CHAT, chat_body("Count to 3", prediction=prediction)).json()["usage"][
        "completion_tokens_details"
    ]
    assert details["accepted_prediction_tokens"] > details["rejected_prediction_tokens"] > 0


def test_cached_tokens_come_in_blocks(emu: Emulator) -> None:
    talk = [*user("word " * 300), {"role": "assistant", "content": "ok"}, *user("hello")]
    cached = post(emu, CHAT, chat_body(talk)).json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == 256


# ---- completions ----


def test_a_completion_has_its_shape(emu: Emulator) -> None:
    answer = complete(emu, "Count to 3")
    assert answer["object"] == "text_completion"
    assert answer["id"].startswith("chatcmpl-")
    assert answer["choices"] == [{"finish_reason": "stop", "index": 0, "text": " 1, 2, 3", "tokens": None}]


def test_several_prompts_and_choices_are_numbered_through(emu: Emulator) -> None:
    answer = complete(emu, ["Count to 1", "Count to 2"], n=2)
    assert [choice["index"] for choice in answer["choices"]] == [0, 1, 2, 3]
    assert [choice["text"] for choice in answer["choices"]][::2] == [" 1", " 1, 2"]


def test_token_prompts_say_the_same_as_their_text(emu: Emulator) -> None:
    raw = complete(emu, "Count to 3", echo=True, max_tokens=0, return_raw_tokens=True)["choices"][0]
    assert raw["text"] is None
    ids = raw["tokens"]
    for prompt in (ids, [ids]):
        assert complete(emu, prompt)["choices"][0]["text"] == " 1, 2, 3"
    assert complete(emu, [ids, ids])["choices"][1]["text"] == " 1, 2, 3"
    assert complete(emu, [1, 2**40, 2**50, 300])["choices"][0]["text"]


def test_echo_and_offsets(emu: Emulator) -> None:
    prompt = "Count to 3"
    echoed = complete(emu, prompt, echo=True, logprobs=2, suffix="ignored")["choices"][0]
    assert echoed["text"] == prompt + " 1, 2, 3"
    plain = complete(emu, prompt, logprobs=2)["choices"][0]
    for choice, start in ((echoed, 0), (plain, len(prompt))):
        logprobs = choice["logprobs"]
        assert "".join(logprobs["tokens"]) == choice["text"]
        lengths = [len(token) for token in logprobs["tokens"]]
        assert logprobs["text_offset"] == [start + sum(lengths[:index]) for index in range(len(lengths))]
        assert len(logprobs["token_logprobs"]) == len(lengths)
        for token, value, top in zip(
            logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True
        ):
            assert top[token] == value
            assert len(top) == 2


def test_logprobs_zero_gives_the_token_alone(emu: Emulator) -> None:
    logprobs = complete(emu, "hello", logprobs=0)["choices"][0]["logprobs"]
    assert all(len(top) == 1 for top in logprobs["top_logprobs"])


def test_best_of_is_paid_for(emu: Emulator) -> None:
    one, many = complete(emu, "Count to 3"), complete(emu, "Count to 3", best_of=5, n=2, temperature=0)
    assert len(many["choices"]) == 2
    assert many["usage"]["completion_tokens"] == 5 * one["usage"]["completion_tokens"]


@pytest.mark.parametrize("fields", [{}, {"n": 2}, {"echo": True, "logprobs": 1}, {"return_raw_tokens": True}])
def test_a_streamed_completion_says_the_same(emu: Emulator, fields: dict[str, Any]) -> None:
    body = {"model": MODEL, "prompt": ["Count to 3", "Count to 30"], **fields}
    whole = post(emu, COMPLETIONS, body).json()
    answer = post(emu, COMPLETIONS, body | {"stream": True})
    assert answer.text.endswith("data: [DONE]\n\n")
    parts = events(answer.text)
    for choice in whole["choices"]:
        pieces = [part["choices"][0] for part in parts if part["choices"][0]["index"] == choice["index"]]
        assert "".join(piece["text"] or "" for piece in pieces) == (choice["text"] or "")
        assert [token for piece in pieces for token in piece["tokens"] or ()] == (choice["tokens"] or [])
        assert pieces[-1]["finish_reason"] == choice["finish_reason"]
        if "logprobs" in choice:
            for name, values in choice["logprobs"].items():
                assert [value for piece in pieces for value in piece.get("logprobs", {}).get(name, ())] == values
    assert parts[-1]["usage"] == whole["usage"]


def test_limits_of_a_completion(emu: Emulator) -> None:
    answer = complete(emu, "Count to 30", max_tokens=5)
    assert (answer["choices"][0]["finish_reason"], answer["usage"]["completion_tokens"]) == ("length", 5)
    assert complete(emu, "Count to 30", stop=[" 4"])["choices"][0]["text"] == " 1, 2, 3,"
    assert complete(emu, "hello", min_tokens=200)["usage"]["completion_tokens"] == 200
    assert complete(emu, "hello", min_tokens=-1, max_tokens=50)["usage"]["completion_tokens"] == 50

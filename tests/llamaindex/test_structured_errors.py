"""Structured prediction: what is raised where the answer is not the object that was asked for."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from pydantic import ValidationError

from cerebras_ext.errors import BadRequestError, StreamTruncatedError
from llamaindex_cerebras_ext import (
    InvalidOutputError,
    OutputTruncatedError,
    RefusalError,
    StructuredOutputError,
)
from tests.llamaindex.predicting import PARIS, PATHS, STREAMS, Loose, Place, objects, pieces, says
from tests.llamaindex.scripted import Json, scripted, streamed, whole


@pytest.mark.parametrize("path", PATHS)
async def test_the_token_limit_is_a_truncation_not_invalid_json(path: str) -> None:
    llm, _ = scripted(says('{"name": "Par', finish_reason="length"))
    with pytest.raises(OutputTruncatedError, match="max_completion_tokens") as caught:
        await objects(llm, path)
    assert caught.value.text == '{"name": "Par'
    assert caught.value.raw is not None
    assert caught.value.raw["usage"]["completion_tokens"] == 5


@pytest.mark.parametrize("path", PATHS)
async def test_reasoning_that_uses_up_the_limit_is_told(path: str) -> None:
    def answer(body: Json) -> Any:
        if body.get("stream"):
            return streamed({"reasoning": "long"}, finish_reason="length")
        return whole({"reasoning": "long"}, finish_reason="length")

    llm, _ = scripted(answer)
    with pytest.raises(OutputTruncatedError, match=r"before it began: reasoning \(2 tokens\) used it up"):
        await objects(llm, path)


@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_at_the_limit_that_is_whole_counts(path: str) -> None:
    llm, _ = scripted(says(json.dumps(PARIS), finish_reason="length"))
    assert (await objects(llm, path))[-1] == Place(name="Paris", tags=["river", "old"])


@pytest.mark.parametrize("path", PATHS)
async def test_a_withheld_answer_is_a_refusal(path: str) -> None:
    llm, _ = scripted(says("{}", finish_reason="content_filter"))
    with pytest.raises(RefusalError, match="content_filter"):
        await objects(llm, path, Loose)


@pytest.mark.parametrize("path", PATHS)
async def test_a_refusal_of_the_model_is_a_refusal(path: str) -> None:
    llm, _ = scripted(says("", refusal="I will not."))
    with pytest.raises(RefusalError, match="I will not"):
        await objects(llm, path)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("I am not JSON.", "not JSON"),
        ("", "empty"),
        ('{"name": "Paris"} and more', "not JSON"),
        ('{"name": "P"}', "at least 2 characters"),
        ('{"name": "Paris", "people": -1}', "greater than or equal to 0"),
        ('{"name": "Paris", "tags": ["a", "b", "c", "d"]}', "at most 3 items"),
        ('["Paris"]', "Place"),
    ],
)
async def test_an_answer_that_does_not_fit_is_raised_with_its_text(path: str, text: str, reason: str) -> None:
    llm, _ = scripted(says(text))
    with pytest.raises(InvalidOutputError) as caught:
        await objects(llm, path)
    assert reason in str(caught.value)
    assert repr(text) in str(caught.value)
    assert caught.value.text == text
    assert isinstance(caught.value, ValueError)


async def test_the_cause_of_an_invalid_answer_is_pydantic_s_report() -> None:
    llm, _ = scripted(says('{"name": 5}'))
    with pytest.raises(InvalidOutputError) as caught:
        await objects(llm, "structured_predict")
    assert isinstance(caught.value.__cause__, ValidationError)


async def test_a_long_answer_is_shortened_in_the_text_of_the_error_only() -> None:
    llm, _ = scripted(says("x" * 5000))
    with pytest.raises(StructuredOutputError) as caught:
        await objects(llm, "structured_predict")
    assert len(str(caught.value)) < 1000
    assert len(caught.value.text) == 5000


@pytest.mark.parametrize("path", PATHS)
async def test_a_model_without_json_schema_is_told_by_the_service_s_error(path: str) -> None:
    error = {
        "message": "type: Input should be 'text'",
        "type": "invalid_request_error",
        "param": "validation_error",
        "code": "wrong_api_format",
    }
    llm, wire = scripted(httpx.Response(400, json=error))
    with pytest.raises(BadRequestError, match="Input should be 'text'"):
        await objects(llm, path)
    assert len(wire.bodies) == 1


@pytest.mark.parametrize("path", STREAMS)
async def test_a_cut_stream_is_not_taken_for_the_object(path: str) -> None:
    def answer(body: Json) -> Any:
        return streamed(*pieces(json.dumps(PARIS)), finish_reason=None)

    llm, _ = scripted(answer)
    with pytest.raises(StreamTruncatedError):
        await objects(llm, path)


@pytest.mark.parametrize("path", PATHS)
async def test_a_number_that_json_does_not_have_is_an_invalid_answer(path: str) -> None:
    llm, _ = scripted(says('{"name": "Paris", "people": NaN, "tags": []}'))
    with pytest.raises(InvalidOutputError):
        await objects(llm, path)

"""Answers of a 200 that cannot be read are typed errors that keep what came, and are not repeated."""

from __future__ import annotations

import gzip
import json
import pickle
from typing import Any

import pytest

from cerebras_ext import errors
from tests.support import DONE, STREAMS, WAYS, WHOLE, Answer, Server, Way


@pytest.mark.parametrize("way", WHOLE, ids=str)
@pytest.mark.parametrize("choices", [[], None, ...], ids=["empty", "null", "missing"])
def test_a_200_without_choices_is_a_typed_error(
    server: Server, options: dict[str, Any], way: Way, choices: Any
) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 1}
    body = {"id": "c", "model": "m", "usage": usage, **({} if choices is ... else {"choices": choices})}
    server.script = [Answer((json.dumps(body).encode(),), headers={"x-request-id": "req"})]
    with pytest.raises(errors.APIResponseError, match="no choices") as caught:
        way.ask(options)
    error = caught.value
    assert (error.response_id, error.request_id, error.usage, error.body) == ("c", "req", usage, body)
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WHOLE, ids=str)
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>captive portal</html>",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b'{"choices": 5}',
        b'{"choices": [{"index": "x"}]}',
    ],
)
def test_a_200_that_cannot_be_read_is_a_typed_error(
    server: Server, options: dict[str, Any], way: Way, content: bytes
) -> None:
    server.script = [Answer((content,))]
    with pytest.raises(errors.APIResponseError) as caught:
        way.ask(options)
    assert len(server.requests) == 1
    pickle.loads(pickle.dumps(caught.value))


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize(
    "data",
    [
        b"{", b"[]", b"5", b"<html>", b'{"choices": 5}',
        b'{"choices": [{"index": [], "text": 1, "delta": {"content": 1}}]}',
        b'{"choices": [{"index": 0, "text": {"a": 1}, "delta": {"content": {"a": 1}}}]}',
        b'{"choices": [{"index": 0, "text": 5, "delta": 5}]}',
        b'{"choices": [{"index": 0, "text": "", "delta": {"tool_calls": 5}, "logprobs": 5}]}',
    ],
)  # fmt: skip
def test_an_event_that_cannot_be_read_is_a_typed_error(
    server: Server, options: dict[str, Any], way: Way, data: bytes
) -> None:
    server.script = [Answer((b"data: " + data + b"\n\n" + way.end + DONE,))]
    with pytest.raises(errors.APIResponseError):
        way.ask(options)
    assert len(server.requests) == 1


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_body_that_is_not_what_its_encoding_says(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b"not gzip",), headers={"content-encoding": "gzip"})]
    with pytest.raises(errors.CerebrasError, match=r"decode"):
        way.ask({**options, "max_retries": 0})


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_compressed_answers_are_read(server: Server, options: dict[str, Any], way: Way) -> None:
    good = b"".join(piece for piece in way.answer().pieces if isinstance(piece, bytes))
    server.script = [Answer((gzip.compress(good),), headers={"content-encoding": "gzip"})]
    assert way.ask(options).response.text == "ok"

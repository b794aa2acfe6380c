"""Every encoding of a body decodes to the same object."""

from __future__ import annotations

import builtins
import datetime
import decimal
import gzip
import json
import uuid
from typing import Any, get_args

import pytest

from cerebras_ext import Client
from cerebras_ext.encoding import AUTO_THRESHOLD, JSON_TYPE, MSGPACK_TYPE, PAYLOADS, Payload, encode_body
from cerebras_ext.errors import RequestValidationError
from tests.support import WAYS, Answer, Server, Way

BODY: dict[str, Any] = {
    "model": "m",
    "text": "x" * 300 + "é\u2028\U0001f600\x00",
    "numbers": [0, -1, 2**63, 0.1, 1e300, -0.0],
    "nested": {"null": None, "yes": True, "no": False, "list": [[], {}, ["a"]]},
    "logit_bias": {"50256": -100.0},
}


def decode(content: bytes, headers: dict[str, str]) -> Any:
    if headers.get("Content-Encoding", headers.get("content-encoding")) == "gzip":
        content = gzip.decompress(content)
    kind = headers.get("Content-Type", headers.get("content-type"))
    if kind == MSGPACK_TYPE:
        return pytest.importorskip("ormsgpack").unpackb(content)
    assert kind == JSON_TYPE
    return json.loads(content)


def skip_without_codec(payload: str) -> None:
    if payload.startswith("msgpack"):
        pytest.importorskip("ormsgpack", reason="the extra msgpack is not installed")


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("body", [BODY, {**BODY, "long": "y" * AUTO_THRESHOLD}, {}], ids=["small", "large", "empty"])
def test_all_encodings_decode_to_the_same_object(payload: Payload, body: dict[str, Any]) -> None:
    skip_without_codec(payload)
    content, headers = encode_body(body, payload)
    assert decode(content, headers) == body
    assert encode_body(body, payload) == (content, headers)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_lone_surrogates_are_replaced_in_every_encoding(payload: Payload) -> None:
    skip_without_codec(payload)
    content, headers = encode_body({"a": ["\ud83e", {"\udc00": "\ud83d\ude00"}]}, payload)
    assert decode(content, headers) == {"a": ["\ufffd", {"\ufffd": "\U0001f600"}]}


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()], ids=["nan", "inf", "object"])
def test_what_json_cannot_say_is_refused_in_every_encoding(payload: Payload, value: Any) -> None:
    skip_without_codec(payload)
    with pytest.raises(ValueError, match=r"no form in JSON|cannot be written"):
        encode_body({"a": [value]}, payload)


@pytest.mark.parametrize(
    "value",
    [
        datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC),
        datetime.date(2020, 1, 2),
        uuid.UUID(int=5),
        decimal.Decimal("0.10"),
        (1, (2,)),
        {1: 2, "b": 3},
        2**63,
        -(2**63),
    ],
    ids=repr,
)
def test_values_that_only_python_has_are_written_alike(value: Any) -> None:
    skip_without_codec("msgpack")
    written = [decode(*encode_body({"a": value}, payload)) for payload in get_args(Payload)]
    assert written == [written[0]] * len(PAYLOADS)


def test_bytes_that_only_look_like_a_constant_are_sent() -> None:
    skip_without_codec("msgpack")
    body = {"a": 0xCB7FF0, "b": [0x7FF0CB7FF0] * 3, "c": 1.5}
    assert decode(*encode_body(body, "msgpack")) == body


def test_auto_compresses_from_the_threshold_on() -> None:
    small = {"a": "x" * (AUTO_THRESHOLD - len('{"a":""}') - 1)}
    assert "Content-Encoding" not in encode_body(small, "auto")[1]
    assert encode_body({"a": small["a"] + "x"}, "auto")[1]["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("payload", PAYLOADS)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_headers_tell_the_encoding_and_a_retry_sends_the_same_bytes(
    server: Server, options: dict[str, Any], way: Way, payload: Payload
) -> None:
    skip_without_codec(payload)
    server.script = [Answer((b"{}",), 503, {"retry-after": "0"}), way.answer()]
    way.ask({**options, "payload": payload}, user="u" * AUTO_THRESHOLD)
    first, second = server.requests
    assert first.body == second.body
    assert first.headers["content-length"] == str(len(first.body))
    assert decode(first.body, first.headers) == {
        **way.fields,
        "user": "u" * AUTO_THRESHOLD,
        **({"stream": True} if way.stream else {}),
    }


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_body_that_cannot_be_written_is_refused_before_sending(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    with pytest.raises(RequestValidationError, match="no form in JSON"):
        way.ask(options, extra_body={"a": float("nan")})
    assert server.requests == []


def test_a_missing_codec_is_named_when_the_client_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "ormsgpack":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install .cerebras-ext\[msgpack\]"):
        Client(api_key="k", payload="msgpack")
    with pytest.raises(ValueError, match="payload: must be one of json, msgpack"):
        Client(api_key="k", payload="zip")  # type: ignore[arg-type]

"""Compression of bodies with and without isal, and what large prompts of token ids cost to check."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from cerebras_ext import CompletionRequest, encoding
from cerebras_ext.encoding import AUTO_THRESHOLD, encode_body
from cerebras_ext.errors import RequestValidationError

BODY = {"model": "m", "prompt": "words and words again " * 400}


@pytest.fixture(params=["isal", "zlib"])
def compressor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    elif find_spec("isal") is None:
        pytest.skip("isal is not installed")
    encoding._compressor.cache_clear()
    yield request.param
    encoding._compressor.cache_clear()


def test_compressed_bodies_are_the_same_body(compressor: str) -> None:
    content, headers = encode_body(BODY, "gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(content)) == BODY
    assert encode_body(BODY, "gzip")[0] == content
    assert encoding._compressor().func.__module__.startswith("isal" if compressor == "isal" else "gzip")  # type: ignore[attr-defined]


def test_auto_compresses_from_its_threshold(compressor: str) -> None:
    frame = len(json.dumps({"a": ""}, separators=(",", ":")))
    assert "Content-Encoding" not in encode_body({"a": "x" * (AUTO_THRESHOLD - frame - 1)}, "auto")[1]
    assert encode_body({"a": "x" * (AUTO_THRESHOLD - frame)}, "auto")[1]["Content-Encoding"] == "gzip"


def test_many_token_ids_are_told_from_texts_at_the_first() -> None:
    ids = list(range(50_000))
    assert CompletionRequest(model="m", prompt=ids).prompt == ids
    assert CompletionRequest(model="m", prompt=[ids, [1]]).prompt == [ids, [1]]
    with pytest.raises(RequestValidationError) as caught:
        CompletionRequest(model="m", prompt=[*ids, "x", "y", "z"])
    assert len(str(caught.value)) < 2000
    assert "'x'" in str(caught.value)

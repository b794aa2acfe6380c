"""The cassettes themselves: labelled with where they come from, without a key, and compared by meaning."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml
from vcr.request import Request

from tests.replay import cassettes

if TYPE_CHECKING:
    from pathlib import Path

FILES = sorted(cassettes.FOLDER.rglob("*.yaml"))
KEYS = re.compile(r"csk-[A-Za-z0-9_-]{8,}|[Bb]earer\s+\S+|[Aa]uthorization")


def test_there_are_cassettes() -> None:
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(cassettes.FOLDER)))
def test_label_tells_where_the_answers_come_from(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    cassette = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))

    assert cassette["recorded_from"] == cassettes.origin(cassette)
    assert cassette["interactions"]
    assert not KEYS.search(text)
    assert all(each["request"]["uri"].startswith(cassettes.SERVICE) for each in cassette["interactions"])


def request(body: bytes, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("POST", f"{cassettes.SERVICE}/v1/completions", body, named)


def test_bodies_match_across_encodings() -> None:
    fields = {"prompt": "Hello", "model": "gpt-oss-120b"}
    plain = request(json.dumps(fields).encode(), content_type="application/json")
    turned = request(json.dumps(dict(reversed(fields.items()))).encode(), content_type="application/json")
    zipped = request(
        gzip.compress(json.dumps(fields).encode()), content_type="application/json", content_encoding="gzip"
    )

    cassettes.same_meaning(plain, turned)
    cassettes.same_meaning(plain, zipped)
    with pytest.raises(AssertionError):
        cassettes.same_meaning(plain, request(b'{"prompt":"Bye","model":"gpt-oss-120b"}'))


def test_line_breaks_of_a_description_do_not_matter_and_its_words_do() -> None:
    def offering(description: str) -> Request:
        body = {"tools": [{"function": {"description": description}}]}
        return request(json.dumps(body).encode(), content_type="application/json")

    cassettes.same_meaning(offering("Add.\n\n    All of them."), offering("Add.\n\nAll of them."))
    with pytest.raises(AssertionError):
        cassettes.same_meaning(offering("Add."), offering("Divide."))


def test_a_cassette_of_two_origins_is_refused() -> None:
    answers = [{"headers": {}}, {"headers": {cassettes.EMULATED_HEADER: ["1"]}}]

    with pytest.raises(ValueError, match="one cassette"):
        cassettes.origin({"interactions": [{"response": answer} for answer in answers]})


def test_request_loses_the_key_and_the_port() -> None:
    sent = Request("POST", "http://127.0.0.1:4711/v1/completions", b"{}", {"Authorization": "Bearer csk-secret-key"})

    cleaned = cassettes.clean_request(sent)

    assert (cleaned.uri, dict(cleaned.headers)) == ("https://api.cerebras.ai/v1/completions", {})

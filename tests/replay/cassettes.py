"""How a cassette is written, matched and labelled: no key in it, one host, compared by what a body means."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

from vcr.serializers import yamlserializer

FOLDER = Path(__file__).resolve().parents[2] / "cassettes"
SERVICE = "https://api.cerebras.ai"
# Set by scripts/record.py: where the exchanges come from while recording.
RECORD_URL = "CEREBRAS_EXT_RECORD_URL"
EMULATED_HEADER = "x-cerebras-ext-emulator"
KEPT_REQUEST_HEADERS = {"content-type", "content-encoding", "queue_threshold"}
DROPPED_RESPONSE_HEADERS = {"set-cookie", "cf-ray", "server", "connection"}


def decoded(request: Any) -> object:
    """Return the object that a request's body encodes, whatever the encoding."""
    body = request.body or b""
    headers = {name.lower(): value[0] if isinstance(value, list) else value for name, value in request.headers.items()}
    data: bytes = body.encode() if isinstance(body, str) else body
    if headers.get("content-encoding") == "gzip":
        data = gzip.decompress(data)
    if "msgpack" in headers.get("content-type", ""):
        import ormsgpack

        return ormsgpack.unpackb(data)
    return json.loads(data or b"null")


def _on_one_line(value: Any) -> Any:
    """Return a body whose descriptions have no line breaks: Python 3.13 takes the indentation out of docstrings."""
    if isinstance(value, dict):
        return {
            name: " ".join(item.split()) if name == "description" and isinstance(item, str) else _on_one_line(item)
            for name, item in value.items()
        }
    return [_on_one_line(item) for item in value] if isinstance(value, list) else value


def same_meaning(one: Any, other: Any) -> None:
    """Matcher for vcrpy: compares decoded bodies."""
    assert _on_one_line(decoded(one)) == _on_one_line(decoded(other))


def clean_request(request: Any) -> Any:
    """Move a request to the service's address and take out every header that does not say what the body is."""
    _, _, rest = request.uri.partition("://")
    request.uri = f"{SERVICE}/{rest.partition('/')[2]}"
    request.headers = {name: value for name, value in request.headers.items() if name.lower() in KEPT_REQUEST_HEADERS}
    return request


def clean_response(response: dict[str, Any]) -> dict[str, Any]:
    response["headers"] = {
        name: value for name, value in response["headers"].items() if name.lower() not in DROPPED_RESPONSE_HEADERS
    }
    return response


def origin(cassette: dict[str, Any]) -> str:
    """Return `emulator` or `service`, from the headers of the answers."""
    marked = [
        any(name.lower() == EMULATED_HEADER for name in interaction["response"]["headers"])
        for interaction in cassette["interactions"]
    ]
    if len(set(marked)) > 1:
        raise ValueError("one cassette holds answers of the emulator and of the service")
    return "emulator" if marked and marked[0] else "service"


class LabelledSerializer:
    """YAML with a first line that says where the answers come from."""

    @staticmethod
    def serialize(cassette: dict[str, Any]) -> str:
        return f"recorded_from: {origin(cassette)}\n" + str(yamlserializer.serialize(cassette))

    @staticmethod
    def deserialize(text: str) -> Any:
        return yamlserializer.deserialize(text)


CONFIG: dict[str, Any] = {
    "match_on": ["method", "path", "query", "meaning"],
    "before_record_request": clean_request,
    "before_record_response": clean_response,
    "decode_compressed_response": True,
    "allow_playback_repeats": False,
}


def service_url() -> str:
    """Return the base URL that a replayed test gives to a client."""
    return os.environ.get(RECORD_URL) or SERVICE


def service_key() -> str:
    """Return the API key that a replayed test gives to a client."""
    return os.environ.get("CEREBRAS_API_KEY") or "csk-replayed-requests-need-no-key"

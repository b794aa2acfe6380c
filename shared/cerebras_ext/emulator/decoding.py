"""From the bytes of a request body to a JSON value, refused as the service refuses it."""

from __future__ import annotations

import gzip
import importlib
import io
import zlib
from collections.abc import Mapping
from typing import Any

import pydantic_core

from cerebras_ext.emulator.faults import flat

MSGPACK_TYPES = frozenset({"application/vnd.msgpack", "application/msgpack", "application/x-msgpack"})
_MAX_DECODED = 64 * 1024 * 1024


class RefusedError(Exception):
    """A request is answered with an error."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status, body)
        self.status = status
        self.body = body


def refused(
    message: str, param: str | None = "validation_error", code: str | None = "wrong_api_format", status: int = 400
) -> RefusedError:
    """Return the refusal of a request that is wrong in itself."""
    return RefusedError(status, flat(message, "invalid_request_error", param, code))


def encoding_of(headers: Mapping[str, str], body: bytes) -> str:
    """Return the name of a body's encoding, in the words of the client's `payload` setting."""
    if not body:
        return ""
    packed = "msgpack" if media_type(headers) in MSGPACK_TYPES else ""
    zipped = "gzip" if headers.get("content-encoding", "").lower() == "gzip" else ""
    return "+".join(part for part in (packed, zipped) if part) or "json"


def media_type(headers: Mapping[str, str]) -> str:
    """Return the content type without its parameters."""
    return headers.get("content-type", "application/json").partition(";")[0].strip().lower()


def decode(headers: Mapping[str, str], body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        RefusedError: An encoding that is not known, or a body that is broken.
    """
    kind = media_type(headers)
    if kind not in MSGPACK_TYPES and kind != "application/json" and not kind.endswith("+json"):
        raise refused(f"Unsupported media type '{kind}'", "content-type", status=415)
    content = _decompress(headers.get("content-encoding", "").strip().lower(), body)
    return _unpack(content) if kind in MSGPACK_TYPES else _parse(content)


def _decompress(encoding: str, body: bytes) -> bytes:
    if encoding in ("", "identity"):
        return body
    if encoding != "gzip":
        raise refused(f"Unsupported content encoding '{encoding}'", "content-encoding", status=415)
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(body)) as zipped:
            content = zipped.read(_MAX_DECODED + 1)
    except (OSError, EOFError, zlib.error):
        raise refused("The body is not valid gzip", "content-encoding") from None
    if len(content) > _MAX_DECODED:
        raise refused("Request body too large", None, status=413)
    return content


def _unpack(content: bytes) -> Any:
    try:
        ormsgpack = importlib.import_module("ormsgpack")
    except ImportError:
        raise refused(
            'This emulator cannot read MessagePack: pip install "cerebras-ext[emulator]"', "content-type", status=415
        ) from None
    try:
        return ormsgpack.unpackb(content)
    except ValueError as error:
        raise refused(f": Invalid MessagePack: {error}") from None


def _parse(content: bytes) -> Any:
    try:
        return pydantic_core.from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise refused(f": Invalid JSON: {_surrogate_words(content, str(error))}") from None


def _surrogate_words(content: bytes, text: str) -> str:
    """Name a lone surrogate as the service does; the parser has another word for one before a closing quote."""
    if text.startswith("unexpected end of hex escape") and b"\\u" in content.lower():
        return text.replace("unexpected end of hex escape", "lone leading surrogate in hex escape", 1)
    return text

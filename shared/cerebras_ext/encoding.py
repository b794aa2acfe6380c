"""Encoding of request bodies: JSON or MessagePack, plain or gzip."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Any, Literal, get_args

import pydantic_core

from cerebras_ext.jsontext import dumps, replace_surrogates

Payload = Literal["json", "msgpack", "gzip", "msgpack+gzip", "auto"]
PAYLOADS: tuple[str, ...] = get_args(Payload)

JSON_TYPE = "application/json"
MSGPACK_TYPE = "application/vnd.msgpack"

AUTO_THRESHOLD = 16 * 1024
"""Bytes of JSON from which `auto` compresses: a body below one initial TCP window (10 segments) leaves in one flight
anyway; above it each saved flight is a round trip, and compressing costs microseconds a kilobyte."""

_GZIP_LEVEL = 1


def check_payload(payload: str) -> None:
    """Refuse an unknown encoding, or one whose library is not installed, before anything is sent.

    Raises:
        ValueError: Not one of `PAYLOADS`.
        ImportError: MessagePack was asked for and `ormsgpack` is not installed.
    """
    if payload not in PAYLOADS:
        raise ValueError(f"payload: must be one of {', '.join(PAYLOADS)}, got {payload!r}")
    if payload.startswith("msgpack"):
        _msgpack()


def _msgpack() -> Any:
    try:
        import ormsgpack
    except ImportError:
        raise ImportError(
            "payload 'msgpack' needs the package ormsgpack: pip install \"cerebras-ext[msgpack]\""
        ) from None
    return ormsgpack


def encode_body(body: Mapping[str, Any], payload: Payload = "json") -> tuple[bytes, dict[str, str]]:
    """Return the bytes to send and the headers that describe them.

    The decoded body is the same object in every encoding, and equal bodies give equal bytes.

    Raises:
        ValueError: The body has something that JSON has no form for.
    """
    if payload.startswith("msgpack"):
        content, headers = _dump_msgpack(body), {"Content-Type": MSGPACK_TYPE}
    else:
        content, headers = dumps(body), {"Content-Type": JSON_TYPE}
    if payload.endswith("gzip") or (payload == "auto" and len(content) >= AUTO_THRESHOLD):
        content = gzip.compress(content, _GZIP_LEVEL, mtime=0)
        headers["Content-Encoding"] = "gzip"
    return content, headers


def _dump_msgpack(body: Mapping[str, Any]) -> bytes:
    ormsgpack = _msgpack()
    try:
        return bytes(ormsgpack.packb(body))
    except TypeError:
        plain = pydantic_core.to_jsonable_python(replace_surrogates(body))
        try:
            return bytes(ormsgpack.packb(plain))
        except TypeError as error:
            raise ValueError(f"cannot be written as MessagePack: {error}") from None

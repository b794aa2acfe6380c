"""Encoding of request bodies: JSON or MessagePack, plain or gzip."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Literal, get_args

import pydantic_core

from cerebras_ext.jsontext import dumps, replace_surrogates

Payload = Literal["json", "msgpack", "gzip", "msgpack+gzip", "auto"]
PAYLOADS: tuple[str, ...] = get_args(Payload)

JSON_TYPE = "application/json"
MSGPACK_TYPE = "application/vnd.msgpack"

AUTO_THRESHOLD = 4 * 1024
"""Bytes of JSON from which `auto` compresses: over an uplink of 100 Mbit/s a call is shorter by 0.1 ms at this size, by
half at 64 KB, and not at all at 2 KB; compressing pays up to about 800 Mbit/s. See docs/performance.md."""

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
        content = _compressor()(content)
        headers["Content-Encoding"] = "gzip"
    return content, headers


@lru_cache(maxsize=1)
def _compressor() -> Callable[[bytes], bytes]:
    """Return the fastest gzip there is: isal's (extra `isal`) takes a third of zlib's time, and makes it smaller."""
    try:
        from isal import igzip
    except ImportError:
        return partial(gzip.compress, compresslevel=_GZIP_LEVEL, mtime=0)
    return partial(igzip.compress, compresslevel=_GZIP_LEVEL, mtime=0)


def _dump_msgpack(body: Mapping[str, Any]) -> bytes:
    ormsgpack = _msgpack()
    try:
        content = bytes(ormsgpack.packb(body, option=ormsgpack.OPT_PASSTHROUGH_DATETIME))
    except TypeError:
        content = _dump_through_json(body)
    if _MAYBE_NOT_FINITE.search(content):
        dumps(body)
    return content


_MAYBE_NOT_FINITE = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
"""How infinities and NaN begin in MessagePack, which has them; JSON has not. Other data may look the same."""


def _dump_through_json(body: Mapping[str, Any]) -> bytes:
    """Encode what MessagePack writes otherwise than JSON or not at all: keys that are no text, surrogates, dates."""
    ormsgpack = _msgpack()
    try:
        return bytes(ormsgpack.packb(pydantic_core.to_jsonable_python(replace_surrogates(body))))
    except (TypeError, ValueError) as error:
        raise ValueError(f"cannot be written as MessagePack: {error}") from None

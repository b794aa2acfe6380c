"""Content blocks of LlamaIndex as content parts of the chat endpoint. Reads files and buffers, never the network."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from io import IOBase
from pathlib import Path
from typing import Any

import filetype  # type: ignore[import-untyped]
from llama_index.core.base.llms.types import (
    CachePoint,
    CitableBlock,
    CitationBlock,
    ImageBlock,
    TextBlock,
)

from cerebras_ext.errors import RequestValidationError

Part = dict[str, Any]

_NOT_CONTENT = frozenset({"thinking", "tool_call"})
"""Blocks of assistant turns that are members of their own on the wire."""


def text_of(blocks: Sequence[Any], index: int, role: str) -> str:
    """Return the text of a message that may hold nothing else; blocks are joined as `ChatMessage.content` joins them.

    Args:
        blocks: Blocks of the message.
        index: Number of the message, for the error.
        role: Role of the message, for the error.

    Raises:
        RequestValidationError: A block is not text.
    """
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return "\n".join([part["text"] for part in _parts(blocks, f"message {index} ({role})", images=False)])


def user_content(blocks: Sequence[Any], index: int) -> str | list[Part]:
    """Return the content of a user message: a string, or parts where there is an image.

    Raises:
        RequestValidationError: A block is neither text nor an image, or an image cannot be read.
    """
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    parts = list(_parts(blocks, f"message {index} (user)", images=True))
    if all(part["type"] == "text" for part in parts):
        return "\n".join([part["text"] for part in parts])
    return parts


def assistant_text(blocks: Sequence[Any], index: int) -> str:
    """Return the text of an assistant turn.

    Citations are left out: they repeat, beside the text, which passages of a document another provider's model used.
    """
    texts = [block for block in blocks if block.block_type not in _NOT_CONTENT and block.block_type != "citation"]
    return text_of(texts, index, "assistant")


def _parts(blocks: Sequence[Any], where: str, *, images: bool) -> Iterator[Part]:
    for block in blocks:
        if isinstance(block, TextBlock):
            yield {"type": "text", "text": block.text}
        elif isinstance(block, ImageBlock) and images:
            yield _image(block, where)
        elif isinstance(block, CitableBlock):
            yield {"type": "text", "text": f"{block.title} ({block.source}):"}
            yield from _parts(block.content, where, images=images)
        elif isinstance(block, CitationBlock):
            yield from _parts([block.cited_content], where, images=images)
        elif not isinstance(block, CachePoint):  # The service caches prefixes by itself, so there is nothing to send.
            raise RequestValidationError(_complaint(block, where))


def _complaint(block: Any, where: str) -> str:
    kind = getattr(block, "block_type", type(block).__name__)
    if isinstance(block, ImageBlock):
        return f"{where}: an image block is not accepted here; images go into user messages of the chat model"
    if kind in _NOT_CONTENT:
        return f"{where}: a {kind} block belongs to an assistant message"
    return f"{where}: the service does not take {kind} blocks ({type(block).__name__})"


def _image(block: ImageBlock, where: str) -> Part:
    image: dict[str, str] = {"url": _image_url(block, where)}
    if block.detail is not None:
        image["detail"] = block.detail
    return {"type": "image_url", "image_url": image}


def _image_url(block: ImageBlock, where: str) -> str:
    """Return where the image is. Only what is local is read; a web address is passed on and never fetched."""
    if block.image is not None:
        if isinstance(block.image, bytes):
            # The block stores its bytes as base64.
            return _data_uri(block.image, base64.b64decode(block.image[:4096]), block, where)
        return _inline(_read_buffer(block.image), block, where)
    if block.path is not None:
        return _inline(Path(block.path).read_bytes(), block, where)
    if block.url is None:
        raise RequestValidationError(f"{where}: an image block needs image, path or url")
    url = str(block.url)
    if not url.lower().startswith(("data:", "http://", "https://")):
        raise RequestValidationError(f"{where}: an image url must be a data URI or a web address, got {url[:60]!r}")
    return url


def _read_buffer(buffer: IOBase) -> bytes:
    """Return all of a buffer, and leave its position as it was."""
    position = buffer.tell()
    buffer.seek(0)
    data: bytes = buffer.read()
    buffer.seek(position)
    return data


def _inline(data: bytes, block: ImageBlock, where: str) -> str:
    return _data_uri(base64.b64encode(data), data, block, where)


def _data_uri(encoded: bytes, beginning: bytes, block: ImageBlock, where: str) -> str:
    if not encoded:
        raise RequestValidationError(f"{where}: the image is empty")
    kind = block.image_mimetype or filetype.guess_mime(beginning)
    if not kind:
        raise RequestValidationError(f"{where}: the type of the image is unknown; give image_mimetype")
    return f"data:{kind};base64,{encoded.decode('ascii')}"

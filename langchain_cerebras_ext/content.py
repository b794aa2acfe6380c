"""Content of LangChain messages, in all its spellings, as the service takes it: text and image parts, or an error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from cerebras_ext.errors import RequestValidationError

Content = str | list[Any]
Part = dict[str, Any]

MEDIA = frozenset(
    {"image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document", "media"}
)
"""Kinds of blocks that hold something other than text."""


def text_of(block: Any) -> str | None:
    """Return the text of a text block, or None for a block of another kind."""
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return None
    text = block.get("text")
    kind = block.get("type", "text")
    return text if kind in ("text", "text-plain", "input_text", "output_text") and isinstance(text, str) else None


def user_content(content: Content, where: str) -> str | list[Part]:
    """Return the content of a user message: text, or text and image parts.

    Args:
        content: A LangChain message's content.
        where: What to call the message in an error.

    Raises:
        RequestValidationError: A block has a kind that the service has no form for.
    """
    if isinstance(content, str):
        return content
    return [_user_part(block, where) for block in content] or ""


def _user_part(block: Any, where: str) -> Part:
    text = text_of(block)
    if text is not None:
        return {"type": "text", "text": text}
    if isinstance(block, Mapping):
        image = image_url(block)
        if image is not None:
            return {"type": "image_url", "image_url": image}
    raise RequestValidationError(f"{where}: the service has no form for {_kind(block)}; it takes text and images")


def text_content(content: Content, where: str) -> str | list[Part]:
    """Return the content of a system or developer message, which is text only.

    Raises:
        RequestValidationError: A block is no text.
    """
    if isinstance(content, str):
        return content
    parts = []
    for block in content:
        text = text_of(block)
        if text is None:
            raise RequestValidationError(f"{where}: must be text, but holds {_kind(block)}")
        parts.append({"type": "text", "text": text})
    return parts or ""


def tool_content(content: Content, where: str) -> str | list[Part]:
    """Return the result of a tool: text as it is, text blocks as parts, anything else as its JSON text.

    Raises:
        RequestValidationError: The result holds an image or another kind of media.
    """
    if isinstance(content, str):
        return content
    parts = [{"type": "text", "text": text} for text in map(text_of, content) if text is not None]
    if parts and len(parts) == len(content):
        return parts
    for block in content:
        if isinstance(block, Mapping) and block.get("type") in MEDIA:
            raise RequestValidationError(f"{where}: a tool result is text, but holds {_kind(block)}")
    return json.dumps(content, ensure_ascii=False, default=str)


def assistant_text(content: Content) -> str:
    """Return the text of an earlier answer; its tool calls and reasoning are not part of it, other media is lost."""
    if isinstance(content, str):
        return content
    found = []
    for block in content:
        text = text_of(block)
        if text is None and isinstance(block, Mapping) and block.get("type") == "refusal":
            text = block.get("refusal")
        if isinstance(text, str):
            found.append(text)
    return "".join(found)


def image_url(block: Mapping[str, Any]) -> Part | None:
    """Return the `image_url` member for a block that holds an image in any spelling, or None.

    OpenAI's `image_url` and `input_image`, LangChain's `image` (`url` or `base64`; older: `source_type`), Anthropic's
    `image` with a `source`. Base64 becomes a data URI; a URL is passed through and never downloaded.
    """
    kind = block.get("type")
    if kind in ("image_url", "input_image"):
        given = block.get("image_url")
        image = dict(given) if isinstance(given, Mapping) else {"url": given}
        found = _image(image.get("url"), image.get("detail") or block.get("detail"))
    elif kind == "image":
        source = block.get("source")
        inner = source if isinstance(source, Mapping) else block
        found = _image(_image_source(inner), block.get("detail") or _extra(block, "detail"))
    else:
        found = None
    return found


def _image_source(source: Mapping[str, Any]) -> str | None:
    data = source.get("base64") or source.get("data")
    if isinstance(data, str):
        mime_type = source.get("mime_type") or source.get("media_type") or "image/png"
        return data if data.startswith("data:") else f"data:{mime_type};base64,{data}"
    url = source.get("url")
    return url if isinstance(url, str) else None


def _extra(block: Mapping[str, Any], name: str) -> Any:
    extras = block.get("extras")
    return extras.get(name) if isinstance(extras, Mapping) else None


def _image(url: Any, detail: Any) -> Part | None:
    if not isinstance(url, str) or not url:
        return None
    return {"url": url, "detail": detail} if isinstance(detail, str) else {"url": url}


def _kind(block: Any) -> str:
    if isinstance(block, Mapping):
        kind = block.get("type")
        return f"a block of type {kind!r}" if kind else f"a block with the keys {sorted(map(str, block))}"
    return f"a {type(block).__name__}"

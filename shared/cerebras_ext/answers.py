"""JSON out of the text of an answer, whole and while it grows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cerebras_ext.jsontext import loads, loads_partial, refuse_constants
from cerebras_ext.reasoning import split_think

_CLOSE = "</think>"
_FENCE = re.compile(r"^```[A-Za-z]*\s*\n?")
_LONG = 2048


def worth_reading(length: int, last_read: int) -> bool:
    """Whether the beginning of an answer is to be read anew, now that it has grown.

    A long text is read only when it has grown by a thirty-second of itself, so that the cost of a stream is in
    proportion to its text and not to the square.

    Args:
        length: Characters that have come.
        last_read: How many there were at the last reading.
    """
    return length <= _LONG or length - last_read >= length >> 5


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the thoughts in front of a JSON answer, and the answer.

    Models that put their reasoning into the content wrap it in `<think>` tags, some without the opening one. A
    text that is JSON as it stands has no thoughts, whatever its strings hold.
    """
    start = text.lstrip()
    if start.startswith("<think>"):
        return split_think(text)
    if _CLOSE not in text or start.startswith("```") or _is_json(start):
        return "", text
    thoughts, _, rest = text.partition(_CLOSE)
    return thoughts.strip(), rest.lstrip()


def json_answer(text: str) -> Any:
    """Parse the JSON of an answer; thoughts in front of it and a Markdown fence around it are taken off.

    Nothing is repaired, so an answer that was cut off is never taken for a whole one.

    Raises:
        ValueError: There is no JSON, or more than that.
    """
    if not text.strip():
        raise ValueError("the answer is empty")
    fault: ValueError | None = None
    for candidate in _candidates(text):
        try:
            value = loads(candidate)
            refuse_constants(candidate)
            return value
        except ValueError as error:
            fault = error
    raise ValueError(f"the answer is not JSON: {fault}")


def partial_json_answer(text: str) -> Any:
    """Parse the beginning of an answer, a string that is cut off included; None where there is nothing yet."""
    if not text.lstrip().startswith(("{", "[")):
        text = split_thoughts(text)[1].strip()
        if text.startswith("```"):
            text = _FENCE.sub("", text).rstrip("`\n ")
    return loads_partial(text) if text.lstrip().startswith(("{", "[")) else None


def _candidates(text: str) -> Iterator[str]:
    yield text
    rest = split_thoughts(text)[1].strip()
    if rest != text:
        yield rest
    if rest.startswith("```") and rest.endswith("```"):
        yield _FENCE.sub("", rest).removesuffix("```")


def _is_json(text: str) -> bool:
    try:
        loads(text)
    except ValueError:
        return False
    return True

"""Splits text into tokens whose ids can be turned back into text without a table."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

# At most four letters with a space before: about the four characters a token that real vocabularies reach, and few
# enough bytes for an id that JSON carries exactly.
_TOKEN = re.compile(r" ?[A-Za-z0-9]{1,4}|[\s\S]")
_MAX_BYTES = 5


def tokenize(text: str) -> list[str]:
    """Split a text; joined again, the tokens are the text."""
    return _TOKEN.findall(text)


def token_id(token: str) -> int:
    """Return the id of a token: its bytes as a number."""
    return int.from_bytes(token.encode("utf-8", "replace"), "big")


def token_text(number: int) -> str:
    """Return the text of an id, of whatever origin."""
    size = max(1, (number.bit_length() + 7) // 8)
    if size > _MAX_BYTES:
        return f"<{number}>"
    return number.to_bytes(size, "big").decode("utf-8", "replace")


def encode(text: str) -> list[int]:
    """Return the ids of a text."""
    return [token_id(token) for token in tokenize(text)]


def decode(ids: Iterable[int]) -> str:
    """Return the text of ids."""
    return "".join(token_text(number) for number in ids)


def count(value: Any) -> int:
    """Count the tokens of all texts inside a JSON value, names of members included."""
    if isinstance(value, str):
        return len(tokenize(value))
    if isinstance(value, dict):
        return sum(count(key) + count(item) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return sum(count(item) for item in value)
    return 0 if value is None else 1


def groups(tokens: Sequence[str], longest: int = 6) -> list[tuple[int, int]]:
    """Return the pieces in which a stream sends tokens, as ranges: words, which is how the service's deltas look."""
    found: list[tuple[int, int]] = []
    start = 0
    for index in range(1, len(tokens) + 1):
        if index == len(tokens) or tokens[index][0] in " \n" or index - start >= longest:
            found.append((start, index))
            start = index
    return found

"""Names of functions and schemas: the service takes 1 to 64 of a-z, A-Z, 0-9, "_" and "-"."""

from __future__ import annotations

import re

NAME_PATTERN = r"^[A-Za-z0-9_-]{1,64}$"
NAME_RULE = "1 to 64 of a-z, A-Z, 0-9, '_' and '-'"
"""The rule in words, for texts."""

_NAME = re.compile(NAME_PATTERN)
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def is_legal_name(name: object) -> bool:
    """Whether the service takes a name as it is."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def wire_name(name: str) -> str:
    """Return a name with "_" for every character that the service does not take; its length stays."""
    if name.isidentifier() and name.isascii():
        return name
    return _ILLEGAL.sub("_", name)

"""The constraints that strict mode refuses: told to the model in words, checked on our side."""

from __future__ import annotations

import datetime
import ipaddress
import json
import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import IntEnum
from typing import Any

from cerebras_ext.strict_schema._nodes import Schema, identity

STRING = ("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType")
NUMBER = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
ARRAY = ("minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains")
OBJECT = ("minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies")
ANY = ("not", "if", "then", "else")

RULES: dict[str, tuple[str, ...]] = {
    "string": STRING + ANY,
    "number": NUMBER + ANY,
    "integer": NUMBER + ANY,
    "array": ARRAY + ANY,
    "object": OBJECT + ANY,
    "boolean": ANY,
    "null": (),
}
"""Constraints by the type they speak about. Whatever else a schema holds is not a constraint."""

_LENGTHS = {"Length": "character", "Items": "item", "Properties": "field"}
_BOUNDS = {
    "minimum": ("at least", ">="),
    "exclusiveMinimum": ("greater than", ">"),
    "maximum": ("at most", "<="),
    "exclusiveMaximum": ("less than", "<"),
    "multipleOf": ("multiple of", "multiple of"),
}
_AS_JSON = frozenset({"contains", "minContains", "maxContains", "contentMediaType", *OBJECT[2:], *ANY})
_LONGEST_JSON = 80


class Notes(IntEnum):
    """How much of the removed constraints the model is told."""

    NONE = 0
    SHORT = 1
    LONG = 2


def note(rules: Schema, notes: Notes) -> str:
    """Return removed constraints in words, such as "at least 1 item; at most 3 items"."""
    if notes is Notes.NONE or not rules:
        return ""
    long = notes is Notes.LONG
    parts = [text for suffix, unit in _LENGTHS.items() if (text := _length_note(rules, suffix, unit, long=long))]
    parts += [f"{words[0 if long else 1]} {rules[key]}" for key, words in _BOUNDS.items() if key in rules]
    if rules.get("uniqueItems") is True:
        parts.append("no duplicates" if long else "unique")
    if "format" in rules:
        parts.append(f"format {rules['format']}")
    if "contentEncoding" in rules:
        parts.append(f"{rules['contentEncoding']} encoded")
    if long:
        if "pattern" in rules:
            parts.append(f"matching the pattern {rules['pattern']}")
        parts += [text for key, value in rules.items() if key in _AS_JSON and (text := _json_note(key, value))]
    return "; ".join(parts)


def _length_note(rules: Schema, suffix: str, unit: str, *, long: bool) -> str:
    low, high = rules.get("min" + suffix) or None, rules.get("max" + suffix)
    if low is None and high is None:
        return ""
    if low == high:
        return ("exactly " if long else "") + _count(low, unit)
    if long:
        texts = ("at least", low), ("at most", high)
        return "; ".join(f"{words} {_count(size, unit)}" for words, size in texts if size is not None)
    return f"{low or 0}..{'' if high is None else high} {unit}s"


def _count(size: Any, unit: str) -> str:
    return f"{size} {unit}" if size == 1 else f"{size} {unit}s"


def _json_note(key: str, value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return f"{key} {text}" if len(text) <= _LONGEST_JSON else ""


def is_readable(key: str, value: Any) -> bool:
    """Whether a constraint has the kind of value that its keyword takes."""
    if key in ("pattern", "format", "contentEncoding"):
        return isinstance(value, str)
    if key in _BOUNDS or key.startswith(("min", "max")):
        return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)
    return True


def unchecked(rules: Schema) -> list[str]:
    """Return the constraints that `broken` does not look at."""
    names = [key for key in rules if key not in _CHECKS and key != "format" and key != "pattern"]
    if "pattern" in rules and _compiled(rules["pattern"]) is None:
        names.append("pattern")
    if "format" in rules and rules["format"] not in _FORMATS:
        names.append("format")
    return names


def broken(rules: Schema, value: Any) -> list[str]:
    """Return what a value of the right JSON type breaks, in words."""
    faults = [words.format(limit) for key, limit in rules.items() if key in _CHECKS
              for holds, words in [_CHECKS[key]] if not holds(value, limit)]  # fmt: skip
    if "pattern" in rules and (pattern := _compiled(rules["pattern"])) and not pattern.search(value):
        faults.append(f"must match the pattern {rules['pattern']}")
    if rules.get("format") in _FORMATS and not _has_format(value, rules["format"]):
        faults.append(f"must have the format {rules['format']}")
    return faults


def _compiled(pattern: Any) -> re.Pattern[str] | None:
    # JSON schema patterns are ECMAScript; what Python cannot read is left unchecked.
    try:
        return re.compile(pattern)
    except (re.error, TypeError):
        return None


def _is_multiple(value: Any, step: Any) -> bool:
    return not step or Decimal(str(value)) % Decimal(str(step)) == 0


def _are_unique(value: list[Any], wanted: bool) -> bool:
    return not wanted or len({identity(item) for item in value}) == len(value)


_CHECKS: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minLength": (lambda value, limit: len(value) >= limit, "must have at least {} characters"),
    "maxLength": (lambda value, limit: len(value) <= limit, "must have at most {} characters"),
    "minItems": (lambda value, limit: len(value) >= limit, "must have at least {} items"),
    "maxItems": (lambda value, limit: len(value) <= limit, "must have at most {} items"),
    "minProperties": (lambda value, limit: len(value) >= limit, "must have at least {} fields"),
    "maxProperties": (lambda value, limit: len(value) <= limit, "must have at most {} fields"),
    "minimum": (lambda value, limit: value >= limit, "must be at least {}"),
    "maximum": (lambda value, limit: value <= limit, "must be at most {}"),
    "exclusiveMinimum": (lambda value, limit: value > limit, "must be greater than {}"),
    "exclusiveMaximum": (lambda value, limit: value < limit, "must be less than {}"),
    "multipleOf": (_is_multiple, "must be a multiple of {}"),
    "uniqueItems": (_are_unique, "must not hold duplicates"),
}

_FORMATS: Mapping[str, Callable[[str], object]] = {
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "date-time": datetime.datetime.fromisoformat,
    "uuid": uuid.UUID,
    "ipv4": ipaddress.IPv4Address,
    "ipv6": ipaddress.IPv6Address,
    "email": re.compile(r"[^@\s]+@[^@\s]+").fullmatch,
}


def _has_format(value: str, name: str) -> bool:
    try:
        return _FORMATS[name](value) is not None
    except ValueError:
        return False

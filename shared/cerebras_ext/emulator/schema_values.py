"""Writes values that satisfy a JSON schema, taken from a text where the text has them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from cerebras_ext.emulator.decoding import refused
from cerebras_ext.emulator.extraction import Findings, expression_in
from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.ranking import words

_DEEPEST = 6
"""Levels below which only what is required is written."""
_MOST_VALUES = 5_000
"""Values after which a schema counts as one that nothing satisfies, since it requires itself."""
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T00:00:00Z",
    "time": "12:00:00",
    "email": "someone@example.com",
    "uri": "https://example.com",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "example.com",
    "duration": "P1D",
}
_TEXT_NAMES = """
    query question q input prompt text search_query search request message task instruction instructions content
    user_input user_query query_str input_text term keywords
"""
_WHOLE_TEXT = frozenset(_TEXT_NAMES.split())
_PATTERN_SAMPLES = ("a", "A", "0", "1", "abc", "ABC", "123", "A1", "AB12", "abc-123", "2026-01-01", "12:00", "#ffffff")
_LEAD_IN = re.compile(
    r"^(?:please\s+)?(?:(?:use|call|run) (?:the )?[\w -]*?(?:tool|function)?\s*(?:to|and|for)\s+)?"
    r"(?:(?:can|could) you\s+)?"
    r"(?:(?:search|look up|look|find|query|google|tell me)(?:\s+(?:for|about|up|out|the web for))?\s+)?",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:no|not|don't|without|disable|never)\b", re.IGNORECASE)

Schema = Mapping[str, Any]


class ValueMaker:
    """Makes one value.

    Args:
        root: The schema, to which references point.
        text: Where values are taken from.
        prose: Makes a text for a string that is found nowhere, from the name of its property.
        complete: Whether optional properties are always filled, or only where the text names them.
        prose_names: Properties that want prose rather than a name or a quotation.
        ignored: Stems of words that are no names, though they may be capitalised.
    """

    def __init__(
        self,
        root: Schema,
        text: str,
        *,
        prose: Callable[[str], str],
        complete: bool = True,
        prose_names: frozenset[str] = frozenset(),
        ignored: frozenset[str] = frozenset(),
    ) -> None:
        self._root = root
        self._text = text
        self._findings = Findings.of(text)
        self._findings.names = [name for name in self._findings.names if not set(words(name)) <= ignored]
        self._prose = prose
        self._complete = complete
        self._prose_names = prose_names
        self._made = 0
        self.missing: list[str] = []
        """Required properties for which the text had nothing."""

    def make(self) -> Any:
        """Return the value.

        Raises:
            RefusedError: The schema is none: a keyword has a value of the wrong kind.
        """
        try:
            return self._value(self._root, "", 0)
        except (TypeError, ValueError, AttributeError, KeyError, ArithmeticError, RecursionError) as error:
            raise refused(f"Invalid JSON schema: {error}", "response_format") from None

    # ---- by kind of schema ----

    def _value(self, schema: Any, name: str, depth: int) -> Any:
        schema = self._resolve(schema)
        self._made += 1
        if self._made > _MOST_VALUES or depth > 10 * _DEEPEST:
            return None
        if "const" in schema:
            return schema["const"]
        if schema.get("enum"):
            return self._choice(schema["enum"])
        branches = schema.get("anyOf") or schema.get("oneOf")
        if branches:
            rest = {key: value for key, value in schema.items() if key not in ("anyOf", "oneOf")}
            return self._value({**rest, **self._branch(branches, name, depth)}, name, depth)
        kind = self._kind(schema, name, depth)
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        if kind in ("integer", "number"):
            return self._number(schema, name, whole=kind == "integer")
        if kind == "boolean":
            return self._boolean(schema, name)
        return None if kind == "null" else self._string(schema, name)

    def _resolve(self, schema: Any) -> JsonObject:
        """Follow references and merge `allOf`."""
        for _ in range(20):
            if not isinstance(schema, Mapping):
                return {}
            if "$ref" in schema:
                rest = {key: value for key, value in schema.items() if key != "$ref"}
                schema = {**self._target(schema["$ref"]), **rest}
            elif schema.get("allOf"):
                rest = {key: value for key, value in schema.items() if key != "allOf"}
                schema = _merge([self._resolve(part) for part in schema["allOf"]] + [rest])
            else:
                break
        return dict(schema)

    def _target(self, reference: str) -> Mapping[str, Any]:
        node: Any = self._root
        for step in reference.lstrip("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            node = node.get(step, {}) if isinstance(node, Mapping) else {}
        return node if isinstance(node, Mapping) else {}

    def _branch(self, branches: list[Any], name: str, depth: int) -> JsonObject:
        resolved = [self._resolve(branch) for branch in branches]
        nullable = [branch for branch in resolved if branch.get("type") == "null"]
        others = [branch for branch in resolved if branch.get("type") != "null"]
        if nullable and (depth > _DEEPEST or not others):
            return nullable[0]
        named = [branch for branch in others if self._speaks_of(branch, name)]
        if named:
            return named[0]
        return nullable[0] if nullable else others[0]

    def _kind(self, schema: Schema, name: str, depth: int) -> str:
        kinds = schema.get("type")
        if isinstance(kinds, list):
            real = [kind for kind in kinds if kind != "null"]
            optional = "null" in kinds
            if optional and (not real or depth > _DEEPEST or not self._speaks_of({**schema, "type": real[0]}, name)):
                return "null"
            return str(real[0]) if real else "null"
        if kinds is None:
            implied = (("properties", "object"), ("items", "array"), ("minimum", "number"), ("maximum", "number"))
            return next((kind for key, kind in implied if key in schema), "string")
        return str(kinds)

    def _speaks_of(self, schema: Schema, name: str) -> bool:
        """Whether the text seems to have a value for an optional property."""
        if name and self._findings.labelled(name) is not None:
            return True
        if "enum" in schema:
            return _mentioned(schema["enum"], self._text) is not None
        kind = schema.get("type")
        if kind in ("integer", "number"):
            return bool(self._findings.numbers) and bool(set(words(_spoken(name))) & set(words(self._text)))
        if kind == "object":
            return self._complete
        return bool(set(words(_spoken(name))) & set(words(self._text)))

    # ---- values ----

    def _choice(self, options: list[Any]) -> Any:
        found = _mentioned(options, self._text)
        return options[0] if found is None else found

    def _object(self, schema: Schema, depth: int) -> JsonObject:
        required = list(schema.get("required") or ())
        made: JsonObject = {}
        for name, child in (schema.get("properties") or {}).items():
            if name in required or (self._complete and depth < 2) or self._names(child, name):
                made[name] = self._value(child, name, depth + 1)
        for name in required:
            if name not in made:
                made[name] = self._prose(name)
        open_schema = schema.get("additionalProperties")
        for number in range(len(made), int(schema.get("minProperties") or 0)):
            made[f"key{number}"] = self._value(open_schema, f"key{number}", depth + 1)
        return made

    def _names(self, child: Any, name: str) -> bool:
        schema = self._resolve(child)
        if self._findings.labelled(name) is not None:
            return True
        return "enum" in schema and _mentioned(schema["enum"], self._text) is not None

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        least, most = int(schema.get("minItems") or 0), schema.get("maxItems")
        made = [self._value(child, name, depth + 1) for child in schema.get("prefixItems") or ()]
        items = schema.get("items", {})
        if items is False:
            return made
        child = self._resolve(items)
        wanted = max(least, 0 if depth > _DEEPEST else 1, len(made))
        if child.get("enum"):
            wanted = max(wanted, sum(_mentioned([option], self._text) is not None for option in child["enum"]))
        elif child.get("type") in ("integer", "number"):
            wanted = max(wanted, len(self._findings.numbers))
        elif child.get("type") == "string":
            wanted = max(wanted, len(self._findings.quoted), len(self._findings.names))
        if most is not None:
            wanted = min(wanted, int(most))
        while len(made) < wanted:
            made.append(self._item(child, name, depth, made, unique=bool(schema.get("uniqueItems"))))
        return made

    def _item(self, child: JsonObject, name: str, depth: int, made: list[Any], *, unique: bool) -> Any:
        if child.get("enum"):
            rest = [option for option in child["enum"] if option not in made] or child["enum"]
            return self._choice(rest)
        value = self._value(child, name, depth + 1)
        number = len(made)
        while unique and value in made:
            number += 1
            value = value + number if isinstance(value, (int, float)) else f"{value} {number}"
        return value

    def _number(self, schema: Schema, name: str, *, whole: bool) -> int | float:
        value: Any = _as_number(self._findings.labelled(name) if name else None, whole=whole)
        if value is not None:
            spent = {str(value)}
            self._findings.numbers = [text for text in self._findings.numbers if text not in spent]
        if value is None:
            value = self._findings.take_number(whole=whole)
        if value is None:
            value = schema.get("default")
            if not isinstance(value, (int, float)) or isinstance(value, bool):
                self.missing.append(name)
                value = 1
        return _within(value, schema, whole=whole)

    def _boolean(self, schema: Schema, name: str) -> bool:
        said = (self._findings.labelled(name) or "").lower()
        if said in ("true", "yes", "on", "false", "no", "off"):
            return said in ("true", "yes", "on")
        if set(words(_spoken(name))) & set(words(self._text)):
            return _NEGATION.search(self._text) is None
        default = schema.get("default")
        return default if isinstance(default, bool) else False

    def _string(self, schema: Schema, name: str) -> str:
        form = schema.get("format")
        if isinstance(form, str) and form in _FORMATS:
            return self._findings.shaped(form) or _FORMATS[form]
        value = self._found_text(name)
        if value is None:
            default = schema.get("default")
            if isinstance(default, str):
                value = default
            else:
                self.missing.append(name)
                value = self._prose(name)
        return _fitted(value, schema, self._text)

    def _found_text(self, name: str) -> str | None:
        labelled = self._findings.labelled(name) if name else None
        if labelled is not None:
            self._findings.names = [other for other in self._findings.names if other != labelled]
            return labelled
        if name.lower() in self._prose_names:
            return self._prose(name.lower())
        if "expression" in name.lower() or "equation" in name.lower():
            return expression_in(self._text) or self._text.strip()
        if "email" in name.lower() and (found := self._findings.shaped("email")):
            return found
        if name.lower() in ("url", "uri", "link") and (found := self._findings.shaped("uri")):
            return found
        if "date" in words(_spoken(name)) and (found := self._findings.shaped("date")):
            return found
        if name.lower() in _WHOLE_TEXT and not self._complete:
            return self._findings.take_text() if self._findings.quoted else stripped_question(self._text)
        found = self._findings.take_text()
        if found is None and not self._complete:
            found = self._findings.counted() or self._findings.after_preposition()
        return found


def stripped_question(text: str) -> str:
    """Return a question without its lead-in, such as "search for"."""
    text = text.strip()
    return _LEAD_IN.sub("", text).rstrip("?.! ") or text


def _spoken(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ")


def _mentioned(options: list[Any], text: str) -> Any:
    """Return the option that stands first in a text, or None."""
    lowered = text.lower()
    found = []
    for option in options:
        match = re.search(rf"(?<!\w){re.escape(_spoken(str(option)).lower())}(?!\w)", lowered)
        if option is not None and match:
            found.append((match.start(), option))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _as_number(text: str | None, *, whole: bool) -> int | float | None:
    try:
        number = float(text) if text is not None else None
    except ValueError:
        return None
    if number is None or not math.isfinite(number) or (whole and not number.is_integer()):
        return None
    return int(number) if number.is_integer() else number


def _within(value: float, schema: Schema, *, whole: bool) -> int | float:
    """Move a number into the bounds of its schema."""
    step = schema.get("multipleOf") or (1 if whole else None)
    lows = [schema["minimum"]] if isinstance(schema.get("minimum"), (int, float)) else []
    highs = [schema["maximum"]] if isinstance(schema.get("maximum"), (int, float)) else []
    nudge = step or 1e-6
    if isinstance(schema.get("exclusiveMinimum"), (int, float)) and not isinstance(schema["exclusiveMinimum"], bool):
        lows.append(schema["exclusiveMinimum"] + (0 if _off_grid(schema["exclusiveMinimum"], step) else nudge))
    if isinstance(schema.get("exclusiveMaximum"), (int, float)) and not isinstance(schema["exclusiveMaximum"], bool):
        highs.append(schema["exclusiveMaximum"] - (0 if _off_grid(schema["exclusiveMaximum"], step) else nudge))
    low, high = max(lows, default=-math.inf), min(highs, default=math.inf)
    value = min(max(value, low), high)
    if step:
        rounded = round(value / step)
        if rounded * step < low:
            rounded = math.ceil(low / step)
        if rounded * step > high:
            rounded = math.floor(high / step)
        value = rounded * step
    return int(value) if whole else value


def _off_grid(value: float, step: float | None) -> bool:
    return step is not None and value % step != 0


def _fitted(value: str, schema: Schema, text: str) -> str:
    """Bring a text to the length and pattern of its schema."""
    pattern = schema.get("pattern")
    least, most = int(schema.get("minLength") or 0), schema.get("maxLength")
    if isinstance(pattern, str):
        try:
            candidates = [value, *re.findall(r"[^\s,;()]+", text), *_PATTERN_SAMPLES]
            value = next((item for item in candidates if re.search(pattern, item)), value)
        except re.error:
            pass
    if most is not None:
        value = value[: int(most)]
    return value + "." * (least - len(value))


def _merge(parts: list[JsonObject]) -> JsonObject:
    merged: JsonObject = {}
    for part in parts:
        for key, value in part.items():
            old = merged.get(key)
            if key == "properties" and isinstance(old, dict):
                merged[key] = {**old, **value}
            elif key == "required" and isinstance(old, list):
                merged[key] = [*old, *value]
            else:
                merged[key] = value
    return merged

"""References and `allOf`: the parts of JSON schema that speak about the document, not about the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from cerebras_ext.strict_schema._errors import SchemaError
from cerebras_ext.strict_schema._nodes import Schema, identity
from cerebras_ext.strict_schema._rules import RULES

KEYWORDS = frozenset({
    "$ref", "type", "nullable", "enum", "const", "anyOf", "oneOf", "allOf", "properties", "required",
    "additionalProperties", "unevaluatedProperties", "patternProperties", "items", "additionalItems", "prefixItems",
}).union(*RULES.values())  # fmt: skip
"""Keywords that say which values are valid. All others are annotations, or unknown, and never sent."""

_LARGEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_SMALLEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})


def resolve(root: Mapping[str, Any], pointer: Any, path: str) -> Any:
    """Return the part of the document that a `$ref` names."""
    if not isinstance(pointer, str) or not (pointer == "#" or pointer.startswith("#/")):
        raise SchemaError(f"{path}: $ref {pointer!r} leaves the schema; put the definition under $defs")
    found: Any = root
    for part in pointer[2:].split("/") if len(pointer) > 1 else ():
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        else:
            raise SchemaError(f"{path}: $ref {pointer!r} points to nothing; add the definition under $defs")
    return found


def enter(stack: tuple[str, ...], pointer: str, path: str) -> tuple[str, ...]:
    """Return the stack of open references with one more, or raise when it is open already."""
    if pointer in stack:
        names = [name.rpartition("/")[2] for name in (*stack[stack.index(pointer) :], pointer)]
        raise SchemaError(
            f"{path}: the schema is recursive ({' -> '.join(names)}), which strict mode refuses; "
            "unroll it to a fixed depth, keep a flat list with parent ids, or turn strict off"
        )
    return (*stack, pointer)


def flatten(
    root: Mapping[str, Any], schema: Mapping[str, Any], path: str, stack: tuple[str, ...]
) -> tuple[Schema, tuple[str, ...]]:
    """Merge `allOf` and references with siblings into one schema; a reference that stands alone stays.

    Returns:
        The schema, and the stack of references that are open inside it.
    """
    flat = dict(schema)
    while True:
        if "allOf" in flat:
            members = flat.pop("allOf")
            if not isinstance(members, list) or not all(isinstance(member, Mapping) for member in members):
                raise SchemaError(f"{path}: allOf must be a list of schemas")
            if len(members) == 1 and not KEYWORDS & set(flat):
                flat = {**members[0], **flat}
                continue
            if members and "$ref" in flat:
                members = [{"$ref": flat.pop("$ref")}, *members]
            for member in members:
                part, stack = expand(root, member, path, stack)
                flat = merge(flat, part, path)
        elif "$ref" in flat and KEYWORDS & set(flat) != {"$ref"}:
            part, stack = expand(root, {"$ref": flat.pop("$ref")}, path, stack)
            flat = merge(flat, part, path)
        else:
            return flat, stack


def expand(
    root: Mapping[str, Any], schema: Mapping[str, Any], path: str, stack: tuple[str, ...]
) -> tuple[Schema, tuple[str, ...]]:
    """Like `flatten`, and also merge in what a lone reference stands for."""
    flat, stack = flatten(root, schema, path, stack)
    while "$ref" in flat:
        pointer = flat.pop("$ref")
        target = resolve(root, pointer, path)
        stack = enter(stack, pointer, path)
        if not isinstance(target, Mapping):
            raise SchemaError(f"{path}: $ref {pointer!r} does not point to a schema")
        part, stack = flatten(root, target, path, stack)
        flat = merge(flat, part, path)
    return flat, stack


def merge(first: Mapping[str, Any], second: Mapping[str, Any], path: str) -> Schema:
    """Return a schema that asks for both; in texts the first one wins. Raises where they have no common form."""
    merged = without_const(first)
    for key, value in without_const(second).items():
        if key not in merged or identity(merged[key]) == identity(value):
            merged[key] = value
        elif key in KEYWORDS:
            try:
                merged[key] = _merge_keyword(key, merged[key], value, path)
            except (TypeError, AttributeError):
                raise SchemaError(f"{path}: {key} cannot be {value!r}") from None
    return merged


def without_const(schema: Mapping[str, Any]) -> Schema:
    """Return a copy with `const` written as an enum of one, as `const` is refused."""
    copy = dict(schema)
    if "const" in copy:
        copy["enum"] = [copy.pop("const")]
    return copy


def _merge_keyword(key: str, first: Any, second: Any, path: str) -> Any:
    if key in _LARGEST:
        return max(first, second)
    if key in _SMALLEST:
        return min(first, second)
    if key == "nullable":  # OpenAPI's way to add null to a reference: the outer one counts
        return first
    if key == "required":
        return list(dict.fromkeys([*first, *second]))
    if key == "properties":
        return {name: _merge_property(name, first, second, path) for name in dict.fromkeys([*first, *second])}
    if key == "additionalProperties" and False in (first, second):
        return first if second is False else second
    if key == "items" and isinstance(first, Mapping) and isinstance(second, Mapping):
        return merge(first, second, f"{path}[]")
    if key in ("enum", "type") and (common := _common(key, as_list(first), as_list(second))):
        return common
    raise SchemaError(f"{path}: parts of allOf disagree about {key!r}; write the schema out, or turn strict off")


def _merge_property(name: str, first: Mapping[str, Any], second: Mapping[str, Any], path: str) -> Any:
    if name not in first or name not in second:
        return first[name] if name in first else second[name]
    one, two = first[name], second[name]
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        return dict(one) if identity(one) == identity(two) else {"allOf": [dict(one), dict(two)]}
    raise SchemaError(f"{path}.{name}: parts of allOf disagree; write the schema out, or turn strict off")


def as_list(value: Any) -> list[Any]:
    """Return a list as it is, and anything else as the only member of one."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _common(key: str, first: list[Any], second: list[Any]) -> list[Any]:
    wanted = {identity(value) for value in second}
    common = [value for value in first if identity(value) in wanted]
    if key == "type" and not common and "number" in first + second:
        return ["integer"] if "integer" in first + second else []
    return common

"""Writes nodes as a schema that the service takes, and holds it against the size limits."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from cerebras_ext.strict_schema._errors import SchemaError
from cerebras_ext.strict_schema._nodes import (
    ArrayNode,
    Node,
    ObjectNode,
    Property,
    RefNode,
    ScalarNode,
    Schema,
    UnionNode,
    children,
)
from cerebras_ext.strict_schema._rules import Notes, note

_PREFIX = "#/$defs/"
_NULL: Schema = {"type": "null"}


@dataclass(frozen=True, slots=True)
class SchemaLimits:
    """What one strict schema may hold, by the service's documentation."""

    characters: int = 5000
    """Of the schema as compact JSON."""
    depth: int = 10
    """Objects inside objects."""
    properties: int = 500
    enum_values: int = 500
    long_enum: int = 250
    """Number of values above which `enum_characters` holds."""
    enum_characters: int = 7500


class _TooLongError(Exception):
    """Spelling every use out passes the limit for sure."""


def emit(root: ObjectNode, limits: SchemaLimits, *, nullable: bool = True) -> Schema:
    """Return the wire schema of a root object, with as much explanation as fits. Raises `SchemaError`.

    Args:
        root: What to write.
        limits: What must fit.
        nullable: Whether a member that may be left out is required and nullable, else it is not required.
    """
    length = 0
    for inline, notes in ((True, Notes.LONG), (False, Notes.LONG), (False, Notes.SHORT), (False, Notes.NONE)):
        try:
            schema = _Emitter(root, inline, notes, nullable, budget=limits.characters // 8).document(root)
        except _TooLongError:
            continue
        length = len(json.dumps(schema, ensure_ascii=False, separators=(",", ":")))
        if length <= limits.characters:
            _check_counts(schema, limits)
            return schema
    raise SchemaError(
        f"$: the schema has {length} characters as compact JSON, strict mode takes {limits.characters}; "
        "shorten descriptions and enums, split the schema, or turn strict off"
    )


class _Emitter:
    """Definitions are kept where they are used more than once and spelled out where they are used once.

    A reference cannot carry a description. With `inline` such a use is spelled out, without it is wrapped in `anyOf`.
    """

    def __init__(self, root: Node, inline: bool, notes: Notes, nullable: bool, budget: int) -> None:
        self._inline = inline
        self._notes = notes
        self._nullable = nullable
        self._budget = budget
        self._uses = _uses(root)
        self._names: dict[str, str] = {}
        self._definitions: dict[str, Schema] = {}

    def document(self, root: ObjectNode) -> Schema:
        schema = self._node(root)
        if self._definitions:
            schema["$defs"] = self._definitions
        return _inline_single_uses(schema)

    def _node(self, node: Node, description: str = "") -> Schema:
        self._budget -= 1
        if self._inline and self._budget < 0:
            raise _TooLongError
        description = description or node.description
        if isinstance(node, RefNode):
            return self._reference(node, description)
        if isinstance(node, UnionNode):
            return _described({"anyOf": [self._node(branch) for branch in node.branches]}, description)
        said = " ".join(filter(None, (description, _in_brackets(note(node.rules, self._notes)))))
        if isinstance(node, ScalarNode):
            schema = _described({"type": node.type}, said)
            return schema if node.enum is None else {**schema, "enum": list(node.enum)}
        if isinstance(node, ArrayNode):
            schema = _described({"type": "array"}, said)
            if node.prefix:
                schema["prefixItems"] = [self._node(part) for part in node.prefix]
            return {**schema, "items": self._node(node.items) if node.items else False}
        return {
            **_described({"type": "object"}, said),
            "properties": {name: self._property(prop) for name, prop in node.properties.items()},
            "required": [name for name, prop in node.properties.items() if self._nullable or prop.required],
            "additionalProperties": False,
        }

    def _property(self, prop: Property) -> Schema:
        if not prop.adds_null or not self._nullable:
            return self._node(prop.node)
        if isinstance(prop.node, RefNode):
            node, described = prop.node.target, prop.node.description
            shared = RefNode(prop.node.pointer, node)
            return _described({"anyOf": [self._node(shared), dict(_NULL)]}, described)
        schema = self._node(prop.node)
        if "anyOf" in schema:
            return {**schema, "anyOf": [*schema["anyOf"], dict(_NULL)]}
        description = schema.pop("description", "")
        return _described({"anyOf": [schema, dict(_NULL)]}, description)

    def _reference(self, node: RefNode, description: str) -> Schema:
        if self._uses[node.pointer] == 1 or (description and self._inline):
            return self._node(node.target, description)
        if node.pointer not in self._names:
            name = self._names[node.pointer] = _free_name(node.name, set(self._names.values()))
            self._definitions[name] = {}
            self._definitions[name] = self._node(node.target)
        reference: Schema = {"$ref": _PREFIX + self._names[node.pointer]}
        return {"anyOf": [reference], "description": description} if description else reference


def _uses(root: Node) -> Counter[str]:
    """Count the references to each definition, each definition's own content once."""
    counts: Counter[str] = Counter()
    queue = [root]
    while queue:
        node = queue.pop()
        if isinstance(node, RefNode):
            counts[node.pointer] += 1
            if counts[node.pointer] > 1:
                continue
        queue += children(node)
    return counts


def _described(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description} if description else schema


def _in_brackets(text: str) -> str:
    return f"({text})" if text else ""


def _free_name(name: str, taken: set[str]) -> str:
    base = re.sub(r"[^A-Za-z0-9_.-]+", "_", name) or "definition"
    number, free = 1, base
    while free in taken:
        number += 1
        free = f"{base}_{number}"
    return free


def _parts(schema: Schema) -> Iterator[tuple[Any, Any]]:
    """Yield every place of a wire schema that holds a schema, as container and key."""
    for key in ("properties", "$defs"):
        yield from ((schema[key], name) for name in schema.get(key, ()))
    for key in ("anyOf", "prefixItems"):
        yield from ((schema[key], number) for number in range(len(schema.get(key, ()))))
    if isinstance(schema.get("items"), dict):
        yield schema, "items"


def _all_parts(schema: Schema) -> Iterator[tuple[Any, Any]]:
    for place in _parts(schema):
        yield place
        yield from _all_parts(place[0][place[1]])


def _inline_single_uses(schema: Schema) -> Schema:
    """Spell out the definitions of which a single use is left, so that a second pass has nothing to do."""
    places: dict[str, list[tuple[Any, Any]]] = {}
    for container, key in _all_parts(schema):
        if "$ref" in container[key]:
            places.setdefault(container[key]["$ref"], []).append((container, key))
    for reference, found in places.items():
        if len(found) == 1:
            container, key = found[0]
            container[key] = schema["$defs"].pop(reference.removeprefix(_PREFIX))
    if not schema.get("$defs", True):
        del schema["$defs"]
    return schema


def _check_counts(schema: Schema, limits: SchemaLimits) -> None:
    parts = [schema, *(container[key] for container, key in _all_parts(schema))]
    enums = [part["enum"] for part in parts if "enum" in part]
    long = max((sum(len(str(value)) for value in enum) for enum in enums if len(enum) > limits.long_enum), default=0)
    counts = {
        "levels of objects": (_depth(schema, schema, {}), limits.depth),
        "properties": (sum(len(part.get("properties", ())) for part in parts), limits.properties),
        "enum values": (sum(map(len, enums)), limits.enum_values),
        "characters in a long enum": (long, limits.enum_characters),
    }
    for what, (count, limit) in counts.items():
        if count > limit:
            raise SchemaError(f"$: the schema has {count} {what}, strict takes {limit}; split it, or turn strict off")


def _depth(schema: Schema, root: Schema, known: dict[str, int]) -> int:
    if reference := schema.get("$ref"):
        if reference not in known:
            known[reference] = _depth(root["$defs"][reference.removeprefix(_PREFIX)], root, known)
        return known[reference]
    places = [(container, key) for container, key in _parts(schema) if container is not root.get("$defs")]
    below = max((_depth(container[key], root, known) for container, key in places), default=0)
    return below + 1 if schema.get("type") == "object" else below

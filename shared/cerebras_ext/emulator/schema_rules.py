"""The subset of JSON schema that strict mode takes, checked on its own."""

from __future__ import annotations

import json
from typing import Any

from cerebras_ext.emulator.decoding import RefusedError, refused
from cerebras_ext.emulator.json_types import JsonObject

_MAX_CHARACTERS = 5_000
_MAX_DEPTH = 10
_MAX_PROPERTIES = 500
_MAX_ENUM = 500
_MAX_BRANCHES = 5

_ANNOTATIONS = {"title", "description", "default", "examples", "$defs", "$schema", "$id", "$comment"}
_BY_TYPE: dict[str, set[str]] = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "prefixItems"},
    "string": set(),
    "number": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "integer": {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"},
    "boolean": set(),
    "null": set(),
}
_ROOT = _ANNOTATIONS | _BY_TYPE["object"] | {"type", "anyOf"}


class _Checker:
    def __init__(self, root: JsonObject, param: str) -> None:
        self._root = root
        self._param = param
        self._properties = 0
        self._enum = 0

    def refuse(self, message: str) -> RefusedError:
        return refused(message, self._param)

    def run(self) -> None:
        root = self._root
        extra = set(root) - _ROOT
        if extra:
            raise self.refuse(f"Extra top level keys found in JSON schema: {_braces(extra)}")
        if root.get("type") != "object":
            raise self.refuse("The root of a JSON schema must be of type 'object'.")
        if len(json.dumps(root, ensure_ascii=False, separators=(",", ":"))) > _MAX_CHARACTERS:
            raise self.refuse(f"JSON schema is longer than {_MAX_CHARACTERS} characters.")
        self.node(root, 1)
        definitions = root.get("$defs") or {}
        for name, definition in definitions.items():
            self.node(definition, 1)
            self.acyclic(name, definition, (name,))
        if self._properties > _MAX_PROPERTIES:
            raise self.refuse(f"JSON schema has more than {_MAX_PROPERTIES} properties.")
        if self._enum > _MAX_ENUM:
            raise self.refuse(f"JSON schema has more than {_MAX_ENUM} enum values.")

    def acyclic(self, name: str, node: Any, trail: tuple[str, ...]) -> None:
        for target in _references(node):
            if target in trail:
                raise self.refuse(f"Recursive reference to '#/$defs/{target}' is not supported.")
            self.acyclic(target, (self._root.get("$defs") or {}).get(target), (*trail, target))

    def node(self, node: Any, depth: int) -> None:
        if not isinstance(node, dict):
            raise self.refuse(f"A JSON schema must be an object, got {json.dumps(node)}.")
        if depth > _MAX_DEPTH:
            raise self.refuse(f"JSON schema is nested deeper than {_MAX_DEPTH} levels.")
        if "$ref" in node:
            self.reference(node)
        elif "anyOf" in node:
            self.union(node, depth)
        else:
            self.typed(node, depth)

    def reference(self, node: JsonObject) -> None:
        target = node["$ref"]
        names = self._root.get("$defs") or {}
        if not isinstance(target, str) or target.removeprefix("#/$defs/") not in names:
            raise self.refuse(f"Unsupported reference: {target!r}.")

    def union(self, node: JsonObject, depth: int) -> None:
        branches = node["anyOf"]
        if not isinstance(branches, list) or not 1 <= len(branches) <= _MAX_BRANCHES:
            raise self.refuse(f"anyOf must have 1 to {_MAX_BRANCHES} branches.")
        for branch in branches:
            self.node(branch, depth)
        if node is self._root:
            self.typed({key: value for key, value in node.items() if key != "anyOf"}, depth)

    def typed(self, node: JsonObject, depth: int) -> None:
        kinds = node.get("type")
        types = kinds if isinstance(kinds, list) else [kinds] if kinds is not None else []
        if not types and "enum" not in node:
            raise self.refuse(f"Unsupported JSON schema fields: {_braces(set(node) - _ANNOTATIONS)}")
        if not all(isinstance(name, str) and name in _BY_TYPE for name in types):
            raise self.refuse(f"Unsupported JSON schema types: {types}")
        allowed = _ANNOTATIONS | {"type", "enum"}.union(*(_BY_TYPE[name] for name in types))
        extra = set(node) - allowed
        if extra:
            raise self.refuse(f"Invalid fields for schema with types {types}: {_braces(extra)}")
        self._enum += len(node.get("enum") or ())
        if "object" in types:
            self.object(node, depth)
        if "array" in types:
            self.array(node, depth)

    def object(self, node: JsonObject, depth: int) -> None:
        if node.get("additionalProperties") is not False:
            raise self.refuse("'additionalProperties' is required to be supplied and set to false.")
        properties = node.get("properties") or {}
        unknown = set(node.get("required") or ()) - set(properties)
        if unknown:
            raise self.refuse(f"'required' names unknown properties: {_braces(unknown)}")
        self._properties += len(properties)
        for child in properties.values():
            self.node(child, depth + 1)

    def array(self, node: JsonObject, depth: int) -> None:
        for child in node.get("prefixItems") or ():
            self.node(child, depth + 1)
        items = node.get("items")
        if items is False and "prefixItems" in node:
            return
        if isinstance(items, bool) or (items is None and "prefixItems" not in node):
            raise self.refuse("'items' is required for arrays and must be a schema.")
        if items is not None:
            self.node(items, depth + 1)


def check_schema(schema: JsonObject, param: str) -> None:
    """Refuse a schema that strict mode does not take.

    Args:
        schema: The schema of an answer or of a tool's arguments.
        param: What the error names as its `param`.

    Raises:
        RefusedError: In the words of the service where they are known.
    """
    _Checker(schema, param).run()


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        target = node.get("$ref")
        found = {target.removeprefix("#/$defs/")} if isinstance(target, str) else set()
        return found.union(*(_references(value) for value in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(value) for value in node))
    return set()


def _braces(names: set[str]) -> str:
    return "{" + ", ".join(repr(name) for name in sorted(names)) + "}"

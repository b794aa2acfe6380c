"""Reads a JSON schema into nodes, or says why it has no strict form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cerebras_ext.strict_schema._document import (
    KEYWORDS,
    as_list,
    enter,
    expand,
    flatten,
    merge,
    resolve,
    without_const,
)
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
    allows_null,
    follow,
    identity,
    json_type,
)
from cerebras_ext.strict_schema._rules import ARRAY, NUMBER, OBJECT, RULES, STRING, is_readable

_DEEPEST = 100
_OBVIOUS = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", *OBJECT),
    "array": ("items", "prefixItems", *ARRAY),
    "string": STRING,
    "number": NUMBER,
}
"""The types that keywords give away where `type` is missing."""


def parse(root: Mapping[str, Any]) -> Node:
    """Return the tree of a schema. Raises `SchemaError`."""
    try:
        return _Parser(root).node(root, "$", ())
    except RecursionError:
        raise SchemaError("$: the schema is nested too deeply") from None


class _Parser:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._targets: dict[str, Node] = {}
        self._depth = 0

    def node(self, schema: Any, path: str, stack: tuple[str, ...]) -> Node:
        """Read a schema at a path; `stack` holds the references that are open around it."""
        if not isinstance(schema, Mapping):
            raise SchemaError(_anything(path) if schema is True else f"{path}: {schema!r} is not a schema with a type")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SchemaError(f"{path}: the schema is nested more than {_DEEPEST} levels deep")
        try:
            flat, stack = flatten(self._root, schema, path, stack)
            return self._flat(_modern(without_const(flat)), path, stack)
        finally:
            self._depth -= 1

    def _flat(self, schema: Schema, path: str, stack: tuple[str, ...]) -> Node:
        description = _description(schema)
        if schema.pop("nullable", False):
            inner = self.node(_without_null_enum(schema), path, stack)
            return inner if allows_null(inner) else _or_null(inner)
        if "$ref" in schema:
            return RefNode(schema["$ref"], self._target(schema["$ref"], path, stack), description)
        if "anyOf" in schema or "oneOf" in schema:
            return UnionNode(self._branches(schema, path, stack), description)
        if "enum" in schema:
            return _one_or_union(_enum(schema, path), description)
        kinds = _types(schema, path)
        return _one_or_union([self._typed(kind, schema, path, stack) for kind in kinds], description)

    def _target(self, pointer: Any, path: str, stack: tuple[str, ...]) -> Node:
        found = resolve(self._root, pointer, path)
        inside = enter(stack, pointer, path)
        if pointer not in self._targets:
            self._targets[pointer] = self.node(found, path, inside)
        return self._targets[pointer]

    def _branches(self, schema: Schema, path: str, stack: tuple[str, ...]) -> list[Node]:
        if "anyOf" in schema and "oneOf" in schema:
            raise SchemaError(f"{path}: anyOf and oneOf together have no strict form; keep one of them")
        branches = schema.get("anyOf", schema.get("oneOf"))
        if not isinstance(branches, list) or not branches:
            raise SchemaError(f"{path}: anyOf and oneOf need a list of schemas")
        beside = {k: v for k, v in schema.items() if k in KEYWORDS and k not in ("anyOf", "oneOf")}
        nodes = []
        for number, branch in enumerate(branches):
            inside, open_refs = branch, stack
            if beside and isinstance(branch, Mapping):
                # What stands beside a union holds for each of its branches.
                flat, open_refs = expand(self._root, branch, path, stack)
                inside = merge(flat, beside, path)
            nodes.append(self.node(inside, f"{path}|{number}", open_refs))
        return nodes

    def _typed(self, kind: str, schema: Schema, path: str, stack: tuple[str, ...]) -> Node:
        rules = {key: schema[key] for key in RULES[kind] if key in schema}
        if wrong := [key for key, value in rules.items() if not is_readable(key, value)]:
            raise SchemaError(f"{path}: {wrong[0]} cannot be {rules[wrong[0]]!r}")
        if kind == "object":
            return self._object(schema, rules, path, stack)
        if kind == "array":
            return self._array(schema, rules, path, stack)
        return ScalarNode(kind, rules=rules)

    def _object(self, schema: Schema, rules: Schema, path: str, stack: tuple[str, ...]) -> ObjectNode:
        _refuse_open(schema, path)
        declared = schema.get("properties", {})
        required = schema.get("required", [])
        if not isinstance(declared, Mapping) or not _are_names(required):
            raise SchemaError(f"{path}: properties must be an object, and required a list of names")
        if unknown := [name for name in required if name not in declared]:
            raise SchemaError(f"{path}: required names {unknown}, which properties does not declare")
        properties = {}
        for name, part in declared.items():
            node = self.node(part, f"{path}.{name}", stack)
            drops = name not in required and not allows_null(node)
            properties[name] = Property(node, name in required, drops and not _is_fixed(node, part), drops)
        return ObjectNode(properties, rules)

    def _array(self, schema: Schema, rules: Schema, path: str, stack: tuple[str, ...]) -> ArrayNode:
        parts = schema.get("prefixItems", ())
        if not isinstance(parts, (list, tuple)):
            raise SchemaError(f"{path}: prefixItems must be a list of schemas")
        prefix = [self.node(part, f"{path}[{i}]", stack) for i, part in enumerate(parts)]
        items = schema.get("items", False if prefix else {})
        rest = None if items is False and prefix else self.node(items, f"{path}[]", stack)
        if rest is None and rules.get("minItems", 0) > len(prefix):
            raise SchemaError(f"{path}: minItems asks for more items than prefixItems declares")
        return ArrayNode(rest, prefix, rules)


def _description(schema: Schema) -> str:
    text = schema.get("description")
    return text.strip() if isinstance(text, str) else ""


def _anything(path: str) -> str:
    return f"{path}: accepts any value; strict mode needs a type: declare one, or turn strict off"


def _or_null(node: Node) -> Node:
    null = ScalarNode("null")
    if isinstance(node, UnionNode):
        return UnionNode([*node.branches, null], node.description)
    description, node.description = node.description, ""
    return UnionNode([node, null], description)


def _one_or_union(nodes: list[Node], description: str) -> Node:
    if len(nodes) != 1:
        return UnionNode(nodes, description)
    nodes[0].description = description
    return nodes[0]


def _modern(schema: Schema) -> Schema:
    """Rewrite the spellings of older drafts: tuples by `items`, boolean exclusive bounds."""
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema["items"]
        schema["items"] = schema.pop("additionalItems", False)
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(key), bool):
            exclusive = schema.pop(key)
            if exclusive and bound in schema:
                schema[key] = schema.pop(bound)
    return schema


def _without_null_enum(schema: Schema) -> Schema:
    values = schema.get("enum")
    if isinstance(values, list) and any(value is not None for value in values):
        return {**schema, "enum": [value for value in values if value is not None]}
    return schema


def _types(schema: Schema, path: str) -> list[str]:
    kinds = as_list(schema["type"]) if "type" in schema else []
    if unknown := [kind for kind in kinds if not isinstance(kind, str) or kind not in RULES]:
        raise SchemaError(f"{path}: type {unknown[0]!r} is not a JSON type")
    if not kinds:
        kinds = [kind for kind, keys in _OBVIOUS.items() if any(key in schema for key in keys)]
        if len(kinds) != 1:
            raise SchemaError(_anything(path))
    return list(dict.fromkeys(kinds))


def _refuse_open(schema: Schema, path: str) -> None:
    """Refuse maps: an open object has no strict form, and closing it would lose its content in silence."""
    extra = schema.get("additionalProperties", schema.get("unevaluatedProperties"))
    is_map = extra not in (None, False) or bool(schema.get("patternProperties"))
    if is_map or ("properties" not in schema and extra is None):
        what = "is an open map" if is_map else "is an object without declared properties"
        raise SchemaError(
            f"{path}: {what}, which strict mode refuses; declare its properties and set additionalProperties to "
            "false, use a list of {key, value} objects, or turn strict off"
        )


def _are_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(name, str) for name in value)


def _is_fixed(node: Node, schema: Any) -> bool:
    """Whether the only value is also the default, so that leaving it out says nothing."""
    node = follow(node)
    return (
        isinstance(node, ScalarNode)
        and node.enum is not None
        and isinstance(schema, Mapping)
        and "default" in schema
        and [identity(schema["default"])] == [identity(value) for value in node.enum]
    )


def _enum(schema: Schema, path: str) -> list[Node]:
    """Return one node for each JSON type among the members, because every node needs one explicit type."""
    if not isinstance(schema["enum"], (list, tuple)) or not schema["enum"]:
        raise SchemaError(f"{path}: enum must be a list of values")
    wanted = _types(schema, path) if "type" in schema else list(RULES)
    values = {identity(value): value for value in schema["enum"]}.values()
    groups: dict[str, list[Any]] = {}
    for value in values:
        kind = json_type(value)
        if kind in ("object", "array"):
            raise SchemaError(f"{path}: enum holds {kind}s, which strict mode cannot spell; describe their properties")
        if kind == "integer" and ("integer" not in wanted or _has_fraction(values)):
            kind = "number"
        if kind in wanted:
            groups.setdefault(kind, []).append(value)
    if not groups:
        raise SchemaError(f"{path}: no member of enum has the type {schema['type']!r}")
    return [ScalarNode(kind, None if kind == "null" else members) for kind, members in groups.items()]


def _has_fraction(values: Any) -> bool:
    return any(isinstance(value, float) for value in values)

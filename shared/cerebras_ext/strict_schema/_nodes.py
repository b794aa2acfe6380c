"""What a JSON schema says, as a small tree; sending, restoring and checking are walks over it.

Definitions are shared, never copied, so the tree is a graph without cycles: recursion is refused while reading.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]
"""A JSON schema as plain data; its members are as free as the language is."""


@dataclass(slots=True)
class ScalarNode:
    """A string, number, integer, boolean or null, perhaps one of a few."""

    type: str
    enum: list[Any] | None = None
    rules: Schema = field(default_factory=dict)
    """Constraints that cannot be sent."""
    description: str = ""


@dataclass(slots=True)
class ArrayNode:
    """A list of one kind of item, or a tuple (`prefix`), or both."""

    items: Node | None
    prefix: list[Node]
    rules: Schema = field(default_factory=dict)
    description: str = ""


@dataclass(slots=True)
class Property:
    """A member of an object."""

    node: Node
    required: bool
    adds_null: bool
    """Sent as nullable although the schema forbids null: how strict mode spells "may be left out"."""
    drops_null: bool
    """A null in an answer means that the member was left out."""


@dataclass(slots=True)
class ObjectNode:
    """A closed object."""

    properties: dict[str, Property]
    rules: Schema = field(default_factory=dict)
    description: str = ""


@dataclass(slots=True)
class UnionNode:
    """One of several."""

    branches: list[Node]
    description: str = ""


@dataclass(slots=True)
class RefNode:
    """A use of a definition. `pointer` is its place in the source document."""

    pointer: str
    target: Node
    description: str = ""

    @property
    def name(self) -> str:
        """Last part of the pointer."""
        return self.pointer.rpartition("/")[2]


PlainNode: TypeAlias = ScalarNode | ArrayNode | ObjectNode | UnionNode
Node: TypeAlias = PlainNode | RefNode


def follow(node: Node) -> PlainNode:
    """Return what a reference stands for; any other node as it is."""
    while isinstance(node, RefNode):
        node = node.target
    return node


def allows_null(node: Node) -> bool:
    """Whether null is a valid value."""
    node = follow(node)
    if isinstance(node, UnionNode):
        return any(allows_null(branch) for branch in node.branches)
    return isinstance(node, ScalarNode) and node.type == "null"


def children(node: Node) -> list[Node]:
    """Return the nodes one step below."""
    if isinstance(node, ObjectNode):
        return [prop.node for prop in node.properties.values()]
    if isinstance(node, ArrayNode):
        return [*node.prefix, *([node.items] if node.items else [])]
    if isinstance(node, UnionNode):
        return list(node.branches)
    return [node.target] if isinstance(node, RefNode) else []


def json_type(value: Any) -> str:
    """Return the JSON type of a plain value; "integer" for an int."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def identity(value: Any) -> Any:
    """Return a hashable stand-in under which JSON values are equal when JSON says so: 1 is 1.0 but not true."""
    if isinstance(value, Mapping):
        return "object", frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return "array", tuple(identity(item) for item in value)
    return ("boolean", value) if isinstance(value, bool) else ("plain", value)

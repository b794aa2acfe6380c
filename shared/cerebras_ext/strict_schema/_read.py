"""Reads an answer to a strict schema: what its nulls mean, and where it breaks the original schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cerebras_ext.strict_schema._nodes import (
    ArrayNode,
    Node,
    ObjectNode,
    PlainNode,
    Property,
    ScalarNode,
    UnionNode,
    follow,
    identity,
    json_type,
)
from cerebras_ext.strict_schema._rules import broken

# How much a fault tells against a branch of a union: the kind of value most, a missing member (which a partial
# answer of a stream has everywhere) least.
_WRONG_TYPE, _WRONG_MEMBER, _UNKNOWN, _SMALL = 100, 10, 3, 1


@dataclass(frozen=True, slots=True)
class Fault:
    """A place where an answer breaks the schema."""

    path: str
    text: str
    weight: int

    def below(self, step: str) -> Fault:
        """Return the fault as seen from one step further out."""
        return Fault(step + self.path, self.text, self.weight)


class Reading(NamedTuple):
    """An answer in the terms of the original schema."""

    value: Any
    faults: tuple[Fault, ...] = ()


def read(node: Node, answer: Any) -> Reading:
    """Read a whole answer. Never raises for a wrong or partial one, and leaves what it cannot place as it is."""
    return _Reader().read(node, answer)


class _Reader:
    def __init__(self) -> None:
        # By identity: a definition that several unions reach reads each value once.
        self._known: dict[tuple[int, int], Reading] = {}

    def read(self, node: Node, value: Any) -> Reading:
        found = follow(node)
        key = (id(found), id(value))
        if key not in self._known:
            self._known[key] = self._read(found, value)
        return self._known[key]

    def _read(self, node: PlainNode, value: Any) -> Reading:
        if isinstance(node, UnionNode):
            return self._union(node, value)
        if not _has_type(node, value):
            return Reading(value, (Fault("", f"must be of type {_type(node)}, not {json_type(value)}", _WRONG_TYPE),))
        if isinstance(node, ObjectNode):
            reading = self._object(node, value)
        elif isinstance(node, ArrayNode):
            reading = self._array(node, value)
        else:
            reading = Reading(value, _enum_faults(node, value))
        rules = [Fault("", text, _SMALL) for text in broken(node.rules, reading.value)]
        return Reading(reading.value, (*reading.faults, *rules))

    def _union(self, node: UnionNode, value: Any) -> Reading:
        best: Reading | None = None
        for branch in node.branches:
            reading = self.read(branch, value)
            if not reading.faults:
                return reading
            if best is None or _weight(reading) < _weight(best):
                best = reading
        return best or Reading(value)

    def _object(self, node: ObjectNode, value: Mapping[str, Any]) -> Reading:
        restored: dict[str, Any] = {}
        faults = [Fault("", f"{name} is missing", _SMALL) for name, prop in node.properties.items()
                  if prop.required and name not in value]  # fmt: skip
        for name, item in value.items():
            prop = node.properties.get(name)
            if prop is None:
                restored[name] = item
                faults.append(Fault("", f"{name} is not a property of the schema", _UNKNOWN))
            elif not _left_out(prop, item):
                reading = self.read(prop.node, item)
                restored[name] = reading.value
                faults += [fault.below(f".{name}") for fault in reading.faults]
        return Reading(restored, tuple(faults))

    def _array(self, node: ArrayNode, value: list[Any]) -> Reading:
        restored: list[Any] = []
        faults: list[Fault] = []
        for number, item in enumerate(value):
            part = node.prefix[number] if number < len(node.prefix) else node.items
            if part is None:
                restored.append(item)
                faults.append(Fault(f"[{number}]", "is one item too many", _UNKNOWN))
                continue
            reading = self.read(part, item)
            restored.append(reading.value)
            faults += [fault.below(f"[{number}]") for fault in reading.faults]
        return Reading(restored, tuple(faults))


def _left_out(prop: Property, item: Any) -> bool:
    return item is None and prop.drops_null


def _weight(reading: Reading) -> int:
    return sum(fault.weight for fault in reading.faults)


def _type(node: ScalarNode | ObjectNode | ArrayNode) -> str:
    if isinstance(node, ScalarNode):
        return node.type
    return "object" if isinstance(node, ObjectNode) else "array"


def _has_type(node: ScalarNode | ObjectNode | ArrayNode, value: Any) -> bool:
    wanted, found = _type(node), json_type(value)
    if wanted == found:
        return True
    if found == "integer":
        return wanted == "number"
    return wanted == "integer" and found == "number" and value.is_integer() is True


def _enum_faults(node: ScalarNode, value: Any) -> tuple[Fault, ...]:
    if node.enum is None or identity(value) in [identity(member) for member in node.enum]:
        return ()
    return (Fault("", f"must be one of {node.enum}", _WRONG_MEMBER),)

"""The strict form of a schema, and the way back from an answer."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from cerebras_ext.strict_schema._emit import SchemaLimits, emit
from cerebras_ext.strict_schema._errors import AnswerMismatchError
from cerebras_ext.strict_schema._nodes import (
    ArrayNode,
    Node,
    ObjectNode,
    Property,
    RefNode,
    Schema,
    UnionNode,
    children,
    follow,
)
from cerebras_ext.strict_schema._parse import parse
from cerebras_ext.strict_schema._read import Reading, read
from cerebras_ext.strict_schema._rules import unchecked

_WRAPPER = "value"

OptionalMembers = Literal["nullable", "absent"]
"""How a strict schema spells that a member may be left out."""


@dataclass(frozen=True, eq=False)
class StrictSchema:
    """A schema that the service takes with `strict: true`, and what is needed to understand the answer."""

    schema: Schema
    """What is sent. Not to be changed."""
    name: str
    """A valid name for it, from the title."""
    wrapped: bool
    """Whether the root was no object and is sent as the member `value` of one."""
    unchecked: tuple[str, ...]
    """Removed constraints that `validate` does not look at, as "path: keyword"."""
    _root: Node = field(repr=False)

    def restore(self, answer: Any) -> Any:
        """Return an answer in the terms of the original schema; the answer itself is not changed.

        A null that stands for "left out" is dropped, so that the default of the caller's class applies; a null that
        the original schema allows stays. A wrapped root is unwrapped. Partial and wrong answers pass through as far
        as they can be read; nothing is raised.
        """
        return self._read(answer).value

    def validate(self, answer: Any) -> Any:
        """Restore an answer and check it against the original schema, removed constraints included.

        Raises:
            AnswerMismatchError: The answer breaks the schema; the text names every place.
        """
        value, faults = self._read(answer)
        if faults:
            raise AnswerMismatchError(*(f"${fault.path}: {fault.text}" for fault in faults))
        return value

    def _read(self, answer: Any) -> Reading:
        if self.wrapped and isinstance(answer, Mapping) and set(answer) == {_WRAPPER}:
            answer = answer[_WRAPPER]
        return read(self._root, answer)


def to_strict_schema(
    schema: Mapping[str, Any],
    *,
    name: str | None = None,
    limits: SchemaLimits | None = None,
    optional: OptionalMembers = "nullable",
) -> StrictSchema:
    """Rewrite a JSON schema into the subset that constrained decoding takes.

    Every object is closed and requires all of its properties; those that could be left out become nullable, or stay
    unrequired with `optional="absent"`. `const`, `oneOf`, `allOf`, `nullable`, type lists and older spellings are
    rewritten; constraints and annotations that are refused are taken out, and the constraints are told to the model in
    descriptions, as far as they fit.

    Args:
        schema: From `model_json_schema()` or written by hand. Not changed.
        name: Instead of the schema's title.
        limits: Other sizes than the documented ones.
        optional: What becomes of members that may be left out: `nullable` requires them and lets them be null, for an
            answer that is given to `restore`; `absent` does not require them, for an answer that is read by somebody
            who would take the null for a value.

    Raises:
        SchemaError: There is no strict form: an open map, a value of any type, recursion, or a size limit.

    Source: what the service was seen to accept and to refuse.
    """
    root = parse(schema)
    top = follow(root)
    wrapped = not isinstance(top, ObjectNode)
    if isinstance(top, ObjectNode):
        sent = ObjectNode(top.properties, top.rules, root.description or _first_description(root))
    else:
        sent = ObjectNode({_WRAPPER: Property(root, required=True, adds_null=False, drops_null=False)})
    title = name or schema.get("title") or (root.name if isinstance(root, RefNode) else None)
    return StrictSchema(
        schema=emit(sent, limits or SchemaLimits(), nullable=optional == "nullable"),
        name=schema_name(title if isinstance(title, str) else None),
        wrapped=wrapped,
        unchecked=tuple(dict.fromkeys(_unchecked(root, "$", set()))),
        _root=root,
    )


def loose_schema(schema: Mapping[str, Any]) -> Schema:
    """Return a deep copy: without `strict` the service takes a schema as it is."""
    return copy.deepcopy(dict(schema))


def schema_name(title: str | None) -> str:
    """Return a name the service takes, 1 to 64 of a-z, A-Z, 0-9, "_" and "-"; "output" where nothing is left."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", title or "")[:64]
    return name if re.search(r"[A-Za-z0-9]", name) else "output"


def _first_description(node: Node) -> str:
    while isinstance(node, RefNode) and not node.description:
        node = node.target
    return node.description


def _unchecked(node: Node, path: str, seen: set[int]) -> Iterator[str]:
    """Yield the constraints that nobody checks, those of a definition only where it is used first."""
    found = follow(node)
    if id(found) in seen:
        return
    seen.add(id(found))
    if isinstance(found, ObjectNode):
        steps = [f".{name}" for name in found.properties]
    else:
        steps = ["[]" if isinstance(found, ArrayNode) else ""] * len(children(found))
    if not isinstance(found, UnionNode):
        yield from (f"{path}: {key}" for key in unchecked(found.rules))
    for step, child in zip(steps, children(found), strict=True):
        yield from _unchecked(child, path + step, seen)

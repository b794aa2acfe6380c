"""Tools with and without `strict`, which is all or nothing in one request."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.strict_schema._emit import SchemaLimits
from cerebras_ext.strict_schema._errors import SchemaError
from cerebras_ext.strict_schema._strict import OptionalMembers, StrictSchema, to_strict_schema


@dataclass(frozen=True, eq=False)
class PreparedTools:
    """Wire tools, and what is needed to understand the calls."""

    tools: list[dict[str, Any]]
    """What is sent. Not to be changed."""
    schemas: dict[str, StrictSchema] = field(default_factory=dict)
    """By tool name; empty when the tools are not strict."""

    @property
    def strict(self) -> bool:
        """Whether the tools are sent with `strict: true`."""
        return bool(self.schemas)

    def restore(self, name: str, arguments: Any) -> Any:
        """Return the arguments of a call without the nulls that stand for "left out"."""
        schema = self.schemas.get(name)
        return schema.restore(arguments) if schema else arguments


def strict_tools(
    tools: Iterable[Mapping[str, Any]],
    *,
    strict: bool | None = None,
    limits: SchemaLimits | None = None,
    optional: OptionalMembers = "nullable",
) -> PreparedTools:
    """Give all tools the same strictness. The tools passed in are not changed.

    Without any `strict: true` no tool carries the key, because some models refuse even `false`. One tool that asks
    for it makes all of them strict, because a request that mixes them is refused.

    Args:
        tools: Wire tools, `{"type": "function", "function": {name, description?, parameters?, strict?}}`.
        strict: True or False decides for all tools; None asks the tools.
        limits: Other sizes than the documented ones, for each tool.
        optional: As for `to_strict_schema`: `absent` where nobody restores the arguments of the calls.

    Raises:
        SchemaError: Strictness was asked for and some tools cannot be strict; the text lists each with its reason.
    """
    copies = [copy.deepcopy(dict(tool)) for tool in tools]
    asked = any(_function(tool).get("strict") is True for tool in copies) if strict is None else strict
    for tool in copies:
        _normalise(_function(tool))
    return _all_strict(copies, limits, optional) if asked else PreparedTools(copies)


def _function(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    return function if isinstance(function, dict) else {}


def _normalise(function: dict[str, Any]) -> None:
    """Drop `strict`, and never leave a bare object: it breaks grammar compilation for the whole request."""
    function.pop("strict", None)
    if not function:
        return
    parameters = function["parameters"] = dict(function.get("parameters") or {})
    if not parameters or parameters.get("type") == "object":
        parameters.setdefault("type", "object")
        if not any(key in parameters for key in ("$ref", "allOf", "anyOf", "oneOf")):
            parameters.setdefault("properties", {})
    elif "properties" in parameters:
        parameters.setdefault("type", "object")


def _all_strict(tools: list[dict[str, Any]], limits: SchemaLimits | None, optional: OptionalMembers) -> PreparedTools:
    schemas: dict[str, StrictSchema] = {}
    faults = []
    for tool in tools:
        function = _function(tool)
        name = str(function.get("name", tool.get("type")))
        if not function:
            faults.append(f"{name}: only functions can be strict")
            continue
        try:
            schema = to_strict_schema(function["parameters"], name=name, limits=limits, optional=optional)
        except SchemaError as error:
            faults.append(f"{name}: {error}")
            continue
        if schema.wrapped:
            faults.append(f"{name}: parameters must be one object, not a union or another type")
        schemas[name] = schema
        function["parameters"] = schema.schema
        function["strict"] = True
    if faults:
        raise SchemaError(
            "strict is all or nothing in one request, and these tools cannot be strict:\n"
            + "\n".join(faults)
            + "\nchange them, or ask for strict on none"
        )
    return PreparedTools(tools, schemas)

"""The dialect of JSON schema that strict structured output and strict tools take, and the way back from it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from cerebras_ext.strict_schema._errors import AnswerMismatchError, SchemaError

if TYPE_CHECKING:
    from cerebras_ext.strict_schema._emit import SchemaLimits
    from cerebras_ext.strict_schema._nodes import Schema
    from cerebras_ext.strict_schema._strict import StrictSchema, loose_schema, schema_name, to_strict_schema
    from cerebras_ext.strict_schema._tools import PreparedTools, strict_tools
else:  # out of sight of type checkers, which take a module with `__getattr__` to have every name

    def __getattr__(name: str) -> Any:
        """Import what is asked for: most programs need the errors only."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return value


_MODULES = {
    "PreparedTools": "_tools",
    "Schema": "_nodes",
    "SchemaLimits": "_emit",
    "StrictSchema": "_strict",
    "loose_schema": "_strict",
    "schema_name": "_strict",
    "strict_tools": "_tools",
    "to_strict_schema": "_strict",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "AnswerMismatchError",
    "PreparedTools",
    "Schema",
    "SchemaError",
    "SchemaLimits",
    "StrictSchema",
    "loose_schema",
    "schema_name",
    "strict_tools",
    "to_strict_schema",
]

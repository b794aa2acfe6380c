"""The dialect of JSON schema that strict structured output and strict tools take, and the way back from it."""

from cerebras_ext.strict_schema._emit import SchemaLimits
from cerebras_ext.strict_schema._nodes import AnswerMismatchError, Schema, SchemaError
from cerebras_ext.strict_schema._strict import StrictSchema, loose_schema, schema_name, to_strict_schema
from cerebras_ext.strict_schema._tools import PreparedTools, strict_tools

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

"""Structured output: a model that answers with instances of a class, or with dictionaries that follow a schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_json_schema

from langchain_cerebras_ext.schemas import AnswerFormat, SchemaLike, answer_format
from langchain_cerebras_ext.structured_parser import Method, StructuredOutputParser
from langchain_cerebras_ext.tools import ToolLike, bind_tools


def with_structured_output(
    model: BaseChatModel,
    schema: SchemaLike | None = None,
    *,
    method: Method = "json_schema",
    include_raw: bool = False,
    strict: bool | None = None,
    tools: Sequence[ToolLike] | None = None,
    **kwargs: Any,
) -> Runnable[LanguageModelInput, Any]:
    """Return a model that answers with the object that a schema describes.

    Args:
        model: The chat model.
        schema: A pydantic class (v2 or v1), a TypedDict or dataclass, a JSON schema, or a function dictionary. None is
            for `json_mode`: any JSON.
        method: `json_schema` has the service follow the schema; `function_calling` forces a tool call; `json_mode`
            asks for any JSON (the prompt has to ask for it too), and is never streamed.
        include_raw: Return `raw`, `parsed` and `parsing_error` instead of raising for an answer that does not fit.
        strict: Constrained decoding. It is on for `json_schema` unless it is turned off, and off for
            `function_calling` unless it is turned on; `json_mode` has none.
        tools: Tools to send along, with `json_schema`. Most models refuse both in one request.
        **kwargs: Options of the call.

    Raises:
        SchemaError: Strict, and the schema has no strict form; the text names the place and the way out.
        ValueError: The arguments contradict each other.
    """
    if method not in get_args(Method):
        raise ValueError(f"method: must be one of {', '.join(get_args(Method))}, got {method!r}")
    if schema is None and method != "json_mode":
        raise ValueError(f"schema: {method} needs one")
    if method == "json_mode" and strict:
        raise ValueError("strict: json_mode has no schema to follow; use json_schema or function_calling")
    if tools and method != "json_schema":
        raise ValueError(f"tools: cannot be sent along with method {method!r}")
    if method == "function_calling" and strict is None and not _asks_for_strict(schema):
        strict = False
    format_ = None
    if schema is not None:
        format_ = answer_format(schema, strict=False if method == "json_mode" else strict)
    traced = {"kwargs": {"method": method, "strict": strict}, "schema": _traced_schema(schema, format_)}
    bound = _bind(model, method, format_, tools, {**kwargs, "ls_structured_output_format": traced})
    parser = StructuredOutputParser(format=format_, method=method, include_raw=include_raw)
    return bound | parser


def _asks_for_strict(schema: Any) -> bool:
    function = schema.get("function", schema) if isinstance(schema, dict) else {}
    return isinstance(function, dict) and function.get("strict") is True


def _bind(
    model: BaseChatModel,
    method: Method,
    format_: AnswerFormat | None,
    tools: Sequence[ToolLike] | None,
    options: dict[str, Any],
) -> Runnable[LanguageModelInput, Any]:
    if format_ is None or method == "json_mode":
        return model.bind(response_format={"type": "json_object"}, **options)
    if method == "json_schema":
        response_format = {"type": "json_schema", "json_schema": format_.json_schema}
        bound = bind_tools(model, tools, **options) if tools else model.bind(**options)
        return bound.bind(response_format=response_format)
    function: dict[str, Any] = {"name": format_.name, "parameters": format_.schema}
    if format_.description:
        function["description"] = format_.description
    if format_.strict is not None:
        function["strict"] = True
    tool = {"type": "function", "function": function}
    return bind_tools(model, [tool], tool_choice=format_.name, **options)


def _traced_schema(schema: Any, format_: AnswerFormat | None) -> dict[str, Any]:
    """Return the schema as tracing callbacks get it, converted once instead of at each call."""
    try:
        return convert_to_json_schema(schema)
    except Exception:  # noqa: BLE001 - core's converter knows fewer forms, and fails in as many ways
        return {"title": format_.name, **format_.schema} if format_ else {"title": "json", "type": "object"}

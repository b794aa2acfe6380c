"""Tools and tool choices in LangChain's vocabulary, as the service takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import is_typeddict

from cerebras_ext.names import NAME_RULE, is_legal_name
from cerebras_ext.strict_schema import strict_tools
from cerebras_ext.types import FunctionDefinition
from langchain_cerebras_ext.errors import RequestValidationError
from langchain_cerebras_ext.schemas import wire_response_format
from langchain_cerebras_ext.typed_dicts import schema_of_typed_dict

WireTool = dict[str, Any]
"""A tool as plain JSON; its parameters are as free as JSON schema is."""
ToolLike = Mapping[str, Any] | type | Callable[..., Any] | BaseTool

_FUNCTION_KEYS = frozenset(FunctionDefinition.model_fields)
_FORMATS = ("text", "json_object", "json_schema")
_CHOICES = {"any": "required", "auto": "auto", "none": "none", "required": "required"}


def bind_tools(
    model: BaseChatModel,
    tools: Sequence[ToolLike],
    *,
    tool_choice: str | bool | Mapping[str, Any] | None = None,
    strict: bool | None = None,
    parallel_tool_calls: bool | None = None,
    response_format: Any = None,
    **kwargs: Any,
) -> Runnable[LanguageModelInput, AIMessage]:
    """Return the model with tools bound to it.

    Args:
        model: The chat model.
        tools: Functions, tools, pydantic or TypedDict classes, or dictionaries in the style of OpenAI, Anthropic,
            Bedrock or JSON schema. None of them is changed. An empty list is left out of the request.
        tool_choice: `auto`, `none`, `required` or `any` or True, the name of a tool, or a dictionary.
        strict: True has arguments follow their schemas by constrained decoding; it holds for all tools, because a
            request that mixes strict and other tools is refused. None makes all strict if one of them asks for it.
        parallel_tool_calls: Whether several calls may come in one answer.
        response_format: A format, a schema, or a pydantic or TypedDict class. Most models refuse it beside tools.
        **kwargs: Options of the call.

    Raises:
        ValueError: A tool has no form the service takes, its name is not valid, the chosen tool is not among the
            tools, or some tools cannot be strict.
    """
    wire = wire_tools(tools, strict=strict)
    options: dict[str, Any] = {}
    if wire:
        options["tools"] = wire
    choice = wire_tool_choice(tool_choice, wire)
    if choice is not None:
        options["tool_choice"] = choice
    if parallel_tool_calls is not None and wire:
        options["parallel_tool_calls"] = parallel_tool_calls
    if response_format is not None:
        options["response_format"] = wire_response_format(response_format, strict=strict)
    return model.bind(**options, **kwargs)


def wire_tools(tools: Sequence[ToolLike], *, strict: bool | None = None) -> list[WireTool]:
    """Return tools as the service takes them, all with the same strictness.

    Members that may be left out stay unrequired in strict schemas: the arguments go to code that would take a null
    for a value.
    """
    wire = [_wire_tool(tool) for tool in tools]
    return strict_tools(wire, strict=strict, optional="absent").tools


def to_wire_options(fields: dict[str, Any]) -> dict[str, Any]:
    """Return request fields whose tools, tool choice and response format are as the service takes them.

    What `bind_tools` made passes unchanged; this is for what users give to a constructor, to `bind` or with a call.

    Args:
        fields: Fields of all levels, merged. Not changed.
    """
    changed: dict[str, Any] = {}
    tools = fields.get("tools") or []
    if not all(map(_is_wire, tools)) or len({tool["function"].get("strict") for tool in tools}) > 1:
        tools = changed["tools"] = wire_tools(tools)
    if fields.get("tool_choice") is not None:
        choice = _choice(fields["tool_choice"])
        changed["tool_choice"] = wire_tool_choice(choice, tools) if tools else choice
    format_ = fields.get("response_format")
    if format_ is not None and not (isinstance(format_, Mapping) and format_.get("type") in _FORMATS):
        changed["response_format"] = wire_response_format(format_)
    return {**fields, **changed} if changed else fields


def _is_wire(tool: Any) -> bool:
    """Whether a tool is in the form of the service, and closed where it is strict."""
    if not isinstance(tool, Mapping) or tool.get("type") != "function":
        return False
    function = tool.get("function")
    if not isinstance(function, Mapping):
        return False
    return not function.get("strict") or (function.get("parameters") or {}).get("additionalProperties") is False


def _wire_tool(tool: ToolLike) -> WireTool:
    if isinstance(tool, Mapping):
        function = _function_of_dict(dict(tool))
    elif is_typeddict(tool):
        function = _function_of_schema(schema_of_typed_dict(tool))
    else:
        converted = convert_to_openai_tool(tool)
        if "function" not in converted:
            raise RequestValidationError(f"tools: {converted.get('name')!r} is of type {converted.get('type')!r}; "
                                         "the service has functions only")  # fmt: skip
        function = converted["function"]
        extras = getattr(tool, "extras", None) or {}
        if "strict" in extras:
            function = {**function, "strict": extras["strict"]}
    return {"type": "function", "function": _checked(function)}


def _function_of_dict(tool: dict[str, Any]) -> dict[str, Any]:
    kind = tool.get("type")
    if isinstance(tool.get("function"), Mapping):
        return dict(tool["function"])
    if kind == "function":  # the flat form of the Responses API
        return tool
    if isinstance(kind, str) and kind not in ("object", "custom") and "properties" not in tool:
        raise RequestValidationError(f"tools: {kind!r} is a built-in tool of another provider; "
                                     "the service has functions only")  # fmt: skip
    if kind == "custom" and "input_schema" not in tool:
        raise RequestValidationError(f"tools: {tool.get('name')!r} is of type 'custom'; the service has functions only")
    converted = convert_to_openai_tool(tool)
    function: dict[str, Any] = converted["function"]
    return function


def _function_of_schema(schema: dict[str, Any]) -> dict[str, Any]:
    parameters = {key: value for key, value in schema.items() if key not in ("title", "description")}
    return {"name": schema.get("title"), "description": schema.get("description"), "parameters": parameters}


def _checked(function: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that the service knows; refuse a name that it refuses with a text that does not name it."""
    name = function.get("name")
    if not is_legal_name(name):
        raise RequestValidationError(f"tools: the name {name!r} is not valid; names have {NAME_RULE}")
    return {key: value for key, value in function.items() if key in _FUNCTION_KEYS and value not in (None, "")}


def wire_tool_choice(choice: str | bool | Mapping[str, Any] | None, tools: Sequence[WireTool]) -> Any:
    """Return a tool choice as the service takes it, or None where there is nothing to say.

    Args:
        choice: In LangChain's, OpenAI's or Anthropic's vocabulary.
        tools: The wire tools that are bound.

    Raises:
        ValueError: The choice is unknown, or forces a call where there are no tools.
    """
    wire = _choice(choice)
    if wire is None:
        return None
    names = [tool["function"]["name"] for tool in tools]
    forced = wire == "required" or isinstance(wire, dict)
    if not names:
        if forced:
            raise RequestValidationError(f"tool_choice: {choice!r} needs tools, and none are given")
        return None
    if isinstance(wire, dict) and wire["function"]["name"] not in names:
        raise RequestValidationError(f"tool_choice: {wire['function']['name']!r} is none of the tools {names}")
    return wire


def _choice(choice: str | bool | Mapping[str, Any] | None) -> Any:
    if choice is None or choice is False:
        return None
    if choice is True:
        return "required"
    if isinstance(choice, str):
        return _CHOICES.get(choice) or _named(choice)
    if not isinstance(choice, Mapping):
        raise RequestValidationError(f"tool_choice: must be a text, a bool or a dictionary, got {choice!r}")
    kind, function = choice.get("type"), choice.get("function")
    if isinstance(function, Mapping):
        return _named(function.get("name"))
    if kind in _CHOICES:
        return _CHOICES[str(kind)]
    if kind in (None, "function", "tool") and choice.get("name"):
        return _named(choice["name"])
    raise RequestValidationError(f"tool_choice: {dict(choice)!r} has no form that the service takes")


def _named(name: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}

"""Function calling: tools and their choice as the service takes them, and the calls of an answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ContentBlock, MessageRole, ToolCallBlock
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools.types import BaseTool
from pydantic import BaseModel

from cerebras_ext.answers import worth_reading
from cerebras_ext.jsontext import loads_partial
from cerebras_ext.names import wire_name
from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments
from llamaindex_cerebras_ext.calls import tool_calls_of

ToolChoice = str | bool | Mapping[str, Any] | None

_CHOICES = {"none": "none", "auto": "auto", "required": "required", "any": "required"}


def tool_specs(tools: Sequence[BaseTool | Mapping[str, Any]], strict: bool | None = None) -> list[dict[str, Any]]:
    """Return the tools as the service takes them.

    Args:
        tools: Tools, or such specifications.
        strict: Constrained arguments for all tools, or for none; None leaves it to specifications that say so.

    Raises:
        ValueError: Two names become one in the service's characters, or a schema cannot be strict that has to be.
    """
    from cerebras_ext.strict_schema import strict_tools

    specs = [tool if isinstance(tool, Mapping) else _spec(tool) for tool in tools]
    _check_names(tools, specs)
    # Optional arguments stay optional: whoever calls the function would take a null for a value.
    return strict_tools(specs, strict=strict, optional="absent").tools


def _check_names(tools: Sequence[BaseTool | Mapping[str, Any]], specs: Sequence[Mapping[str, Any]]) -> None:
    own: dict[str, str] = {}
    for tool, spec in zip(tools, specs, strict=True):
        if isinstance(tool, Mapping):
            continue
        sent, name = spec["function"]["name"], tool.metadata.get_name()
        if own.setdefault(sent, name) != name:
            raise ValueError(f"tools: {own[sent]!r} and {name!r} would both be sent as {sent!r}; rename one of them")


def _spec(tool: BaseTool) -> dict[str, Any]:
    spec: dict[str, Any] = tool.metadata.to_openai_tool(skip_length_check=True)
    function = {**spec["function"], "name": wire_name(tool.metadata.get_name())}
    return {**spec, "function": function}


def resolve_choice(choice: ToolChoice, specs: Sequence[Mapping[str, Any]], required: bool) -> Any:
    """Return the `tool_choice` to send, or None where there is none.

    Args:
        choice: none, auto, required, any, True, the name of a tool, a choice of the service's form, or None.
        specs: The tools of the request.
        required: Whether some tool has to be called where `choice` is None.

    Raises:
        ValueError: A name that no tool has.
    """
    if choice is None or choice is False:
        return "required" if required else None
    if choice is True:
        return "required"
    if isinstance(choice, Mapping):
        return dict(choice)
    if choice in _CHOICES:
        return _CHOICES[choice]
    name = wire_name(choice)
    names = [(spec.get("function") or {}).get("name") for spec in specs]
    if name not in names:
        raise ValueError(f"tool_choice: no tool is called {choice!r}; there are {', '.join(map(str, names))}")
    return {"type": "function", "function": {"name": name}}


def tool_fields(
    tools: Sequence[BaseTool | Mapping[str, Any]],
    *,
    allow_parallel_tool_calls: bool,
    tool_required: bool,
    tool_choice: ToolChoice,
    strict: bool | None,
) -> dict[str, Any]:
    """Return the request fields about tools: none at all without tools, and none that says what is the default."""
    if not tools:
        return {}
    specs = tool_specs(tools, strict)
    fields: dict[str, Any] = {"tools": specs}
    choice = resolve_choice(tool_choice, specs, tool_required)
    if choice is not None:
        fields["tool_choice"] = choice
    if not allow_parallel_tool_calls:
        fields["parallel_tool_calls"] = False
    return fields


def settle_tools(fields: dict[str, Any]) -> dict[str, Any]:
    """Return request fields whose tools and choice may be in LlamaIndex's form, in the service's form."""
    tools, choice = fields.get("tools"), fields.get("tool_choice")
    if not tools or not isinstance(tools, (list, tuple)):
        return fields
    kinds = {(tool.get("function") or {}).get("strict") if isinstance(tool, dict) else "tool" for tool in tools}
    if len(kinds) == 1 and "tool" not in kinds and (choice is None or choice in _CHOICES.values()):
        return fields
    specs = tool_specs([plain(tool) for tool in tools])
    return {**fields, "tools": specs, "tool_choice": resolve_choice(choice, specs, required=False)}


def plain(value: Any) -> Any:
    """Return a pydantic model (a tool, a response format) as the dictionary to send, and anything else as it is."""
    return value.model_dump(exclude_none=True, by_alias=True) if isinstance(value, BaseModel) else value


def conversation(user_msg: str | ChatMessage | None, chat_history: Sequence[ChatMessage] | None) -> list[ChatMessage]:
    """Return the history with the user's message after it, as a new list."""
    messages = list(chat_history or ())
    if user_msg is not None:
        messages.append(
            user_msg if isinstance(user_msg, ChatMessage) else ChatMessage(role=MessageRole.USER, content=user_msg)
        )
    return messages


# ---- the calls of an answer ----


def is_unfinished(response: ChatResponse) -> bool:
    """Whether a response is a chunk inside a stream, whose tool calls may still grow."""
    choice = _choice(response)
    return choice is not None and "delta" in choice


def _choice(response: ChatResponse) -> dict[str, Any] | None:
    choices = response.raw.get("choices") if isinstance(response.raw, dict) else None
    return choices[0] if choices else None


class PartialArguments:
    """Reads the arguments of calls that grow from chunk to chunk.

    A long text is read anew only when it has grown by a thirty-second of itself, so that reading at every chunk costs
    in proportion to the text and not to its square; in between, the object is that much behind.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str | None, tuple[str, dict[str, Any]]] = {}

    def read(self, call_id: str | None, text: str) -> dict[str, Any]:
        """Return the members so far, a string that is cut off included."""
        if worth_reading(len(text), len(text)):  # whatever was read before
            return _beginning(text)
        known = self._known.get(call_id)
        if known is not None and not worth_reading(len(text), len(known[0])) and text.startswith(known[0]):
            return known[1]
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        value = _beginning(text)
        self._known[call_id] = text, value
        return value

    def forget(self, call_id: str | None) -> None:
        """Drop what is known of a call that is finished."""
        self._known.pop(call_id, None)


_MOST_KNOWN = 64


def _beginning(text: str) -> dict[str, Any]:
    value = loads_partial(text)
    return value if isinstance(value, dict) else {}


def selections(
    response: ChatResponse, error_on_no_tool_call: bool, partial: PartialArguments | None = None
) -> list[ToolSelection]:
    """Return the tool calls of a response; of a chunk, with the arguments as far as they came.

    Args:
        response: An answer or a chunk.
        error_on_no_tool_call: Whether an answer without calls is an error.
        partial: What earlier chunks of the stream left behind.

    Raises:
        ValueError: There are no calls, and that is an error.
        InvalidArgumentsError: The arguments of a finished call are not a JSON object; nothing is repaired.
    """
    partial = partial or PartialArguments()
    growing = is_unfinished(response)
    found = []
    for call_id, name, arguments in tool_calls_of(response.message):
        if not isinstance(arguments, str):
            kwargs = dict(arguments or {})
        elif growing:
            kwargs = partial.read(call_id, arguments)
        else:
            partial.forget(call_id)
            kwargs = _final(name, arguments, response)
        found.append(ToolSelection(tool_id=call_id or "", tool_name=name, tool_kwargs=kwargs))
    if not found and error_on_no_tool_call:
        raise ValueError(f"Expected at least one tool call, but got 0 tool calls: {response.message.content!r}")
    return found


def _final(name: str, arguments: str, response: ChatResponse) -> dict[str, Any]:
    try:
        return parse_arguments(arguments)
    except InvalidArgumentsError as error:
        reason = (_choice(response) or {}).get("finish_reason")
        cut = "; the answer was cut off at its token limit" if reason == "length" else ""
        raise InvalidArgumentsError(f"tool {name!r}: {error}{cut}; received {arguments[:200]!r}") from None


class CallRules:
    """What the caller of a `..._with_tools` method expects of the answer: its own tool names, one call only."""

    __slots__ = ("_names", "_single")

    def __init__(self, tools: Sequence[BaseTool], allow_parallel_tool_calls: bool) -> None:
        self._single = not allow_parallel_tool_calls
        self._names: dict[str, str] = {}
        for tool in tools:
            name = None if isinstance(tool, Mapping) else tool.metadata.get_name()
            if name is not None and wire_name(name) != name:
                self._names[wire_name(name)] = name

    def apply(self, response: ChatResponse) -> ChatResponse:
        """Return the response, or a copy that keeps the rules."""
        entries = response.message.additional_kwargs.get("tool_calls")
        if not entries or not (self._names or (self._single and len(entries) > 1)):
            return response
        blocks: list[ContentBlock] = []
        calls = 0
        for block in response.message.blocks:
            if isinstance(block, ToolCallBlock):
                calls += 1
                if self._single and calls > 1:
                    continue
                block = block.model_copy(update={"tool_name": self._names.get(block.tool_name, block.tool_name)})
            blocks.append(block)
        kept = [self._renamed(entry) for entry in (entries[:1] if self._single else entries)]
        kwargs = {**response.message.additional_kwargs, "tool_calls": kept}
        message = response.message.model_copy(update={"blocks": blocks, "additional_kwargs": kwargs})
        return response.model_copy(update={"message": message})

    def _renamed(self, entry: dict[str, Any]) -> dict[str, Any]:
        function = entry["function"]
        return {**entry, "function": {**function, "name": self._names.get(function["name"], function["name"])}}

    def apply_to_stream(self, chunks: Generator[ChatResponse, None, None]) -> Generator[ChatResponse, None, None]:
        """Return the stream with the rules kept in every chunk."""
        return self._each(chunks) if self._names or self._single else chunks

    def apply_to_async_stream(self, chunks: AsyncGenerator[ChatResponse, None]) -> AsyncGenerator[ChatResponse, None]:
        """Return the stream with the rules kept in every chunk."""
        return self._each_async(chunks) if self._names or self._single else chunks

    def _each(self, chunks: Generator[ChatResponse, None, None]) -> Generator[ChatResponse, None, None]:
        try:
            for chunk in chunks:
                yield self.apply(chunk)
        finally:
            chunks.close()

    async def _each_async(self, chunks: AsyncGenerator[ChatResponse, None]) -> AsyncGenerator[ChatResponse, None]:
        try:
            async for chunk in chunks:
                yield self.apply(chunk)
        finally:
            await chunks.aclose()

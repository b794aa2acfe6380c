"""Tool calls in chat messages: reading them in every form that histories have, their names and ids on the wire."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments, replayed_arguments

CallT = TypeVar("CallT", bound="tuple[str | None, str, Any]")

Call = tuple[str | None, str, Any]
"""Id, name and arguments (an object or JSON text) of a tool call."""


def tool_calls_of(message: ChatMessage, where: str = "message") -> list[Call]:
    """Return each tool call of a message once, be it a block, an entry of `additional_kwargs`, or both.

    Raises:
        RequestValidationError: An entry of `additional_kwargs` is no tool call.
    """
    return [call for call, _ in _with_twins(message, where)]


def wire_calls_of(message: ChatMessage, where: str) -> list[tuple[str | None, str, str]]:
    """Return id, name and JSON text of each tool call, as `tool_calls_of` finds them.

    The text is the model's own where that is kept beside a block and says the same: equal bytes let the service's
    cache find them.
    """
    return [(call[0], call[1], _arguments_text(call, twin)) for call, twin in _with_twins(message, where)]


def _with_twins(message: ChatMessage, where: str) -> list[tuple[Call, Call | None]]:
    """Return each call, with the entry of `additional_kwargs` that repeats it."""
    # Not isinstance, which is slow on core's abstract classes: this runs for every chunk of an agent's stream.
    blocks: list[Any] = [block for block in message.blocks if block.block_type == "tool_call"]
    legacy = message.additional_kwargs
    if not blocks and "tool_calls" not in legacy and "function_call" not in legacy:
        return []
    entries = _entries(legacy, where)
    calls: list[tuple[Call, Call | None]] = []
    for block in blocks:
        twin = _twin(block, entries)
        if twin is not None:
            entries.remove(twin)
        calls.append(((block.tool_call_id or None, block.tool_name, block.tool_kwargs), twin))
    calls += [(entry, None) for entry in entries]
    return calls


def _twin(block: ToolCallBlock, entries: list[Call]) -> Call | None:
    wanted = block.tool_call_id or None
    for entry in entries:
        if entry[0] == wanted and (wanted is not None or entry[1] == block.tool_name):
            return entry
    return next((entry for entry in entries if entry[0] is None and entry[1] == block.tool_name), None)


def _arguments_text(call: Call, twin: Call | None) -> str:
    _, name, arguments = call
    if twin is not None and arguments.__class__ is dict and twin[2].__class__ is str:
        try:
            if parse_arguments(twin[2]) == arguments:
                # Line breaks inside of strings are read, but cannot be sent.
                return twin[2] if arguments and twin[2].isprintable() else replayed_arguments(twin[2], name)
        except InvalidArgumentsError:
            pass
    return replayed_arguments(arguments, name)


def _entries(additional_kwargs: Mapping[str, Any], where: str) -> list[Call]:
    entries = additional_kwargs.get("tool_calls")
    if not entries:
        function_call = additional_kwargs.get("function_call")
        entries = [{"function": function_call}] if function_call else ()
    return [_entry(entry, where) for entry in entries]


def _entry(entry: Any, where: str) -> Call:
    """Read a tool call as OpenAI, Anthropic or Ollama put it into `additional_kwargs`."""
    function = _get(entry, "function") or entry
    if function.__class__ is dict and "arguments" in function and isinstance(function.get("name"), str):
        return _get(entry, "id") or None, function["name"], function["arguments"]
    name = _get(function, "name")
    if name is None:
        name = _get(function, "tool_name")
    if not isinstance(name, str):
        raise RequestValidationError(f"{where}: additional_kwargs['tool_calls'] has an entry without a name: {entry!r}")
    arguments = next((value for key in ("arguments", "input") if (value := _get(function, key)) is not None), None)
    return _get(entry, "id") or None, name, arguments


def _get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, (dict, Mapping)) else getattr(value, key, None)


class CallIds:
    """Ids of tool calls as they go on the wire: never empty, and each once in a request, as the service wants.

    Some models number their calls anew in every turn. A result belongs to the nearest turn before it that has an
    unanswered call of its id; one without an id, to the first unanswered call.
    """

    __slots__ = ("_pending", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._pending: list[tuple[str | None, str]] = []

    def open(self, index: int, calls: list[CallT]) -> Iterator[tuple[str, CallT]]:
        """Yield the calls of an assistant turn with their ids."""
        if calls:
            self._pending = []
        for number, call in enumerate(calls):
            wire_id = wanted = call[0] or f"call_{index}_{number}"
            copy = 1
            while wire_id in self._used:
                copy += 1
                wire_id = f"{wanted}_{copy}"
            self._used.add(wire_id)
            self._pending.append((call[0], wire_id))
            yield wire_id, call

    def answer(self, call_id: Any, index: int) -> str:
        """Return the id of the call that a result answers. An id that nothing called is passed on."""
        for position, (given, wire_id) in enumerate(self._pending):
            if not call_id or given == call_id or wire_id == call_id:
                del self._pending[position]
                return wire_id
        if not call_id:
            raise RequestValidationError(
                f"message {index} (tool): no tool_call_id in additional_kwargs, and no call is unanswered"
            )
        return str(call_id)

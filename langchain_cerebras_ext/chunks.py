"""Message chunks at the price of a dictionary: most of what a stream costs is validating what we just made.

A chunk of text or reasoning differs from the one before in its text only. So one is made by the normal constructors,
and the others are copies of it with other values, the way pydantic's own `copy` makes them. Where a copy would not be
equal to a normal chunk (another langchain-core or pydantic), normal chunks are made. A test compares all their parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessageChunk, InvalidToolCall, ToolCall, ToolCallChunk
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)
_set = object.__setattr__


class Copier(Generic[ModelT]):
    """Makes copies of an object with other values. Values that are not given are shared, so none may be mutable."""

    __slots__ = ("_class", "_extra", "_fields_set", "_values")

    def __init__(self, model: ModelT) -> None:
        self._class = type(model)
        self._values = dict(model.__dict__)
        self._fields_set = model.__pydantic_fields_set__
        self._extra = model.__pydantic_extra__

    def copy(self, values: Mapping[str, Any]) -> ModelT:
        """Return a copy.

        Args:
            values: Attributes that differ, of the types that validation would give them.
        """
        twin = self._class.__new__(self._class)
        attributes = self._values.copy()
        attributes.update(values)
        _set(twin, "__dict__", attributes)
        _set(twin, "__pydantic_fields_set__", self._fields_set.copy())
        _set(twin, "__pydantic_extra__", None if self._extra is None else self._extra.copy())
        _set(twin, "__pydantic_private__", None)
        return twin


def normal_chunk(
    content: Any, kwargs: dict[str, Any], metadata: dict[str, Any], calls: list[ToolCallChunk] | None = None
) -> ChatGenerationChunk:
    """Return a chunk of text, reasoning or tool calls, by the normal constructors."""
    given: dict[str, Any] = {} if calls is None else {"tool_call_chunks": calls}
    message = AIMessageChunk(content=content, additional_kwargs=kwargs, response_metadata=metadata, **given)
    return ChatGenerationChunk(message=message)


def tool_call_chunk(index: int, id_: str | None, name: str | None, args: str) -> ToolCallChunk:
    """Return a piece of a tool call."""
    return ToolCallChunk(name=name, args=args, id=id_, index=index, type="tool_call_chunk")


_TEMPLATE = normal_chunk("", {}, {})
_message = Copier(_TEMPLATE.message)
_generation = Copier(_TEMPLATE)
_call_message = Copier(normal_chunk("", {}, {}, [tool_call_chunk(0, None, None, "x")]).message)
_Text: Any = type(_TEMPLATE.text)


def copied_chunk(
    content: Any,
    text: str,
    kwargs: dict[str, Any],
    metadata: dict[str, Any],
    calls: list[ToolCallChunk] | None = None,
) -> ChatGenerationChunk:
    """Return a chunk of text, reasoning or tool calls, as a copy.

    Args:
        content: Content of the message.
        text: The text in it.
        kwargs: Additional keywords of the message.
        metadata: Response metadata of the message.
        calls: Pieces of tool calls.
    """
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    for call in calls or ():
        _read(call, valid, invalid)
    values = {
        "content": content,
        "additional_kwargs": kwargs,
        "response_metadata": metadata,
        "tool_calls": valid,
        "invalid_tool_calls": invalid,
        "tool_call_chunks": [] if calls is None else calls,
    }
    message = (_message if calls is None else _call_message).copy(values)
    return _generation.copy({"message": message, "text": _Text(text)})


def _read(call: ToolCallChunk, valid: list[ToolCall], invalid: list[InvalidToolCall]) -> None:
    """Note what langchain-core takes a piece for, as if it was a whole call: only what begins with a brace is one.

    Its search for something to complete costs most of a chunk, so it is left out where it can find nothing.
    """
    text = call["args"]
    arguments: Any = None if text else {}
    if text and text.lstrip().startswith("{"):
        with contextlib.suppress(Exception):
            arguments = parse_partial_json(text)
    if isinstance(arguments, dict):
        valid.append(tool_call(name=call["name"] or "", args=arguments, id=call["id"]))
    else:
        invalid.append(invalid_tool_call(name=call["name"], args=text, id=call["id"], error=None))


def parts_of(chunk: ChatGenerationChunk) -> list[Any]:
    """Return everything that two chunks can differ in."""
    parts: list[Any] = []
    for model in (chunk, chunk.message):
        attributes = {name: value for name, value in model.__dict__.items() if name != "message"}
        parts += [
            type(model),
            list(attributes.items()),
            [type(value) for value in attributes.values()],
            model.__pydantic_fields_set__,
            model.__pydantic_extra__,
            model.__pydantic_private__,
        ]
    return parts


def _copies_are_equal() -> bool:
    """Whether copies have all parts of normal chunks, and share nothing that can change with the templates."""
    pieces = [None, *([tool_call_chunk(0, "i", "n", text)] for text in ("", "x", '{"a": "b'))]
    try:
        for calls in pieces:
            normal = normal_chunk("x", {"k": "v"}, {"m": "n"}, calls)
            copied = copied_chunk("x", "x", {"k": "v"}, {"m": "n"}, calls)
            template = _message if calls is None else _call_message
            mutable = [value for value in copied.message.__dict__.values() if isinstance(value, (list, dict, set))]
            shared = [value for value in mutable for kept in template._values.values() if value is kept]
            if shared or parts_of(normal) != parts_of(copied):
                return False
    except Exception:  # noqa: BLE001 - whatever is different in another version, normal chunks are right
        return False
    return True


COPIES = _copies_are_equal()
"""Whether chunks are made as copies."""


def light_chunk(
    content: Any,
    text: str,
    kwargs: dict[str, Any],
    metadata: dict[str, Any],
    calls: list[ToolCallChunk] | None = None,
) -> ChatGenerationChunk:
    """Return a chunk of text, reasoning or tool calls; arguments as for `copied_chunk`."""
    if COPIES:
        return copied_chunk(content, text, kwargs, metadata, calls)
    return normal_chunk(content, kwargs, metadata, calls)

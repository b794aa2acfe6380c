"""Message chunks at the price of a dictionary: most of what a stream costs is validating what we just made.

A chunk of text or reasoning differs from the one before in its text only. So one is made by the normal constructors,
and the others are copies of it with other values, the way pydantic's own `copy` makes them. Where a copy would not be
equal to a normal chunk (another langchain-core or pydantic), normal chunks are made. A test compares all their parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
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


def normal_chunk(content: Any, kwargs: dict[str, Any], metadata: dict[str, Any]) -> ChatGenerationChunk:
    """Return a chunk of text or reasoning, by the normal constructors."""
    message = AIMessageChunk(content=content, additional_kwargs=kwargs, response_metadata=metadata)
    return ChatGenerationChunk(message=message)


_TEMPLATE = normal_chunk("", {}, {})
_message = Copier(_TEMPLATE.message)
_generation = Copier(_TEMPLATE)
_Text: Any = type(_TEMPLATE.text)


def copied_chunk(content: Any, text: str, kwargs: dict[str, Any], metadata: dict[str, Any]) -> ChatGenerationChunk:
    """Return a chunk of text or reasoning, as a copy.

    Args:
        content: Content of the message.
        text: The text in it.
        kwargs: Additional keywords of the message.
        metadata: Response metadata of the message.
    """
    message = _message.copy(
        {
            "content": content,
            "additional_kwargs": kwargs,
            "response_metadata": metadata,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "tool_call_chunks": [],
        }
    )
    return _generation.copy({"message": message, "text": _Text(text)})


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
    """Whether a copy has all parts of a normal chunk, and shares nothing that can change with the template."""
    given = ("x", {"k": "v"}, {"m": "n"})
    try:
        normal = normal_chunk(*given)
        copied = copied_chunk(given[0], "x", *given[1:])
        mutable = [value for value in copied.message.__dict__.values() if isinstance(value, (list, dict, set))]
        shared = [value for value in mutable for other in _TEMPLATE.message.__dict__.values() if value is other]
        return parts_of(normal) == parts_of(copied) and not shared
    except Exception:  # noqa: BLE001 - whatever is different in another version, normal chunks are right
        return False


COPIES = _copies_are_equal()
"""Whether chunks are made as copies."""


def light_chunk(content: Any, text: str, kwargs: dict[str, Any], metadata: dict[str, Any]) -> ChatGenerationChunk:
    """Return a chunk of text or reasoning; arguments as for `copied_chunk`."""
    return copied_chunk(content, text, kwargs, metadata) if COPIES else normal_chunk(content, kwargs, metadata)

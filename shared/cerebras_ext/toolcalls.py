"""Tool calls: the slots that a stream's fragments belong to, and the reading and writing of arguments."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.errors import RequestValidationError
from cerebras_ext.jsontext import dump_text, loads, refuse_constants, replace_surrogates

_CONTROL = re.compile(r"[\x00-\x1f]")
_PLACEHOLDER_IDS = frozenset({"", "null", "None"})


@dataclass(slots=True)
class ToolCallDelta:
    """What a chunk adds to one tool call.

    Attributes:
        index: Position of the call in the answer, 0-based and dense, whatever index the service used.
        id: Id of the call, on its first delta only.
        name: Function name, on one delta only.
        arguments: New piece of the JSON text.
    """

    index: int
    id: str | None = None
    name: str | None = None
    arguments: str = ""


@dataclass(slots=True)
class ToolCallSlot:
    """One tool call as it grows."""

    index: int
    id: str
    name: str = ""
    parts: list[str] = field(default_factory=list)
    generated_id: bool = False
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def arguments(self) -> str:
        """The JSON text so far."""
        return "".join(self.parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the call as the service writes it in an answer that is not streamed."""
        function = {"name": self.name, "arguments": self.arguments}
        return {**self.extra, "id": self.id, "type": "function", "function": function}


class ToolCallSlots:
    """Decides which call a fragment belongs to.

    Servers number calls loosely: an index may be missing, start anywhere, or be used for two calls; an id may be
    repeated, empty or missing. A new id on an index that is taken opens a new slot; fragments without an id go to the
    newest slot of their index.
    """

    __slots__ = ("_by_index", "slots")

    def __init__(self) -> None:
        self.slots: list[ToolCallSlot] = []
        self._by_index: dict[int, ToolCallSlot] = {}

    def feed(self, fragments: Iterable[Any]) -> list[ToolCallDelta]:
        """Take the `tool_calls` of one delta and return what they add, in the order they came."""
        deltas = []
        for fragment in fragments:
            if isinstance(fragment, dict):
                delta = self._take(fragment)
                if delta is not None:
                    deltas.append(delta)
        return deltas

    def _take(self, fragment: dict[str, Any]) -> ToolCallDelta | None:
        function = fragment.get("function")
        if not isinstance(function, dict):
            function = {}
        call_id = fragment.get("id")
        if not isinstance(call_id, str) or call_id in _PLACEHOLDER_IDS:
            call_id = None
        name = function.get("name")
        if not isinstance(name, str) or not name:
            name = None
        arguments = arguments_text(function.get("arguments"))
        slot = self._find(fragment.get("index"), call_id, name, arguments)
        if slot is None:
            if call_id is None and name is None and not arguments:
                return None
            return self._open(fragment, call_id, name, arguments)
        delta = ToolCallDelta(slot.index, arguments=arguments)
        if arguments:
            slot.parts.append(arguments)
        if name and not slot.name:
            slot.name = delta.name = name
        return delta if arguments or delta.name else None

    def _find(self, index: Any, call_id: str | None, name: str | None, arguments: str) -> ToolCallSlot | None:
        """Return the slot of a fragment, or None where it starts a new call."""
        if isinstance(index, int):
            slot = self._by_index.get(index)
        elif call_id is not None:
            slot = next((slot for slot in reversed(self.slots) if slot.id == call_id), None)
        else:
            slot = self.slots[-1] if self.slots else None
        if slot is None:
            return None
        if call_id is not None and call_id != slot.id:
            if not slot.generated_id or (name and slot.name):
                return next((old for old in self.slots if old.id == call_id and isinstance(index, int)), None)
        elif call_id is None and name and slot.name and (name != slot.name or (arguments and _is_whole(slot.parts))):
            return None
        return slot

    def _open(self, fragment: dict[str, Any], call_id: str | None, name: str | None, arguments: str) -> ToolCallDelta:
        extra = {key: value for key, value in fragment.items() if key not in ("id", "type", "function", "index")}
        slot = ToolCallSlot(
            index=len(self.slots),
            id=call_id or new_tool_call_id(),
            name=name or "",
            parts=[arguments] if arguments else [],
            generated_id=call_id is None,
            extra=extra,
        )
        self.slots.append(slot)
        index = fragment.get("index")
        self._by_index[index if isinstance(index, int) else -len(self.slots)] = slot
        return ToolCallDelta(slot.index, slot.id, name, arguments)


def whole_tool_calls(calls: Iterable[Any] | None) -> list[ToolCallSlot]:
    """Return the calls of an answer that was not streamed; one that came without an id gets one."""
    slots: list[ToolCallSlot] = []
    for call in calls or ():
        single = ToolCallSlots()
        single.feed([call])
        for slot in single.slots:
            slot.index = len(slots)
            slots.append(slot)
    return slots


def _is_whole(parts: list[str]) -> bool:
    try:
        loads("".join(parts))
    except ValueError:
        return False
    return True


def new_tool_call_id() -> str:
    """Return an id for a call that came without one, so that its result can be matched."""
    return f"call_{uuid.uuid4().hex[:24]}"


def arguments_text(value: Any) -> str:
    """Return arguments as JSON text: text as it is, null as empty, an object (some gateways) encoded."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


class InvalidArgumentsError(ValueError):
    """The arguments of a tool call are not a JSON object."""


def parse_arguments(text: str | None) -> dict[str, Any]:
    """Parse final arguments strictly: nothing is completed, so a call that was cut off is never run by luck.

    Args:
        text: JSON text; empty, blank, null and None mean no arguments. Line breaks and tabs inside of strings, which
            models write in code, are taken as they are.

    Raises:
        InvalidArgumentsError: Not JSON, or not an object.
    """
    if text is None or not text.strip():
        return {}
    try:
        value = _loads_with_line_breaks(text)
        refuse_constants(text)
    except ValueError as error:
        raise InvalidArgumentsError(f"tool call arguments are not valid JSON: {error}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidArgumentsError(f"tool call arguments are not a JSON object but {type(value).__name__}")
    return value


def _loads_with_line_breaks(text: str) -> Any:
    try:
        return loads(text)
    except (ValueError, TypeError):  # TypeError: a lone surrogate
        try:
            return replace_surrogates(json.loads(text, strict=False))
        except RecursionError:
            raise ValueError("nested too deeply") from None


def replayed_arguments(value: Any, name: str | None = None) -> str:
    """Return arguments as the service accepts them in history: always the JSON text of an object.

    Args:
        value: A mapping, or the text of an earlier call; malformed text is kept inside an object.
        name: Name of the function that was called, for the error.

    Raises:
        RequestValidationError: A mapping has something that JSON has no form for.
    """
    if isinstance(value, (dict, Mapping)):
        return _encode_mapping(value, name)
    text = "" if value is None else str(value)
    try:
        arguments = parse_arguments(text)
    except InvalidArgumentsError:
        return dump_text({"invalid_arguments": text})
    if not arguments:
        return "{}"
    return text if _CONTROL.search(text) is None or _is_whole([text]) else _encode_mapping(arguments, name)


def _encode_mapping(value: Mapping[str, Any], name: str | None) -> str:
    try:
        return dump_text(value if isinstance(value, dict) else dict(value))
    except (TypeError, ValueError, RecursionError) as error:  # the kinds that an encoder has for what it cannot write
        raise RequestValidationError(
            f"the arguments of the earlier call of {name!r} cannot be written as JSON: {error}"
        ) from None

"""Messages and chunks at the price of a dictionary: most of what they cost is validating what we just made.

A chunk of text or reasoning differs from the one before in its text only, and an answer from the one before in some
values whose types are known. So one is made by the normal constructors, and the others are copies of it with other
values, the way pydantic's own `copy` makes them. Where a copy would not be equal to a normal object (another
langchain-core or pydantic), normal ones are made. A test compares all their parts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage, AIMessageChunk, InvalidToolCall, ToolCall, ToolCallChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.json import parse_partial_json
from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)
_new = object.__new__


def _setter(name: str) -> Callable[[BaseModel, Any], None]:
    """Return what sets an attribute of a model that is no field, past pydantic's way of setting fields."""
    slot: Any = BaseModel.__dict__.get(name)
    if hasattr(slot, "__set__"):
        setter: Callable[[BaseModel, Any], None] = slot.__set__
        return setter
    return lambda model, value: object.__setattr__(model, name, value)


_set_dict, _set_fields_set = _setter("__dict__"), _setter("__pydantic_fields_set__")
_set_extra, _set_private = _setter("__pydantic_extra__"), _setter("__pydantic_private__")


class Copier(Generic[ModelT]):
    """Makes copies of an object with other values.

    Attributes:
        values: Those of the object. Copies share what they are not given, so none may be mutable.
    """

    __slots__ = ("_class", "_extra", "_fields_set", "values")

    def __init__(self, model: ModelT) -> None:
        self._class = type(model)
        self._fields_set = model.__pydantic_fields_set__
        self._extra = model.__pydantic_extra__
        self.values = dict(model.__dict__)

    def copy(self, attributes: dict[str, Any]) -> ModelT:
        """Return a copy.

        Args:
            attributes: A copy of `values` in which some have been replaced, by values of the types that validation
                would give them; handed over.
        """
        twin = _new(self._class)
        _set_dict(twin, attributes)
        _set_fields_set(twin, self._fields_set.copy())
        extra = self._extra
        _set_extra(twin, None if extra is None else extra.copy())
        _set_private(twin, None)
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
    copier = _message if calls is None else _call_message
    valid: list[ToolCall] = []
    invalid: list[InvalidToolCall] = []
    values = copier.values.copy()
    values["content"] = content
    values["additional_kwargs"] = kwargs
    values["response_metadata"] = metadata
    values["tool_calls"] = valid
    values["invalid_tool_calls"] = invalid
    if calls is None:
        values["tool_call_chunks"] = []
    else:
        values["tool_call_chunks"] = calls
        for call in calls:
            _read(call, valid, invalid)
    whole = _generation.values.copy()
    whole["message"] = copier.copy(values)
    whole["text"] = _Text(text)
    return _generation.copy(whole)


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


def parts_of(chunk: ChatGeneration) -> list[Any]:
    """Return everything that two chunks, or two answers, can differ in."""
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
            shared = [value for value in mutable for kept in template.values.values() if value is kept]
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


# ---- whole answers ----


class Answer(NamedTuple):
    """What a message of an answer that was not streamed is made of.

    Attributes:
        text: Text of the answer.
        kwargs: Additional keywords of the message.
        metadata: Response metadata of the message.
        usage: Token counts.
        calls: Valid tool calls.
        invalid: Tool calls that cannot be read.
        info: What the generation says about itself.
    """

    text: str
    kwargs: dict[str, Any]
    metadata: dict[str, Any]
    usage: UsageMetadata | None
    calls: list[ToolCall]
    invalid: list[InvalidToolCall]
    info: dict[str, Any]


def normal_result(answers: list[Answer], output: dict[str, Any]) -> ChatResult:
    """Return the result of a call, by the normal constructors."""
    generations = []
    for answer in answers:
        message = AIMessage(
            content=answer.text,
            additional_kwargs=answer.kwargs,
            tool_calls=answer.calls,
            invalid_tool_calls=answer.invalid,
            usage_metadata=answer.usage,
            response_metadata=answer.metadata,
        )
        generations.append(ChatGeneration(message=message, generation_info=answer.info))
    return ChatResult(generations=generations, llm_output=output)


_RESULT = normal_result([Answer("", {}, {}, None, [], [], {})], {})
_result = Copier(_RESULT)
_whole = Copier(_RESULT.generations[0])
_whole_message = Copier(_RESULT.generations[0].message)


def copied_result(answers: list[Answer], output: dict[str, Any]) -> ChatResult:
    """Return the result of a call, as a copy.

    Args:
        answers: What its messages are made of; handed over, as is `output`.
        output: What the answer says about itself as a whole.
    """
    generations = []
    for answer in answers:
        message = _whole_message.copy(
            {
                **_whole_message.values,
                "content": answer.text,
                "additional_kwargs": answer.kwargs,
                "response_metadata": answer.metadata,
                "tool_calls": answer.calls,
                "invalid_tool_calls": answer.invalid,
                "usage_metadata": answer.usage,
            }
        )
        own = {"message": message, "text": _Text(answer.text), "generation_info": answer.info}
        generations.append(_whole.copy({**_whole.values, **own}))
    return _result.copy({**_result.values, "generations": generations, "llm_output": output})


def _results_are_equal() -> bool:
    """Whether a result that is a copy has all parts of a normal one, and shares nothing that can change."""
    usage = UsageMetadata(input_tokens=1, output_tokens=2, total_tokens=3)
    calls, invalid = [tool_call(name="n", args={"a": 1}, id="i")], [invalid_tool_call(name="n", args="{", id="i")]
    try:
        made = []
        for make in (normal_result, copied_result):
            first = Answer("x", {"k": "v"}, {"m": "n"}, usage.copy(), calls.copy(), invalid.copy(), {"i": "j"})
            second = Answer("", {}, {}, None, [], [], {})
            made.append(make([first, second], {"o": "p"}))
        values = [
            value for part in made[1].generations for model in (part, part.message) for value in vars(model).values()
        ]
        return parts_of_result(made[0]) == parts_of_result(made[1]) and not any(map(_is_of_template, values))
    except Exception:  # noqa: BLE001 - whatever is different in another version, normal results are right
        return False


def _is_of_template(value: Any) -> bool:
    """Whether a value can change and is that of a template too."""
    kept = [one for copier in (_whole, _whole_message, _result) for one in copier.values.values()]
    return isinstance(value, (list, dict, set)) and any(value is one for one in kept)


def parts_of_result(result: ChatResult) -> list[Any]:
    """Return everything that two results can differ in."""
    own = [type(result), list(result.__dict__), result.llm_output, result.__pydantic_fields_set__]
    return [*own, result.__pydantic_extra__, result.__pydantic_private__, *map(parts_of, result.generations)]


COPIED_RESULTS = _results_are_equal()
"""Whether results are made as copies."""


def light_result(answers: list[Answer], output: dict[str, Any]) -> ChatResult:
    """Return the result of a call; arguments as for `copied_result`."""
    return copied_result(answers, output) if COPIED_RESULTS else normal_result(answers, output)

"""From the model's message to the object that was asked for, whole and while it streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from langchain_core.exceptions import OutputParserException
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.output_parsers import BaseTransformOutputParser
from langchain_core.outputs import ChatGeneration, Generation
from langchain_core.runnables import AddableDict
from pydantic import ConfigDict, Field

from cerebras_ext.answers import json_answer, partial_json_answer, split_thoughts, worth_reading
from cerebras_ext.jsontext import loads_partial
from langchain_cerebras_ext.errors import OutputTruncatedError, RefusalError
from langchain_cerebras_ext.schemas import AnswerFormat

Method = Literal["json_schema", "function_calling", "json_mode"]


class StructuredOutputParser(BaseTransformOutputParser[Any]):
    """Turns an answer into the object that was asked for.

    A stream yields the object as it grows: dictionaries as soon as there is something in them, instances as soon as
    they are valid. The last one comes from the whole answer, which is read strictly: nothing is repaired.

    Raises:
        RefusalError: The service withheld the answer.
        OutputTruncatedError: The answer ran into the token limit.
        OutputParserException: The answer is not JSON, or breaks the schema, or there is none.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    format: AnswerFormat | None = Field(repr=False)
    """None where any JSON will do."""
    method: Method
    include_raw: bool = False
    """Whether to return `raw`, `parsed` and `parsing_error` instead of raising."""

    @property
    def _type(self) -> str:
        return "cerebras_structured_output"

    @property
    def OutputType(self) -> Any:  # noqa: N802 - the name is langchain-core's
        """What is returned; not known in advance."""
        return Any

    def parse(self, text: str) -> Any:
        """Parse the text of an answer."""
        return self.read(AIMessage(text))

    def parse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        """Parse the first generation."""
        first = result[0]
        message = first.message if isinstance(first, ChatGeneration) else AIMessage(first.text)
        return self._answer(message) if self.include_raw else self.read(message)

    async def aparse_result(self, result: list[Generation], *, partial: bool = False) -> Any:
        """Parse the first generation; no thread is needed for it."""
        return self.parse_result(result, partial=partial)

    def read(self, message: BaseMessage) -> Any:
        """Return the object of a whole message. Raises as the class says."""
        _check_refusal(message)
        try:
            answer = _arguments(message, self.format) if self.method == "function_calling" else _content(message)
            return answer if self.format is None else self.format.read(answer)
        except ValueError as error:
            if message.response_metadata.get("finish_reason") == "length":
                fault = f"The answer ran into the token limit before it was whole: {error}"
                raise OutputTruncatedError(fault, raw_message=message) from error
            if isinstance(error, OutputParserException):
                raise
            name = self.format.name if self.format else "JSON"
            raise OutputParserException(f"No {name} in the answer: {error}", llm_output=str(message.text)) from error

    def _answer(self, message: BaseMessage) -> dict[str, Any]:
        try:
            parsed, fault = self.read(message), None
        except (OutputParserException, RefusalError) as error:
            parsed, fault = None, error
        raw = _with_thoughts(message) if self.method != "function_calling" else message
        return {"raw": raw, "parsed": parsed, "parsing_error": fault}

    def _transform(self, input: Iterator[str | BaseMessage]) -> Iterator[Any]:
        growing = _Growing(self)
        for chunk in input:
            yield from growing.feed(chunk)
        yield from growing.finish()

    async def _atransform(self, input: AsyncIterator[str | BaseMessage]) -> AsyncIterator[Any]:
        growing = _Growing(self)
        async for chunk in input:
            for part in growing.feed(chunk):
                yield part
        for part in growing.finish():
            yield part


class _Growing:
    """A streamed answer: what has come, and what was yielded of it."""

    def __init__(self, parser: StructuredOutputParser) -> None:
        self._parser = parser
        self._chunks: list[BaseMessage] = []
        self._text: list[str] = []
        self._length = self._read_length = 0
        self._last: Any = None
        self._call: int | None = None

    def feed(self, chunk: str | BaseMessage) -> Iterator[Any]:
        """Take a chunk; yield the object if it has grown, or the chunk itself with `include_raw`."""
        message = AIMessageChunk(content=chunk) if isinstance(chunk, str) else chunk
        self._chunks.append(message)
        if self._parser.include_raw:
            yield AddableDict(raw=message)
            return
        if not self._grow(message):
            return
        found = self._read()
        if found is not None and found != self._last:
            self._last = found
            yield found

    def finish(self) -> Iterator[Any]:
        """Read the whole answer; yield it unless it was yielded already."""
        message = _whole(self._chunks)
        if message is None:
            return
        if self._parser.include_raw:
            answer = self._parser.parse_result([ChatGeneration(message=message)])
            yield AddableDict(parsed=answer["parsed"], parsing_error=answer["parsing_error"])
            return
        final = self._parser.read(message)
        if self._last is None or final != self._last:
            yield final

    def _grow(self, message: BaseMessage) -> bool:
        """Take the text of a chunk; return whether the answer is to be read again."""
        if self._parser.method != "function_calling":
            text = message.content if isinstance(message.content, str) else str(message.text)
        else:
            text = self._arguments(message)
        if text:
            self._text.append(text)
            self._length += len(text)
        return bool(text) and worth_reading(self._length, self._read_length)

    def _arguments(self, message: BaseMessage) -> str:
        """Return what a chunk adds to the arguments of the first call of the schema's function."""
        calls = message.tool_call_chunks if isinstance(message, AIMessageChunk) else []
        if self._call is None:
            name = self._parser.format.name if self._parser.format else None
            self._call = next((call["index"] for call in calls if call["name"] == name), None)
        if self._call is None:
            return ""
        return "".join(call["args"] or "" for call in calls if call["index"] == self._call)

    def _read(self) -> Any:
        text = "".join(self._text)
        self._read_length = len(text)
        partial = loads_partial if self._parser.method == "function_calling" else partial_json_answer
        found = partial(text)
        format_ = self._parser.format
        if format_ is None or not isinstance(found, (dict, list)):
            return found
        restored = format_.restore(found)
        if format_.wrapped and (restored is found or not isinstance(restored, (dict, list))):
            return None  # a text or number is not known to be whole before its end
        if format_.build is None:
            return restored
        try:
            return format_.build(restored)
        except ValueError:
            return None


def _whole(chunks: list[BaseMessage]) -> BaseMessage | None:
    """Return the message that the chunks add up to; None where there were none."""
    if len(chunks) < 2:
        return chunks[0] if chunks else None
    if all(isinstance(chunk, AIMessageChunk) for chunk in chunks):
        return add_ai_message_chunks(*chunks)  # type: ignore[arg-type]
    return chunks[-1]


def _check_refusal(message: BaseMessage) -> None:
    if message.response_metadata.get("finish_reason") == "content_filter":
        raise RefusalError("The service withheld the answer (finish_reason content_filter)", raw_message=message)
    for block in message.content if isinstance(message.content, list) else ():
        if isinstance(block, dict) and block.get("type") == "refusal":
            raise RefusalError(f"The model refused: {block.get('refusal')}", raw_message=message)


def _content(message: BaseMessage) -> Any:
    return json_answer(str(message.text))


def _arguments(message: BaseMessage, format_: AnswerFormat | None) -> Any:
    """Return the arguments of the first call of the schema's function."""
    name = format_.name if format_ else None
    for call in getattr(message, "tool_calls", ()):
        if name is None or call["name"] == name:
            return call["args"]
    broken = getattr(message, "invalid_tool_calls", ())
    if broken:
        raise ValueError(f"the arguments of the call are not valid: {broken[0].get('args')!r}")
    raise ValueError(f"the model did not call {name}, but answered {str(message.text)!r}")


def _with_thoughts(message: BaseMessage) -> BaseMessage:
    """Return a message whose thoughts, where they stand in the content, are its reasoning."""
    if not isinstance(message.content, str) or "</think>" not in message.content:
        return message
    thoughts, text = split_thoughts(message.content)
    if not thoughts or message.additional_kwargs.get("reasoning_content"):
        return message
    extra = {**message.additional_kwargs, "reasoning_content": thoughts}
    return message.model_copy(update={"content": text, "additional_kwargs": extra})

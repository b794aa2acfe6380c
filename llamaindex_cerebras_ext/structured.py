"""Structured prediction through the service's own constrained decoding, with core's events and prompts kept."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import llama_index.core.instrumentation as instrument
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.instrumentation.events.llm import LLMStructuredPredictEndEvent, LLMStructuredPredictStartEvent
from llama_index.core.program.utils import FlexibleModel
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.types import PydanticProgramMode
from pydantic import BaseModel, Field

from cerebras_ext.answers import worth_reading
from llamaindex_cerebras_ext.base import CerebrasBase

if TYPE_CHECKING:
    from llamaindex_cerebras_ext.outputs import OutputFormat

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]

ModelT = TypeVar("ModelT", bound=BaseModel)

_OF_TOOLS = frozenset({"tool_choice", "tool_required", "allow_parallel_tool_calls", "parallel_tool_calls"})
"""Options that programs and users pass for the way by tools. The service refuses tools beside a response format."""


class StructuredOutput(CerebrasBase):
    """Adds structured prediction by `response_format` to a chat model.

    It applies to `PydanticProgramMode.DEFAULT`; every other mode is core's.
    """

    strict: bool | None = Field(
        default=None,
        description="Constrained decoding. True: of structured output and of tool arguments, and a class without a "
        "strict form is refused; False: of neither; None: of structured output, where the class has a strict form.",
    )

    def structured_predict(
        self,
        output_cls: type[ModelT],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> ModelT:
        """Return an instance of a class.

        Args:
            output_cls: What to return.
            prompt: The prompt; selectors choose their chat variant, and the LLM's `system_prompt` is put in front.
            llm_kwargs: Request fields and call options. Not changed.
            **prompt_args: Values for the prompt.

        Raises:
            StructuredOutputError: The answer is cut off, withheld, or does not fit.
            SchemaError: `strict` is True and the class has no strict form.
            CerebrasError: The request failed.
        """
        if not self._should_use_structure_outputs():
            found: ModelT = super().structured_predict(output_cls, prompt, llm_kwargs, **prompt_args)
            return found
        _started(output_cls, prompt, prompt_args)
        messages = self._structured_messages(prompt, prompt_args)
        response = self.chat(messages, **self._prepare_schema(llm_kwargs, output_cls))
        return _ended(self._output_format(output_cls).read(response))

    async def astructured_predict(
        self,
        output_cls: type[ModelT],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> ModelT:
        """Return an instance of a class; see `structured_predict`."""
        if not self._should_use_structure_outputs():
            found: ModelT = await super().astructured_predict(output_cls, prompt, llm_kwargs, **prompt_args)
            return found
        _started(output_cls, prompt, prompt_args)
        messages = self._structured_messages(prompt, prompt_args)
        response = await self.achat(messages, **self._prepare_schema(llm_kwargs, output_cls))
        return _ended(self._output_format(output_cls).read(response))

    def _structured_stream_call(
        self,
        output_cls: type[ModelT],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> Generator[Any, None, None]:
        """Yield the object as it grows; core's `stream_structured_predict` puts events around it."""
        if not self._should_use_structure_outputs():
            return super()._structured_stream_call(output_cls, prompt, llm_kwargs, **prompt_args)  # type: ignore[arg-type]
        messages = self._structured_messages(prompt, prompt_args)
        stream = self.stream_chat(messages, **self._prepare_schema(llm_kwargs, output_cls))

        def objects() -> Generator[ModelT | FlexibleModel, None, None]:
            growing = _Growing(self._output_format(output_cls))
            try:
                for chunk in stream:
                    yield from growing.feed(chunk)
                yield from growing.finish()
            finally:
                stream.close()

        return objects()

    async def _structured_astream_call(
        self,
        output_cls: type[ModelT],
        prompt: BasePromptTemplate,
        llm_kwargs: dict[str, Any] | None = None,
        **prompt_args: Any,
    ) -> AsyncGenerator[Any, None]:
        """Yield the object as it grows; see `_structured_stream_call`."""
        if not self._should_use_structure_outputs():
            return await super()._structured_astream_call(output_cls, prompt, llm_kwargs, **prompt_args)  # type: ignore[arg-type]
        messages = self._structured_messages(prompt, prompt_args)
        stream = await self.astream_chat(messages, **self._prepare_schema(llm_kwargs, output_cls))

        async def objects() -> AsyncGenerator[ModelT | FlexibleModel, None]:
            growing = _Growing(self._output_format(output_cls))
            try:
                async for chunk in stream:
                    for item in growing.feed(chunk):
                        yield item
                for item in growing.finish():
                    yield item
            finally:
                await stream.aclose()

        return objects()

    def _should_use_structure_outputs(self) -> bool:
        """Whether the service's structured output is used: it is, unless another program mode was chosen."""
        return self.pydantic_program_mode == PydanticProgramMode.DEFAULT

    def _prepare_schema(self, llm_kwargs: Mapping[str, Any] | None, output_cls: type[BaseModel]) -> dict[str, Any]:
        """Return options of a call that asks for an instance of a class."""
        options = {name: value for name, value in (llm_kwargs or {}).items() if name not in _OF_TOOLS}
        return {**options, "response_format": self._output_format(output_cls).response_format()}

    def _output_format(self, output_cls: type[ModelT]) -> OutputFormat[ModelT]:
        from llamaindex_cerebras_ext.outputs import output_format  # loads the dialect of schemas

        return output_format(output_cls, self.strict)

    def _structured_messages(self, prompt: BasePromptTemplate, prompt_args: Mapping[str, Any]) -> list[ChatMessage]:
        return self._extend_messages(prompt.format_messages(llm=self, **prompt_args))


def _started(output_cls: type[BaseModel], prompt: BasePromptTemplate, prompt_args: dict[str, Any]) -> None:
    dispatcher.event(LLMStructuredPredictStartEvent(output_cls=output_cls, template=prompt, template_args=prompt_args))


def _ended(output: ModelT) -> ModelT:
    dispatcher.event(LLMStructuredPredictEndEvent(output=output))
    return output


class _Growing:
    """Turns the chunks of a stream into objects: each that is new, and at the end the whole one."""

    def __init__(self, format_: OutputFormat[Any]) -> None:
        self._format = format_
        self._last: ChatResponse | None = None
        self._shown: BaseModel | None = None
        self._read = 0

    def feed(self, chunk: ChatResponse) -> Generator[Any, None, None]:
        """Yield the object so far, if the chunk has changed it."""
        self._last = chunk
        if not chunk.delta:
            return
        text = chunk.message.content or ""
        if not worth_reading(len(text), self._read):
            return
        self._read = len(text)
        found = self._format.partial(text)
        if found is not None and found != self._shown:
            self._shown = found
            yield found

    def finish(self) -> Generator[Any, None, None]:
        """Yield the object of the whole answer, unless it was the last one already. Raises as `OutputFormat.read`."""
        whole = self._format.read(self._last or ChatResponse(message=ChatMessage(role="assistant", content="")))
        if whole != self._shown:
            yield whole

"""`CerebrasCompletion`: the completions endpoint as a LlamaIndex LLM."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import llama_index.core.instrumentation as instrument
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.llm import MessagesToPromptType, default_completion_to_prompt
from pydantic import ConfigDict, field_validator, model_validator

from cerebras_ext import types
from cerebras_ext.errors import RequestValidationError
from llamaindex_cerebras_ext.base import CerebrasBase, request_field
from llamaindex_cerebras_ext.completion_wire import (
    CompletionChunks,
    as_chat,
    batch_responses,
    completion_response,
)
from llamaindex_cerebras_ext.completion_wire import messages_to_prompt as default_messages_to_prompt
from llamaindex_cerebras_ext.generators import aprimed, primed
from llamaindex_cerebras_ext.token_ids import with_token_ids

T = TypeVar("T")

dispatcher = instrument.get_dispatcher(__name__)  # type: ignore[attr-defined]

Prompt = str | Sequence[int]
"""A text, or token ids (pass those by position: core's events take text only)."""


def _field(name: str) -> Any:
    return request_field(types.CompletionRequest, name)


class CerebrasCompletion(CerebrasBase):
    """A model of `POST /v1/completions`, which continues a text.

    Chat methods write the conversation into one prompt with `messages_to_prompt`. Token counts, finish reason and the
    answer as it came are on every response, and on the last chunk of every stream.

    ```python
    from llamaindex_cerebras_ext import CerebrasCompletion

    llm = CerebrasCompletion(model="gpt-oss-120b", max_tokens=16)
    print(llm.complete("The capital of France is").text)
    ```
    """

    model_config = ConfigDict(defer_build=False)

    request_type: ClassVar[type[types.CompletionRequest]] = types.CompletionRequest
    is_chat_class: ClassVar[bool] = False

    best_of: int | None = _field("best_of")
    echo: bool | None = _field("echo")
    frequency_penalty: float | None = _field("frequency_penalty")
    grammar_root: str | None = _field("grammar_root")
    logit_bias: dict[str, float] | None = _field("logit_bias")
    logprobs: int | None = _field("logprobs")
    max_tokens: int | None = _field("max_tokens")
    min_tokens: int | None = _field("min_tokens")
    n: int | None = _field("n")
    presence_penalty: float | None = _field("presence_penalty")
    prompt_cache_key: str | None = _field("prompt_cache_key")
    reasoning_format: str | None = _field("reasoning_format")
    return_raw_tokens: bool | None = _field("return_raw_tokens")
    seed: int | None = _field("seed")
    stop: str | list[str] | None = _field("stop")
    stream_options: dict[str, Any] | None = _field("stream_options")
    suffix: str | None = _field("suffix")
    temperature: float | None = _field("temperature")
    top_p: float | None = _field("top_p")
    user: str | None = _field("user")
    extra_body: dict[str, Any] | None = _field("extra_body")

    @field_validator("messages_to_prompt")
    @classmethod
    def set_messages_to_prompt(cls, messages_to_prompt: MessagesToPromptType | None) -> MessagesToPromptType:
        """Put our rendering where None is given."""
        return messages_to_prompt or default_messages_to_prompt

    @model_validator(mode="after")
    def check_prompts(self) -> Self:
        """Put our rendering where none is given, in place of core's, which writes `None` for an empty turn."""
        self.messages_to_prompt = self.messages_to_prompt or default_messages_to_prompt
        self.completion_to_prompt = self.completion_to_prompt or default_completion_to_prompt
        return self

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which `load_llm` finds the class."""
        return "CerebrasCompletion"

    # ---- completion ----

    @with_token_ids
    @llm_completion_callback()
    def complete(self, prompt: Prompt, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Complete a prompt.

        Args:
            prompt: Text, or token ids.
            formatted: Whether `completion_to_prompt` has been applied already.
            **kwargs: Fields of the request, or options of the call (`timeout`, `extra_headers`).

        Raises:
            CerebrasError: See `cerebras_ext.errors`.
        """
        return self._complete(self._prompt(prompt, formatted), kwargs)

    @with_token_ids
    @llm_completion_callback()
    async def acomplete(self, prompt: Prompt, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Complete a prompt; see `complete`."""
        return await self._acomplete(self._prompt(prompt, formatted), kwargs)

    @with_token_ids
    @llm_completion_callback()
    def stream_complete(self, prompt: Prompt, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Stream a completion; the request is sent before this returns. See `complete`.

        What the endpoint cannot stream (`best_of`, `n` above 1) is asked for without a stream and comes as one piece.
        """
        return self._stream_complete(self._prompt(prompt, formatted), kwargs, _as_it_is)

    @with_token_ids
    @llm_completion_callback()
    async def astream_complete(
        self, prompt: Prompt, formatted: bool = False, **kwargs: Any
    ) -> CompletionResponseAsyncGen:
        """Stream a completion; see `stream_complete`."""
        return await self._astream_complete(self._prompt(prompt, formatted), kwargs, _as_it_is)

    # ---- chat ----

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation, written into one prompt by `messages_to_prompt`; arguments as for `complete`."""
        return as_chat(self._complete(self._written(messages), kwargs))

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation; see `chat`."""
        return as_chat(await self._acomplete(self._written(messages), kwargs))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Stream the answer to a conversation; see `chat` and `stream_complete`."""
        return self._stream_complete(self._written(messages), kwargs, as_chat)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Stream the answer to a conversation; see `chat` and `stream_complete`."""
        return await self._astream_complete(self._written(messages), kwargs, as_chat)

    # ---- several prompts ----

    @dispatcher.span
    def complete_batch(
        self, prompts: Sequence[Prompt], formatted: bool = False, **kwargs: Any
    ) -> list[CompletionResponse]:
        """Complete several prompts in one request.

        Args:
            prompts: Texts, or lists of token ids; not both.
            formatted: As for `complete`.
            **kwargs: As for `complete`.

        Returns:
            One response a prompt, in order (with `n`, that many a prompt). Token counts are those of the whole request,
            in `raw["usage"]` of each.
        """
        if not prompts:
            return []
        prepared = self._prompts(prompts, formatted)
        whole = self._complete_all(_shown(prepared), prompts=prepared, **kwargs)
        return batch_responses(types.CompletionResponse.model_validate(whole.raw))

    @dispatcher.span
    async def acomplete_batch(
        self, prompts: Sequence[Prompt], formatted: bool = False, **kwargs: Any
    ) -> list[CompletionResponse]:
        """Complete several prompts in one request; see `complete_batch`."""
        if not prompts:
            return []
        prepared = self._prompts(prompts, formatted)
        whole = await self._acomplete_all(_shown(prepared), prompts=prepared, **kwargs)
        return batch_responses(types.CompletionResponse.model_validate(whole.raw))

    @llm_completion_callback()
    def _complete_all(self, shown: str, *, prompts: Sequence[Prompt], **kwargs: Any) -> CompletionResponse:
        """Send one request for several prompts; one event tells of all of them."""
        return self._complete(prompts, kwargs)

    @llm_completion_callback()
    async def _acomplete_all(self, shown: str, *, prompts: Sequence[Prompt], **kwargs: Any) -> CompletionResponse:
        return await self._acomplete(prompts, kwargs)

    # ---- what the public methods share; never called by way of one another, which would count a call twice ----

    def _prompt(self, prompt: Prompt, formatted: bool) -> Prompt:
        if not isinstance(prompt, str):
            if not isinstance(prompt, Iterable) or isinstance(prompt, (bytes, Mapping)):
                raise RequestValidationError(f"prompt: must be text or token ids, got {type(prompt).__name__}")
            return list(prompt)
        write = self.completion_to_prompt
        return prompt if formatted or write is None else write(prompt)

    def _prompts(self, prompts: Sequence[Prompt], formatted: bool) -> list[Prompt]:
        if not isinstance(prompts, Iterable) or isinstance(prompts, (str, bytes, Mapping)):
            raise RequestValidationError(f"prompts: must be a list of prompts, got {type(prompts).__name__}")
        return [self._prompt(prompt, formatted) for prompt in prompts]

    def _written(self, messages: Sequence[ChatMessage]) -> str:
        return (self.messages_to_prompt or default_messages_to_prompt)(messages)

    def _complete(self, prompt: Prompt | Sequence[Prompt], kwargs: Mapping[str, Any]) -> CompletionResponse:
        return completion_response(self._client().complete(**self._merged(kwargs, prompt=prompt)))

    async def _acomplete(self, prompt: Prompt | Sequence[Prompt], kwargs: Mapping[str, Any]) -> CompletionResponse:
        return completion_response(await self._async_client().complete(**self._merged(kwargs, prompt=prompt)))

    def _stream_complete(
        self, prompt: Prompt, kwargs: Mapping[str, Any], convert: Callable[[CompletionResponse], T]
    ) -> Generator[T, None, None]:
        fields = self._merged(kwargs, prompt=prompt)
        stream = self._client().stream_complete(unstreamable="single", **fields).open()

        def chunks() -> Generator[T | None, None, None]:
            state = CompletionChunks()
            try:
                yield None
                for batch in stream.batches():
                    for chunk in state.feed(batch):
                        yield convert(chunk)
                yield convert(state.finish(stream.response))
            finally:
                stream.close()

        return primed(chunks())

    async def _astream_complete(
        self, prompt: Prompt, kwargs: Mapping[str, Any], convert: Callable[[CompletionResponse], T]
    ) -> AsyncGenerator[T, None]:
        fields = self._merged(kwargs, prompt=prompt)
        stream = await self._async_client().stream_complete(unstreamable="single", **fields).open()

        async def chunks() -> AsyncGenerator[T | None, None]:
            state = CompletionChunks()
            try:
                yield None
                async for batch in stream.batches():
                    for chunk in state.feed(batch):
                        yield convert(chunk)
                yield convert(state.finish(stream.response))
            finally:
                await stream.aclose()

        return await aprimed(chunks())


def _shown(prompts: Sequence[Prompt]) -> str:
    """Return several prompts as the one text that an event holds."""
    return "\n\n".join(prompt if isinstance(prompt, str) else str(prompt) for prompt in prompts)


def _as_it_is(response: CompletionResponse) -> CompletionResponse:
    return response

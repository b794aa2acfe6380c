"""`CerebrasLLM`: text completion over `POST /v1/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.callbacks.base import Callbacks
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.llms import BaseLLM
from langchain_core.outputs import Generation, GenerationChunk, LLMResult
from langchain_core.runnables import RunnableBinding
from pydantic import ConfigDict, Field

from cerebras_ext.body import single_reason
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.types import ChatRequest, CompletionRequest, CompletionResponse
from langchain_cerebras_ext.base import CerebrasBase, number_of_answers, request_field, with_signature
from langchain_cerebras_ext.completions import (
    TOKEN_IDS_OPTION,
    batches,
    chunk_of_delta,
    generations_of,
    last_chunk,
    result_of,
    token_text,
)
from langchain_cerebras_ext.errors import langchain_errors
from langchain_cerebras_ext.keywords import canonical_options

if TYPE_CHECKING:
    from langchain_cerebras_ext.binding import LLMBinding
else:
    # Loaded when it is needed. langchain-core reads the annotations of methods, so the name means something here.
    LLMBinding = RunnableBinding

_OF_THE_RUN = ("tags", "metadata", "run_name", "run_id")
_call: ContextVar[tuple[object, Mapping[str, Any]] | None] = ContextVar("cerebras_llm_call", default=None)


class CerebrasLLM(CerebrasBase, BaseLLM):
    """Text completion with Cerebras inference.

    Every parameter can be given here, bound with `.bind(...)`, or given with a call, where the later one wins.

    ```python
    from langchain_cerebras_ext import CerebrasLLM

    llm = CerebrasLLM(model="gpt-oss-120b", max_tokens=50)
    print(llm.invoke("The sky is"))
    print(llm.batch(["One", "Two"]))  # one request
    ```

    All prompts of `generate` and `batch` go in one request per `batch_size`, with `n` completions of each. A stream has
    one prompt and one completion.

    Prompts of token ids: `generate_token_ids([[9906, 1917]])`, or `token_ids=True` with any call whose prompts are
    numbers with blanks between them (`llm.stream("9906 1917", token_ids=True)`).
    """

    model_config = ConfigDict(defer_build=False)

    _request_type: ClassVar[type[ChatRequest | CompletionRequest]] = CompletionRequest
    _call_settings: ClassVar[frozenset[str]] = frozenset((TOKEN_IDS_OPTION, "include_response_headers"))

    batch_size: int = Field(default=20, ge=1, description="Most prompts to send in one request.")

    best_of: int | None = request_field("best_of")
    echo: bool | None = request_field("echo")
    grammar_root: str | None = request_field("grammar_root")
    logprobs: int | None = request_field("logprobs")
    return_raw_tokens: bool | None = request_field("return_raw_tokens")
    suffix: str | None = request_field("suffix")

    @property
    def _llm_type(self) -> str:
        return "cerebras"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params: LangSmithParams = self._complete_ls_params(super()._get_ls_params(stop=stop, **kwargs), stop, kwargs)
        return params

    def bind(self, **kwargs: Any) -> LLMBinding:
        """Bind options."""
        from langchain_cerebras_ext.binding import LLMBinding

        return LLMBinding(bound=self, kwargs=canonical_options(kwargs), config={})

    # ---- without a stream ----

    @with_signature
    def _generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        generations: list[list[Generation]] = []
        responses: list[CompletionResponse] = []
        with langchain_errors():
            if self._streams(prompts, stop, kwargs):
                return _result_of_chunks(list(self._stream(prompts[0], stop, run_manager, **kwargs)))
            fields = self._merged(stop, kwargs)
            for count, prompt in batches(prompts, self.batch_size, token_ids=bool(kwargs.get(TOKEN_IDS_OPTION))):
                response = self._sync_client.complete(**{**fields, "prompt": prompt})
                generations += self._read(response, count, fields, kwargs)
                responses.append(response)
        return result_of(generations, responses)

    @with_signature
    async def _agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        generations: list[list[Generation]] = []
        responses: list[CompletionResponse] = []
        with langchain_errors():
            if self._streams(prompts, stop, kwargs):
                chunks = [chunk async for chunk in self._astream(prompts[0], stop, run_manager, **kwargs)]
                return _result_of_chunks(chunks)
            fields = self._merged(stop, kwargs)
            for count, prompt in batches(prompts, self.batch_size, token_ids=bool(kwargs.get(TOKEN_IDS_OPTION))):
                response = await self._async_client.complete(**{**fields, "prompt": prompt})
                generations += self._read(response, count, fields, kwargs)
                responses.append(response)
        return result_of(generations, responses)

    def _read(
        self, response: CompletionResponse, count: int, fields: Mapping[str, Any], options: Mapping[str, Any]
    ) -> list[list[Generation]]:
        return generations_of(response, count, number_of_answers(fields), headers=self._wants_headers(options))

    def _wants_headers(self, options: Mapping[str, Any]) -> bool:
        wanted = options.get("include_response_headers")
        return self.include_response_headers if wanted is None else bool(wanted)

    def _streams(self, prompts: list[str], stop: list[str] | None, options: Mapping[str, Any]) -> bool:
        """Whether a call without a stream uses one all the same, for the sake of its callbacks."""
        wanted = options.get("stream")
        wanted = self.streaming if wanted is None else wanted
        return bool(wanted) and len(prompts) == 1 and single_reason(self._merged(stop, options)) is None

    # ---- streams ----

    def _stream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[GenerationChunk]:
        with (
            langchain_errors(),
            self._sync_client.stream_complete(**self._stream_fields(prompt, stop, kwargs)) as stream,
        ):
            for delta in stream:
                chunk = chunk_of_delta(delta)
                if chunk is not None:
                    if run_manager is not None:
                        run_manager.on_llm_new_token(chunk.text, chunk=chunk, verbose=self.verbose)
                    yield chunk
            chunk = last_chunk(stream.response, headers=self._wants_headers(kwargs))
        if run_manager is not None:
            run_manager.on_llm_new_token(chunk.text, chunk=chunk, verbose=self.verbose)
        yield chunk

    async def _astream(
        self,
        prompt: str,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[GenerationChunk]:
        with langchain_errors():
            async with self._async_client.stream_complete(**self._stream_fields(prompt, stop, kwargs)) as stream:
                async for delta in stream:
                    chunk = chunk_of_delta(delta)
                    if chunk is not None:
                        if run_manager is not None:
                            await run_manager.on_llm_new_token(chunk.text, chunk=chunk, verbose=self.verbose)
                        yield chunk
                chunk = last_chunk(stream.response, headers=self._wants_headers(kwargs))
        if run_manager is not None:
            await run_manager.on_llm_new_token(chunk.text, chunk=chunk, verbose=self.verbose)
        yield chunk

    def _stream_fields(self, prompt: str, stop: list[str] | None, options: Mapping[str, Any]) -> dict[str, Any]:
        fields = self._merged(stop, options)
        reason = single_reason(fields)
        if reason is not None:
            raise RequestValidationError(f"{reason}, so it cannot be streamed: use invoke, batch or generate")
        ((_, sent),) = batches([prompt], 1, token_ids=bool(options.get(TOKEN_IDS_OPTION)))
        return {**fields, "prompt": sent}

    # ---- prompts of token ids ----

    def generate_token_ids(
        self,
        prompts: Sequence[Sequence[int]],
        stop: list[str] | None = None,
        callbacks: Callbacks | list[Callbacks] | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        """Complete prompts of token ids; arguments and result as for `generate`."""
        texts = [token_text(prompt) for prompt in prompts]
        return self.generate(texts, stop, callbacks, **{**kwargs, TOKEN_IDS_OPTION: True})

    async def agenerate_token_ids(
        self,
        prompts: Sequence[Sequence[int]],
        stop: list[str] | None = None,
        callbacks: Callbacks | list[Callbacks] | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        """Complete prompts of token ids; arguments and result as for `agenerate`."""
        texts = [token_text(prompt) for prompt in prompts]
        return await self.agenerate(texts, stop, callbacks, **{**kwargs, TOKEN_IDS_OPTION: True})

    # ---- cache ----

    def generate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        callbacks: Callbacks | list[Callbacks] | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        """Complete prompts; a cached answer is used only for a call with the same parameters."""
        with self._keyed_by(kwargs):
            return super().generate(prompts, stop, callbacks, **kwargs)

    async def agenerate(
        self,
        prompts: list[str],
        stop: list[str] | None = None,
        callbacks: Callbacks | list[Callbacks] | None = None,
        **kwargs: Any,
    ) -> LLMResult:
        """Complete prompts; a cached answer is used only for a call with the same parameters."""
        with self._keyed_by(kwargs):
            return await super().agenerate(prompts, stop, callbacks, **kwargs)

    @contextmanager
    def _keyed_by(self, kwargs: Mapping[str, Any]) -> Iterator[None]:
        """Put a call's options into the cache key, which langchain-core makes from the instance alone."""
        token = _call.set((self, {name: value for name, value in kwargs.items() if name not in _OF_THE_RUN}))
        try:
            yield
        finally:
            _call.reset(token)

    @property
    def _identifying_params(self) -> dict[str, Any]:
        call = _call.get()
        if call is None or call[0] is not self:
            return self._parameters({})
        return self._parameters(call[1])


def _result_of_chunks(chunks: list[GenerationChunk]) -> LLMResult:
    """Return what a stream brought in the form of a call without one."""
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    info = whole.generation_info or {}
    names = ("model_provider", "token_usage", "model_name", "system_fingerprint")
    generation = Generation(text=whole.text, generation_info=whole.generation_info)
    return LLMResult(generations=[[generation]], llm_output={name: info[name] for name in names if name in info})

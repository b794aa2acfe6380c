"""`ChatCerebras`: chat over `POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.language_models.base import LangSmithParams
from langchain_core.language_models.model_profile import ModelProfile
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableBinding
from pydantic import ConfigDict, Field, model_validator

from cerebras_ext import AsyncChatStream, ChatStream
from cerebras_ext.body import single_reason
from cerebras_ext.reasoning import ReplayReasoning
from cerebras_ext.types import ChatRequest, CompletionRequest
from langchain_cerebras_ext.base import CerebrasBase, add_usage, number_of_answers, request_field, with_signature
from langchain_cerebras_ext.errors import RequestValidationError, langchain_errors
from langchain_cerebras_ext.from_wire import ChunkBuilder, Style, chat_result, style_of
from langchain_cerebras_ext.keywords import canonical_options, warn
from langchain_cerebras_ext.profiles import profile_for
from langchain_cerebras_ext.to_wire import messages_to_wire

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from langchain_cerebras_ext.binding import ModelBinding
    from langchain_cerebras_ext.events import Event
else:
    # Loaded when they are needed. langchain-core reads the annotations of methods, so the names mean something here.
    BaseTool = Any
    Event = dict[str, Any]
    ModelBinding = RunnableBinding

_MADE_BY_TOOLS = frozenset(("tools", "tool_choice", "response_format"))
_OWN_OPTIONS = frozenset(("include_response_headers", "replay_reasoning", "split_think_tags"))
_EVENTS_OF = {"_stream": "_stream_chat_model_events", "_astream": "_astream_chat_model_events"}
_MAY_HOLD_N = frozenset(("n", "extra_body", "model_kwargs"))


def _chat_field(name: str) -> Any:
    return request_field(name, ChatRequest)


def _without_disable_reasoning(values: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
    """Put what replaced `disable_reasoning` in its place.

    Raises:
        RequestValidationError: `reasoning_effort` says something else.
    """
    fields = dict(values)
    disabled = fields.pop("disable_reasoning")
    if disabled is None:
        return fields
    if not quiet:
        told = "disable_reasoning was removed from the service on 2026-07-21; use reasoning_effort='none'."
        warn(told, DeprecationWarning)
    if disabled:
        effort = fields.setdefault("reasoning_effort", "none")
        if effort not in (None, "none"):
            raise RequestValidationError(f"disable_reasoning: contradicts reasoning_effort={effort!r}")
        fields["reasoning_effort"] = "none"
    return fields


class ChatCerebras(CerebrasBase, BaseChatModel):
    """Chat with Cerebras inference.

    Every parameter can be given here, bound with `.bind(...)`, or given with a call, where the later one wins.

    Example:
        >>> model = ChatCerebras(model="gpt-oss-120b", reasoning_effort="low")
        >>> model.invoke("What is the capital of France?").text
        >>> for chunk in model.stream("Tell me a story"):
        ...     print(chunk.text, end="")

    An answer's text is in `content`, its reasoning in `additional_kwargs["reasoning_content"]` (and a block of
    `content_blocks`), token counts in `usage_metadata`, and what else the service said (finish reason, timing, log
    probabilities, ...) in `response_metadata`.

    The limit `max_tokens` counts reasoning too: an answer that is all reasoning has empty content and the finish reason
    `length`. Requests for `json_object` are never streamed, and `n` above 1 gives several answers only with `generate`
    and `agenerate`.

    Raises what `langchain_cerebras_ext.errors` lists.
    """

    model_config = ConfigDict(defer_build=False)

    _request_type: ClassVar[type[ChatRequest | CompletionRequest]] = ChatRequest
    _call_settings: ClassVar[frozenset[str]] = _OWN_OPTIONS

    replay_reasoning: ReplayReasoning = Field(
        default="reasoning",
        description="How the reasoning of earlier answers of Cerebras models is sent: in its own member, as a <think> "
        "block in the content (think_tags; what GLM and Qwen document), or not at all (off).",
    )
    split_think_tags: bool = Field(
        default=False, description="Move a <think> block at the beginning of the content to the reasoning."
    )

    clear_thinking: bool | None = _chat_field("clear_thinking")
    logprobs: bool | None = _chat_field("logprobs")
    min_completion_tokens: int | None = _chat_field("min_completion_tokens")
    model_parameters: dict[str, Any] | None = _chat_field("model_parameters")
    parallel_tool_calls: bool | None = _chat_field("parallel_tool_calls")
    prediction: dict[str, Any] | None = _chat_field("prediction")
    reasoning_effort: str | None = _chat_field("reasoning_effort")
    response_format: dict[str, Any] | None = _chat_field("response_format")
    service_tier: str | None = _chat_field("service_tier")
    tool_choice: str | dict[str, Any] | None = _chat_field("tool_choice")
    tools: list[dict[str, Any]] | None = _chat_field("tools")
    top_logprobs: int | None = _chat_field("top_logprobs")

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Have events made of the chunks of a subclass that streams in its own way."""
        super().__init_subclass__(**kwargs)
        for stream, events in _EVENTS_OF.items():
            if stream in cls.__dict__ and events not in cls.__dict__:
                setattr(cls, events, None)

    @model_validator(mode="before")
    @classmethod
    def _replace_disable_reasoning(cls, values: Any) -> Any:
        if isinstance(values, Mapping) and "disable_reasoning" in values:
            return _without_disable_reasoning(values)
        return values

    # ---- what LangChain asks about the model ----

    @property
    def _llm_type(self) -> str:
        return "cerebras-chat"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params: LangSmithParams = self._complete_ls_params(super()._get_ls_params(stop=stop, **kwargs), stop, kwargs)
        return params

    def _get_invocation_params(self, stop: list[str] | None = None, **kwargs: Any) -> dict[str, Any]:
        # As langchain-core does, but not by way of its deprecated `dict` with warnings turned off around it.
        if type(self).dict is not BaseChatModel.dict:
            return super()._get_invocation_params(stop, **kwargs)
        return {**self.asdict(), "stop": stop, **kwargs}

    def _resolve_model_profile(self) -> ModelProfile | None:
        profile: Any = profile_for(self.model)
        return profile  # type: ignore[no-any-return]

    def _combine_llm_outputs(self, llm_outputs: list[dict[str, Any] | None]) -> dict[str, Any]:
        combined: dict[str, Any] = {}
        for output in llm_outputs:
            for name in ("model_name", "system_fingerprint"):
                if output and name in output:
                    combined.setdefault(name, output[name])
            if output and "token_usage" in output:
                combined["token_usage"] = add_usage(combined.get("token_usage", {}), output["token_usage"])
        return combined

    def _should_stream(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        """Keep several answers out of streams that nobody asked for; one that was asked for is refused in `_stream`."""
        wanted = super()._should_stream(async_api=async_api, run_manager=run_manager, **kwargs)
        return wanted and bool(kwargs.get("stream") or not self._many(kwargs))

    def _should_use_protocol_streaming(self, *, async_api: bool, run_manager: Any = None, **kwargs: Any) -> bool:
        wanted = super()._should_use_protocol_streaming(async_api=async_api, run_manager=run_manager, **kwargs)
        return wanted and not self._many(kwargs)

    def _many(self, options: Mapping[str, Any]) -> bool:
        if self.n is None and not self.extra_body and _MAY_HOLD_N.isdisjoint(options):
            return False
        return number_of_answers(self._merged(None, options, quiet=True)) > 1

    # ---- requests ----

    def _call_level(self, stop: list[str] | None, options: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
        if "disable_reasoning" in options:
            options = _without_disable_reasoning(options, quiet=quiet)
        return super()._call_level(stop, options, quiet=quiet)

    def _request_fields(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the keywords for a method of the core's clients.

        Args:
            messages: The conversation.
            stop: What LangChain hands over as `stop`.
            options: Options of the call, bound ones included.
        """
        fields = self._merged(stop, options)
        if not _MADE_BY_TOOLS.isdisjoint(fields):
            from langchain_cerebras_ext.tools import to_wire_options

            fields = to_wire_options(fields)
        fields["messages"] = messages_to_wire(messages, options.get("replay_reasoning") or self.replay_reasoning)
        return fields

    def _stream_fields(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the keywords for a stream, which has one answer.

        Raises:
            RequestValidationError: `n` is above 1.
        """
        fields = self._request_fields(messages, stop, options)
        if number_of_answers(fields) > 1:
            raise RequestValidationError("n: a stream has one answer; use generate or agenerate for several")
        return fields

    def _style(self, options: Mapping[str, Any]) -> Style:
        """Return how the answer of a call is to be handed out."""
        headers, split_think = options.get("include_response_headers"), options.get("split_think_tags")
        return style_of(
            bool(self.include_response_headers if headers is None else headers),
            bool(self.split_think_tags if split_think is None else split_think),
            self.output_version == "v1",
        )

    def _make_stream(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> tuple[ChatStream, ChunkBuilder]:
        """Return the core's stream of an answer, which sends its request when it is entered, and the chunks' maker."""
        fields = self._stream_fields(messages, stop, options)
        builder = ChunkBuilder(self._style(options), whole=single_reason(fields) is not None)
        return self._sync_client.stream_chat(**fields, unstreamable="single"), builder

    def _amake_stream(
        self, messages: Sequence[BaseMessage], stop: list[str] | None, options: Mapping[str, Any]
    ) -> tuple[AsyncChatStream, ChunkBuilder]:
        """The async twin of `_make_stream`."""
        fields = self._stream_fields(messages, stop, options)
        builder = ChunkBuilder(self._style(options), whole=single_reason(fields) is not None)
        return self._async_client.stream_chat(**fields, unstreamable="single"), builder

    # ---- answers ----

    @with_signature
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with langchain_errors():
            response = self._sync_client.chat(**self._request_fields(messages, stop, kwargs))
        return chat_result(response, self._style(kwargs))

    @with_signature
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        with langchain_errors():
            response = await self._async_client.chat(**self._request_fields(messages, stop, kwargs))
        return chat_result(response, self._style(kwargs))

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        with langchain_errors():
            stream, builder = self._make_stream(messages, stop, kwargs)
            with stream:
                for deltas in stream.batches():
                    for chunk in builder.feed_all(deltas):
                        if run_manager is not None:
                            run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        yield chunk
            for chunk in builder.finish(stream.response):
                if run_manager is not None:
                    run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        # One generator, not two: a loop that shuts down closes all of them at once, each by itself.
        with langchain_errors():
            stream, builder = self._amake_stream(messages, stop, kwargs)
            async with stream:
                async for deltas in stream.batches():
                    for chunk in builder.feed_all(deltas):
                        if run_manager is not None:
                            await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                        yield chunk
            for chunk in builder.finish(stream.response):
                if run_manager is not None:
                    await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
                yield chunk

    # langchain-core looks for these two by name, in some versions; without them it makes events of `_stream`'s chunks.

    def _stream_chat_model_events(
        self,
        messages: list[BaseMessage],
        *,
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[Event]:
        from langchain_cerebras_ext.events import events_of

        make = partial(self._make_stream, messages, stop, kwargs)
        return events_of(make, self._style(kwargs), run_manager)

    def _astream_chat_model_events(
        self,
        messages: list[BaseMessage],
        *,
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Event]:
        from langchain_cerebras_ext.events import aevents_of

        make = partial(self._amake_stream, messages, stop, kwargs)
        return aevents_of(make, self._style(kwargs), run_manager)

    def bind(self, **kwargs: Any) -> ModelBinding:
        """Bind options; a bound `model` brings its own profile."""
        from langchain_cerebras_ext.binding import ModelBinding

        options = canonical_options(kwargs)
        model = options.get("model")
        bound = self.with_profile_of(model) if isinstance(model, str) else self
        return ModelBinding(bound=bound, kwargs=options, config={})

    # ---- tools and structured output ----

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | bool | dict[str, Any] | None = None,
        strict: bool | None = None,
        parallel_tool_calls: bool | None = None,
        response_format: Any = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Return the model with tools bound to it; see `langchain_cerebras_ext.tools.bind_tools`."""
        from langchain_cerebras_ext.tools import bind_tools

        with langchain_errors():
            return bind_tools(
                self,
                tools,
                tool_choice=tool_choice,
                strict=strict,
                parallel_tool_calls=parallel_tool_calls,
                response_format=response_format,
                **kwargs,
            )

    def with_structured_output(
        self,
        schema: Any = None,
        *,
        method: Any = "json_schema",
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """Return a model that answers with an object; see `langchain_cerebras_ext.structured`."""
        from langchain_cerebras_ext.structured import with_structured_output

        with langchain_errors():
            return with_structured_output(self, schema, method=method, include_raw=include_raw, strict=strict, **kwargs)

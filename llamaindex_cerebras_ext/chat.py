"""`Cerebras`: the chat endpoint as a LlamaIndex LLM that calls functions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, TypeVar

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseAsyncGen,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    MessageRole,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.tools.types import BaseTool
from pydantic import BeforeValidator, ConfigDict, Field, PrivateAttr

from cerebras_ext.reasoning import ReplayReasoning
from cerebras_ext.types import ChatRequest
from llamaindex_cerebras_ext.base import request_field
from llamaindex_cerebras_ext.from_wire import ChunkBuilder, to_chat_response, to_completion_response
from llamaindex_cerebras_ext.generators import aprimed, primed
from llamaindex_cerebras_ext.structured import StructuredOutput
from llamaindex_cerebras_ext.to_wire import to_wire
from llamaindex_cerebras_ext.tools import (
    CallRules,
    PartialArguments,
    ToolChoice,
    conversation,
    plain,
    selections,
    settle_tools,
    tool_fields,
)

T = TypeVar("T")


def _field(name: str) -> Any:
    return request_field(ChatRequest, name)


JsonObject = Annotated[dict[str, Any], BeforeValidator(plain)]


class Cerebras(StructuredOutput, FunctionCallingLLM):
    """A model of `POST /v1/chat/completions`.

    Every field of the request is a field here, an option of each call, and an entry of `additional_kwargs`; the call
    wins, then `additional_kwargs`. Only what was set is sent.

    A response's message has thinking, text and tool calls as blocks; `raw` is the answer as the service sent it, and on
    the last chunk of a stream the assembled one: with id, model, finish reason, usage and `time_info`.

    Example:
        >>> llm = Cerebras(model="gpt-oss-120b", temperature=0)
        >>> llm.complete("What is the capital of France?").text
    """

    model_config = ConfigDict(defer_build=False)

    request_type: ClassVar[type[ChatRequest]] = ChatRequest

    clear_thinking: bool | None = _field("clear_thinking")
    disable_reasoning: bool | None = _field("disable_reasoning")
    frequency_penalty: float | None = _field("frequency_penalty")
    logit_bias: dict[str, float] | None = _field("logit_bias")
    logprobs: bool | None = _field("logprobs")
    max_completion_tokens: int | None = _field("max_completion_tokens")
    max_tokens: int | None = _field("max_tokens")
    min_completion_tokens: int | None = _field("min_completion_tokens")
    min_tokens: int | None = _field("min_tokens")
    model_parameters: dict[str, Any] | None = _field("model_parameters")
    n: int | None = _field("n")
    parallel_tool_calls: bool | None = _field("parallel_tool_calls")
    prediction: JsonObject | None = _field("prediction")
    presence_penalty: float | None = _field("presence_penalty")
    prompt_cache_key: str | None = _field("prompt_cache_key")
    reasoning_effort: str | None = _field("reasoning_effort")
    reasoning_format: str | None = _field("reasoning_format")
    response_format: JsonObject | None = _field("response_format")
    seed: int | None = _field("seed")
    service_tier: str | None = _field("service_tier")
    stop: str | list[str] | None = _field("stop")
    stream_options: JsonObject | None = _field("stream_options")
    temperature: float | None = _field("temperature")
    tool_choice: str | JsonObject | None = _field("tool_choice")
    tools: list[JsonObject] | None = _field("tools")
    top_logprobs: int | None = _field("top_logprobs")
    top_p: float | None = _field("top_p")
    user: str | None = _field("user")
    extra_body: dict[str, Any] | None = _field("extra_body")

    is_function_calling_model: bool = Field(
        default=True, description="Whether LlamaIndex may give the model tools; False makes its agents prompt for them."
    )
    replay_reasoning: ReplayReasoning = Field(
        default="reasoning",
        description="How thinking of earlier turns is sent: as reasoning, as a <think> block of the text, or off.",
    )
    split_think_tags: bool = Field(
        default=False, description="Move a leading <think> block of an answer's text into its thinking."
    )

    _partial_arguments: PartialArguments = PrivateAttr(default_factory=PartialArguments)

    @classmethod
    def class_name(cls) -> str:
        """Return the name under which `load_llm` finds the class."""
        return "Cerebras"

    # ---- chat ----

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation.

        Args:
            messages: The conversation so far.
            **kwargs: Fields of the request, or options of the call (`timeout`, `extra_headers`, `queue_threshold`).

        Raises:
            CerebrasError: See `cerebras_ext.errors`.
        """
        return self._chat(messages, kwargs)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation; see `chat`."""
        return await self._achat(messages, kwargs)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """Stream the answer to a conversation; the request is sent before this returns. See `chat`.

        Each response has everything so far, and what is new in `delta` and `additional_kwargs["thinking_delta"]`. What
        the service does not stream (`json_object`, `n` above 1) is asked for without a stream and comes as one piece.
        """
        return self._stream_chat(messages, kwargs, _as_it_is)

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseAsyncGen:
        """Stream the answer to a conversation; see `stream_chat`."""
        return await self._astream_chat(messages, kwargs, _as_it_is)

    # ---- completion ----

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer a prompt, sent as one user message.

        Args:
            prompt: The text.
            formatted: Whether `completion_to_prompt` has been applied already.
            **kwargs: As for `chat`.
        """
        return to_completion_response(self._chat(self._question(prompt, formatted), kwargs))

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Answer a prompt; see `complete`."""
        return to_completion_response(await self._achat(self._question(prompt, formatted), kwargs))

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """Stream the answer to a prompt; see `complete` and `stream_chat`."""
        return self._stream_chat(self._question(prompt, formatted), kwargs, to_completion_response)

    @llm_completion_callback()
    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseAsyncGen:
        """Stream the answer to a prompt; see `complete` and `stream_chat`."""
        return await self._astream_chat(self._question(prompt, formatted), kwargs, to_completion_response)

    # ---- what the public methods share; never called by way of one another, which would count a call twice ----

    def _question(self, prompt: str, formatted: bool) -> list[ChatMessage]:
        convert = self.completion_to_prompt
        text = prompt if formatted or convert is None else convert(prompt)
        return [ChatMessage(role=MessageRole.USER, content=text)]

    def _fields(self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return keywords for a client's method."""
        return settle_tools(self._merged(kwargs, messages=to_wire(messages, self.replay_reasoning)))

    def _chat(self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]) -> ChatResponse:
        answer = self._client().chat(**self._fields(messages, kwargs))
        return to_chat_response(answer, split_think_tags=self.split_think_tags)

    async def _achat(self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any]) -> ChatResponse:
        answer = await self._async_client().chat(**self._fields(messages, kwargs))
        return to_chat_response(answer, split_think_tags=self.split_think_tags)

    def _stream_chat(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any], convert: Callable[[ChatResponse], T]
    ) -> Generator[T, None, None]:
        stream = self._client().stream_chat(unstreamable="single", **self._fields(messages, kwargs)).open()
        builder = ChunkBuilder(split_think_tags=self.split_think_tags)

        def chunks() -> Generator[T | None, None, None]:
            try:
                yield None
                for batch in stream.batches():
                    for delta in batch:
                        chunk = builder.chunk(delta)
                        if chunk is not None:
                            yield convert(chunk)
                yield convert(builder.last(stream.response))
            finally:
                stream.close()

        return primed(chunks())

    async def _astream_chat(
        self, messages: Sequence[ChatMessage], kwargs: Mapping[str, Any], convert: Callable[[ChatResponse], T]
    ) -> AsyncGenerator[T, None]:
        fields = self._fields(messages, kwargs)
        stream = await self._async_client().stream_chat(unstreamable="single", **fields).open()
        builder = ChunkBuilder(split_think_tags=self.split_think_tags)

        async def chunks() -> AsyncGenerator[T | None, None]:
            try:
                yield None
                async for batch in stream.batches():
                    for delta in batch:
                        chunk = builder.chunk(delta)
                        if chunk is not None:
                            yield convert(chunk)
                yield convert(builder.last(stream.response))
            finally:
                await stream.aclose()

        return await aprimed(chunks())

    # ---- tools ----

    def _prepare_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        tool_choice: ToolChoice = None,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Return the arguments of `chat` for a call with tools.

        Args:
            tools: What the model may call; without any, nothing about tools is sent.
            user_msg: Comes after the history.
            chat_history: The conversation so far; not changed.
            verbose: Not used.
            allow_parallel_tool_calls: Whether one answer may call several tools.
            tool_required: Whether some tool has to be called, where `tool_choice` is not given.
            tool_choice: none, auto, required, the name of a tool, or the service's own form.
            strict: Constrained arguments for all tools; default the field `strict`.
            **kwargs: As for `chat`.

        Raises:
            ValueError: `tool_choice` names no tool, or a tool cannot be sent.
        """
        fields = tool_fields(
            tools,
            allow_parallel_tool_calls=allow_parallel_tool_calls,
            tool_required=tool_required,
            tool_choice=tool_choice,
            strict=self.strict if strict is None else strict,
        )
        return {"messages": conversation(user_msg, chat_history), **fields, **kwargs}

    def _validate_chat_with_tools_response(
        self, response: ChatResponse, tools: Sequence[BaseTool], allow_parallel_tool_calls: bool = False, **kwargs: Any
    ) -> ChatResponse:
        """Return the response with the tools' own names, and with one call where more are not allowed."""
        return CallRules(tools, allow_parallel_tool_calls).apply(response)

    def stream_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> ChatResponseGen:
        """Stream an answer that may call tools; arguments as for `chat_with_tools`."""
        prepared = self._prepare_chat_with_tools(
            tools, user_msg, chat_history, verbose, allow_parallel_tool_calls, tool_required, **kwargs
        )
        return CallRules(tools, allow_parallel_tool_calls).apply_to_stream(self.stream_chat(**prepared))

    async def astream_chat_with_tools(
        self,
        tools: Sequence[BaseTool],
        user_msg: str | ChatMessage | None = None,
        chat_history: list[ChatMessage] | None = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> ChatResponseAsyncGen:
        """Stream an answer that may call tools; arguments as for `chat_with_tools`."""
        prepared = self._prepare_chat_with_tools(
            tools, user_msg, chat_history, verbose, allow_parallel_tool_calls, tool_required, **kwargs
        )
        return CallRules(tools, allow_parallel_tool_calls).apply_to_async_stream(await self.astream_chat(**prepared))

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """Return the tool calls of a response. Cheap enough for every chunk of a stream.

        Args:
            response: An answer, or a chunk, whose calls have the arguments as far as they came.
            error_on_no_tool_call: Whether an answer without calls is an error.
            **kwargs: Not used.

        Raises:
            ValueError: No calls, where that is an error; or the arguments of a finished call are not a JSON object
                (`InvalidArgumentsError`): such a call is neither repaired nor left out in silence.
        """
        # Reading a private attribute by its name takes pydantic longer than everything else here.
        private = self.__pydantic_private__ or {}
        return selections(response, error_on_no_tool_call, private.get("_partial_arguments"))


def _as_it_is(response: ChatResponse) -> ChatResponse:
    return response

"""From chunks to deltas and the whole answer, once for both endpoints' streams."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cerebras_ext.toolcalls import ToolCallDelta, ToolCallSlots, whole_tool_calls
from cerebras_ext.types import ChatResponse, CompletionResponse

_NO_CALLS: list[ToolCallDelta] = []
_HEAD = ("id", "created", "model", "system_fingerprint", "object")
_PLAIN_CHUNK = frozenset((*_HEAD, "choices"))


@dataclass(slots=True)
class ChatDelta:
    """What one event adds to one answer of a chat.

    Attributes:
        index: Which answer, 0 unless `n` is above 1.
        content: New text.
        reasoning: New reasoning; may come together with text.
        tool_calls: What is added to tool calls.
        finish_reason: Set on the event that ends the answer.
        logprobs: Log probabilities of the new tokens, as the service sends them.
        reasoning_logprobs: The same for reasoning.
        raw: The event as it came.
    """

    index: int
    content: str
    reasoning: str
    tool_calls: list[ToolCallDelta]
    finish_reason: str | None
    logprobs: dict[str, Any] | None
    reasoning_logprobs: dict[str, Any] | None
    raw: dict[str, Any]


@dataclass(slots=True)
class CompletionDelta:
    """What one event adds to one completion.

    Attributes:
        index: Which completion: position of the prompt times `n` plus number of the choice.
        text: New text.
        tokens: New token ids, where raw tokens were asked for.
        finish_reason: Set on the event that ends the completion.
        logprobs: Log probabilities of the new tokens, as the service sends them.
        raw: The event as it came.
    """

    index: int
    text: str
    tokens: list[int] | None
    finish_reason: str | None
    logprobs: dict[str, Any] | None
    raw: dict[str, Any]


def merge_lists(whole: dict[str, Any] | None, new: Mapping[str, Any]) -> dict[str, Any]:
    """Append the lists of `new` to those of `whole` (log probabilities); other members: the last one counts."""
    if whole is None:
        whole = {}
    for key, value in new.items():
        old = whole.get(key)
        if isinstance(old, list) and isinstance(value, list):
            old.extend(value)
        elif value is not None or key not in whole:
            whole[key] = list(value) if isinstance(value, list) else value
    return whole


def _no_text(name: str, value: object) -> TypeError:
    return TypeError(f"{name} is no text but {type(value).__name__}")


def _checked_index(index: object) -> int:
    if not isinstance(index, int):
        raise TypeError(f"index is no number but {type(index).__name__}")
    return index


def _keep_unknown(kept: dict[str, Any], new: Mapping[str, Any], known: frozenset[str]) -> None:
    """Keep members that this version does not know: text grows, lists grow, of anything else the last one counts."""
    for key, value in new.items():
        if key in known or value is None:
            continue
        old = kept.get(key)
        if (isinstance(old, str) and isinstance(value, str)) or (isinstance(old, list) and isinstance(value, list)):
            kept[key] = old + value  # type: ignore[operator]
        else:
            kept[key] = value


class _Assembler:
    """What both endpoints' streams have in common: the head, usage and timing, unknown members."""

    __slots__ = ("_expected", "_finished", "_top")

    def __init__(self, choices: int = 1) -> None:
        self._top: dict[str, Any] = {}
        self._expected = choices
        self._finished: dict[int, str] = {}

    @property
    def complete(self) -> bool:
        """Whether every answer has its finish reason. A stream that ends before is cut off."""
        return len(self._finished) >= self._expected

    def _take_head(self, chunk: dict[str, Any]) -> None:
        """Note what is not a choice: the first non-null of the head, the last of everything else."""
        top = self._top
        for key, value in chunk.items():
            if key != "choices" and value is not None and (key not in _HEAD or not top.get(key)):
                top[key] = value

    def _response(self, object_name: str, choices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**self._top, "object": object_name, "choices": choices}


class _ChatChoice:
    __slots__ = ("content", "extra", "logprobs", "message_extra", "reasoning", "reasoning_logprobs", "role", "tools")

    def __init__(self) -> None:
        self.role = "assistant"
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.tools: ToolCallSlots | None = None
        self.logprobs: dict[str, Any] | None = None
        self.reasoning_logprobs: dict[str, Any] | None = None
        self.extra: dict[str, Any] = {}
        self.message_extra: dict[str, Any] = {}


_CHOICE_KEYS = frozenset(("index", "delta", "message", "finish_reason", "logprobs", "reasoning_logprobs"))
_DELTA_KEYS = frozenset(("role", "content", "reasoning", "reasoning_content", "tool_calls"))


class ChatAssembler(_Assembler):
    """Turns the chunks of a chat stream into deltas and, at the end, into the whole answer."""

    __slots__ = ("_choices",)

    def __init__(self, choices: int = 1) -> None:
        super().__init__(choices)
        self._choices: dict[int, _ChatChoice] = {}

    def feed(self, chunk: dict[str, Any]) -> list[ChatDelta]:
        """Take one event; return a delta for each answer that it adds something to or ends."""
        if not self._top or chunk.keys() != _PLAIN_CHUNK:
            self._take_head(chunk)
        deltas: list[ChatDelta] = []
        for choice in chunk.get("choices") or ():
            delta = self._take(choice, chunk) if isinstance(choice, dict) else None
            if delta is not None:
                deltas.append(delta)
        return deltas

    def _take(self, choice: dict[str, Any], chunk: dict[str, Any]) -> ChatDelta | None:
        number = choice.get("index")
        index: int = number or 0
        state = self._choices.get(index)
        if state is None:
            state = self._choices[_checked_index(index)] = _ChatChoice()
        content = reasoning = ""
        calls = _NO_CALLS
        delta = choice.get("delta")
        if delta is None:
            delta = choice.get("message")  # a gateway that does not stream sends a whole message
        if delta:
            used = 0
            if "content" in delta:
                used += 1
                content = delta["content"] or ""
                if content:
                    if content.__class__ is not str:
                        raise _no_text("content", content)
                    state.content.append(content)
            if "reasoning" in delta:
                used += 1
                reasoning = delta["reasoning"] or ""
                if reasoning:
                    if reasoning.__class__ is not str:
                        raise _no_text("reasoning", reasoning)
                    state.reasoning.append(reasoning)
            if len(delta) != used:
                reasoning, calls = self._take_rare(state, delta, reasoning)
        if len(choice) == 2 and delta is not None and number is not None:
            if content or reasoning or calls:
                return ChatDelta(index, content, reasoning, calls, None, None, None, chunk)
            return None
        return self._take_ending(state, choice, ChatDelta(index, content, reasoning, calls, None, None, None, chunk))

    def _take_rare(self, state: _ChatChoice, delta: dict[str, Any], reasoning: str) -> tuple[str, list[ToolCallDelta]]:
        """Take what a delta has beside plain text: role, tool calls, another spelling of reasoning, new members."""
        if not reasoning and isinstance(delta.get("reasoning_content"), str):
            reasoning = delta["reasoning_content"]
            if reasoning:
                state.reasoning.append(reasoning)
        state.role = delta.get("role") or state.role
        calls = _NO_CALLS
        if delta.get("tool_calls"):
            if state.tools is None:
                state.tools = ToolCallSlots()
            calls = state.tools.feed(delta["tool_calls"])
        if not delta.keys() <= _DELTA_KEYS:
            _keep_unknown(state.message_extra, delta, _DELTA_KEYS)
        return reasoning, calls

    def _take_ending(self, state: _ChatChoice, choice: dict[str, Any], delta: ChatDelta) -> ChatDelta | None:
        """Take what a choice has beside its delta: finish reason, log probabilities, new members."""
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and delta.index not in self._finished:
            delta.finish_reason = reason
            self._finished[delta.index] = reason
        if choice.get("logprobs"):
            delta.logprobs = choice["logprobs"]
            state.logprobs = merge_lists(state.logprobs, choice["logprobs"])
        if choice.get("reasoning_logprobs"):
            delta.reasoning_logprobs = choice["reasoning_logprobs"]
            state.reasoning_logprobs = merge_lists(state.reasoning_logprobs, choice["reasoning_logprobs"])
        if not choice.keys() <= _CHOICE_KEYS:
            _keep_unknown(state.extra, choice, _CHOICE_KEYS)
        useful = (
            delta.content or delta.reasoning or delta.tool_calls or delta.finish_reason
            or delta.logprobs or delta.reasoning_logprobs
        )  # fmt: skip
        return delta if useful else None

    def response(self) -> ChatResponse:
        """Return the answer assembled so far, in the form of an answer that is not streamed."""
        choices = [self._choice(index, self._choices[index]) for index in sorted(self._choices)]
        return ChatResponse.model_validate(self._response("chat.completion", choices))

    def _choice(self, index: int, state: _ChatChoice) -> dict[str, Any]:
        message: dict[str, Any] = {**state.message_extra, "role": state.role}
        if state.content:
            message["content"] = "".join(state.content)
        if state.reasoning:
            message["reasoning"] = "".join(state.reasoning)
        if state.tools is not None and state.tools.slots:
            message["tool_calls"] = [slot.to_dict() for slot in state.tools.slots]
        choice: dict[str, Any] = {**state.extra, "index": index, "message": message}
        if index in self._finished:
            choice["finish_reason"] = self._finished[index]
        if state.logprobs is not None:
            choice["logprobs"] = state.logprobs
        if state.reasoning_logprobs is not None:
            choice["reasoning_logprobs"] = state.reasoning_logprobs
        return choice


class _TextChoice:
    __slots__ = ("extra", "logprobs", "text", "tokens")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.tokens: list[int] | None = None
        self.logprobs: dict[str, Any] | None = None
        self.extra: dict[str, Any] = {}


_TEXT_KEYS = frozenset(("index", "text", "tokens", "finish_reason", "logprobs"))


class CompletionAssembler(_Assembler):
    """Turns the chunks of a completions stream into deltas and, at the end, into the whole answer."""

    __slots__ = ("_choices",)

    def __init__(self, choices: int = 1) -> None:
        super().__init__(choices)
        self._choices: dict[int, _TextChoice] = {}

    def feed(self, chunk: dict[str, Any]) -> list[CompletionDelta]:
        """Take one event; return a delta for each completion that it adds something to or ends."""
        if not self._top or chunk.keys() != _PLAIN_CHUNK:
            self._take_head(chunk)
        deltas: list[CompletionDelta] = []
        for choice in chunk.get("choices") or ():
            delta = self._take(choice, chunk) if isinstance(choice, dict) else None
            if delta is not None:
                deltas.append(delta)
        return deltas

    def _take(self, choice: dict[str, Any], chunk: dict[str, Any]) -> CompletionDelta | None:
        index = choice.get("index") or 0
        state = self._choices.get(index)
        if state is None:
            state = self._choices[_checked_index(index)] = _TextChoice()
        text = choice.get("text") or ""
        if text:
            if text.__class__ is not str:
                raise _no_text("text", text)
            state.text.append(text)
        delta = CompletionDelta(index, text, None, None, None, chunk)
        tokens = choice.get("tokens")
        if tokens:
            if not isinstance(tokens, list):
                raise TypeError(f"tokens is no list but {type(tokens).__name__}")
            delta.tokens = tokens
            if state.tokens is None:
                state.tokens = []
            state.tokens.extend(tokens)
        logprobs = choice.get("logprobs")
        if logprobs:
            delta.logprobs = logprobs
            state.logprobs = merge_lists(state.logprobs, logprobs)
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason and index not in self._finished:
            delta.finish_reason = self._finished[index] = reason
        if not choice.keys() <= _TEXT_KEYS:
            _keep_unknown(state.extra, choice, _TEXT_KEYS)
        return delta if text or tokens or logprobs or delta.finish_reason else None

    def response(self) -> CompletionResponse:
        """Return the answer assembled so far, in the form of an answer that is not streamed."""
        choices = [self._choice(index, self._choices[index]) for index in sorted(self._choices)]
        return CompletionResponse.model_validate(self._response("text_completion", choices))

    def _choice(self, index: int, state: _TextChoice) -> dict[str, Any]:
        choice: dict[str, Any] = {**state.extra, "index": index, "text": "".join(state.text)}
        if state.tokens is not None:
            choice["tokens"] = state.tokens
        if index in self._finished:
            choice["finish_reason"] = self._finished[index]
        if state.logprobs is not None:
            choice["logprobs"] = state.logprobs
        return choice


def deltas_of_chat(response: ChatResponse) -> list[ChatDelta]:
    """Return a whole answer as deltas, one an answer: for requests that must not be streamed."""
    raw = response.to_dict()
    deltas = []
    for choice, raw_choice in zip(response.choices, raw.get("choices") or (), strict=False):
        message = choice.message
        slots = whole_tool_calls((raw_choice.get("message") or {}).get("tool_calls"))
        calls = [ToolCallDelta(slot.index, slot.id, slot.name, slot.arguments) for slot in slots]
        deltas.append(
            ChatDelta(
                choice.index,
                (message.content or "") if message else "",
                message.reasoning_text if message else "",
                calls,
                choice.finish_reason,
                raw_choice.get("logprobs"),
                raw_choice.get("reasoning_logprobs"),
                raw,
            )
        )
    return deltas


def deltas_of_completion(response: CompletionResponse) -> list[CompletionDelta]:
    """Return a whole answer as deltas, one a completion: for requests that must not be streamed."""
    raw = response.to_dict()
    return [
        CompletionDelta(choice.index, choice.text, choice.tokens, choice.finish_reason, raw_choice.get("logprobs"), raw)
        for choice, raw_choice in zip(response.choices, raw.get("choices") or (), strict=False)
    ]

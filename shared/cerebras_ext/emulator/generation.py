"""From what an answer says to the tokens that are generated: stop sequences, limits, minimums, log probabilities."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.tokens import count, tokenize

MAX_OUTPUT = 40_960
_FILLER = " There is nothing further to add."
_SPREAD = 1 << 16


@dataclass(slots=True)
class Call:
    """A tool call."""

    name: str
    arguments: str


@dataclass(slots=True)
class Answer:
    """What the emulator has to say, before any limit."""

    content: str = ""
    reasoning: str = ""
    calls: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class Generated:
    """What was generated within the limits."""

    content: list[str]
    reasoning: list[str]
    calls: list[Call]
    finish_reason: str
    tokens: int
    """Generated tokens, those of reasoning and tool calls included."""
    hidden: int = 0
    """Reasoning tokens that are counted, wherever they are shown."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a request says about the length of its answer."""

    stop: tuple[str, ...] = ()
    longest: int = MAX_OUTPUT
    shortest: int = 0

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Limits:
        """Read the limits of a request of either endpoint; -1 stands for as much as there is."""
        stop = body.get("stop")
        longest = _first(body, "max_completion_tokens", "max_tokens")
        shortest = _first(body, "min_completion_tokens", "min_tokens") or 0
        longest = MAX_OUTPUT if longest is None or longest < 0 else min(longest, MAX_OUTPUT)
        return cls(
            stop=() if not stop else (stop,) if isinstance(stop, str) else tuple(text for text in stop if text),
            longest=longest,
            shortest=min(longest, MAX_OUTPUT if shortest < 0 else shortest),
        )


def _first(body: Mapping[str, Any], *names: str) -> Any:
    return next((body[name] for name in names if body.get(name) is not None), None)


def generate(answer: Answer, limits: Limits) -> Generated:
    """Cut or lengthen an answer to the limits. Reasoning is generated first, then content, then tool calls."""
    text = _stopped(answer.content, limits.stop)
    reasoning, content = tokenize(answer.reasoning), tokenize(text)
    calls = [(call, tokenize(call.arguments)) for call in answer.calls]
    total = len(reasoning) + len(content) + sum(count(call.name) + len(tokens) for call, tokens in calls)
    if total < limits.shortest and not calls and text == answer.content:
        filler = tokenize(_FILLER)
        missing = limits.shortest - total
        content += (filler * (missing // len(filler) + 1))[:missing]
        total = limits.shortest
    if total <= limits.longest:
        reason = "tool_calls" if calls else "stop"
        return Generated(content, reasoning, answer.calls, reason, total, len(reasoning))
    left = limits.longest
    reasoning = reasoning[:left]
    left -= len(reasoning)
    content = content[:left]
    kept = _cut_calls(calls, left - len(content))
    return Generated(content, reasoning, kept, "length", limits.longest, len(reasoning))


def _cut_calls(calls: Iterable[tuple[Call, list[str]]], left: int) -> list[Call]:
    """Return what fits of tool calls; the last one may break off inside its arguments."""
    kept: list[Call] = []
    for call, tokens in calls:
        left -= count(call.name)
        if left <= 0:
            break
        kept.append(Call(call.name, "".join(tokens[:left])))
        left -= len(tokens)
    return kept


def _stopped(text: str, stop: Sequence[str]) -> str:
    positions = [position for sequence in stop if (position := text.find(sequence)) >= 0]
    return text[: min(positions)] if positions else text


def log_probability(token: str, position: int) -> float:
    """Return the log probability of a generated token: made up, but the same every time, and above -0.7."""
    return math.log1p(-0.49 * _noise(token, position))


def alternatives(token: str, position: int, number: int) -> list[tuple[str, float]]:
    """Return the most likely tokens at a position, the generated one first, of falling and consistent probability."""
    found = [(token, log_probability(token, position))]
    left = 1.0 - math.exp(found[0][1])
    for rank in range(1, number):
        left /= 2.0
        found.append((f"{token.rstrip()}{chr(96 + rank)}", math.log(left) if left > 0 else -99.0))
    return found[:number]


def _noise(token: str, position: int) -> float:
    return (zlib.crc32(f"{position}:{token}".encode("utf-8", "replace")) % _SPREAD) / _SPREAD


def chat_logprobs(tokens: Sequence[str], top: int, start: int = 0) -> JsonObject:
    """Return log probabilities in the form of the chat endpoint.

    Args:
        tokens: The tokens.
        top: How many alternatives each one gets.
        start: Position of the first one in the whole answer.
    """
    content = []
    for position, token in enumerate(tokens, start):
        entry = _entry(token, log_probability(token, position))
        entry["top_logprobs"] = [_entry(*other) for other in alternatives(token, position, top)]
        content.append(entry)
    return {"content": content}


def _entry(token: str, value: float) -> JsonObject:
    return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "replace"))}


def text_logprobs(tokens: Sequence[str], top: int, offset: int, start: int = 0) -> JsonObject:
    """Return log probabilities in the form of the completions endpoint: parallel lists.

    Args:
        tokens: The tokens.
        top: How many alternatives each one gets.
        offset: Characters from the start of the prompt to the first one.
        start: Position of the first one in the whole answer.
    """
    offsets = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token)
    return {
        "text_offset": offsets,
        "token_logprobs": [log_probability(token, index) for index, token in enumerate(tokens, start)],
        "tokens": list(tokens),
        "top_logprobs": [dict(alternatives(token, index, max(1, top))) for index, token in enumerate(tokens, start)],
    }

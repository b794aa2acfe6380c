"""Joining of deltas that came together: fewer and larger ones for a consumer that is slower than the service."""

from __future__ import annotations

from itertools import groupby
from typing import TypeVar

from cerebras_ext.assembly import ChatDelta, CompletionDelta

DeltaT = TypeVar("DeltaT", bound=ChatDelta | CompletionDelta)


def coalesce(deltas: list[DeltaT]) -> list[DeltaT]:
    """Join neighbours that hold nothing but text, or nothing but reasoning, of the same answer.

    Everything else stays as it is and where it is: tool calls, token ids, log probabilities, finish reasons, and deltas
    with both text and reasoning. Put together, the result is what the deltas are.

    Args:
        deltas: What one read of the network brought; nothing is waited for.

    Returns:
        The same list if there is nothing to join. The `raw` of a joined delta is its last event.
    """
    if len(deltas) < 2:
        return deltas
    joined: list[DeltaT] = []
    for key, group in groupby(deltas, _key):
        run = list(group)
        joined += run if key is None or len(run) == 1 else [_join(run)]
    return joined


def _key(delta: ChatDelta | CompletionDelta) -> tuple[str, int] | None:
    """Return what a delta can be joined with; None for nothing."""
    if delta.finish_reason or delta.logprobs:
        return None
    if isinstance(delta, CompletionDelta):
        return ("text", delta.index) if delta.text and not delta.tokens else None
    if delta.tool_calls or delta.reasoning_logprobs or bool(delta.content) == bool(delta.reasoning):
        return None
    return ("content" if delta.content else "reasoning", delta.index)


def _join(run: list[DeltaT]) -> DeltaT:
    last = run[-1]
    if isinstance(last, CompletionDelta):
        text = "".join([delta.text for delta in run])  # type: ignore[union-attr]
        return CompletionDelta(last.index, text, None, None, None, last.raw)  # type: ignore[return-value]
    content = "".join([delta.content for delta in run])  # type: ignore[union-attr]
    reasoning = "".join([delta.reasoning for delta in run])  # type: ignore[union-attr]
    return ChatDelta(last.index, content, reasoning, last.tool_calls, None, None, None, last.raw)  # type: ignore[return-value]

"""The models that the emulator knows, with what sets them apart on the wire."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from cerebras_ext.emulator.json_types import JsonObject

Effort = Literal["none", "low", "medium", "high"]


@dataclass(frozen=True, slots=True)
class ModelCard:
    """One model."""

    id: str
    context: int = 131_072
    """Prompt tokens above which a request is refused."""
    default_effort: Effort = "none"
    efforts: tuple[str, ...] = ("none", "low", "medium", "high")
    think_tags: bool = True
    """Whether raw reasoning stands between `<think>` tags; gpt-oss puts nothing around it."""
    raw_reasoning: bool = True
    images: bool = False
    logprobs: bool = False
    prediction_counts: bool = False
    """Whether usage counts accepted and rejected prediction tokens."""
    piecewise_calls: bool = False
    """Whether a stream sends the arguments of a tool call in pieces."""
    uniform_strict: bool = False
    """Whether all tools must have the same `strict` value."""


_CARDS = (
    ModelCard(
        "gpt-oss-120b",
        context=131_000,
        default_effort="medium",
        efforts=("low", "medium", "high"),
        think_tags=False,
        prediction_counts=True,
        piecewise_calls=True,
    ),
    ModelCard("qwen-3.8-27b", default_effort="high", images=True, logprobs=True),
    ModelCard("gemma-4-31b", raw_reasoning=False, images=True),
    ModelCard(
        "zai-glm-4.7",
        default_effort="medium",
        prediction_counts=True,
        uniform_strict=True,
    ),
)

ARCHIVED = frozenset(
    {
        "llama3.1-8b",
        "llama3.3-70b",
        "llama-3.3-70b",
        "llama-4-scout-17b-16e-instruct",
        "llama-4-maverick-17b-128e-instruct",
        "qwen-3-32b",
        "qwen-3-235b-a22b-instruct-2507",
        "qwen-3-235b-a22b-thinking-2507",
        "qwen-3-coder-480b",
        "zai-glm-4.6",
    }
)


def catalog(extra: Iterable[str | ModelCard] = (), context: int | None = None) -> dict[str, ModelCard]:
    """Return the models by id.

    Args:
        extra: Ids or cards of further models.
        context: Context length of every model, to overflow it with short prompts.
    """
    cards = [*_CARDS, *(ModelCard(item) if isinstance(item, str) else item for item in extra)]
    return {card.id: card if context is None else replace(card, context=context) for card in cards}


def entry(card: ModelCard) -> JsonObject:
    """Return a model as the list shows it."""
    return {"id": card.id, "object": "model", "created": 0, "owned_by": "Cerebras"}

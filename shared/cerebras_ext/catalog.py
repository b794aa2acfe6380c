"""What is known about today's models: hints with defaults, never a reason to refuse or change a request.

The service's own list has no limits, depends on the key and changes every few months, so a name
that is not here is as good as one that is.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_CONTEXT_WINDOW = 32_768
"""Tokens to assume for a model that is not known: less than any model had that the service listed for every key since
2026 began (64 Ki on trial keys), so that a prompt that is packed to it fits."""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """Limits and features of a model, for a key without trial limits.

    Attributes:
        id: Name in requests.
        name: Name for people.
        context_window: Tokens of prompt and answer together.
        max_output_tokens: Tokens of an answer at most, or None where nothing is said.
        images: Whether it takes images (as data URIs).
        tools: Whether it calls tools.
        reasoning: Whether it can reason.
        reasoning_efforts: Values of `reasoning_effort` that it knows.
        default_reasoning_effort: What holds where none is sent, or None where nothing is said.
        prediction: Whether it takes predicted outputs.
        logprobs: Whether it returns log probabilities, or None where nothing is said.
        open_weights: Whether its weights are published, or None where nothing is said.
        public: Whether every key may use it; the others are on dedicated endpoints.
    """

    id: str
    name: str
    context_window: int
    max_output_tokens: int | None = None
    images: bool = False
    tools: bool = True
    reasoning: bool = True
    reasoning_efforts: tuple[str, ...] = ()
    default_reasoning_effort: str | None = None
    prediction: bool = False
    logprobs: bool | None = None
    open_weights: bool | None = None
    public: bool = True


_ALL = (
    ModelInfo(
        id="gpt-oss-120b",
        name="GPT OSS 120B",
        context_window=131_000,  # 131,072 is documented, but prompts above this number are refused (reports, 2026-08)
        max_output_tokens=40_960,
        reasoning_efforts=("low", "medium", "high"),
        default_reasoning_effort="medium",
        prediction=True,
        logprobs=False,
        open_weights=True,
    ),
    ModelInfo(
        id="qwen-3.8-27b",
        name="Qwen 3.8 27B",
        context_window=131_072,
        images=True,
        reasoning_efforts=("none", "low", "medium", "high"),
        default_reasoning_effort="high",
        logprobs=True,
    ),
    ModelInfo(
        id="gemma-4-31b",
        name="Gemma 4 31B",
        context_window=131_072,
        max_output_tokens=40_960,
        images=True,
        reasoning_efforts=("none", "low", "medium", "high"),
        default_reasoning_effort="none",
        open_weights=True,
        public=False,
    ),
    ModelInfo(
        id="zai-glm-4.7",
        name="Z.ai GLM 4.7",
        context_window=131_072,
        max_output_tokens=40_960,
        reasoning_efforts=("none",),
        prediction=True,
        open_weights=True,
        public=False,
    ),
)
MODELS = {model.id: model for model in _ALL}


def find_model(model: str) -> ModelInfo | None:
    """Return what is known about a model, or None."""
    return MODELS.get(model) or MODELS.get(model.strip().lower())


def context_window(model: str) -> int:
    """Return the tokens of a model's context, or a careful default for one that is not known."""
    known = find_model(model)
    return known.context_window if known else DEFAULT_CONTEXT_WINDOW

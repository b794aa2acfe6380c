"""The classes under test, and how to make one that talks to a given address."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from llama_index.core.llms.llm import LLM

from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion

KEY = "csk-PLANTED-0123456789"
VARIABLE = "LLAMAINDEX_CONFORMANCE_SUBJECTS"


@dataclass(frozen=True)
class Subject:
    """An LLM class and what it is expected to do.

    Attributes:
        cls: The class.
        endpoint: What its requests go to: `chat` messages, or a `text` prompt.
        keywords: Constructor keywords for every instance, beside those that `make` gives.
        key_variable: Environment variable from which it reads its key.
        features: What else it does: `tools`, `reasoning`, `structured`, `images`, `logprobs`.
    """

    cls: type[LLM]
    endpoint: Literal["chat", "text"]
    keywords: Mapping[str, Any] = field(default_factory=dict)
    key_variable: str = "CEREBRAS_API_KEY"
    features: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return self.cls.__name__

    def make(self, base_url: str, **fields: Any) -> Any:
        """An instance that asks the given address once a call."""
        given = {"model": "gpt-oss-120b", "api_key": KEY, "api_base": f"{base_url}/v1", "max_retries": 0}
        return self.cls(**{**self.keywords, **given, **fields})


OURS = [
    Subject(
        Cerebras,
        "chat",
        features=frozenset({"tools", "reasoning", "structured", "images", "logprobs"}),
    ),
    Subject(CerebrasCompletion, "text", features=frozenset({"logprobs"})),
]


def subjects() -> list[Subject]:
    """The subjects that the environment names, else ours."""
    name = os.environ.get(VARIABLE)
    if not name:
        return OURS
    module, _, attribute = name.partition(":")
    found: list[Subject] = getattr(importlib.import_module(module), attribute)
    return found

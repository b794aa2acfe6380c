"""What is measured: each candidate offers the same few operations on a loopback URL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Protocol

KEY = "sk-benchmark"
MODEL = "bench-model"
PROMPT: list[dict[str, Any]] = [{"role": "user", "content": "Write a report."}]
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "write_report",
        "description": "Write a report.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    },
}


class Subject(Protocol):
    """A client or model, bound to one URL. Every operation returns how many deltas, or answers, it got."""

    def stream(self) -> int:
        """Read a whole stream."""
        ...

    async def astream(self) -> int:
        """Read a whole stream, async."""
        ...

    def call(self) -> int:
        """Ask once without a stream."""
        ...

    async def acall(self) -> int:
        """Ask once without a stream, async."""
        ...


@dataclass(frozen=True, slots=True)
class Setup:
    """What a subject is made for: messages in the form of the wire, or a prompt for completions, and tools."""

    url: str
    messages: list[dict[str, Any]] = field(default_factory=lambda: PROMPT)
    prompt: Any = None
    tools: bool = False
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Library:
    """One implementation, under the name that the results show.

    Attributes:
        name: Unique name.
        framework: `langchain`, `llamaindex`, or empty for one without.
        role: `ours`, `floor`, `incumbent`, or `plain`.
        make: Makes a subject.
    """

    name: str
    framework: str
    role: str
    make: Callable[[Setup], Subject]


_SOURCES = {
    "plain": ("ours.core", "plain.raw", "plain.sdk"),
    "langchain": ("floors.langchain", "ours.langchain", "incumbents.langchain"),
    "llamaindex": ("floors.llamaindex", "ours.llamaindex", "incumbents.llamaindex"),
}
missing: dict[str, str] = {}
"""Why a candidate is not there, by its name."""


def libraries(framework: str) -> dict[str, Library]:
    """Return the candidates of a framework (or `plain`) by role or name, without those that are not installed."""
    found = {}
    for source in _SOURCES[framework]:
        module, _, function = source.partition(".")
        try:
            library: Library = getattr(import_module(f"benchmarks.candidates.{module}"), function)()
        except (ImportError, AttributeError) as error:
            missing[source] = f"{type(error).__name__}: {error}"
            continue
        found[library.name if framework == "plain" else library.role] = library
    return found

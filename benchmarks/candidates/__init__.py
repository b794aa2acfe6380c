"""What is measured: each candidate offers the same few operations on a loopback URL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    """One implementation, under the name that failures show.

    Attributes:
        name: Unique name.
        make: Makes a subject.
    """

    name: str
    make: Callable[[Setup], Subject]


_SOURCES = {
    "plain": {"core": "ours.core", "httpx": "plain.raw", "sdk": "plain.sdk"},
    "langchain": {"floor": "floors.langchain", "ours": "ours.langchain", "incumbent": "incumbents.langchain"},
    "llamaindex": {"floor": "floors.llamaindex", "ours": "ours.llamaindex", "incumbent": "incumbents.llamaindex"},
}
GROUPS = tuple(_SOURCES)
"""Without a framework, and each framework: what one process measures and has loaded, as a user's program has."""
FRAMEWORKS = GROUPS[1:]
_MODULES = {
    "plain": ("cerebras.",),
    "langchain": ("langchain", "langgraph", "langsmith"),
    "llamaindex": ("llama_index", "llamaindex"),
}
missing: dict[str, str] = {}
"""Why a candidate is not there, by its name."""


def libraries(group: str, skip: Sequence[str] = ()) -> dict[str, Library]:
    """Return the candidates of a group by key, without those that are not installed; what is skipped is not loaded."""
    found = {}
    for key, source in _SOURCES[group].items():
        if key in skip:
            continue
        module, _, function = source.partition(".")
        try:
            library: Library = getattr(import_module(f"benchmarks.candidates.{module}"), function)()
        except (ImportError, AttributeError) as error:
            missing[source] = f"{type(error).__name__}: {error}"
            continue
        found[key] = library
    return found


def strangers(group: str, loaded: Iterable[str]) -> list[str]:
    """Return those of the loaded modules that belong to another group, and only make the heap larger in this one."""
    foreign = tuple(prefix for other, prefixes in _MODULES.items() if other != group for prefix in prefixes)
    return sorted(name for name in loaded if name.startswith(foreign))

"""Cerebras inference for LlamaIndex: `Cerebras` for chat and function calling, `CerebrasCompletion` for completions."""

from typing import TYPE_CHECKING, Any

from cerebras_ext import __version__

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError(
        'llamaindex_cerebras_ext needs llama_index.core: pip install "cerebras-ext[llamaindex]"'
    ) from error

from llamaindex_cerebras_ext.chat import Cerebras
from llamaindex_cerebras_ext.config import register
from llamaindex_cerebras_ext.errors import (
    InvalidOutputError,
    OutputTruncatedError,
    RefusalError,
    StructuredOutputError,
)

if TYPE_CHECKING:
    from llamaindex_cerebras_ext.completion import CerebrasCompletion
else:  # out of sight of type checkers, which take a module with `__getattr__` to have every name

    def __getattr__(name: str) -> Any:
        """Import the class of the older endpoint when it is asked for: most programs do without."""
        if name == "CerebrasCompletion":
            return _completion_class()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _completion_class() -> type["CerebrasCompletion"]:
    from llamaindex_cerebras_ext.completion import CerebrasCompletion

    return CerebrasCompletion


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


register(lambda: Cerebras, _completion_class)

__all__ = [
    "Cerebras",
    "CerebrasCompletion",
    "InvalidOutputError",
    "OutputTruncatedError",
    "RefusalError",
    "StructuredOutputError",
    "__version__",
]

"""Cerebras inference for LlamaIndex: `Cerebras` for chat and function calling, `CerebrasCompletion` for completions."""

from cerebras_ext import __version__

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError(
        'llamaindex_cerebras_ext needs llama_index.core: pip install "cerebras-ext[llamaindex]"'
    ) from error

from llamaindex_cerebras_ext.chat import Cerebras
from llamaindex_cerebras_ext.completion import CerebrasCompletion
from llamaindex_cerebras_ext.config import register
from llamaindex_cerebras_ext.errors import (
    InvalidOutputError,
    OutputTruncatedError,
    RefusalError,
    StructuredOutputError,
)

register(Cerebras, CerebrasCompletion)

__all__ = [
    "Cerebras",
    "CerebrasCompletion",
    "InvalidOutputError",
    "OutputTruncatedError",
    "RefusalError",
    "StructuredOutputError",
    "__version__",
]

"""Cerebras inference for LlamaIndex. The models themselves are not part of this version yet."""

from cerebras_ext import __version__

try:
    import llama_index.core  # noqa: F401
except ImportError as error:
    raise ImportError(
        'llamaindex_cerebras_ext needs llama_index.core: pip install "cerebras-ext[llamaindex]"'
    ) from error

__all__ = ["__version__"]

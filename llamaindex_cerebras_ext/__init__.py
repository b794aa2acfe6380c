"""Cerebras inference for LlamaIndex. The models themselves are not part of this version yet."""

import importlib.util

from cerebras_ext import __version__

if importlib.util.find_spec("llama_index") is None:
    raise ImportError('llamaindex_cerebras_ext needs llama_index.core: pip install "cerebras-ext[llamaindex]"')

__all__ = ["__version__"]

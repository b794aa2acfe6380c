"""Cerebras inference for LangChain. The models themselves are not part of this version yet."""

import importlib.util

from cerebras_ext import __version__

if importlib.util.find_spec("langchain_core") is None:
    raise ImportError('langchain_cerebras_ext needs langchain_core: pip install "cerebras-ext[langchain]"')

__all__ = ["__version__"]

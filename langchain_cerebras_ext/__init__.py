"""Cerebras inference for LangChain. The models themselves are not part of this version yet."""

from cerebras_ext import __version__

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_cerebras_ext needs langchain_core: pip install "cerebras-ext[langchain]"') from error

__all__ = ["__version__"]

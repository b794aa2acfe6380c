"""Cerebras inference for LangChain: `ChatCerebras` for chat, `CerebrasLLM` for text completion."""

try:
    import langchain_core  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_cerebras_ext needs langchain_core: pip install "cerebras-ext[langchain]"') from error

from cerebras_ext import __version__
from langchain_cerebras_ext import errors
from langchain_cerebras_ext.chat import ChatCerebras
from langchain_cerebras_ext.errors import CerebrasError
from langchain_cerebras_ext.llm import CerebrasLLM
from langchain_cerebras_ext.registration import register

__all__ = ["CerebrasError", "CerebrasLLM", "ChatCerebras", "__version__", "errors", "register"]

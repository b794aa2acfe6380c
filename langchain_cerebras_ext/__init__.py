"""Cerebras inference for LangChain: `ChatCerebras` for chat, `CerebrasLLM` for text completion."""

from typing import TYPE_CHECKING, Any

try:
    # Its largest modules before ours: in the other order Python takes 15,000 page faults more.
    import langchain_core.language_models.chat_models  # noqa: F401
except ImportError as error:
    raise ImportError('langchain_cerebras_ext needs langchain_core: pip install "cerebras-ext[langchain]"') from error

from cerebras_ext import __version__
from langchain_cerebras_ext import errors
from langchain_cerebras_ext.chat import ChatCerebras
from langchain_cerebras_ext.errors import CerebrasError
from langchain_cerebras_ext.registration import register

if TYPE_CHECKING:
    from langchain_cerebras_ext.llm import CerebrasLLM
else:  # out of sight of type checkers, which take a module with `__getattr__` to have every name

    def __getattr__(name: str) -> Any:
        """Load the text model at its first use: most programs chat only."""
        if name != "CerebrasLLM":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from langchain_cerebras_ext.llm import CerebrasLLM

        globals()[name] = CerebrasLLM
        return CerebrasLLM


__all__ = ["CerebrasError", "CerebrasLLM", "ChatCerebras", "__version__", "errors", "register"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""`init_chat_model("cerebras:...")`: an entry in LangChain's table of providers, made when asked for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

PROVIDER = "cerebras"
_MODULE = "langchain_cerebras_ext"
_CLASS = "ChatCerebras"


def _create(cls: type[Any], **kwargs: Any) -> Any:
    return cls(**kwargs)


def register() -> bool:
    """Make `init_chat_model("cerebras:<model>")` and `create_agent("cerebras:<model>")` use `ChatCerebras`.

    LangChain has no hook for providers that are not in its own table, so this writes an entry into that table, in this
    process. Calling it again changes nothing, and an entry that somebody else made is left alone.

    Returns:
        Whether `cerebras:` means our class now.

    Raises:
        ImportError: The package `langchain` is not installed.
        RuntimeError: This version of `langchain` keeps its providers in another way.
    """
    try:
        base = importlib.import_module("langchain.chat_models.base")
    except ImportError as error:
        raise ImportError(
            'register() needs the package langchain: pip install "cerebras-ext[langchain]" "langchain>=1.3"'
        ) from error
    table = getattr(base, "_BUILTIN_PROVIDERS", None)
    if not isinstance(table, dict) or not _has_known_form(table):
        raise RuntimeError(
            "this version of langchain keeps its providers in a form that is not known here: make the model with "
            f"ChatCerebras(...) and hand it over (langchain {_version_of_langchain()})"
        )
    entry = table.setdefault(PROVIDER, (_MODULE, _CLASS, _create))
    ours = tuple(entry[:2]) == (_MODULE, _CLASS)
    if not ours:
        warnings.warn(
            f"langchain has an entry for {PROVIDER!r} already ({entry[0]}.{entry[1]}); it was left alone", stacklevel=2
        )
    return ours


def _has_known_form(table: dict[Any, Any]) -> bool:
    """Whether entries are (module, class, function that makes an instance)."""
    return bool(table) and all(
        isinstance(entry, tuple)
        and len(entry) == 3
        and isinstance(entry[0], str)
        and isinstance(entry[1], str)
        and callable(entry[2])
        for entry in table.values()
    )


def _version_of_langchain() -> str:
    from importlib.metadata import version

    return version("langchain")

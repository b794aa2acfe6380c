"""LLMs by configuration: LlamaIndex's `load_llm`, and `from_config` for a dictionary or `cerebras:model`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from llama_index.core.llms.llm import LLM

PROVIDER = "cerebras"
_LOADING = "llama_index.core.llms.loading"


def register(*classes: Callable[[], type[LLM]]) -> None:
    """Make classes known to `load_llm` under their `class_name()`. A name that is taken stays as it is.

    The module of `load_llm` imports all providers that it knows, OpenAI's SDK among them, which takes longer than all
    that we need. So this waits until it is imported by whoever uses it.

    Args:
        *classes: Functions that return the classes, called when that module is there.
    """
    if _LOADING in sys.modules:
        _add(import_module(_LOADING), classes)  # which waits, where another thread is importing it
    else:
        sys.meta_path.insert(0, _WhenLoaded(classes))


def _add(loading: ModuleType, classes: Sequence[Callable[[], type[LLM]]]) -> None:
    for get_class in classes:
        cls = get_class()
        loading.RECOGNIZED_LLMS.setdefault(cls.class_name(), cls)


class _WhenLoaded(MetaPathFinder, Loader):
    """Stands before the other finders of modules until the one module has been imported, and adds classes to it."""

    def __init__(self, classes: Sequence[Callable[[], type[LLM]]]) -> None:
        self._classes = classes
        self._loader: Any = None

    def find_spec(self, name: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != _LOADING or self not in sys.meta_path:
            return None
        for finder in sys.meta_path[sys.meta_path.index(self) + 1 :]:
            spec = finder.find_spec(name, path, target) if hasattr(finder, "find_spec") else None
            if spec is not None and spec.loader is not None:
                self._loader, spec.loader = spec.loader, self
                return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        _add(module, self._classes)
        if self in sys.meta_path:
            sys.meta_path.remove(self)


def config_fields(config: Mapping[str, Any] | str, class_name: str) -> dict[str, Any]:
    """Return constructor keywords from a configuration.

    Args:
        config: Keywords, perhaps with `class_name`; or `cerebras:model`; or the name of a model.
        class_name: Name of the class that is wanted.

    Raises:
        ValueError: The configuration is for another class or provider, or names no model.
    """
    if isinstance(config, str):
        provider, colon, model = config.partition(":")
        if colon and provider != PROVIDER:
            raise ValueError(f"{config!r}: the provider must be {PROVIDER!r}, as in 'cerebras:gpt-oss-120b'")
        name = model if colon else provider
        if not name:
            raise ValueError(f"{config!r}: no model, as in 'cerebras:gpt-oss-120b'")
        return {"model": name}
    fields = dict(config)
    wanted = fields.pop("class_name", class_name)
    if wanted != class_name:
        raise ValueError(f"class_name: the configuration is for {wanted!r}, not for {class_name!r}")
    if isinstance(fields.get("model"), str):
        fields["model"] = fields["model"].removeprefix(f"{PROVIDER}:")
    return fields

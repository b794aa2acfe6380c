"""LLMs by configuration: LlamaIndex's `load_llm`, and `from_config` for a dictionary or `cerebras:model`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.llms.llm import LLM
from llama_index.core.llms.loading import RECOGNIZED_LLMS

PROVIDER = "cerebras"


def register(*classes: type[LLM]) -> None:
    """Make classes known to `load_llm` under their `class_name()`. A name that is taken stays as it is."""
    for cls in classes:
        RECOGNIZED_LLMS.setdefault(cls.class_name(), cls)


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

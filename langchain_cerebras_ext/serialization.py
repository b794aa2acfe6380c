"""Loading of dumped models and of chains with our models inside."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from langchain_core.load import load as load_of_core
from pydantic import SecretStr

from cerebras_ext.settings import KEY_VARIABLE

VALID_NAMESPACES = ["langchain_cerebras_ext"]
IMPORT_MAPPINGS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("langchain_cerebras_ext", "chat", "ChatCerebras"): ("langchain_cerebras_ext", "chat", "ChatCerebras"),
    ("langchain_cerebras_ext", "llm", "CerebrasLLM"): ("langchain_cerebras_ext", "llm", "CerebrasLLM"),
}
"""From the id of a class in dumps to where it is today. Ids never change, wherever a class moves."""

LOAD_OPTIONS: dict[str, Any] = {
    "allowed_objects": "core",
    "valid_namespaces": VALID_NAMESPACES,
    "additional_import_mappings": IMPORT_MAPPINGS,
}
"""What `langchain_core.load.load` and `loads` have to be told to allow our models beside langchain-core's classes."""


def load(
    data: Any, *, api_key: str | SecretStr | None = None, secrets_map: Mapping[str, str] | None = None, **options: Any
) -> Any:
    """Rebuild a model, or a chain with our models inside, from what `langchain_core.load.dumpd` made of it.

    Do not use it on data that others may have written: a dump decides, among other things, where the key is sent.

    Args:
        data: The dump.
        api_key: The key of our models, since dumps hold none; default `CEREBRAS_API_KEY`.
        secrets_map: Further secrets by name.
        **options: Options of `langchain_core.load.load`; `valid_namespaces` and `additional_import_mappings` add to
            ours.
    """
    secrets = dict(secrets_map or {})
    if api_key is not None:
        secrets[KEY_VARIABLE] = api_key.get_secret_value() if isinstance(api_key, SecretStr) else api_key
    namespaces = [*VALID_NAMESPACES, *(options.pop("valid_namespaces", None) or ())]
    mappings = {**IMPORT_MAPPINGS, **(options.pop("additional_import_mappings", None) or {})}
    return load_of_core(
        data,
        secrets_map=secrets,
        **{
            **LOAD_OPTIONS,
            "valid_namespaces": namespaces,
            "additional_import_mappings": mappings,
            **options,
        },
    )


def loads(text: str, **options: Any) -> Any:
    """Rebuild what `langchain_core.load.dumps` made a text of; arguments as for `load`."""
    return load(json.loads(text), **options)

"""Model profiles: what the core's catalog knows about a model, in LangChain's terms."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, get_type_hints

from langchain_core.language_models import ModelProfile

from cerebras_ext.catalog import ModelInfo, find_model


class CatalogProfile(dict[str, Any]):
    """A profile that came from the catalog, not from the user: it is filled in anew when the model is swapped."""


def profile_for(model: str) -> CatalogProfile | None:
    """Return the profile of a model as a new object, or None for a model that is not known."""
    known = find_model(model)
    return CatalogProfile(_profile(known)) if known else None


@lru_cache(maxsize=1)
def _known_keys() -> frozenset[str]:
    return frozenset(get_type_hints(ModelProfile))


def _profile(info: ModelInfo) -> dict[str, Any]:
    """Return every key that is known, in the vocabulary of the installed langchain-core.

    `structured_output` is left out on purpose: `create_agent` would then send the schema together with tools, which
    the service refuses, and takes a tool for the schema where the key is missing.
    """
    profile: dict[str, Any] = {
        "name": info.name,
        "status": "active" if info.public else None,
        "open_weights": info.open_weights,
        "max_input_tokens": info.context_window,
        "max_output_tokens": info.max_output_tokens,
        "text_inputs": True,
        "image_inputs": info.images,
        "image_url_inputs": False,  # data URIs only; the public service fetches nothing
        "pdf_inputs": False,
        "audio_inputs": False,
        "video_inputs": False,
        "image_tool_message": False,
        "pdf_tool_message": False,
        "text_outputs": True,
        "image_outputs": False,
        "audio_outputs": False,
        "video_outputs": False,
        "reasoning_output": info.reasoning,
        "reasoning_effort_levels": list(info.reasoning_efforts),
        "reasoning_effort_default": info.default_reasoning_effort,
        "tool_calling": info.tools,
        "tool_choice": info.tools,
        "tool_call_streaming": info.tools,
        "mid_conversation_system_messages": True,
        "mid_conversation_tools": False,
        "attachment": info.images,
        "temperature": True,
    }
    return {key: value for key, value in profile.items() if value is not None and key in _known_keys()}

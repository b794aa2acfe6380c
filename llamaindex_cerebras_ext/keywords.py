"""Constructor keywords of other LLM classes, and what they become here. A changed import should be all of a swap."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from cerebras_ext.errors import RequestValidationError, nearest_name
from cerebras_ext.settings import SettingsOptions, normalize_base_url

ALIASES: Mapping[str, str] = {
    "base_url": "api_base",
    "model_name": "model",
    "cerebras_api_key": "api_key",
    "request_timeout": "timeout",
    "max_new_tokens": "max_tokens",
    "headers": "default_headers",
    "http_async_client": "async_http_client",
}
"""Other names of fields."""


_SETTINGS = frozenset(SettingsOptions.__annotations__)


def _is(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value in values


WITHOUT_EFFECT: Mapping[str, Callable[[Any], bool]] = {
    "reuse_client": lambda value: isinstance(value, bool),
    "api_version": _is(None, ""),
    "modalities": _is(None, ["text"]),
    "audio_config": _is(None),
    "openai_client": _is(None),
    "async_openai_client": _is(None),
    "tokenizer": _is(None),
    "should_use_structured_outputs": _is(True, None),
    "use_chat_completions": _is(True, None),
}
"""Keywords of the OpenAI family that change nothing here, with the values for which that is so."""

REFUSED: Mapping[str, str] = {
    "api_version": "the service has no versions in its address; leave it out",
    "modalities": "the service answers in text only",
    "audio_config": "the service has no audio output",
    "openai_client": "pass http_client (an httpx.Client), or the settings that your client was made with",
    "async_openai_client": "pass async_http_client (an httpx.AsyncClient), or the settings of your client",
    "tokenizer": "nothing here counts tokens ahead; set llama_index.core.Settings.tokenizer",
    "reuse_client": "must be a bool",
    "should_use_structured_outputs": "set pydantic_program_mode to another mode than the default one",
    "use_chat_completions": "use CerebrasCompletion for the completions endpoint",
    "is_chat_model": "the class decides: Cerebras is the chat model, CerebrasCompletion is not",
    "is_function_calling_model": "the class decides: Cerebras calls functions, CerebrasCompletion does not",
}
"""Why other values of such keywords are refused."""


def constructor_fields(cls: type[BaseModel], data: Mapping[str, Any]) -> dict[str, Any]:
    """Rename keywords of other classes to fields of `cls`, and refuse what is not a field.

    Raises:
        RequestValidationError: Unknown keywords, or two names of one field with different values. Values are not told,
            since one may be a key.
    """
    known_fields = cls.__pydantic_fields__
    if None in data.values():  # what a configuration says for a setting that is not set
        data = {name: value for name, value in data.items() if value is not None or name not in _SETTINGS}
    if data.keys() <= known_fields.keys() and "top_logprobs" not in data:
        return dict(data)
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    wrong = []
    for given, value in data.items():
        name = given if given in known_fields else ALIASES.get(given, given)
        if name in known_fields:
            known = fields.get(name)
            if known is not None and value not in (None, known):
                wrong.append(f"{names[name]} and {given}: two names of one setting, given with different values")
            elif given == "base_url" and value and isinstance(value, str):
                wrong += _fault_of_url(value, given)
            if known is None:
                names[name] = given
            fields[name] = value if known is None else known
            # OpenAI's default, which asks for nothing; the service refuses it without logprobs.
            if name == "top_logprobs" and value == 0 and not data.get("logprobs"):
                del fields[name]
        elif not _has_no_effect(cls, given, value):
            wrong.append(_complaint(cls, given))
    if wrong:
        raise RequestValidationError("\n".join(wrong))
    return fields


def _fault_of_url(url: str, name: str) -> list[str]:
    """Return what is wrong with a URL, under the name that it was given by."""
    try:
        normalize_base_url(url, name)
    except ValueError as error:
        return [str(error)]
    return []


def _has_no_effect(cls: type[BaseModel], name: str, value: Any) -> bool:
    if name == "class_name":
        return True
    if name in ("is_chat_model", "is_function_calling_model"):  # Cerebras has a field for the second one
        return value is None or value is getattr(cls, "is_chat_class", True)
    return name in WITHOUT_EFFECT and WITHOUT_EFFECT[name](value)


def _complaint(cls: type[BaseModel], name: str) -> str:
    if name in REFUSED:
        return f"{name}: {REFUSED[name]}"
    known = [*cls.model_fields, *ALIASES]
    near = nearest_name(name, known)
    guess = f"; did you mean {near!r}?" if near else "."
    return (
        f"{name}: unknown keyword of {cls.__name__}{guess} A request field that the library does not know can be sent "
        "with extra_body."
    )

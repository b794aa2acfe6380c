"""What the chat model and the text model have in common: parameters, their levels, token counts."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

from langchain_core.messages import BaseMessage
from pydantic import Field, model_validator

from cerebras_ext import __version__
from cerebras_ext.body import merge_levels, number_of_choices
from cerebras_ext.settings import mask_url
from cerebras_ext.types import ChatRequest, CompletionRequest
from langchain_cerebras_ext.connection import Connected
from langchain_cerebras_ext.keywords import (
    TRANSPORT_OPTIONS,
    call_level,
    lift_model_kwargs,
    resolve_aliases,
    split_unknown,
)
from langchain_cerebras_ext.profiles import CatalogProfile, profile_for
from langchain_cerebras_ext.tokens import count_messages, estimate_tokens

PROVIDER = "cerebras"
MethodT = TypeVar("MethodT", bound=Callable[..., Any])

_MERGED_NAMES = frozenset(("extra_body", "max_completion_tokens"))
"""Fields that have to be merged with others of their own level."""


def request_field(name: str, request: type[ChatRequest | CompletionRequest] = CompletionRequest) -> Any:
    """Return an optional pydantic field that is described as the request's field of that name is."""
    return Field(default=None, description=request.model_fields[name].description)


def with_signature(method: MethodT) -> MethodT:
    """Keep the signature of a method with it: langchain-core asks for that of `_generate` at each call."""
    method.__signature__ = inspect.signature(method)  # type: ignore[attr-defined]
    return method


def number_of_answers(fields: Mapping[str, Any]) -> int:
    """Return how many answers to a prompt merged fields of a request ask for, `extra_body` included."""
    return number_of_choices({"n": fields.get("n"), **(fields.get("extra_body") or {}), "prompt": None})


def add_usage(total: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Add up token counts, also those in nested breakdowns; of anything else the last one counts."""
    result = dict(total)
    for name, value in new.items():
        old = result.get(name)
        if isinstance(value, Mapping):
            result[name] = add_usage(old if isinstance(old, Mapping) else {}, value)
        elif isinstance(value, int) and isinstance(old, int):
            result[name] = old + value
        elif value is not None or name not in result:
            result[name] = value
    return result


class CerebrasBase(Connected):
    """Connection, shared parameters and life cycle of our models. Making one opens nothing.

    A subclass sets `_request_type` and has a field for every field of it that may be set ahead of a call.
    """

    _request_type: ClassVar[type[ChatRequest | CompletionRequest]]
    _call_settings: ClassVar[frozenset[str]] = frozenset()
    """Call options that the class itself takes care of."""
    _level_names: ClassVar[tuple[str, ...]] = ()
    """Fields of the class that are fields of the request too."""
    _field_names: ClassVar[frozenset[str]] = frozenset()

    streaming: bool = Field(default=False, description="Whether a call that could do without a stream uses one.")
    include_response_headers: bool = Field(
        default=False, description="Put the response headers that hold no secret into the metadata of an answer."
    )
    model_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Members of the request body that are sent as they are."
    )

    frequency_penalty: float | None = request_field("frequency_penalty")
    logit_bias: dict[str, float] | None = request_field("logit_bias")
    max_tokens: int | None = Field(
        default=None, description="Limit of generated tokens, reasoning included; -1 for what the context allows."
    )
    min_tokens: int | None = request_field("min_tokens")
    n: int | None = request_field("n")
    presence_penalty: float | None = request_field("presence_penalty")
    prompt_cache_key: str | None = request_field("prompt_cache_key")
    reasoning_format: str | None = request_field("reasoning_format")
    seed: int | None = request_field("seed")
    stop: str | list[str] | None = request_field("stop")
    stream_options: dict[str, Any] | None = request_field("stream_options")
    temperature: float | None = request_field("temperature")
    top_p: float | None = request_field("top_p")
    user: str | None = request_field("user")
    extra_body: dict[str, Any] | None = request_field("extra_body")

    # ---- construction ----

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Note which fields go into a request, once for the class instead of at each call."""
        super().__pydantic_init_subclass__(**kwargs)
        known = cls._request_type.model_fields if hasattr(cls, "_request_type") else ()
        cls._level_names = tuple(name for name in cls.model_fields if name in known)
        cls._field_names = frozenset(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _take_keywords(cls, values: Any) -> Any:
        """Bring other spellings, other providers' keywords and unknown keywords to our fields."""
        if not isinstance(values, Mapping):
            return values
        if cls._field_names >= values.keys() and not values.get("model_kwargs") and "profile" not in values:
            return values
        known = cls.model_fields
        fields, unknown = split_unknown(resolve_aliases(values, known), known, cls.__name__)
        if isinstance(fields.get("profile"), CatalogProfile):
            # Filled in for the model of another instance; this one may have another model.
            del fields["profile"]
        fields["model_kwargs"] = lift_model_kwargs(fields, {**(fields.get("model_kwargs") or {}), **unknown}, known)
        return fields

    @model_validator(mode="after")
    def _check_cerebras_parameters(self) -> Self:
        """Refuse parameters that the core would refuse at the first call."""
        fields = self._constructor_level()
        if len(fields) > 1:
            self._request_type(**merge_levels(fields), **self._placeholder())
        return self

    @model_validator(mode="after")
    def _set_cerebras_ext_version(self) -> Self:
        add_version = getattr(self, "_add_version", None)
        if add_version is not None:
            add_version("cerebras-ext", __version__)
        return self

    @classmethod
    def _placeholder(cls) -> dict[str, Any]:
        """The least that a request needs beside its parameters, to check these before there is a request."""
        if issubclass(cls._request_type, ChatRequest):
            return {"messages": [{"role": "user", "content": ""}]}
        return {"prompt": ""}

    # ---- levels ----

    def _constructor_level(self) -> dict[str, Any]:
        """Fields of the request that the constructor was given."""
        value_of = self.__dict__.get
        level = {name: value for name in self._level_names if (value := value_of(name)) is not None}
        if self.model_kwargs:
            level["extra_body"] = {**self.model_kwargs, **(self.extra_body or {})}
        return level

    def _merged(self, stop: list[str] | None, options: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
        """Return the keywords for a method of the core's clients, all but messages or prompt.

        Args:
            stop: What LangChain hands over as `stop`, bound or of the call; wins over the constructor's.
            options: Options of the call, bound ones included; they win over the constructor's fields.
            quiet: Neither warn about options nor refuse any.
        """
        level = self._constructor_level()
        if not options and stop is None and _MERGED_NAMES.isdisjoint(level):
            return level  # nothing to merge
        return merge_levels(level, self._call_level(stop, options, quiet=quiet))

    def _call_level(self, stop: list[str] | None, options: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
        """Fields of the request and transport options of one call, bound ones included."""
        level = call_level(options, self._request_type.model_fields, self._call_settings, quiet=quiet)
        if stop is not None and level.get("stop") is None:
            level["stop"] = stop
        return level

    def _parameters(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything that decides what is sent, for traces and cache keys. Holds no secret."""
        merged = self._merged(None, options, quiet=True)
        if options:
            for name in TRANSPORT_OPTIONS:
                merged.pop(name, None)
            merged.update({name: options[name] for name in self._call_settings if name in options})
        url = self.base_url or ""
        merged["base_url"] = mask_url(url) if "@" in url else url
        return merged

    @property
    def model_name(self) -> str:
        """The model id, under the name that other integrations have for it."""
        return self.model

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return self._parameters({})

    def _complete_ls_params(self, params: Any, stop: list[str] | None, options: Mapping[str, Any]) -> Any:
        """Set what tracers want to know about a call, after the rules of `_merged`."""
        merged = self._merged(stop, options, quiet=True)
        params["ls_provider"] = PROVIDER
        params["ls_model_name"] = merged["model"]
        for name in ("temperature", "max_tokens"):
            if name in merged:
                params[f"ls_{name}"] = merged[name]
        if "stop" in merged:
            params["ls_stop"] = [merged["stop"]] if isinstance(merged["stop"], str) else merged["stop"]
        return params

    # ---- token counts ----

    def get_token_ids(self, text: str) -> list[int]:
        """Return the token ids of a text, by `custom_get_token_ids`: no tokenizer comes with this library.

        Raises:
            NotImplementedError: `custom_get_token_ids` is not set.
        """
        tokenize: Callable[[str], list[int]] | None = getattr(self, "custom_get_token_ids", None)
        if tokenize is None:
            raise NotImplementedError("token ids need a tokenizer: pass custom_get_token_ids=...; counts work without")
        return tokenize(text)

    def get_num_tokens(self, text: str) -> int:
        """Return about how many tokens a text has; exactly with `custom_get_token_ids`. Opens no connection."""
        if getattr(self, "custom_get_token_ids", None) is not None:
            return len(self.get_token_ids(text))
        return estimate_tokens(text)

    def get_num_tokens_from_messages(self, messages: Sequence[BaseMessage], tools: Sequence[Any] | None = None) -> int:
        """Return about how many tokens messages and tools have; see `langchain_cerebras_ext.tokens`.

        An image costs a fixed number whatever its size, and nothing is downloaded.
        """
        return count_messages(messages, tools, count=self.get_num_tokens)

    # ---- the profile goes with the model ----

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "model" and self._has_catalog_profile():
            self.profile = profile_for(value)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, as pydantic does, with a client and a profile that fit them."""
        twin = super().model_copy(update=update, deep=deep)
        if update and "model" in update and twin._has_catalog_profile():
            twin.profile = profile_for(twin.model)
        return twin

    def with_profile_of(self, model: str) -> Self:
        """Return a model whose profile is that of another model, unless the user gave a profile."""
        return self.model_copy(update={"model": model}) if model != self.model and self._has_catalog_profile() else self

    def _has_catalog_profile(self) -> bool:
        """Whether the profile, or that there is none, came from the catalog and not from the user."""
        has_one = "profile" in type(self).model_fields
        return has_one and isinstance(getattr(self, "profile", None), CatalogProfile | None)

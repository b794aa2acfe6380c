"""What both LLM classes share: connection fields, clients made at first use, metadata, copying, levels of settings."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Self

from llama_index.core.base.llms.types import LLMMetadata
from llama_index.core.llms.llm import LLM
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    SecretStr,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import SkipJsonSchema

from cerebras_ext import AsyncClient, Client
from cerebras_ext.body import merge_levels
from cerebras_ext.catalog import context_window
from cerebras_ext.encoding import Payload
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.keywords import CallOptions
from cerebras_ext.plain import plain_headers, plain_timeout, plain_url, plain_verify, read_timeout
from cerebras_ext.settings import (
    DEFAULT_MAX_RETRIES,
    AsyncHTTPClient,
    HTTPClient,
    SettingsOptions,
    Timeout,
    Transport,
    hide_keys,
    normalize_base_url,
    resolve_base_url,
    resolve_key,
    resolve_settings,
)
from cerebras_ext.types import ChatRequest, CompletionRequest
from llamaindex_cerebras_ext.config import config_fields
from llamaindex_cerebras_ext.keywords import ALIASES, constructor_fields

CALL_OPTIONS = frozenset(CallOptions.__annotations__)
"""What a call takes beside request fields; see `cerebras_ext.Client.chat`."""

_NAMES_OF_KEYS = ("api_key", *(alias for alias, name in ALIASES.items() if name == "api_key"))
_CONNECTION = tuple(name for name in SettingsOptions.__annotations__ if name != "base_url")
_CONNECTION_FIELDS = frozenset({"api_base", *_CONNECTION})
# A dump holds no key, so an LLM can be made from one where the key is not there yet; the first call asks for it.
_KEY_MAY_BE_MISSING: ContextVar[bool] = ContextVar("key_may_be_missing", default=False)
_LIMITS = ("max_completion_tokens", "max_tokens")
_SHARED_BY_COPIES = ("callback_manager", "rate_limiter", "http_client", "async_http_client", "api_key", "verify")
_NEVER_LEFT_OUT = {
    "http_client": "pass proxy, verify, timeout and default_headers instead",
    "async_http_client": "pass proxy, verify, timeout and default_headers instead",
    "verify": "give the path of the CA file or folder",
    "api_key": "give a function that a module defines, or the key",
}

TimeoutField = Annotated[
    Timeout | None,
    BeforeValidator(read_timeout),
    PlainSerializer(plain_timeout),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "object"}, {"type": "null"}]}),
]
KeyField = Annotated[
    SecretStr | Callable[[], str] | None, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})
]
VerifyField = Annotated[
    bool | str | ssl.SSLContext,
    PlainSerializer(plain_verify),
    WithJsonSchema({"anyOf": [{"type": "boolean"}, {"type": "string"}]}),
]
# None is what OpenAI's class takes for no options.
OptionsField = Annotated[dict[str, Any], BeforeValidator(lambda options: {} if options is None else options)]
UrlField = Annotated[str | None, PlainSerializer(plain_url)]
HeadersField = Annotated[dict[str, str] | None, PlainSerializer(plain_headers)]


class _Clients:
    """The clients of one LLM, and the settings that they were made with. Copies and pickles start without."""

    __slots__ = ("async_client", "async_settings", "sync_client", "sync_settings")

    def __init__(self) -> None:
        self.sync_client: Client | None = None
        self.sync_settings: dict[str, Any] = {}
        self.async_client: AsyncClient | None = None
        self.async_settings: dict[str, Any] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> _Clients:
        return _Clients()

    def __reduce__(self) -> tuple[Any, ...]:
        return _Clients, ()


class CerebrasBase(LLM):
    """Base of `Cerebras` and `CerebrasCompletion`.

    Making one opens nothing. A missing key is told at once, except by `from_dict`: there at the first call.
    """

    # Only classes that are made, such as `Cerebras`, build their validators when they are imported.
    model_config = ConfigDict(
        arbitrary_types_allowed=True, hide_input_in_errors=True, protected_namespaces=(), defer_build=True
    )

    request_type: ClassVar[type[ChatRequest] | type[CompletionRequest]]
    is_chat_class: ClassVar[bool] = True

    model: str = Field(min_length=1, description="Model id, or endpoint id of a dedicated endpoint.")
    additional_kwargs: OptionsField = Field(
        default_factory=dict, description="Request fields and call options of every call; they win over the fields."
    )
    context_window: int | None = Field(
        default=None, gt=0, description="Tokens that fit; default from the catalog of models, else a careful guess."
    )
    api_key: KeyField = Field(
        default=None,
        exclude=True,
        repr=False,
        description="The key, or a function that returns it; default CEREBRAS_API_KEY.",
    )
    api_base: UrlField = Field(
        default=None, description="Base URL, with or without /v1; default CEREBRAS_BASE_URL, else the public service."
    )
    timeout: TimeoutField = Field(
        default=None,
        description="Seconds between two pieces of an answer, or an httpx.Timeout; default 60, 5 to connect.",
    )
    max_retries: int = Field(default=DEFAULT_MAX_RETRIES, ge=0, description="Repetitions after the first request.")
    max_retry_wait: float | None = Field(
        default=None, ge=0, description="Longest wait in seconds that the service may ask for; default 60."
    )
    default_headers: HeadersField = Field(default=None, repr=False, description="Headers of every request.")
    proxy: UrlField = Field(default=None, repr=False, description="Proxy URL; default from HTTP(S)_PROXY and NO_PROXY.")
    verify: VerifyField = Field(default=True, description="False, a CA file or folder, or an ssl.SSLContext.")
    http2: bool = Field(default=False, description="Offer HTTP/2 (extra `http2`; over httpx only).")
    payload: Payload = Field(
        default="json",
        description="Encoding of request bodies: json, msgpack, gzip, msgpack+gzip, or auto (gzip from 4 KiB).",
    )
    queue_threshold: int | None = Field(
        default=None, description="Longest average queue time in milliseconds, for service tiers flex and auto."
    )
    stream_idle_timeout: float | None = Field(default=None, gt=0, description="Seconds without an event of a stream.")
    transport: Transport = Field(
        default="httpx",
        description="What carries the calls: httpx; for less CPU time httptools (extra `httptools`; without a proxy), "
        "or aiohttp (extra `aiohttp`; async calls only).",
    )
    coalesce: bool = Field(
        default=False, description="Join text and reasoning that one read of the network brought; nothing waits for it."
    )
    http_client: SkipJsonSchema[HTTPClient | None] = Field(
        default=None, exclude=True, repr=False, description="Client for sync calls, used as it is and never closed."
    )
    async_http_client: SkipJsonSchema[AsyncHTTPClient | None] = Field(
        default=None, exclude=True, repr=False, description="Client for async calls, used as it is and never closed."
    )

    _clients: _Clients = PrivateAttr(default_factory=_Clients)

    def __init__(self, *args: Any, **data: Any) -> None:
        hide_keys(data, _NAMES_OF_KEYS)
        if args:
            name = type(self).__name__
            raise TypeError(f"{name} takes keywords only: write {name}(model=...), with a name for each argument")
        super().__init__(**data)
        if self.api_key is None and not _KEY_MAY_BE_MISSING.get():
            resolve_key(None)

    @classmethod
    def from_dict(cls, data: dict[str, Any], **kwargs: Any) -> Self:
        """Make an LLM from what `to_dict` wrote. The key comes from the environment, at the latest at a call."""
        data = dict(data)
        hide_keys(data, _NAMES_OF_KEYS)
        hide_keys(kwargs, _NAMES_OF_KEYS)
        token = _KEY_MAY_BE_MISSING.set(True)
        try:
            return super().from_dict(data, **kwargs)
        finally:
            _KEY_MAY_BE_MISSING.reset(token)

    @model_validator(mode="before")
    @classmethod
    def _rename_and_refuse(cls, data: Any) -> Any:
        return constructor_fields(cls, data) if isinstance(data, Mapping) else data

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        given = self.model_fields_set
        # The rule of `model`, which every LLM has, is here that of the request too.
        if given.intersection(self.request_type.__pydantic_fields__) != {"model"} or _has_defaults(type(self)):
            self.request_type.check_fields(self._constructor_level())
        options = {name: value for name, value in self.additional_kwargs.items() if name not in CALL_OPTIONS}
        if options:
            self.request_type.check_fields(options)
        connection = given & _CONNECTION_FIELDS
        if connection == {"api_base"} and self.api_base:
            normalize_base_url(self.api_base, "api_base")  # the rest are defaults
        elif connection:
            self._check_connection()
        return self

    def _check_connection(self) -> None:
        settings = self._connection_settings()
        # Any proxy will do for the check: without one the environment is searched, which costs the most.
        settings["proxy"] = settings["proxy"] or "http://localhost"
        url = settings["base_url"]
        settings["base_url"] = normalize_base_url(url, "api_base") if url else resolve_base_url(None)
        lasting = settings["verify"] is True and not settings["default_headers"]  # A file may be gone the next time.
        if lasting and isinstance(settings["timeout"], float | None):
            _check_settings(tuple(settings.items()))
        else:
            resolve_settings(**settings)

    @classmethod
    def from_config(cls, config: Mapping[str, Any] | str, **overrides: Any) -> Self:
        """Make an LLM from a configuration.

        Args:
            config: Constructor keywords, as `to_dict` writes them; or `cerebras:model`; or the name of a model.
            **overrides: Constructor keywords that win over the configuration.

        Raises:
            ValueError: The configuration is for something else, or has unknown or illegal settings.
        """
        hide_keys(overrides, _NAMES_OF_KEYS)
        fields = {**config_fields(config, cls.class_name()), **overrides}
        hide_keys(fields, _NAMES_OF_KEYS)
        del config  # it may hold a key, and error trackers show the local variables of all frames
        return cls(**fields)

    # ---- levels of settings ----

    def _constructor_level(self) -> dict[str, Any]:
        """Return the request fields that were given to the constructor (or set later)."""
        get = self.__dict__.get
        return {name: value for name in _field_names(self.request_type) if (value := get(name)) is not None}

    def _merged(self, call: Mapping[str, Any], **fixed: Any) -> dict[str, Any]:
        """Return keywords for a client's method: constructor, then `additional_kwargs`, then the call.

        Args:
            call: Request fields and call options of this call.
            **fixed: What the adapter decides, e.g. `messages`.

        Raises:
            RequestValidationError: A level contradicts itself, or has something that only the adapter decides.
        """
        for level in (self.additional_kwargs, call):
            for name in (*fixed, "stream"):
                if level.get(name) is not None:
                    raise RequestValidationError(f"{name}: decided by the method that is called and its arguments")
        return {**merge_levels(self._constructor_level(), self.additional_kwargs, call), **fixed}

    # ---- clients ----

    def _connection_settings(self) -> dict[str, Any]:
        state = self.__dict__
        settings = {name: state[name] for name in _CONNECTION}
        settings["base_url"] = state["api_base"]
        if settings["default_headers"]:
            settings["default_headers"] = dict(settings["default_headers"])
        return settings

    def _client(self) -> Client:
        """Return the sync client for the present settings."""
        settings = {**self._connection_settings(), "api_key": self.api_key, "http_client": self.http_client}
        clients = self._clients
        if clients.sync_client is None or clients.sync_settings != settings:
            clients.sync_client, clients.sync_settings = Client(**settings), settings
        return clients.sync_client

    def _async_client(self) -> AsyncClient:
        """Return the async client for the present settings; it works in every event loop."""
        settings = {
            **self._connection_settings(), "api_key": self.api_key, "http_async_client": self.async_http_client
        }  # fmt: skip
        clients = self._clients
        if clients.async_client is None or clients.async_settings != settings:
            clients.async_client, clients.async_settings = AsyncClient(**settings), settings
        return clients.async_client

    def close(self) -> None:
        """Close the connections of sync calls. A later call opens new ones."""
        client, self._clients.sync_client = self._clients.sync_client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop and those of sync calls. A later call opens new ones."""
        client, self._clients.async_client = self._clients.async_client, None
        if client is not None:
            await client.aclose()
        self.close()

    # ---- what LlamaIndex reads ----

    @property
    def metadata(self) -> LLMMetadata:
        """Facts about the model that LlamaIndex plans with; computed from fields and the catalog, without I/O."""
        window = self.context_window or context_window(self.model)
        limit = self._output_limit()
        return LLMMetadata(
            context_window=window,
            # Above half of the window, PromptHelper finds no room for a prompt and raises.
            num_output=min(limit, window // 2) if limit else -1,
            is_chat_model=self.is_chat_class,
            is_function_calling_model=bool(self.__dict__.get("is_function_calling_model")),
            model_name=self.model,
        )

    def _output_limit(self) -> int | None:
        levels = (self.__dict__, self.additional_kwargs)
        fields = merge_levels(*({name: level.get(name) for name in _LIMITS} for level in levels))
        limit = fields.get("max_completion_tokens") or fields.get("max_tokens")
        return limit if isinstance(limit, int) and limit > 0 else None

    def to_payload(self) -> dict[str, Any]:
        """Return what events and callbacks tell about this LLM; never a secret."""
        payload = {"class_name": self.class_name(), **self.metadata.model_dump(), "model": self.model}
        temperature = self.additional_kwargs.get("temperature", self.__dict__.get("temperature"))
        if temperature is not None:
            payload["temperature"] = temperature
        return payload

    # ---- copying, comparing, pickling ----

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin._clients = _Clients()
        return twin

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        for name in _SHARED_BY_COPIES:
            value = self.__dict__.get(name)
            memo[id(value)] = value
        return super().__deepcopy__(memo)

    def __eq__(self, other: object) -> bool:
        """Whether the settings are the same. Callback managers, which are never equal, are not looked at."""
        if not isinstance(other, CerebrasBase) or type(self) is not type(other):
            return NotImplemented
        return _settings_of(self) == _settings_of(other)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle. Core leaves out what cannot be pickled; with these another LLM would come back.

        Raises:
            TypeError: A field that says with which key, to whom or how to connect cannot be pickled.
        """
        # Of a copy, since core deletes what cannot be pickled from the object itself.
        state: dict[str, Any] = super(CerebrasBase, self.__copy__()).__getstate__()
        for name, instead in _NEVER_LEFT_OUT.items():
            if self.__dict__.get(name) is not None and name not in state["__dict__"]:
                raise TypeError(f"an LLM with this {name} cannot be pickled: {instead}")
        return state

    def __repr_args__(self) -> Any:
        for name, value in super().__repr_args__():
            yield name, plain_url(value) if name == "api_base" else value


@lru_cache(maxsize=64)
def _field_names(request_type: type[BaseModel]) -> tuple[str, ...]:
    return tuple(request_type.model_fields)


@lru_cache(maxsize=64)
def _has_defaults(cls: type[CerebrasBase]) -> bool:
    """Whether a subclass gives a field of the request a default of its own."""
    names = cls.model_fields.keys() & cls.request_type.model_fields.keys() - {"model"}
    return any(cls.model_fields[name].get_default(call_default_factory=False) is not None for name in names)


@lru_cache(maxsize=64)
def _check_settings(settings: tuple[tuple[str, Any], ...]) -> None:
    """Check settings whose check always ends alike: once, since it takes longer than making the LLM."""
    resolve_settings(**dict(settings))


def request_field(request: type[BaseModel], name: str) -> Any:
    """Return a constructor field, not given by default, with the description of the request's field."""
    return Field(default=None, description=request.model_fields[name].description)


def _settings_of(llm: CerebrasBase) -> dict[str, Any]:
    return {name: value for name, value in llm.__dict__.items() if name != "callback_manager"}

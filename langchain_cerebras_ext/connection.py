"""The connection of our models: settings, the core's clients made at first use, copies and pickles."""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable, Mapping
from operator import itemgetter
from types import TracebackType
from typing import Any, Self

from langchain_core.load.serializable import Serializable
from pydantic import ConfigDict, Field, PrivateAttr, SecretStr, ValidationError, field_validator, model_validator
from pydantic.json_schema import SkipJsonSchema

from cerebras_ext import AsyncClient, Client
from cerebras_ext.encoding import Payload
from cerebras_ext.errors import CerebrasError
from cerebras_ext.plain import plain_timeout, plain_url
from cerebras_ext.settings import (
    KEY_VARIABLE,
    AsyncHTTPClient,
    HTTPClient,
    SettingsOptions,
    Timeout,
    Transport,
    hide_keys,
    make_timeout,
    mask_url,
    resolve_base_url,
    resolve_key,
    resolve_settings,
)
from langchain_cerebras_ext.errors import ERROR_TYPES, adopt
from langchain_cerebras_ext.keywords import ALIASES

CONNECTION_FIELDS = tuple(SettingsOptions.__annotations__)
_connection_of = itemgetter(*CONNECTION_FIELDS)

_OF_A_CLIENT = frozenset((*CONNECTION_FIELDS, "api_key", "http_client", "http_async_client"))
_NAMES_OF_KEYS = ("api_key", *(alias for alias, name in ALIASES.items() if name == "api_key"))
_SHARED_BY_COPIES = ("http_client", "http_async_client", "verify", "api_key", "rate_limiter", "cache", "callbacks")


class _Clients:
    """The core's clients of one instance, made at first use. No part of the instance's value, never pickled."""

    __slots__ = ("async_", "sync")

    def __init__(self) -> None:
        self.sync: Client | None = None
        self.async_: AsyncClient | None = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Clients)

    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[type[_Clients], tuple[()]]:
        return _Clients, ()


class Connected(Serializable):
    """Settings of a connection, and what follows from having one. Making an instance opens nothing."""

    # Input is left out of the texts of errors: where a keyword is missing, it is all keywords, the key among them.
    # No instances are made of this class and `CerebrasBase`, so only their subclasses have validators built.
    model_config = ConfigDict(arbitrary_types_allowed=True, extra="ignore", hide_input_in_errors=True, defer_build=True)

    model: str = Field(min_length=1, description="Model id, or endpoint id of a dedicated endpoint.")
    api_key: SecretStr | SkipJsonSchema[Callable[[], str]] | None = Field(
        default=None, repr=False, description=f"The key, or a function that returns one; default {KEY_VARIABLE}."
    )
    base_url: str | None = Field(
        default=None,
        description="With or without /v1; default CEREBRAS_BASE_URL, CEREBRAS_API_BASE, else the public service.",
    )
    timeout: Timeout | None = Field(
        default=None,
        description="Seconds between two pieces of an answer (5 s at most to connect); 60. None on whole streams.",
    )
    max_retries: int | None = Field(default=None, description="Repetitions after the first request, from 0; 2.")
    max_retry_wait: float | None = Field(
        default=None, description="Longest wait in seconds taken from retry-after; 60."
    )
    default_headers: Mapping[str, str] | None = Field(
        default=None,
        exclude=True,
        repr=False,
        description="Headers of every request. Never serialised: they may hold secrets.",
    )
    proxy: str | None = Field(
        default=None, exclude=True, repr=False, description="Proxy URL; default from HTTP(S)_PROXY and NO_PROXY."
    )
    verify: bool | str | os.PathLike[str] | ssl.SSLContext | None = Field(
        default=None, exclude=True, description="False, a CA file or folder, or an ssl.SSLContext."
    )
    http2: bool | None = Field(default=None, description="Offer HTTP/2 (extra `http2`; over httpx only).")
    payload: Payload | None = Field(
        default=None,
        description="Encoding of request bodies: json, msgpack, gzip, msgpack+gzip, or auto (gzip from 4 KiB).",
    )
    queue_threshold: int | None = Field(
        default=None,
        description="Longest average queue time in milliseconds, 50 to 20000, for service tiers flex and auto.",
    )
    stream_idle_timeout: float | None = Field(
        default=None, description="Seconds without an event of a stream, comments not counted."
    )
    transport: Transport | None = Field(
        default=None,
        description="What carries the calls: httpx; for less CPU time httptools (extra `httptools`; without a proxy), "
        "or aiohttp (extra `aiohttp`; async calls only).",
    )
    coalesce: bool | None = Field(
        default=None, description="Join text and reasoning that one read of the network brought; nothing waits for it."
    )
    http_client: HTTPClient | None = Field(
        default=None, exclude=True, repr=False, description="Client to use as it is for sync calls, and never to close."
    )
    http_async_client: AsyncHTTPClient | None = Field(
        default=None,
        exclude=True,
        repr=False,
        description="Client to use as it is for async calls, and never to close.",
    )

    _clients: _Clients = PrivateAttr(default_factory=_Clients)
    _key_from_environment: bool = PrivateAttr(False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        hide_keys(kwargs, _NAMES_OF_KEYS)
        try:
            super().__init__(*args, **kwargs)
        except ValidationError as error:
            for item in error.errors(include_url=False, include_input=False):
                cause = (item.get("ctx") or {}).get("error")
                if isinstance(cause, CerebrasError):
                    adopt(cause)
                    raise cause from None
            raise

    def model_post_init(self, context: Any, /) -> None:
        """Hand on to langchain-core, whose own one pydantic would hide behind that for our private attributes."""
        super().model_post_init(context)

    @field_validator("timeout", mode="before")
    @classmethod
    def _read_dumped_timeout(cls, value: Any) -> Any:
        return make_timeout(value) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _check_cerebras_connection(self) -> Self:
        """Resolve what the environment decides; refuse what a client would refuse at the first call."""
        # Set as pydantic sets a field; our `__setattr__` would make new clients each time.
        values, key = self.__dict__, self.api_key
        if key is None or (isinstance(key, SecretStr) and not key.get_secret_value()):
            values["api_key"], self._key_from_environment = resolve_key(None)
        elif isinstance(key, SecretStr):
            values["api_key"] = resolve_key(key)[0]
        values["base_url"] = resolve_base_url(self.base_url)
        self.__pydantic_fields_set__.update(("api_key", "base_url"))
        found = _connection_of(values)
        if len(found) - found.count(None) > 1:
            resolve_settings(**{name: values[name] for name in CONNECTION_FIELDS if values[name] is not None})
        return self

    # ---- clients ----

    def _client_options(self) -> dict[str, Any]:
        options = {name: getattr(self, name) for name in CONNECTION_FIELDS}
        return {**options, "api_key": self.api_key, "error_types": ERROR_TYPES}

    @property
    def _kept_clients(self) -> _Clients:
        # Straight from where pydantic keeps it: its way to a private attribute takes longer than all else here.
        private = self.__pydantic_private__
        clients: _Clients = self._clients if private is None else private["_clients"]
        return clients

    @property
    def _sync_client(self) -> Client:
        clients = self._kept_clients
        client = clients.sync
        if client is None:
            client = clients.sync = Client(http_client=self.http_client, **self._client_options())
        return client

    @property
    def _async_client(self) -> AsyncClient:
        clients = self._kept_clients
        client = clients.async_
        if client is None:
            client = clients.async_ = AsyncClient(http_async_client=self.http_async_client, **self._client_options())
        return client

    def close(self) -> None:
        """Close the sync connections, unless another model uses them too. Later sync calls raise."""
        self._sync_client.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and the sync ones, unless another model uses them too."""
        await self._async_client.aclose()
        self._sync_client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # ---- values, copies, pickles ----

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """Our models can be dumped and loaded; see `langchain_cerebras_ext.serialization`."""
        return True

    @property
    def lc_secrets(self) -> dict[str, str]:
        """The key is dumped as a reference to the environment variable."""
        return {"api_key": KEY_VARIABLE}

    @property
    def lc_attributes(self) -> dict[str, Any]:
        """What a dump holds in another form: limits of time by name, and an address without user and password."""
        plain = {"timeout": plain_timeout(self.timeout), "base_url": plain_url(self.base_url)}
        return {name: value for name, value in plain.items() if value != getattr(self, name)}

    def __repr_args__(self) -> Any:
        for name, value in super().__repr_args__():
            yield name, mask_url(value) if name == "base_url" and isinstance(value, str) else value

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name in _OF_A_CLIENT:
            self._clients = _Clients()
            if name == "api_key":
                self._key_from_environment = False
        self.__dict__.pop("_serialized", None)

    def __copy__(self) -> Self:
        twin = super().__copy__()
        twin._clients = _Clients()
        twin.__dict__.pop("_serialized", None)
        return twin

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy with other values, as pydantic does, with a client that fits them."""
        twin = super().model_copy(update=update, deep=deep)
        if update and "api_key" in update:
            twin._key_from_environment = False
        return twin

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        memo = {} if memo is None else memo
        for name in _SHARED_BY_COPIES:
            value = getattr(self, name, None)
            if value is not None:
                memo[id(value)] = value
        twin = super().__deepcopy__(memo)
        twin.__dict__.pop("_serialized", None)
        return twin

    def __getstate__(self) -> dict[Any, Any]:
        for name in ("http_client", "http_async_client"):
            if getattr(self, name) is not None:
                raise TypeError(
                    f"a model with {name} cannot be pickled: an open client belongs to its process. Pickle "
                    f"model.model_copy(update={{{name!r}: None}}), or give proxy, verify, timeout instead of a client"
                )
        if isinstance(self.verify, ssl.SSLContext):
            raise TypeError("a model whose verify is an SSLContext cannot be pickled: give the path of the CA file")
        state = super().__getstate__()
        values = dict(state["__dict__"])
        values.pop("_serialized", None)
        if self._key_from_environment:
            values["api_key"] = None  # a key from the environment stays in its environment
        return {**state, "__dict__": values}

    def __setstate__(self, state: dict[Any, Any]) -> None:
        super().__setstate__(state)
        if self._key_from_environment and os.environ.get(KEY_VARIABLE):
            self.__dict__["api_key"] = resolve_key(None)[0]

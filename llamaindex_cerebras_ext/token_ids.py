"""Prompts of token ids. Core's events hold them as text, and writing that takes longer than the rest of a call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from pydantic_core import to_json

MethodT = TypeVar("MethodT", bound=Callable[..., Any])


class TokenIds(list[int]):
    """A list whose text, which is that of any list, is written several times as fast."""

    __slots__ = ()

    def __str__(self) -> str:
        try:
            text = to_json(self)
        except ValueError:  # also what refers to itself
            return list.__repr__(self)
        # Anything but a flat list of whole numbers leaves something else.
        if text.translate(None, b"0123456789-,") != b"[]":
            return list.__repr__(self)
        return text.replace(b",", b", ").decode("ascii")


def with_token_ids(method: MethodT) -> MethodT:
    """Let a method that core's decorator has taken get a list of token ids as `TokenIds`."""

    def prompt(first: Any) -> Any:
        return TokenIds(first) if first.__class__ is list else first

    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return method(self, *map(prompt, args[:1]), *args[1:], **kwargs)

    @functools.wraps(method)
    async def acall(self: Any, *args: Any, **kwargs: Any) -> Any:
        return await method(self, *map(prompt, args[:1]), *args[1:], **kwargs)

    return acall if inspect.iscoroutinefunction(method) else call  # type: ignore[return-value]

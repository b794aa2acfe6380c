"""Generators that have been started, so that dropping one unread still runs its clean-up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import TypeVar

T = TypeVar("T")


def primed(generator: Generator[T | None, None, None]) -> Generator[T, None, None]:
    """Start a generator whose first step yields None inside its `try`.

    A generator that never started does not run its `finally` when it is dropped, and would leave its connection open.
    """
    next(generator)
    return generator  # type: ignore[return-value]


async def aprimed(generator: AsyncGenerator[T | None, None]) -> AsyncGenerator[T, None]:
    """Start an async generator; see `primed`."""
    await anext(generator)
    return generator  # type: ignore[return-value]

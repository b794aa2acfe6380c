"""Generators that give their connection back as soon as whoever reads them stops, read to the end or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from typing import Any, TypeVar

T = TypeVar("T")


def primed(generator: Generator[T | None, None, None]) -> Generator[T, None, None]:
    """Start a generator whose first step yields None inside its `try`, and hand it to the loop that will read it.

    A generator that never started does not run its `finally` when it is dropped, and would leave its connection open.
    """
    next(generator)
    return _Handed(generator)


async def aprimed(generator: AsyncGenerator[T | None, None]) -> AsyncGenerator[T, None]:
    """Start an async generator, and hand it to the loop that will read it; see `primed`."""
    await anext(generator)
    return _AsyncHanded(generator)


class _Handed(Generator[T, None, None]):
    """Gives its generator to the loop that reads it, and forgets it.

    The loop is core's. Handlers that keep the exception of a stream that was left, as `LlamaDebugHandler` does, keep
    the variables of core's frame with it: this object then, and not the generator, which ends with the loop.
    """

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[Any, None, None]) -> None:
        self._generator = generator

    def __iter__(self) -> Generator[T, None, None]:
        generator, self._generator = self._generator, _nothing()
        return generator

    def send(self, value: None) -> T:
        item: T = self._generator.send(value)
        return item

    def throw(self, *error: Any) -> T:
        item: T = self._generator.throw(*error)
        return item


class _AsyncHanded(AsyncGenerator[T, None]):
    """The same for an async generator."""

    __slots__ = ("_generator",)

    def __init__(self, generator: AsyncGenerator[Any, None]) -> None:
        self._generator = generator

    def __aiter__(self) -> AsyncGenerator[T, None]:
        generator, self._generator = self._generator, _nothing_async()
        return generator

    async def asend(self, value: None) -> T:
        item: T = await self._generator.asend(value)
        return item

    async def athrow(self, *error: Any) -> T:
        item: T = await self._generator.athrow(*error)
        return item


def _nothing() -> Generator[Any, None, None]:
    yield from ()


async def _nothing_async() -> AsyncGenerator[Any, None]:
    empty: tuple[Any, ...] = ()
    for item in empty:
        yield item

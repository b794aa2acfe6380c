"""Generators whose connection is given back as soon as whoever reads them stops, read to the end or not."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


def primed(generator: Generator[T | None, None, None]) -> Generator[T, None, None]:
    """Start a generator whose first step yields None inside its `try`, and hand it to its first reader.

    A generator that never started does not run its `finally` when it is dropped, and would leave its connection open.
    """
    next(generator)
    return _Handed(generator)


async def aprimed(generator: AsyncGenerator[T | None, None]) -> AsyncGenerator[T, None]:
    """Start an async generator, and hand it to its first reader; see `primed`."""
    await anext(generator)
    return _AsyncHanded(generator)


class _Handed(Generator[T, None, None], Generic[T]):
    """Gives its generator to the loop that reads it, and does not keep it.

    Core reads a stream in a loop of its own. A handler that keeps the exception of a stream that was left (as
    `LlamaDebugHandler` does) keeps the variables of that loop, and with them what we returned: but not the generator,
    which ends with the loop.
    """

    __slots__ = ("_generator",)

    def __init__(self, generator: Generator[Any, None, None]) -> None:
        self._generator: Generator[Any, None, None] | None = generator

    def _hand_over(self) -> Generator[T, None, None]:
        generator, self._generator = self._generator, None
        return generator if generator is not None else _nothing()

    def __iter__(self) -> Generator[T, None, None]:
        return self._hand_over()

    def send(self, value: None) -> T:
        if self._generator is None:
            raise StopIteration
        return self._generator.send(value)

    def throw(self, *error: Any) -> T:
        return self._hand_over().throw(*error)

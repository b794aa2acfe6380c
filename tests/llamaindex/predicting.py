"""A class to predict, answers that hold it, and the four ways to ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llama_index.core.prompts import PromptTemplate
from pydantic import BaseModel, Field

from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.scripted import Json, Wire, streamed, whole

PATHS = ("structured_predict", "astructured_predict", "stream_structured_predict", "astream_structured_predict")
STREAMS = PATHS[2:]
PROMPT = PromptTemplate("Where is {place}?")


class Place(BaseModel):
    """A place on earth."""

    name: str = Field(min_length=2)
    country: str | None = None
    people: int = Field(default=5, ge=0)
    tags: list[str] = Field(default_factory=list, max_length=3)


PARIS = {"name": "Paris", "country": None, "people": None, "tags": ["river", "old"]}


def pieces(text: str, size: int = 6) -> list[Json]:
    return [{"content": text[start : start + size]} for start in range(0, len(text), size)]


def says(text: str, *, finish_reason: str = "stop", size: int = 6, **message: Any) -> Callable[[Json], Any]:
    """An answer with a text, streamed where the request asks for it."""

    def answer(body: Json) -> Any:
        if body.get("stream"):
            return streamed(*([message] if message else []), *pieces(text, size), finish_reason=finish_reason)
        return whole({"content": text, **message}, finish_reason=finish_reason)

    return answer


async def objects(llm: Cerebras, path: str, cls: type[BaseModel] = Place, **options: Any) -> list[Any]:
    """All objects that a path yields."""
    prompt = options.pop("prompt", PROMPT)
    args = options.pop("args", {"place": "Paris"})
    method = getattr(llm, path)
    if path.startswith("astream"):
        return [item async for item in await method(cls, prompt, **options, **args)]
    if path.startswith("stream"):
        return list(method(cls, prompt, **options, **args))
    if path.startswith("a"):
        return [await method(cls, prompt, **options, **args)]
    return [method(cls, prompt, **options, **args)]


def format_of(wire: Wire) -> Any:
    return wire.body["response_format"]["json_schema"]


class Loose(BaseModel):
    """A class that needs nothing."""

    text: str = "default"

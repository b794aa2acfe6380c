"""The cache of a text model: langchain-core leaves the options of a call out of its key, ours are part of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler

from tests.langchain.text_service import TextService, texts


@pytest.fixture
def service() -> TextService:
    return TextService()


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_cache_tells_calls_with_other_options_apart(service: TextService, asynchronous: bool) -> None:
    """langchain-core makes the key of a text model from the instance alone, so that options would not count."""
    llm = service.llm(cache=InMemoryCache())

    async def call(**options: Any) -> None:
        if asynchronous:
            await llm.ainvoke("a", **options)
        else:
            llm.invoke("a", **options)

    await call(temperature=0)
    await call(temperature=2)
    await call(temperature=0)
    await call(temperature=0, timeout=3)
    await call(temperature=0, seed=1)

    assert [(body["temperature"], body.get("seed")) for body in service.bodies] == [(0, None), (2, None), (0, 1)]


def test_cache_fills_up_a_batch(service: TextService) -> None:
    llm = service.llm(cache=InMemoryCache())
    llm.invoke("b")

    assert llm.batch(["a", "b", "c"]) == ["<a#0>", "<b#0>", "<c#0>"]
    assert [body["prompt"] for body in service.bodies] == ["b", ["a", "c"]]


def test_cache_tells_token_ids_from_text(service: TextService) -> None:
    llm = service.llm(cache=InMemoryCache())

    assert llm.invoke("1 2") == "<1 2#0>"
    assert texts(llm.generate_token_ids([[1, 2], [3]])) == [["<[1, 2]#0>"], ["<[3]#0>"]]
    assert len(service.bodies) == 2


def test_cache_key_of_one_call_does_not_leak_into_another_instance(service: TextService) -> None:
    outer, inner = service.llm(cache=InMemoryCache()), service.llm(cache=InMemoryCache())

    class Handler(BaseCallbackHandler):
        def on_llm_start(self, *args: Any, **kwargs: Any) -> None:
            assert "temperature" not in inner.asdict()
            assert outer.asdict()["temperature"] == 2

    outer.invoke("a", {"callbacks": [Handler()]}, temperature=2)
    assert "temperature" not in outer.asdict()

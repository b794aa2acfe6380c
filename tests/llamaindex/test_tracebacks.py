"""Error trackers show the local variables of all frames of a traceback: an LLM that cannot be made shows no key."""

from __future__ import annotations

from typing import Any

import pytest

from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion
from tests.support import KEY, fails

CLASSES = [Cerebras, CerebrasCompletion]
BAD: list[dict[str, Any]] = [
    {"temperature": "x"}, {"timeout": -1}, {"api_base": "zz"}, {"base_url": "zz"}, {"model": None}, {"nope": 1},
]  # fmt: skip


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("name", ["api_key", "cerebras_api_key"])
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_an_llm_that_cannot_be_made_shows_no_key(cls: type[Any], name: str, bad: dict[str, Any]) -> None:
    assert KEY not in fails(lambda: cls(**{"model": "m", name: KEY, **bad}))


@pytest.mark.parametrize("cls", CLASSES)
def test_an_llm_that_cannot_be_made_from_a_configuration_shows_no_key(cls: type[Any]) -> None:
    assert KEY not in fails(lambda: cls.from_config({"model": "m", "api_key": KEY}, temperature="x"))
    assert KEY not in fails(lambda: cls.from_config("m", api_key=KEY, temperature="x"))
    assert KEY not in fails(lambda: cls.from_dict({"model": "m", "temperature": "x"}, api_key=KEY))
    assert KEY not in fails(lambda: cls.from_dict({"model": "m", "temperature": "x", "api_key": KEY}))


@pytest.mark.parametrize("cls", CLASSES)
def test_keys_that_differ_are_not_shown(cls: type[Any]) -> None:
    assert KEY not in fails(lambda: cls(model="m", api_key=KEY, cerebras_api_key=KEY + "2"))
    assert KEY not in fails(lambda: cls("m", api_key=KEY))


@pytest.mark.parametrize("cls", CLASSES)
def test_a_hidden_key_is_the_key(cls: type[Any]) -> None:
    for name in ("api_key", "cerebras_api_key"):
        assert cls(model="m", **{name: KEY}).api_key.get_secret_value() == KEY

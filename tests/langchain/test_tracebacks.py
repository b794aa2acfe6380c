"""Error trackers show the local variables of all frames of a traceback: a model that cannot be made shows no key."""

from __future__ import annotations

from typing import Any

import pytest

from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from tests.support import KEY, fails

BAD: list[dict[str, Any]] = [
    {"temperature": "x"}, {"timeout": -1}, {"base_url": "zz"}, {"model": None}, {"verify": "/nowhere"}, {"n": 0},
]  # fmt: skip


@pytest.mark.parametrize("cls", [ChatCerebras, CerebrasLLM])
@pytest.mark.parametrize("name", ["api_key", "cerebras_api_key", "openai_api_key"])
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_model_that_cannot_be_made_shows_no_key(cls: type[Any], name: str, bad: dict[str, Any]) -> None:
    assert KEY not in fails(lambda: cls(**{"model": "m", name: KEY, **bad}))


@pytest.mark.parametrize("cls", [ChatCerebras, CerebrasLLM])
def test_keys_that_differ_or_are_illegal_are_not_shown(cls: type[Any]) -> None:
    assert KEY not in fails(lambda: cls(model="m", api_key=KEY, openai_api_key=KEY + "2"))
    assert KEY not in fails(lambda: cls(model="m", api_key=KEY + "€"))


@pytest.mark.parametrize("cls", [ChatCerebras, CerebrasLLM])
def test_a_hidden_key_is_the_key(cls: type[Any]) -> None:
    for name in ("api_key", "cerebras_api_key", "openai_api_key"):
        assert cls(model="m", **{name: KEY}).api_key.get_secret_value() == KEY

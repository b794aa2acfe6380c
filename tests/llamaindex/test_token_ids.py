"""Prompts of token ids: their text in core's events is that of any list."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llamaindex_cerebras_ext import CerebrasCompletion
from llamaindex_cerebras_ext.token_ids import TokenIds, with_token_ids

NUMBERS = st.lists(st.integers())
OTHERS = st.lists(
    st.none() | st.booleans() | st.floats() | st.text() | st.binary() | NUMBERS | st.dictionaries(st.text(), NUMBERS)
)


@given(NUMBERS | OTHERS)
def test_text_is_that_of_a_list(values: list[Any]) -> None:
    assert str(TokenIds(values)) == str(values)


@pytest.mark.parametrize("values", [[object], [complex(1)], [b"\xff"], ["\ud800"]])
def test_text_of_what_json_cannot_hold(values: list[Any]) -> None:
    assert str(TokenIds(values)) == str(values)


def test_only_lists_are_taken_and_nothing_else_of_a_call_changes() -> None:
    @with_token_ids
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return args, kwargs

    given_ids = [1, 2]
    (ids, formatted), kwargs = method(None, given_ids, True, n=1)
    assert type(ids) is TokenIds
    assert (ids, formatted, kwargs) == ([1, 2], True, {"n": 1})
    assert method(None, "a", prompt=[1]) == (("a",), {"prompt": [1]})
    assert method(None, (1, 2)) == (((1, 2),), {})
    assert method(None) == ((), {})


def test_methods_stay_what_they_were() -> None:
    kinds = {name: inspect.iscoroutinefunction(getattr(CerebrasCompletion, name)) for name in ("complete", "acomplete")}
    assert kinds == {"complete": False, "acomplete": True}
    assert inspect.iscoroutinefunction(CerebrasCompletion.astream_complete)
    assert not inspect.iscoroutinefunction(CerebrasCompletion.stream_complete)

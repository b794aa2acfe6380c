"""Names of functions: one rule, for requests and for both adapters."""

from __future__ import annotations

import pytest

from cerebras_ext.names import is_legal_name, wire_name
from cerebras_ext.types import FunctionDefinition

LEGAL = ["f", "a-b_C9", "x" * 64]
ILLEGAL = ["", "a b", "a.b", "é", "f\n", "x" * 65]


@pytest.mark.parametrize("name", [*LEGAL, *ILLEGAL])
def test_a_name_is_legal_where_a_request_takes_it(name: str) -> None:
    try:
        FunctionDefinition(name=name)
        taken = True
    except ValueError:
        taken = False
    assert is_legal_name(name) is taken is (name in LEGAL)


def test_what_is_no_text_is_no_name() -> None:
    assert not is_legal_name(None)


@pytest.mark.parametrize("name", [*LEGAL, *ILLEGAL[1:-1]])
def test_a_written_name_is_legal_and_a_legal_one_stays(name: str) -> None:
    assert is_legal_name(wire_name(name))
    assert name in ILLEGAL or wire_name(name) == name

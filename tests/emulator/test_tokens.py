"""The tokenizer: nothing is lost, ids are what JSON can carry."""

from __future__ import annotations

import hypothesis
import hypothesis.strategies as st

from cerebras_ext.emulator.tokens import count, decode, encode, groups, token_text, tokenize

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@hypothesis.given(TEXTS)
def test_tokens_join_to_the_text_and_ids_lead_back(text: str) -> None:
    tokens = tokenize(text)
    assert "".join(tokens) == text
    assert decode(encode(text)) == text
    assert all(0 <= number < 2**53 for number in encode(text))
    assert count(text) == len(tokens)


@hypothesis.given(TEXTS)
def test_groups_cover_all_tokens(text: str) -> None:
    tokens = tokenize(text)
    pieces = ["".join(tokens[start:end]) for start, end in groups(tokens)]
    assert "".join(pieces) == text
    assert all(pieces)


@hypothesis.given(st.integers(0, 2**70))
def test_every_id_has_a_text(number: int) -> None:
    assert token_text(number)


def test_about_four_characters_a_token() -> None:
    text = "The quick brown fox jumps over the lazy dog, and then it sleeps for a long time. " * 10
    assert 3 < len(text) / count(text) < 5


def test_counting_goes_into_every_value() -> None:
    assert count({"a": ["b", 1, None, True]}) == 4

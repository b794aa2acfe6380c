"""Replaying reasoning, and taking a `<think>` block out of text that comes in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebras_ext.reasoning import ReplayReasoning, ThinkSplitter, replayed_turn, split_think


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>a</think>b", "a", "b"),
        ("  \n<think>\na b\n</think>\n\nc\n", "a b", "c\n"),
        ("<think>cut off", "cut off", ""),
        ("<think>cut off</thi", "cut off</thi", ""),
        ("<think></think>x", "", "x"),
        ("<think>a</think>", "a", ""),
        ("<think>a</think>b<think>c</think>", "a", "b<think>c</think>"),
        ("no tags", "", "no tags"),
        ("  kept ", "", "  kept "),
        ("x<think>a</think>", "", "x<think>a</think>"),
        ("a</think>b", "", "a</think>b"),
        ("<thinking>a", "", "<thinking>a"),
        ("<thi", "", "<thi"),
        ("<", "", "<"),
        ("", "", ""),
        ("<think>a < b </ c</think>d", "a < b </ c", "d"),
    ],
)
def test_only_a_leading_block_is_reasoning(text: str, reasoning: str, content: str) -> None:
    assert split_think(text) == (reasoning, content)
    splitter = ThinkSplitter()
    pieces = [splitter.feed(letter) for letter in text] + [splitter.finish()]
    assert ("".join(piece[0] for piece in pieces), "".join(piece[1] for piece in pieces)) == (reasoning, content)


@given(
    st.lists(st.sampled_from(["<think>", "</think>", "<", "</", "think>", " ", "\n", "a", "b c"]), max_size=12),
    st.data(),
)
def test_cuts_make_no_difference(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    splitter = ThinkSplitter()
    reasoning = content = ""
    position = 0
    while position < len(text):
        end = data.draw(st.integers(position + 1, len(text)))
        thoughts, words_out = splitter.feed(text[position:end])
        reasoning, content, position = reasoning + thoughts, content + words_out, end
    thoughts, words_out = splitter.finish()
    assert (reasoning + thoughts, content + words_out) == split_think(text)


def test_text_passes_at_once_when_there_is_no_block() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("Hello") == ("", "Hello")
    assert splitter.feed(" <think>") == ("", " <think>")


def test_reasoning_passes_while_the_block_is_open() -> None:
    splitter = ThinkSplitter()
    assert splitter.feed("<think>one") == ("one", "")
    assert splitter.feed(" two ") == (" two", "")
    assert splitter.feed("three") == (" three", "")
    assert splitter.feed("</think>four") == ("", "four")


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("reasoning", ("text", "why")),
        ("think_tags", ("<think>\nwhy\n</think>\n\ntext", None)),
        ("off", ("text", None)),
    ],
)
def test_reasoning_is_replayed_as_asked(mode: ReplayReasoning, expected: tuple[str | None, str | None]) -> None:
    assert replayed_turn("text", "why", mode) == expected
    assert replayed_turn("text", "", mode) == ("text", None)


def test_turn_of_reasoning_alone_in_tags() -> None:
    content, reasoning = replayed_turn(None, "why", "think_tags")
    assert (content, reasoning) == ("<think>\nwhy\n</think>", None)
    assert split_think(content or "") == ("why", "")

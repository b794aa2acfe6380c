"""Scoring of passages: stems, sentences, Markdown."""

from __future__ import annotations

import pytest

from cerebras_ext.emulator.ranking import best_passage, passages, sentences, stem, words


@pytest.mark.parametrize(
    ("one", "other"),
    [("retries", "retry"), ("retried", "retry"), ("cities", "city"), ("limits", "limit"), ("timeouts", "timeout"),
     ("waiting", "waits"), ("multiplied", "multiply"), ("temperature", "weather"), ("prices", "cost")],
)  # fmt: skip
def test_words_that_mean_the_same_have_one_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


def test_common_words_do_not_count() -> None:
    assert words("What is the capital of France?") == ["capital", "franc"]
    assert words("東京 の 天気") == ["東", "京", "の", "天", "気"]


def test_sentences() -> None:
    text = "Dr. Smith came at 3.30 p.m. today. He left.\n- a point\nauthor: x\n-----\n「はい。いいえ。」"
    assert sentences(text) == [
        "Dr. Smith came at 3.30 p.m. today.",
        "He left.",
        "- a point",
        "「はい。",
        "いいえ。",
        "」",
    ]


def test_wrapped_lines_are_joined_and_lists_are_not() -> None:
    wrapped = "This is a line that was wrapped at the width of a page because it\nis long.\n- a point of a list"
    assert [passage.text for passage in passages(wrapped)] == [
        "This is a line that was wrapped at the width of a page because it is long.",
        "- a point of a list",
    ]


def test_code_and_tables_are_told_apart() -> None:
    text = "Some text.\n\n```python\nrun(1)\n```\n\n| a | b |\n|---|---|\n| c | d |"
    assert [(passage.text, passage.code) for passage in passages(text)] == [
        ("Some text.", False), ("run(1)", True), ("| a | b |", True), ("| c | d |", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who built the Eiffel Tower?", "Gustave Eiffel's company built it."),
        ("When was the Eiffel Tower finished?", "The Eiffel Tower was finished in 1889."),
        ("How many retries are there?", "The client retries twice."),
        ("What about nothing of this?", None),
        ("", None),
    ],
)
def test_the_best_passage(question: str, answer: str | None) -> None:
    text = "The Eiffel Tower was finished in 1889. Gustave Eiffel's company built it.\n\nThe client retries twice."
    found = best_passage(question, passages(text))
    assert (found.text if found else None) == answer

"""Prompts that offer numbered choices and want the numbers of the best ones as JSON, as routers of LlamaIndex do."""

from __future__ import annotations

import json
import re

from cerebras_ext.emulator.ranking import Passage, best_passage

_CHOICE = re.compile(r"^\s*\((\d+)\)\s+(.+?)(?=^\s*\(\d+\)|^\s*-{5,}|\Z)", re.MULTILINE | re.DOTALL)
_QUESTION = re.compile(r"\bto the question: '(.+?)'\s*$", re.MULTILINE)


def selection(text: str) -> str | None:
    """Return the choice that fits the question best, or None where the prompt offers none."""
    question = _QUESTION.search(text)
    choices = _CHOICE.findall(text[: question.start()]) if question and "choice" in text else []
    if question is None or len(choices) < 2:
        return None
    candidates = [Passage(" ".join(words.split())) for _, words in choices]
    found = best_passage(question[1], candidates)
    texts = [candidate.text for candidate in candidates]
    number = choices[texts.index(found.text) if found else 0][0]
    reason = "It shares most words with the question." if found else "No choice fits, so this is the first one."
    return json.dumps([{"choice": int(number), "reason": reason}])

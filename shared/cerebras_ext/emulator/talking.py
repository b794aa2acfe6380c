"""Answers in words: from the context of a prompt, from tool results, from the conversation, or about nothing."""

from __future__ import annotations

import ast
import json
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.emulator.extraction import expression_in, names_in
from cerebras_ext.emulator.prompts import Prompt, is_instruction, read_prompt
from cerebras_ext.emulator.ranking import Passage, best_passage, passages, words

NOTHING_FITS = "The given text does not answer this."
_VARIANTS = ("{}", "In short: {}", "As the text has it: {}", "To answer that: {}")
_LONGEST_RESULT = 400
_MOST_COUNTED = 10_000

_DICTATED = re.compile(
    r"\b(?:say|repeat|reply with|respond with|answer with|print|echo)\b"
    r"(?: (?:just|only|exactly|back|the (?:single )?word|the following(?: text)?))*[:\s]+"
    r"(?:\"([^\"]+)\"|'([^']+)'|`([^`]+)`|([^.!?\n\"'`]+))",
    re.IGNORECASE,
)
_COUNT = re.compile(
    r"\bcount\b(?: (?:up|from|to|numbers|the|slowly))*\s+(?:(\d+)\s*(?:to|-|\.\.)\s*)?(\d+)", re.IGNORECASE
)
_GREETING = re.compile(r"\W*(?:hello|hi|hey|good (?:morning|evening|day))\b[\w\s,]*[.!?]*\s*$", re.IGNORECASE)
_IDENTITY = re.compile(r"\b(?:who|what) (?:are you|is your name)\b|\bwhat model\b", re.IGNORECASE)
_CREATIVE = re.compile(
    r"\b(?:write|compose|invent|tell (?:me|us) (?:a|an|some)|generate|describe|explain|imagine|draft|summarize|list)\b",
    re.IGNORECASE,
)
_PRONOUN = re.compile(r"\b(it|its|they|them|their|this|that|he|him|his|she|her)\b", re.IGNORECASE)
_BULLET = re.compile(r"^(?:[-*•]|\d+[.)])\s+")


@dataclass(slots=True)
class ToolResult:
    """What a tool returned, with the call that it answers."""

    name: str
    arguments: str
    content: str


@dataclass(slots=True)
class Situation:
    """All that an answer in words may draw on."""

    text: str
    """What the user said last."""
    background: str = ""
    """System and developer messages."""
    earlier: list[str] = field(default_factory=list)
    """Earlier turns, newest first."""
    results: list[ToolResult] = field(default_factory=list)
    """Results of tools called since the user spoke."""


def say(situation: Situation, variant: int = 0) -> str:
    """Return an answer in words; `variant` chooses another wording of the same answer."""
    prompt = read_prompt(situation.text)
    if prompt.standalone:
        return standalone_question(prompt.question, prompt.rest)
    answer = from_results(situation.results, prompt.question) if situation.results else from_texts(situation, prompt)
    return _VARIANTS[variant % len(_VARIANTS)].format(answer) if variant else answer


def from_results(results: Sequence[ToolResult], question: str) -> str:
    """Return an answer that uses the results of tools."""
    texts = [_shorten(result.content, question) for result in results]
    if len(texts) == 1:
        return texts[0] if _is_sentence(texts[0]) else f"The answer is {texts[0].rstrip('.')}."
    return " ".join(
        text if _is_sentence(text) else f"{result.name}({_spoken(result.arguments)}) is {text}."
        for result, text in zip(results, texts, strict=True)
    )


def _shorten(text: str, question: str) -> str:
    text = text.strip() or "nothing"
    if len(text) <= _LONGEST_RESULT:
        return text
    match = best_passage(question, passages(text))
    return match.text if match else text[:_LONGEST_RESULT]


def _is_sentence(text: str) -> bool:
    return len(text.split()) >= 4 or text.endswith((".", "!", "?"))


def _spoken(arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        return arguments
    if not isinstance(values, dict):
        return arguments
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in values.items())


def from_texts(situation: Situation, prompt: Prompt) -> str:
    """Return the passage that fits the question best, or something sensible where none does."""
    question = prompt.question
    if prompt.context or prompt.existing:
        return _from_context(prompt, situation)
    simple = _simple(question)
    if simple is not None:
        return simple
    here = f"{prompt.rest}\n\n{situation.background}"
    found = best_passage(question, _knowledge(here))
    remembered = best_passage(question, _knowledge("\n\n".join(situation.earlier)))
    if remembered and (found is None or remembered.score > found.score):
        found = remembered
    if found is not None and not _CREATIVE.search(question):
        return _BULLET.sub("", found.text)
    return _about(question, prompt.rest)


def _from_context(prompt: Prompt, situation: Situation) -> str:
    """Answer from the context; an answer that is to be refined stays unless the context has a better one."""
    candidates = [Passage(prompt.existing)] if prompt.existing else []
    candidates += passages(prompt.context)
    found = best_passage(prompt.question, candidates)
    if found is None and prompt.existing:
        return prompt.existing
    if found is None:
        found = best_passage(prompt.question, _knowledge("\n\n".join([situation.background, *situation.earlier])))
    if found is None:
        content = passages(prompt.context)
        return _BULLET.sub("", content[0].text) if content and not words(prompt.question) else NOTHING_FITS
    return _BULLET.sub("", found.text)


def _knowledge(text: str) -> list[Passage]:
    """Return the sentences of a text that state something."""
    return [
        passage for passage in passages(text) if not is_instruction(passage.text) and not passage.text.endswith("?")
    ]


def _simple(question: str) -> str | None:
    """Return the answer to what needs no knowledge: greetings, dictation, counting, arithmetic."""
    counted = _COUNT.search(question)
    if counted:
        first, last = int(counted[1] or 1), int(counted[2])
        return ", ".join(str(number) for number in range(first, min(last, first + _MOST_COUNTED) + 1)) or str(last)
    dictated = _DICTATED.search(question)
    if dictated:
        return next(part for part in dictated.groups() if part).strip()
    if _GREETING.match(question):
        return "Hello! How can I help you?"
    if _IDENTITY.search(question):
        return "I am an emulator of the Cerebras inference service, not a language model."
    expression = expression_in(question)
    value = calculate(expression) if expression else None
    return None if value is None else f"{expression} = {value}"


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
}


def calculate(expression: str) -> int | float | None:
    """Return the value of an arithmetic expression, or None where it has none."""
    try:
        value = _evaluate(ast.parse(expression.strip(), mode="eval").body)
    except (SyntaxError, ValueError, ArithmeticError, RecursionError):
        return None
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _evaluate(node: ast.expr) -> int | float:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left), _evaluate(node.right)
        if isinstance(node.op, ast.Pow) and abs(right) <= 64 and abs(left) <= 1_000_000:
            return float(left) ** right if right < 0 else left**right
        if type(node.op) in _BINARY:
            return _BINARY[type(node.op)](left, right)  # type: ignore[no-any-return]
    raise ValueError("not arithmetic")


def standalone_question(question: str, history: str) -> str:
    """Return a follow-up question with its pronoun replaced by what the conversation was about."""
    pronoun = _PRONOUN.search(question)
    if pronoun is None:
        return question
    said = {
        who: re.findall(rf"^\s*(?:{who})\s*:\s*(.+)$", history, re.IGNORECASE | re.MULTILINE)[::-1]
        for who in ("user|human", "assistant|ai")
    }
    topics = [name for turns in said.values() for turn in turns for name in names_in(turn)]
    if not topics:
        return question
    topic = topics[0] + ("'s" if pronoun.group().lower() in ("its", "their", "his") else "")
    return question[: pronoun.start()] + topic + question[pronoun.end() :]


def _about(question: str, rest: str) -> str:
    """Return a few sentences where there is nothing to answer from."""
    topic = topic_of(question) or topic_of(rest) or "this"
    if question.rstrip().endswith("?") and not _CREATIVE.search(question):
        return f"I am an emulator and know only what I am told; nothing here says anything about {topic}."
    if not _CREATIVE.search(question):
        return f"Understood. You told me about {topic}."
    return (
        f"Here is something about {topic}. An emulator wrote it, so it is short and not very deep. "
        f"Still, it is about {topic}, it has a beginning and a middle, and this is its end."
    )


def topic_of(text: str) -> str:
    """Return what a text is about: the words behind its last "about" or "of", or its longest words."""
    match = re.search(r"\b(?:about|of|on|for)\s+(?:an?\s+|the\s+)?([^.?!,\n]{2,60})", text, re.IGNORECASE)
    if match:
        return match.group(1).strip()
    names = names_in(text)
    if names:
        return names[0]
    content = [word for word in re.findall(r"[^\W\d_]+", text) if words(word) and len(word) > 3]
    return " ".join(content[-3:])

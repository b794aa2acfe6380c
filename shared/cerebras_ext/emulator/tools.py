"""Chooses tools for a question and fills their arguments."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.emulator.extraction import expression_in, names_in
from cerebras_ext.emulator.generation import Call
from cerebras_ext.emulator.ranking import words
from cerebras_ext.emulator.schema_values import ValueMaker, stripped_question

_THRESHOLD = 1.0
"""Score from which a tool fits: one word of its description."""
_SURE = 2.0
"""Score from which it fits for certain: a word of its name."""
_ANY_TOOL = re.compile(r"\b(?:the|a|this|your|any) tools?\b", re.IGNORECASE)
_JOINT = re.compile(r"\s*(?:[;?.!](?=\s|$)|,?\s+\b(?:and then|and also|then|and|as well as|also)\b)\s*", re.IGNORECASE)
_LIST = re.compile(r"(?<=[^\W\d_]), (?=[A-Z][\w'\u2019-]{2,})")
_EMPTY_WORDS = frozenset(
    words(
        "use tool function call get fetch give return returns current given name value run input output user question "
        "information info result results data string text number provided need"
    )
)
_NUMBER = r"(?:\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)"
_OPERATIONS = {
    "*": "multiply", "\u00d7": "multiply", "x": "multiply", "times": "multiply", "divided by": "divide", "/": "divide",
    "+": "add", "plus": "add", "-": "subtract", "minus": "subtract",
}  # fmt: skip
_OPERATOR = re.compile(rf"{_NUMBER}\s*([*\u00d7x+/-]|times|plus|minus|divided by)\s*-?{_NUMBER}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool that may be called."""

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> ToolSpec:
        """Read a member of a request's `tools`."""
        function = tool["function"]
        return cls(function["name"], function.get("description") or "", function.get("parameters") or {})

    @property
    def title(self) -> str:
        """The name as words."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.name).replace("_", " ").replace("-", " ")


def plan_calls(question: str, tools: Sequence[ToolSpec], *, parallel: bool, must: bool) -> list[Call]:
    """Return the calls that a question asks for, in order; none where no tool fits it.

    Args:
        question: What the user said.
        tools: The tools on offer.
        parallel: Whether there may be several calls.
        must: Whether there has to be one, fitting or not.
    """
    if not tools:
        return []
    if parallel:
        several = _several(question, tools)
        if len(several) > 1:
            return several
    tool, score = best_tool(question, tools)
    if score < _THRESHOLD and not must and not _ANY_TOOL.search(question):
        return []
    call, whole = _call(tool, question)
    if not whole and score < _SURE and len(tools) > 1 and not must:
        return []  # of several tools, one that a stray word of its description points to
    return [call]


def best_tool(text: str, tools: Sequence[ToolSpec]) -> tuple[ToolSpec, float]:
    """Return the tool that fits a text best, with its score."""
    names = [set(words(tool.title)) for tool in tools]
    descriptions = [set(words(tool.description)) for tool in tools]
    shared = Counter(word for name, more in zip(names, descriptions, strict=True) for word in name | more)
    wanted = set(words(text)) | _operations(text)
    best, best_score = tools[0], 0.0
    for tool, name, description in zip(tools, names, descriptions, strict=True):
        score = 10.0 if re.search(rf"(?<![\w-]){re.escape(tool.name)}(?![\w-])", text) else 0.0
        for word in wanted - _EMPTY_WORDS:
            rarity = 1.0 / shared[word] if len(tools) > 1 and shared[word] else 1.0
            score += (2.0 if word in name else 1.0 if word in description else 0.0) * (0.5 + 0.5 * rarity)
        score += 0.25 * sum(word in wanted for word in set(_parameter_words(tool)) - _EMPTY_WORDS)
        if score > best_score:
            best, best_score = tool, score
    return best, best_score


def _operations(text: str) -> set[str]:
    found = {_OPERATIONS[symbol.lower()] for symbol in _OPERATOR.findall(text)}
    return found | {"calculate"} if expression_in(text) else found


def _parameter_words(tool: ToolSpec) -> list[str]:
    properties = tool.parameters.get("properties")
    return [word for name in properties or () for word in words(str(name).replace("_", " "))]


def _call(tool: ToolSpec, text: str) -> tuple[Call, bool]:
    """Return a call, and whether the text had all that it needs."""
    maker = ValueMaker(
        {"type": "object", **tool.parameters},
        _without_name(text, tool.name),
        prose=lambda name: stripped_question(text) or name or "text",
        complete=False,
        ignored=frozenset(words(f"{tool.title} {tool.description}")),
    )
    arguments = maker.make()
    return Call(tool.name, json.dumps(arguments, ensure_ascii=False)), not maker.missing


def _without_name(text: str, name: str) -> str:
    return re.sub(rf"[`'\"]?(?<![\w-]){re.escape(name)}(?![\w-])[`'\"]?", "", text)


def _several(question: str, tools: Sequence[ToolSpec]) -> list[Call]:
    """Return a call for each part of a question, where every part says all that its call needs."""
    parts = _parts(question)
    if len(parts) < 2:
        return []
    calls: list[Call] = []
    previous: ToolSpec | None = None
    for part in parts:
        tool, score = best_tool(part, tools)
        if score < _THRESHOLD:
            if previous is None or not _has_object(part, previous):
                return []
            tool = previous
        call, whole = _call(tool, part)
        if not whole or not _has_object(part, tool):
            return []
        previous = tool
        if call not in calls:
            calls.append(call)
    return calls


def _parts(question: str) -> list[str]:
    """Split a question at conjunctions, and at the commas of a list that has one."""
    parts = [part for part in _JOINT.split(question) if words(part)]
    if len(parts) < 2:
        return parts
    return [piece for part in parts for piece in _LIST.split(part) if words(piece)]


def _has_object(part: str, tool: ToolSpec) -> bool:
    """Whether a part of a question names something to call a tool with."""
    if not tool.parameters.get("required") and not tool.parameters.get("properties"):
        return best_tool(part, [tool])[1] >= _THRESHOLD
    return bool(names_in(part)) or any(character.isdigit() for character in part) or "'" in part or '"' in part


def remaining(planned: Iterable[Call], made: Iterable[Call]) -> list[Call]:
    """Return the planned calls that were not made yet; a call of the same tool counts, whatever its arguments."""
    left, others = list(planned), []
    for call in made:
        same = [other for other in left if _canonical(other) == _canonical(call)]
        if same:
            left.remove(same[0])
        else:
            others.append(call.name)
    for name in others:
        alike = [other for other in left if other.name == name]
        if alike:
            left.remove(alike[0])
    return left


def _canonical(call: Call) -> tuple[str, str]:
    try:
        return call.name, json.dumps(json.loads(call.arguments), sort_keys=True)
    except ValueError:
        return call.name, call.arguments

"""Reads the prompts that frameworks write: where the question stands, where the context, what is wanted."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cerebras_ext.emulator.json_types import JsonObject

_QUESTION = re.compile(
    r"^[ \t]*(?:the original query is as follows|(?:user|original|new|final)?[ ]?(?:query|question)|follow[- ]?up"
    r"(?: input| question| message)?|user(?: input| message)?|human|input|q)[ \t]*:[ \t]*(\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED_FOLLOW_UP = re.compile(r"<follow up message>\s*(.+?)\s*<standalone question>", re.IGNORECASE | re.DOTALL)
_STANDALONE = re.compile(r"standalone question|rephrase the follow[- ]?up", re.IGNORECASE)
_TAGGED_CONTEXT = re.compile(r"<(context|documents?|sources?)>(.*?)</\1>", re.IGNORECASE | re.DOTALL)
_RULED_CONTEXT = re.compile(r"^[ \t]*[-=*]{5,}[ \t]*$(.*?)^[ \t]*[-=*]{5,}[ \t]*$", re.DOTALL | re.MULTILINE)
_LABELLED_CONTEXT = re.compile(
    r"^(?:[^\n]*[ \t])?(?:context|documents|sources|passages)[ \t]*:[ \t]*(.*?)"
    r"(?=^[ \t]*(?:query|question|original answer|instruction)\b.*:|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_EXISTING = re.compile(
    r"(?:existing answer|original answer)[ \t]*:[ \t]*(.*?)(?=^We have the opportunity|^New Answer|\Z)",
    re.IGNORECASE | re.DOTALL | re.MULTILINE,
)
_INSTRUCTION = re.compile(
    r"(?:you are|you're|answer|given|use|using|please|if (?:you|the)|do not|don't|based on|some rules|never|"
    r"always|avoid|return|respond|reply|write|think|context information|the following|here (?:is|are)|we have|below|"
    r"helpful|rewrite|repeat|question:|query:|context:|follow|output|the original query|refined answer|new answer)\b",
    re.IGNORECASE,
)
_LAST_ASKED = re.compile(r"[^.!?\n]*\?")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt taken apart."""

    question: str
    context: str
    """What to answer from; empty where the prompt has no part for it."""
    existing: str = ""
    """An answer that is to be refined."""
    standalone: bool = False
    """Whether the question is only to be rewritten so that it can be understood alone."""
    rest: str = ""
    """The prompt without its question."""


def read_prompt(text: str) -> Prompt:
    """Take a prompt apart."""
    existing = _EXISTING.search(text)
    standalone = _STANDALONE.search(text) is not None
    question = _find_question(text)
    context = _find_context(text)
    return Prompt(
        question=question,
        context=context.replace(question, "") if question else context,
        existing=existing.group(1).strip() if existing else "",
        standalone=standalone,
        rest=text.replace(question, " ", 1) if question else text,
    )


def _find_question(text: str) -> str:
    tagged = _TAGGED_FOLLOW_UP.search(text)
    if tagged:
        return tagged.group(1)
    labelled = [found.strip() for found in _QUESTION.findall(text)]
    if labelled:
        return str(labelled[-1])
    stripped = text.strip()
    if "\n" not in stripped and len(stripped) < 400:
        return stripped
    asked = [found.strip() for found in _LAST_ASKED.findall(stripped)]
    if asked:
        return str(asked[-1])
    lines = [line.strip() for line in stripped.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _find_context(text: str) -> str:
    for pattern, group in ((_TAGGED_CONTEXT, 2), (_RULED_CONTEXT, 1), (_LABELLED_CONTEXT, 1)):
        found = [match.group(group).strip() for match in pattern.finditer(text)]
        found = [part for part in found if part]
        if found:
            return "\n\n".join(found)
    return ""


def is_instruction(sentence: str) -> bool:
    """Whether a sentence tells the model what to do rather than something to know."""
    return _INSTRUCTION.match(sentence.lstrip("-*0123456789. ")) is not None


def json_objects(text: str) -> Iterator[tuple[JsonObject, str]]:
    """Yield the JSON objects that stand in a text, outermost ones only, each with its own text."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield value, text[position:end]
        position = text.find("{", end)


def find_schema(text: str) -> JsonObject | None:
    """Return the JSON schema that a prompt asks to follow, the last one if there are several."""
    found = [value for value, _ in json_objects(text) if _is_schema(value)]
    return found[-1] if found else None


def single_braces(text: str) -> str:
    """Return a text whose schema has single braces: LlamaIndex's `PydanticOutputParser` sends them doubled."""
    if "{{" not in text or find_schema(text) is not None:
        return text
    single = text.replace("{{", "{").replace("}}", "}")
    return text if find_schema(single) is None else single


def _is_schema(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("properties"), dict) and bool(value["properties"])


def text_of(content: Any) -> str:
    """Return the text of a message's content, whether one string or parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content or () if part.get("type") == "text")

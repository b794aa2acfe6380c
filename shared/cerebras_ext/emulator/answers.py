"""Decides what to answer: a tool call, JSON, the next step of an agent, or words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cerebras_ext.emulator.generation import Answer, Call
from cerebras_ext.emulator.json_types import JsonObject
from cerebras_ext.emulator.prompts import find_schema, json_objects, read_prompt, single_braces, text_of
from cerebras_ext.emulator.react import Turn, react_answer
from cerebras_ext.emulator.schema_values import ValueMaker
from cerebras_ext.emulator.selecting import selection
from cerebras_ext.emulator.talking import Situation, ToolResult, say, topic_of
from cerebras_ext.emulator.tools import ToolSpec, plan_calls, remaining

_KEYS = re.compile(r"\b(?:keys?|fields?|properties|members?)\b\s*(?:named|called|:)?\s*([^.\n]+)", re.IGNORECASE)
_SCHEMA_FRAME = re.compile(
    r"^Here's a JSON schema to follow:$|^Output a valid JSON object but do not repeat the schema\.$", re.MULTILINE
)
_KEYS_BEFORE = re.compile(
    r"((?:[\"'`]\w+[\"'`](?:\s*,?\s*and\s+|\s*,\s*)?)+)\s*(?:keys?|fields?|properties|members?)\b", re.IGNORECASE
)
_KEY = re.compile(r"[\"'`](\w+)[\"'`]|\b([a-z_]\w*)\b")
_NO_KEYS = frozenset(
    {"and", "or", "the", "a", "an", "with", "only", "exactly", "for", "from", "this", "of", "in", "to"}
)
_PROSE = frozenset(
    {"answer", "response", "summary", "explanation", "description", "reason", "result", "content", "text"}
)


@dataclass(slots=True)
class _Conversation:
    """A chat taken apart at the last thing that the user said."""

    turns: list[Turn]
    situation: Situation
    calls: list[Call] = field(default_factory=list)
    """Calls made since the user spoke."""


def answer_chat(body: Mapping[str, Any], *, effort: str, variant: int = 0) -> Answer:
    """Return the answer to a checked chat request.

    Args:
        body: The request.
        effort: How much to reason, `none` for not at all.
        variant: Which wording to choose.
    """
    talk = _read(body["messages"])
    calls = _calls(body, talk)
    if calls:
        names = ", ".join(dict.fromkeys(call.name for call in calls))
        return Answer(reasoning=_reasoning(talk, effort, f"The tool that fits is {names}."), calls=calls)
    kind = (body.get("response_format") or {}).get("type")
    if kind in ("json_schema", "json_object"):
        schema = (body["response_format"].get("json_schema") or {}).get("schema")
        content = json.dumps(_json_value(schema, talk), ensure_ascii=False)
        return Answer(content, _reasoning(talk, effort, "The answer has to be JSON."))
    content = (
        react_answer(talk.turns)
        or selection(talk.situation.text)
        or _schema_in_words(talk)
        or say(talk.situation, variant)
    )
    return Answer(content, _reasoning(talk, effort, "I answer with what I was told."))


def answer_text(prompt: str, variant: int = 0) -> str:
    """Return the continuation of a prompt of the completions endpoint."""
    text = single_braces(prompt)
    turns = [Turn("user", text)]
    talk = _Conversation(turns, Situation(text))
    content = react_answer(turns) or selection(text) or _schema_in_words(talk) or say(talk.situation, variant)
    return content if not prompt or prompt[-1].isspace() else f" {content}"


def _read(messages: Sequence[Mapping[str, Any]]) -> _Conversation:
    texts = [single_braces(text_of(message.get("content"))) for message in messages]
    roles = [message["role"] for message in messages]
    last = max((index for index, role in enumerate(roles) if role == "user"), default=-1)
    system = [text for role, text in zip(roles, texts, strict=True) if role in ("system", "developer")]
    earlier = [
        text for role, text in zip(roles[: max(last, 0)], texts, strict=False) if role in ("user", "assistant", "tool")
    ]
    said = {call["id"]: call["function"] for message in messages for call in message.get("tool_calls") or ()}
    results = []
    for message, text in zip(messages[last + 1 :], texts[last + 1 :], strict=True):
        if message["role"] == "tool":
            function = said.get(message["tool_call_id"], {"name": "tool", "arguments": "{}"})
            results.append(ToolResult(function["name"], function["arguments"], text))
    calls = [
        Call(call["function"]["name"], call["function"]["arguments"])
        for message in messages[last + 1 :]
        for call in message.get("tool_calls") or ()
    ]
    text = texts[last] if last >= 0 else texts[-1]
    turns = [Turn(role, text) for role, text in zip(roles, texts, strict=True)]
    return _Conversation(turns, Situation(text, "\n\n".join(system), earlier[::-1], results), calls)


def _calls(body: Mapping[str, Any], talk: _Conversation) -> list[Call]:
    """Return the tool calls to make now."""
    tools = [ToolSpec.of(tool) for tool in body.get("tools") or ()]
    choice = body.get("tool_choice") or "auto"
    if not tools or choice == "none":
        return []
    must = choice == "required"
    if isinstance(choice, dict):
        tools = [tool for tool in tools if tool.name == choice["function"]["name"]]
        must = True
    question = read_prompt(talk.situation.text).question if not must else talk.situation.text
    planned = plan_calls(question, tools, parallel=True, must=must)
    left = remaining(planned, talk.calls)
    if must and not left:
        # Forced to call again: a tool that was not called yet, so that an agent comes to its end.
        made = {call.name for call in talk.calls}
        left = plan_calls(question, [tool for tool in tools if tool.name not in made], parallel=False, must=True)
        left = left or planned
    return left if body.get("parallel_tool_calls") is not False else left[:1]


def _json_value(schema: Mapping[str, Any] | None, talk: _Conversation) -> Any:
    """Return a value for a JSON mode: by the schema given, else by what the prompt says about its shape."""
    text = _all_text(talk)
    described = schema is None
    schema = schema or find_schema(text) or _described_schema(text)
    return _by_schema(schema, talk, examples=described)


def _by_schema(schema: Mapping[str, Any], talk: _Conversation, *, examples: bool = False) -> Any:
    results = [result.content for result in talk.situation.results]
    source = "\n".join([_without_shapes(talk.situation.text, examples=examples), *results])
    made: dict[str, str] = {}

    def prose(name: str) -> str:
        if name in _PROSE or not name:
            if "" not in made:
                made[""] = say(Situation(source, talk.situation.background, talk.situation.earlier))
            return made[""]
        return f"{name.replace('_', ' ')} of {topic_of(read_prompt(source).question) or 'it'}"

    return ValueMaker(schema, source, prose=prose, prose_names=_PROSE).make()


def _schema_in_words(talk: _Conversation) -> str | None:
    """Return JSON where the prompt itself holds a schema to follow, without any JSON mode."""
    text = _all_text(talk)
    if not re.search(r"\bschema\b", text, re.IGNORECASE) or not re.search(r"\bjson\b", text, re.IGNORECASE):
        return None
    schema = find_schema(text)
    return None if schema is None else json.dumps(_by_schema(schema, talk), ensure_ascii=False)


def _all_text(talk: _Conversation) -> str:
    return f"{talk.situation.background}\n\n{talk.situation.text}"


def _without_shapes(text: str, *, examples: bool) -> str:
    """Return a text without the schemas in it, and without the JSON that shows what is wanted."""
    for value, shown in list(json_objects(text)):
        if examples or "properties" in value:
            text = text.replace(shown, " ")
    return _SCHEMA_FRAME.sub("", text)


def _described_schema(text: str) -> JsonObject:
    """Return a schema for the keys that a prompt names, or for the example that it shows."""
    examples = [value for value, _ in json_objects(text) if value]
    if examples:
        return _shape_of(examples[-1])
    named = _KEYS_BEFORE.search(text) or _KEYS.search(text)
    keys: list[str] = []
    if named:
        keys = [quoted or plain for quoted, plain in _KEY.findall(re.split(r"\bfor\b|:", named[1])[0])]
        keys = [key for key in dict.fromkeys(keys) if key not in _NO_KEYS][:20]
    properties: JsonObject = {key: _guessed(key) for key in keys or ["answer"]}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _guessed(key: str) -> JsonObject:
    return (
        {"type": "integer"} if key in ("age", "count", "number", "year", "quantity", "amount") else {"type": "string"}
    )


def _shape_of(value: Any) -> JsonObject:
    if isinstance(value, dict):
        return {
            "type": "object",
            "properties": {key: _shape_of(item) for key, item in value.items()},
            "required": list(value),
        }
    if isinstance(value, list):
        return {"type": "array", "items": _shape_of(value[0]) if value else {"type": "string"}}
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    return {"type": names.get(type(value), "string")}


def _reasoning(talk: _Conversation, effort: str, step: str) -> str:
    """Return the reasoning that is shown; more of it for a higher effort."""
    if effort == "none":
        return ""
    question = " ".join(read_prompt(talk.situation.text).question.split())[:200]
    parts = [f"The user says: {question}" if question else "The user says nothing."]
    if effort != "low":
        parts.append(step)
    if effort == "high":
        parts.append("I have looked through all of the conversation, and nothing in it says otherwise.")
    return "\n".join(parts)

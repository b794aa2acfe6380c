"""Agents without tool calling: prompts that ask for `Thought:`, `Action:` and `Action Input:` in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from cerebras_ext.emulator.talking import Situation, ToolResult, say
from cerebras_ext.emulator.tools import ToolSpec, plan_calls

_QUESTION = re.compile(r"^[ \t]*Question:[ \t]*(\S.*)$", re.MULTILINE)
_ACTION = re.compile(r"^[ \t]*Action:[ \t]*(.+?)[ \t]*\n[ \t]*Action Input:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_OBSERVATION = re.compile(
    r"^[ \t]*Observation:[ \t]*(.*?)[ \t]*(?=^[ \t]*(?:Thought|Action|Question):|\Z)", re.MULTILINE | re.DOTALL
)
_LONG_FORM = re.compile(
    r"Tool Name:[ \t]*(\S+)[ \t]*\n>?[ \t]*Tool Description:[ \t]*(.*?)"
    r"\n>?[ \t]*Tool Args:[ \t]*(\{.*?\})[ \t]*(?=\n|\Z)",
    re.DOTALL,
)
_SHORT_FORM = re.compile(r"^([\w-]+)(?:\((.*?)\)(?: *-> *[^-\n]+)?)?(?: - |: )(.+)$", re.MULTILINE)
_LISTED = re.compile(r"one of \[(.*?)\]")
_PARAMETER = re.compile(r"(\w+)\s*:\s*(\w+)")
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "str": "string", "list": "array", "dict": "object"}


@dataclass(frozen=True, slots=True)
class Turn:
    """A message as far as this format needs it."""

    role: str
    text: str


@dataclass(slots=True)
class _Agent:
    tools: list[ToolSpec]
    question: str
    actions: list[tuple[str, str]]
    observations: list[str]
    instructions: str
    begun: bool


def react_answer(turns: Sequence[Turn]) -> str | None:
    """Return the next step of such an agent, or None where the prompt asks for no such thing."""
    everything = "\n".join(turn.text for turn in turns)
    if "Action Input:" not in everything or "Thought:" not in everything or "Action:" not in everything:
        return None
    agent = _read(turns, everything)
    if agent is None:
        return None
    start = "" if agent.begun else "Thought: "
    planned = plan_calls(agent.question, agent.tools, parallel=True, must=False)
    done = min(len(agent.actions), len(agent.observations))
    if done < len(planned):
        call = planned[done]
        tool = next(tool for tool in agent.tools if tool.name == call.name)
        return (
            f"{start}I need to use a tool to help me answer the question.\n"
            f"Action: {call.name}\nAction Input: {_input(agent, tool, call.arguments)}"
        )
    results = [
        ToolResult(name, given, seen) for (name, given), seen in zip(agent.actions, agent.observations, strict=False)
    ]
    answer = say(Situation(agent.question, results=results))
    if "Final Answer:" in agent.instructions:
        return f"{start}I now know the final answer\nFinal Answer: {answer}"
    return f"{start}I can answer without using any more tools.\nAnswer: {answer}"


def _read(turns: Sequence[Turn], everything: str) -> _Agent | None:
    tools = _tools(everything)
    if not tools:
        return None
    asked = [match for match in _QUESTION.finditer(turns[-1].text) if "the input question" not in match[1]]
    if asked:
        question, trail = asked[-1][1].strip(), turns[-1].text[asked[-1].end() :]
    else:
        users = [
            index for index, turn in enumerate(turns)
            if turn.role == "user" and not turn.text.lstrip().startswith("Observation:")
        ]  # fmt: skip
        if not users:
            return None
        question = turns[users[-1]].text
        trail = "\n".join(turn.text for turn in turns[users[-1] + 1 :])
    return _Agent(
        tools=tools,
        question=question,
        actions=[(name, given) for name, given in _ACTION.findall(trail)],
        observations=[seen.strip() for seen in _OBSERVATION.findall(trail)],
        instructions=everything,
        begun=everything.rstrip().endswith("Thought:"),
    )


def _tools(text: str) -> list[ToolSpec]:
    found: list[ToolSpec] = []
    for name, description, parameters in _LONG_FORM.findall(text):
        try:
            schema = json.loads(parameters)
        except ValueError:
            schema = {}
        found.append(ToolSpec(name, description.strip(), schema))
    if found:
        return found
    listed = _LISTED.search(text)
    names = [name.strip(" '\"`") for name in listed[1].split(",")] if listed else []
    for name, signature, description in _SHORT_FORM.findall(text):
        if name in names:
            found.append(ToolSpec(name, description, _signature(signature)))
    return found


def _signature(text: str) -> dict[str, object]:
    properties = {name: {"type": _TYPES.get(kind, "string")} for name, kind in _PARAMETER.findall(text)}
    properties = properties or {"input": {"type": "string"}}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _input(agent: _Agent, tool: ToolSpec, arguments: str) -> str:
    """Return the input of an action: JSON, or the bare value where a tool of LangChain takes just one."""
    values = json.loads(arguments)
    if "Tool Args:" not in agent.instructions and len(values) == 1:
        return str(next(iter(values.values())))
    return arguments

"""Keeps langchain-core from completing the arguments of a tool call that was cut off.

When it merges the chunks of a stream, langchain-core closes open strings and brackets of the arguments and takes the
result for the call that the model wanted. A half-written call must not run: an answer that ended inside of one has to
give an invalid call, streamed or not. The only handle on the merge is the text of the arguments itself.
"""

from __future__ import annotations

from langchain_core.utils.json import parse_partial_json

from cerebras_ext.toolcalls import InvalidArgumentsError, parse_arguments

_CLOSING = {"{": "}", "[": "]"}


def breaking_suffix(arguments: str) -> str:
    """Return the shortest text that makes invalid arguments impossible to complete; empty where none is needed.

    It is a closing bracket that matches no open one, behind a quotation mark where a string is open.
    """
    try:
        parse_arguments(arguments)
        return ""
    except InvalidArgumentsError:
        pass
    try:
        completed = parse_partial_json(arguments)
    except ValueError:
        return ""
    if not isinstance(completed, dict):
        return ""
    open_brackets, in_string, escaped = _scan(arguments)
    quote = '"' if in_string and not escaped else ' "' if in_string else ""
    return quote + ("]" if open_brackets[-1:] != ["]"] else "}")


def _scan(text: str) -> tuple[list[str], bool, bool]:
    """Return the open brackets, and whether the text ends inside of a string and behind a backslash."""
    brackets: list[str] = []
    in_string = escaped = False
    for char in text:
        if in_string:
            in_string = char != '"' or escaped
            escaped = char == "\\" and not escaped
        elif char == '"':
            in_string = True
        elif char in _CLOSING:
            brackets.append(_CLOSING[char])
        elif char in "}]" and brackets:
            brackets.pop()
    return brackets, in_string, escaped

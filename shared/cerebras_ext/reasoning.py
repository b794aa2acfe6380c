"""Reasoning in text: replaying it in history, and taking a leading `<think>` block out of an answer."""

from __future__ import annotations

from typing import Literal

ReplayReasoning = Literal["reasoning", "think_tags", "off"]
"""How the reasoning of earlier turns is sent: in the `reasoning` member, as a `<think>` block in the content (what GLM
and Qwen document), or not at all."""

_OPEN, _CLOSE = "<think>", "</think>"


def replayed_turn(content: str | None, reasoning: str | None, mode: ReplayReasoning) -> tuple[str | None, str | None]:
    """Return content and reasoning of an assistant turn as they go into history.

    Args:
        content: Text of the turn, if any.
        reasoning: Reasoning of the turn, if any.
        mode: See `ReplayReasoning`.
    """
    if not reasoning or mode == "off":
        return content, None
    if mode == "think_tags":
        return f"{_OPEN}\n{reasoning}\n{_CLOSE}\n\n{content or ''}".rstrip("\n"), None
    return content, reasoning


class ThinkSplitter:
    """Moves a leading `<think>` block out of a text that comes in pieces, however they are cut.

    White space around the block and at its ends is dropped. A block that is never closed (the answer was cut off) is
    reasoning to its end. Text that does not begin with the tag passes unchanged.
    """

    __slots__ = ("_buffer", "_stage", "_wrote")

    def __init__(self) -> None:
        self._stage: Literal["start", "inside", "after", "passing"] = "start"
        self._buffer = ""
        self._wrote = False

    def feed(self, text: str) -> tuple[str, str]:
        """Take a piece of the text and return what is known of it: reasoning and content."""
        if self._stage == "passing":
            return "", text
        self._buffer += text
        if self._stage == "start":
            begin = self._buffer.lstrip()
            if not begin.startswith(_OPEN):
                return ("", "") if _OPEN.startswith(begin) else ("", self._pass())
            self._stage, self._buffer = "inside", begin.removeprefix(_OPEN)
        reasoning = self._inside() if self._stage == "inside" else ""
        if self._stage != "after":
            return reasoning, ""
        self._buffer = self._buffer.lstrip()
        return reasoning, self._pass() if self._buffer else ""

    def finish(self) -> tuple[str, str]:
        """Return what was held back, at the end of the text: reasoning and content."""
        inside, rest = self._stage == "inside", self._pass()
        return (rest.rstrip(), "") if inside else ("", rest)

    def _pass(self) -> str:
        self._stage = "passing"
        rest, self._buffer = self._buffer, ""
        return rest

    def _inside(self) -> str:
        """Return the reasoning that is certain, holding back white space and what may become the closing tag."""
        if not self._wrote:
            self._buffer = self._buffer.lstrip()
        body, closed, rest = self._buffer.partition(_CLOSE)
        if closed:
            self._stage, self._buffer = "after", rest
            return body.rstrip()
        held = next((size for size in range(len(_CLOSE) - 1, 0, -1) if body.endswith(_CLOSE[:size])), 0)
        known = body[: len(body) - held].rstrip()
        self._buffer = body[len(known) :]
        self._wrote = self._wrote or bool(known)
        return known


def split_think(text: str) -> tuple[str, str]:
    """Return reasoning and content of a whole text; see `ThinkSplitter`."""
    splitter = ThinkSplitter()
    reasoning, content = splitter.feed(text)
    more_reasoning, more_content = splitter.finish()
    return reasoning + more_reasoning, content + more_content

"""Joining of deltas that came together: what is joined, what never is, and that the whole stays the same."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cerebras_ext import ChatDelta, CompletionDelta, ToolCallDelta
from cerebras_ext.coalesce import coalesce
from tests.support import DONE, KEY, STREAMS, Answer, Outcome, Server, Way, chat_event, event

LOGPROBS = {"content": [{"token": "x", "logprob": -0.1}]}


def chat(content: str = "", reasoning: str = "", **members: Any) -> ChatDelta:
    values: dict[str, Any] = {
        "index": 0, "tool_calls": [], "finish_reason": None, "logprobs": None, "reasoning_logprobs": None, "raw": {},
        **members,
    }  # fmt: skip
    return ChatDelta(content=content, reasoning=reasoning, **values)


def text(value: str = "", **members: Any) -> CompletionDelta:
    values: dict[str, Any] = {"index": 0, "tokens": None, "finish_reason": None, "logprobs": None, "raw": {}, **members}
    return CompletionDelta(text=value, **values)


def test_text_is_joined() -> None:
    assert coalesce([chat("a"), chat("b"), chat("c", raw={"id": 3})]) == [chat("abc", raw={"id": 3})]
    assert coalesce([text("a"), text("b", raw={"id": 2})]) == [text("ab", raw={"id": 2})]


def test_reasoning_is_joined_but_not_with_text() -> None:
    assert coalesce([chat(reasoning="a"), chat(reasoning="b"), chat("c"), chat("d")]) == [
        chat(reasoning="ab"),
        chat("cd"),
    ]


@pytest.mark.parametrize(
    "between",
    [
        chat("x", tool_calls=[ToolCallDelta(0, "id", "f", "{}")]),
        chat("x", finish_reason="stop"),
        chat("x", logprobs=LOGPROBS),
        chat(reasoning="x", reasoning_logprobs=LOGPROBS),
        chat("x", "y"),
        chat("x", index=1),
    ],
    ids=["tool-call", "finish-reason", "logprobs", "reasoning-logprobs", "text-and-reasoning", "other-answer"],
)
def test_nothing_is_joined_across(between: ChatDelta) -> None:
    deltas = [chat("a"), between, chat("b")]
    assert coalesce(deltas) == deltas


@pytest.mark.parametrize(
    "between",
    [text("x", tokens=[1]), text("x", finish_reason="stop"), text("x", logprobs={"tokens": ["x"]}), text("x", index=1)],
)
def test_nothing_is_joined_across_in_completions(between: CompletionDelta) -> None:
    deltas = [text("a"), between, text("b")]
    assert coalesce(deltas) == deltas


def test_given_deltas_are_not_changed() -> None:
    deltas = [chat("a"), chat("b")]
    coalesce(deltas)
    assert deltas == [chat("a"), chat("b")]


one = st.one_of(
    st.builds(chat, st.text(max_size=2), index=st.integers(0, 1)),
    st.builds(lambda reasoning: chat(reasoning=reasoning), st.text(max_size=2)),
    st.builds(chat, st.text(max_size=2), st.text(max_size=2)),
    st.just(chat(finish_reason="stop")),
    st.just(chat("x", logprobs=LOGPROBS)),
    st.builds(lambda piece: chat(tool_calls=[ToolCallDelta(0, arguments=piece)]), st.text(max_size=2)),
)


def merged(deltas: list[ChatDelta]) -> Any:
    """Everything that is in deltas, in the order in which it can be seen."""
    seen: dict[int, list[tuple[str, Any]]] = {}
    for delta in deltas:
        for kind in ("reasoning", "content", "tool_calls", "logprobs", "finish_reason"):
            value = getattr(delta, kind)
            events = seen.setdefault(delta.index, [])
            if value and events and events[-1][0] == kind and isinstance(value, str):
                events[-1] = (kind, events[-1][1] + value)
            elif value:
                events.append((kind, value))
    return {index: events for index, events in seen.items() if events}


@given(st.lists(one, max_size=12))
def test_the_whole_is_the_same(deltas: list[ChatDelta]) -> None:
    joined = coalesce(deltas)
    assert merged(joined) == merged(deltas)
    assert len(joined) <= len(deltas)


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body that is read in exactly these pieces."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.pieces)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece


@pytest.mark.parametrize("way", STREAMS, ids=str)
def test_client_joins_what_one_read_brought_if_asked_to(way: Way) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        body = Pieces(way.piece("a") + way.piece("b"), way.piece("c") + way.end + DONE)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=body)

    def ask(**options: Any) -> Outcome:
        transport = httpx.MockTransport(answer)
        if way.is_async:
            options["http_async_client"] = httpx.AsyncClient(transport=transport)
        else:
            options["http_client"] = httpx.Client(transport=transport)
        return way.ask({"api_key": KEY, **options})

    plain, joined = ask(), ask(coalesce=True)
    name = "content" if way.endpoint == "chat" else "text"
    assert [getattr(delta, name) for delta in plain.deltas] == ["a", "b", "c", ""]
    assert [getattr(delta, name) for delta in joined.deltas] == ["ab", "c", ""]
    assert joined.response == plain.response


def test_text_before_an_error_event_is_handed_out_first(server: Server, options: dict[str, Any]) -> None:
    from cerebras_ext import Client, errors

    failure = event({"error": {"message": "broken", "code": "x"}, "status_code": 500})
    server.script = [Answer((chat_event(content="a") + chat_event(content="b") + failure,), framing="chunked")]
    stream = Client(coalesce=True, max_retries=0, **options).stream_chat(
        model="m", messages=[{"role": "user", "content": "q"}]
    )
    got: list[str] = []
    with pytest.raises(errors.APIStatusError):
        got.extend(delta.content for delta in stream)
    assert "".join(got) == "ab"

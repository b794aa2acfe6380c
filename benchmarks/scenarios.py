"""What the loopback server sends: a scenario is named in the URL path and becomes bytes once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, get_args

Kind = Literal["text", "reasoning", "tools", "mixed", "agent"]
KINDS: tuple[str, ...] = get_args(Kind)
CHAT_PATH = "/v1/chat/completions"
TEXT_PATH = "/v1/completions"

_HEAD: dict[str, Any] = {
    "id": "chatcmpl-43a45c60-a6b8-4e25-ac51-6cd246c2222a",
    "created": 1764480000,
    "model": "bench-model",
    "system_fingerprint": "fp_c5ec625e72d41732d8fd",
}
_TIME_INFO = {
    "queue_time": 0.00004, "prompt_time": 0.005, "completion_time": 0.4, "total_time": 0.41, "created": 1764480000.25,
}  # fmt: skip
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n"
    b"x-request-id: 8f2b6e1c\r\nx-ratelimit-remaining-tokens-minute: 59900\r\n\r\n"
)
_STREAM_END = b"0\r\n\r\n"
_WORDS = (" alpha", " be", "ta", " gamma", ",", " del", "ta", " epsilon", ".", " zeta")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One way to answer.

    Attributes:
        kind: What the deltas hold; `mixed` is reasoning first and text then. `tools` is one call with long arguments,
            and `agent` the same until the request holds a tool's result, then text.
        tokens: Deltas of a stream, words of an answer that is not streamed.
        events: Events in one HTTP chunk of a stream.
        rate: Tokens a second; 0 is as fast as possible.
        uplink: Bandwidth of the client in Mbit/s that delays the answer by what the request's body takes; 0 is none.
    """

    kind: Kind = "text"
    tokens: int = 1000
    events: int = 1
    rate: int = 0
    uplink: int = 0

    @property
    def path(self) -> str:
        """The prefix of the URL path; it is put before `/v1`."""
        return f"/{self.kind}-{self.tokens}-{self.events}-{self.rate}-{self.uplink}"


def read_path(path: str) -> tuple[Scenario, str]:
    """Return the scenario and the endpoint that a request path names.

    Raises:
        ValueError: No scenario.
    """
    _, prefix, *rest = path.split("/")
    kind, *numbers = prefix.split("-")
    if kind not in KINDS or len(numbers) != 4:
        raise ValueError(f"not a scenario: {path!r}")
    return Scenario(kind, *map(int, numbers)), "/" + "/".join(rest)  # type: ignore[arg-type]


def settle(scenario: Scenario, content: bytes) -> Scenario:
    """Return what an agent's request is answered with: text once it holds a tool's result, else a tool call."""
    if scenario.kind != "agent":
        return scenario
    return replace(scenario, kind="text" if b'"role":"tool"' in content.replace(b" ", b"") else "tools")


def usage(tokens: int) -> dict[str, Any]:
    """Return the token counts of an answer."""
    return {
        "prompt_tokens": 20,
        "completion_tokens": tokens,
        "total_tokens": 20 + tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
    }


def _word(number: int) -> str:
    return _WORDS[number % len(_WORDS)]


def _chat_deltas(scenario: Scenario) -> Iterator[dict[str, Any]]:
    kind, count = scenario.kind, scenario.tokens
    if kind != "tools":
        yield {"role": "assistant"}
        for number in range(count):
            reasons = kind == "reasoning" or (kind == "mixed" and number < count // 2)
            yield {"reasoning" if reasons else "content": _word(number)}
        return
    function = {"name": "write_report", "arguments": ""}
    yield {
        "role": "assistant",
        "tool_calls": [{"function": function, "type": "function", "id": "call_7d1c", "index": 0}],
    }
    for number in range(count):
        piece = '{"text":"' if number == 0 else '"}' if number == count - 1 else _word(number)
        yield {"tool_calls": [{"function": {"arguments": piece}, "index": 0}]}


def stream_events(scenario: Scenario, endpoint: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a stream, in the shape and with the members of recorded ones."""
    chat = endpoint == CHAT_PATH
    head = {**_HEAD, "object": "chat.completion.chunk" if chat else "text_completion"}
    if chat:
        for delta in _chat_deltas(scenario):
            yield {**head, "choices": [{"delta": delta, "index": 0}]}
    else:
        for number in range(scenario.tokens):
            yield {**head, "choices": [{"text": _word(number), "index": 0}]}
    reason = "tool_calls" if scenario.kind == "tools" else "stop"
    last: dict[str, Any] = {"finish_reason": reason, "index": 0, **({"delta": {}} if chat else {"text": ""})}
    yield {**head, "choices": [last], "usage": usage(scenario.tokens), "time_info": _TIME_INFO}


def answer(scenario: Scenario, endpoint: str) -> dict[str, Any]:
    """Return the JSON object of an answer that is not streamed."""
    words = "".join(_word(number) for number in range(scenario.tokens))
    choice: dict[str, Any] = {"finish_reason": "stop", "index": 0}
    if endpoint != CHAT_PATH:
        choice["text"] = words
    elif scenario.kind == "tools":
        function = {"name": "write_report", "arguments": json.dumps({"text": words})}
        calls = [{"id": "call_7d1c", "type": "function", "function": function}]
        choice |= {"finish_reason": "tool_calls", "message": {"role": "assistant", "tool_calls": calls}}
    else:
        choice["message"] = {"role": "assistant", "content": words}
    kind = "chat.completion" if endpoint == CHAT_PATH else "text_completion"
    return {
        **_HEAD,
        "object": kind,
        "choices": [choice],
        "usage": usage(scenario.tokens),
        "time_info": _TIME_INFO,
    }


def _http_chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass(frozen=True, slots=True)
class Body:
    """A ready HTTP response; `offsets[i]` is where the i-th HTTP chunk of a stream ends."""

    data: bytes
    offsets: tuple[int, ...] = ()


@lru_cache(maxsize=64)
def stream_body(scenario: Scenario, endpoint: str) -> Body:
    """Return the bytes of a whole streamed response, its head included."""
    frames = [b"data: " + dump(event) + b"\n\n" for event in stream_events(scenario, endpoint)]
    frames.append(b"data: [DONE]\n\n")
    size = scenario.events
    pieces = [_http_chunk(b"".join(frames[at : at + size])) for at in range(0, len(frames), size)]
    pieces[0] = _STREAM_HEAD + pieces[0]
    pieces[-1] += _STREAM_END
    offsets, end = [], 0
    for piece in pieces:
        end += len(piece)
        offsets.append(end)
    return Body(b"".join(pieces), tuple(offsets))


@lru_cache(maxsize=64)
def answer_body(scenario: Scenario, endpoint: str) -> Body:
    """Return the bytes of a whole response that is not streamed, its head included."""
    content = dump(answer(scenario, endpoint))
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: 8f2b6e1c\r\ncontent-length: %d\r\n\r\n"
    return Body(head % len(content) + content)


def dump(value: Any) -> bytes:
    """Return compact JSON, as the service writes it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

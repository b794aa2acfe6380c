"""A stream request that is answered with a bare JSON object: the error in it is told, never an empty success."""

from __future__ import annotations

import json

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import ServerError, StreamTruncatedError
from cerebras_ext.sse import Event, SSEDecoder

ERROR = b'{"error": {"message": "busy", "type": "server_error", "code": "overloaded"}, "status_code": 503}'
REQUEST = {"model": "m", "messages": [{"role": "user", "content": "q"}]}


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize("retries", [0, 2])
async def test_error_object_as_the_whole_body_of_a_stream(end: bytes, retries: int) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(
            200, headers={"content-type": "application/json", "retry-after": "0"}, content=ERROR + end
        )

    with httpx.Client(transport=httpx.MockTransport(answer)) as http:
        stream = Client(api_key="k", max_retries=retries, http_client=http).stream_chat(REQUEST)
        with pytest.raises(ServerError, match="busy") as caught:
            list(stream)
    assert (caught.value.status_code, caught.value.code) == (503, "overloaded")
    assert len(sent) == 1 + retries
    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as http_async:
        async_stream = AsyncClient(api_key="k", max_retries=retries, http_async_client=http_async).stream_chat(REQUEST)
        with pytest.raises(ServerError, match="busy"):
            _ = [delta async for delta in async_stream]
    assert len(sent) == 2 * (1 + retries)


def test_bare_object_is_read_however_it_is_cut() -> None:
    for position in range(1, len(ERROR)):
        decoder = SSEDecoder()
        assert decoder.feed(ERROR[:position]) + decoder.feed(ERROR[position:]) + decoder.finish() == [Event(ERROR)]


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_indented_object_is_one_event(line_end: bytes) -> None:
    text = json.dumps(json.loads(ERROR), indent=2).encode()
    sent = text.replace(b"\n", line_end)
    for position in range(1, len(sent)):
        decoder = SSEDecoder()
        assert decoder.feed(sent[:position]) + decoder.feed(sent[position:]) + decoder.finish() == [Event(text)]


@pytest.mark.parametrize("framed", [b"%s", b"data: %s\n\n", b"data: %s\n\ndata: [DONE]\n\n"])
@pytest.mark.parametrize("delta", [{}, {"delta": None}])
def test_whole_answer_to_a_stream_request_is_read(framed: bytes, delta: dict[str, None]) -> None:
    """Some gateways do not stream: their answer is the answer, and not an empty success."""
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": "hello", "reasoning": "r", "tool_calls": [call]}
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message, **delta}
    body = framed % json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode()
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=body))
    with httpx.Client(transport=transport) as http:
        stream = Client(api_key="k", http_client=http).stream_chat(REQUEST)
        deltas = list(stream)
    assert "".join(delta.content for delta in deltas) == stream.response.text == "hello"
    assert stream.response.choices[0].to_dict() == {"index": 0, "finish_reason": "tool_calls", "message": message}


@pytest.mark.parametrize("endpoint", ["chat", "complete"])
def test_page_instead_of_a_stream_is_named(endpoint: str) -> None:
    answer = httpx.Response(200, html="<html>Sign in</html>")
    with httpx.Client(transport=httpx.MockTransport(lambda _: answer)) as http:
        client = Client(api_key="k", max_retries=0, http_client=http)
        stream = client.stream_chat(REQUEST) if endpoint == "chat" else client.stream_complete(model="m", prompt="q")
        with pytest.raises(StreamTruncatedError, match="text/html"):
            list(stream)

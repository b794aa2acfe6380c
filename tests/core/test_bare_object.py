"""A stream request that is answered with a bare JSON object: the error in it is told, never an empty success."""

from __future__ import annotations

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import ServerError
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

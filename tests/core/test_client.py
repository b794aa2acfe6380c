"""The clients against a real loopback server: retries, errors, truncation, loops, pickles, connections."""

from __future__ import annotations

import asyncio
import copy
import http.server
import json
import pickle
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import (
    APIConnectionError,
    APIResponseError,
    APITimeoutError,
    ContextLengthExceededError,
    MissingAPIKeyError,
    RateLimitError,
    RequestValidationError,
    ServerError,
    StreamTruncatedError,
)

MESSAGES = [{"role": "user", "content": "q"}]
ANSWER = {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "ok"}}], "model": "m"}
KEY = "csk-PLANTED"


def event(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


def piece(content: str, **choice: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": {"content": content}, **choice}]})


END = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"total_tokens": 3}})


class Server:
    """Answers with the scripted (status, headers, body) in turn; the last one repeats."""

    def __init__(self) -> None:
        self.script: list[tuple[int, dict[str, str], bytes]] = []
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.connections = 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                outer.requests.append(({k.lower(): v for k, v in self.headers.items()}, body))
                status, headers, answer = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: Any) -> None:
                pass

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def ok() -> tuple[int, dict[str, str], bytes]:
    return 200, {}, json.dumps(ANSWER).encode()


def test_body_has_only_what_was_set(server: Server) -> None:
    server.script = [ok()]
    Client(api_key=KEY, base_url=server.url + "/v1/").chat(
        model="m", messages=MESSAGES, max_tokens=9, seed=None, stop=[]
    )
    headers, body = server.requests[0]
    assert json.loads(body) == {"model": "m", "messages": MESSAGES, "max_completion_tokens": 9}
    assert headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in str({name: value for name, value in headers.items() if name != "authorization"})


@pytest.mark.parametrize("retries", [0, 2])
@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_exactly_one_plus_max_retries_requests(server: Server, status: int, retries: int) -> None:
    server.script = [(status, {"retry-after": "0"}, b'{"message":"busy"}')]
    with pytest.raises(Exception, match="busy"):
        Client(api_key=KEY, base_url=server.url, max_retries=retries).chat(model="m", messages=MESSAGES)
    assert len(server.requests) == 1 + retries
    assert len({body for _, body in server.requests}) == 1


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 422])
async def test_refusals_are_not_repeated(server: Server, status: int) -> None:
    server.script = [(status, {}, b'{"message":"no"}')]
    with pytest.raises(Exception, match="no") as caught:
        await AsyncClient(api_key=KEY, base_url=server.url).chat(model="m", messages=MESSAGES)
    assert getattr(caught.value, "status_code", None) == status
    assert len(server.requests) == 1


def test_long_retry_after_is_raised_at_once(server: Server) -> None:
    server.script = [
        (429, {"retry-after": "86399"}, b'{"message":"day","code":"token_quota_exceeded","param":"quota"}')
    ]
    with pytest.raises(RateLimitError) as caught:
        Client(api_key=KEY, base_url=server.url).chat(model="m", messages=MESSAGES)
    assert (caught.value.retry_after, caught.value.code, caught.value.is_retryable) == (
        86399.0,
        "token_quota_exceeded",
        False,
    )
    assert len(server.requests) == 1


def test_context_overflow_tells_the_numbers(server: Server) -> None:
    text = "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"
    server.script = [(400, {}, json.dumps({"message": text, "code": "context_length_exceeded"}).encode())]
    with pytest.raises(ContextLengthExceededError) as caught:
        Client(api_key=KEY, base_url=server.url).chat(model="m", messages=MESSAGES)
    assert (caught.value.current_length, caught.value.limit) == (9000, 8192)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.limit, str(again)) == (ContextLengthExceededError, 8192, str(caught.value))


def test_error_object_in_a_200_is_its_status(server: Server) -> None:
    server.script = [(200, {}, b'{"error":{"message":"busy","code":"overloaded"},"status_code":503}')]
    with pytest.raises(ServerError) as caught:
        Client(api_key=KEY, base_url=server.url, max_retries=0).chat(model="m", messages=MESSAGES)
    assert (caught.value.status_code, caught.value.code) == (503, "overloaded")


def test_no_choices_is_a_typed_error_with_usage(server: Server) -> None:
    server.script = [(200, {}, b'{"id":"c","choices":[],"usage":{"prompt_tokens":1}}')]
    with pytest.raises(APIResponseError) as caught:
        Client(api_key=KEY, base_url=server.url).chat(model="m", messages=MESSAGES)
    assert (caught.value.response_id, caught.value.usage) == ("c", {"prompt_tokens": 1})


def test_error_before_the_first_delta_is_repeated_and_after_it_is_not(server: Server) -> None:
    broken = event({"status_code": 503, "error": {"message": "busy"}})
    role = event({"choices": [{"index": 0, "delta": {"role": "assistant"}}]})
    server.script = [(200, {}, role + broken), (200, {}, role + piece("a") + END)]
    client = Client(api_key=KEY, base_url=server.url)
    assert [delta.content for delta in client.stream_chat(model="m", messages=MESSAGES)] == ["a", ""]
    server.script = [(200, {}, piece("par") + broken)]
    server.requests.clear()
    stream = iter(client.stream_chat(model="m", messages=MESSAGES))
    assert next(stream).content == "par"
    with pytest.raises(ServerError):
        next(stream)
    assert len(server.requests) == 1


@pytest.mark.parametrize("tail", [b"", b"data: [DONE]\n\n"])
async def test_stream_without_finish_reason_is_truncated(server: Server, tail: bytes) -> None:
    server.script = [(200, {}, piece("a") + tail)]
    with pytest.raises(StreamTruncatedError):
        list(Client(api_key=KEY, base_url=server.url).stream_chat(model="m", messages=MESSAGES))
    with pytest.raises(StreamTruncatedError):
        [d async for d in AsyncClient(api_key=KEY, base_url=server.url).stream_chat(model="m", messages=MESSAGES)]


def test_one_async_client_in_many_loops_and_threads(server: Server) -> None:
    server.script = [ok()]
    client = AsyncClient(api_key=KEY, base_url=server.url)

    async def calls() -> list[str]:
        return [(await client.chat(model="m", messages=MESSAGES)).text for _ in range(3)]

    answers: list[list[str]] = [asyncio.run(calls()), asyncio.run(calls())]
    threads = [threading.Thread(target=lambda: answers.append(asyncio.run(calls()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [["ok"] * 3] * 10
    assert server.connections == 10


def test_equal_clients_share_connections_and_copies_work(server: Server) -> None:
    server.script = [ok()]
    first = Client(api_key=KEY, base_url=server.url)
    for client in (first, copy.copy(first), copy.deepcopy(first), pickle.loads(pickle.dumps(first))):
        assert client.chat(model="m", messages=MESSAGES).text == "ok"
    for _ in range(20):
        Client(api_key="other", base_url=server.url).chat(model="m", messages=MESSAGES)
    assert server.connections == 1
    assert [headers["authorization"] for headers, _ in server.requests[3:5]] == [f"Bearer {KEY}", "Bearer other"]


def test_key_from_the_environment_never_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    client = Client()
    assert KEY.encode() not in pickle.dumps(client)
    assert KEY not in repr(client)
    monkeypatch.delenv("CEREBRAS_API_KEY")
    with pytest.raises(MissingAPIKeyError, match=r"cloud\.cerebras\.ai"):
        Client()


def test_bad_requests_are_refused_before_sending(server: Server) -> None:
    client = Client(api_key=KEY, base_url=server.url)
    for fields, text in (
        ({"temprature": 1}, "'temperature'"),
        ({"temperature": 3}, "less than or equal to 2"),
        ({"stop": list("abcde")}, "4"),
        ({"top_logprobs": 2}, "logprobs"),
        ({"tool_choice": "required"}, "tools"),
    ):
        with pytest.raises(RequestValidationError, match=text):
            client.chat(model="m", messages=MESSAGES, **fields)
    with pytest.raises(RequestValidationError, match="json_object"):
        client.stream_chat(model="m", messages=MESSAGES, response_format={"type": "json_object"})
    with pytest.raises(RequestValidationError, match="best_of"):
        client.stream_complete(model="m", prompt="p", best_of=2)
    assert server.requests == []


def test_json_object_as_a_single_batch(server: Server) -> None:
    server.script = [ok()]
    stream = Client(api_key=KEY, base_url=server.url).stream_chat(
        model="m", messages=MESSAGES, response_format={"type": "json_object"}, unstreamable="single"
    )
    assert [delta.content for delta in stream] == ["ok"]
    assert stream.response.text == "ok"
    assert "stream" not in json.loads(server.requests[0][1])


def test_refused_connection_names_host_and_cause() -> None:
    with pytest.raises(APIConnectionError, match=r"127\.0\.0\.1:9") as caught:
        Client(api_key=KEY, base_url="http://127.0.0.1:9", max_retries=0).chat(model="m", messages=MESSAGES)
    assert isinstance(caught.value.__cause__, httpx.ConnectError)
    assert isinstance(caught.value, ConnectionError)


def test_timeout_is_a_timeout_error() -> None:
    def late(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadTimeout("late", request=request)

    with httpx.Client(transport=httpx.MockTransport(late)) as http, pytest.raises(APITimeoutError) as caught:
        Client(api_key=KEY, max_retries=0, http_client=http).chat(model="m", messages=MESSAGES)
    assert isinstance(caught.value, TimeoutError)
    assert KEY not in repr(caught.value.__cause__.__dict__)

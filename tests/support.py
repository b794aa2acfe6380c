"""A scripted HTTP server on loopback, and the eight ways to ask the core, for tests of any room."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import select
import socket
import ssl
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any, NamedTuple

import pytest

from cerebras_ext import AsyncClient, Client

TRANSPORTS = [
    pytest.param(name, marks=pytest.mark.skipif(not find_spec(package), reason=f"{package} is not installed"), id=name)
    for name, package in (("httpx", "httpx"), ("aiohttp", "httpx_aiohttp"), ("httptools", "httptools"))
]
"""Those that are installed, as parameters of a test."""

KEY = "csk-PLANTED-0123456789"
MESSAGES = [{"role": "user", "content": "q"}]


class Stall:
    """A pause of an answer until `release` is called or the client goes away."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.gone = threading.Event()
        self._released = threading.Event()

    def release(self) -> None:
        self._released.set()

    def hold(self, connection: socket.socket) -> None:
        self.reached.set()
        while not self._released.is_set():
            if select.select([connection], [], [], 0.005)[0]:
                with contextlib.suppress(ConnectionError):
                    # Under TLS there is nothing to look at before it is read; a client that waits sends nothing more.
                    if not isinstance(connection, ssl.SSLSocket) and connection.recv(1, socket.MSG_PEEK):
                        continue
                self.gone.set()
                return


@dataclass(frozen=True)
class Wait:
    """A pause of an answer by seconds."""

    seconds: float


class Cut:
    """The connection is reset here."""


Piece = bytes | Stall | Wait | Cut


@dataclass
class Answer:
    """What the server says to one request.

    Attributes:
        pieces: The body, sent piece by piece.
        framing: How its end is told: by its length, by chunks, or by closing the connection.
    """

    pieces: Sequence[Piece] = (b"{}",)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    framing: str = "length"


class Received(NamedTuple):
    """A request as it arrived, header names in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Server:
    """Gives the answers of `script` in turn; the last one repeats."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.script: list[Answer] = [Answer()]
        self.requests: list[Received] = []
        self.connections = 0
        self.open_connections = 0
        self._lock = threading.Lock()
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler(), bind_and_activate=False)
        self._http.daemon_threads = True
        self._http.request_queue_size = 256
        self._http.server_bind()
        self._http.server_activate()
        if tls is not None:  # the handshake is made where the request is read, in a thread of its own
            self._http.socket = tls.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
        self._thread.start()
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._http.server_port}"

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self) -> None:
                with outer._lock:
                    outer.connections += 1
                    outer.open_connections += 1
                super().setup()

            def handle(self) -> None:
                try:
                    with contextlib.suppress(ConnectionError, ssl.SSLError):
                        super().handle()
                finally:
                    with outer._lock:
                        outer.open_connections -= 1

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                headers = {name.lower(): value for name, value in self.headers.items()}
                with outer._lock:
                    outer.requests.append(Received(self.command, self.path, headers, body))
                    answer = outer.script.pop(0) if len(outer.script) > 1 else outer.script[0]
                _send(self, answer)

            do_GET = do_POST  # noqa: N815 (the name is http.server's)

            def log_message(self, *args: Any) -> None:
                pass

        return Handler

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


def _send(handler: http.server.BaseHTTPRequestHandler, answer: Answer) -> None:
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if answer.framing == "length":
        handler.send_header("content-length", str(sum(len(p) for p in answer.pieces if isinstance(p, bytes))))
    elif answer.framing == "chunked":
        handler.send_header("transfer-encoding", "chunked")
    else:
        handler.send_header("connection", "close")
        handler.close_connection = True
    handler.end_headers()
    for piece in answer.pieces:
        if isinstance(piece, bytes):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if answer.framing == "chunked" else piece)
        elif isinstance(piece, Stall):
            piece.hold(handler.connection)
        elif isinstance(piece, Wait):
            time.sleep(piece.seconds)
        else:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            raise ConnectionResetError
    if answer.framing == "chunked":
        handler.wfile.write(b"0\r\n\r\n")


def event(value: Any, name: str = "") -> bytes:
    """An event of a stream."""
    head = f"event: {name}\n" if name else ""
    return head.encode() + b"data: " + json.dumps(value, ensure_ascii=False).encode() + b"\n\n"


def chat_event(choice: dict[str, Any] | None = None, **delta: Any) -> bytes:
    """An event of a chat stream that adds `delta`."""
    return event({"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, **(choice or {})}]})


DONE = b"data: [DONE]\n\n"
CHAT_END = event(
    {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
)
TEXT_END = event(
    {
        "id": "c",
        "model": "m",
        "choices": [{"index": 0, "text": "", "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    }
)
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


class Outcome(NamedTuple):
    """What a way of asking brought."""

    response: Any
    deltas: list[Any]


@dataclass(frozen=True)
class Way:
    """One of the eight ways to ask: endpoint, streamed or not, sync or async."""

    endpoint: str
    stream: bool
    is_async: bool

    def __str__(self) -> str:
        return f"{'async-' if self.is_async else ''}{'stream-' if self.stream else ''}{self.endpoint}"

    @property
    def fields(self) -> dict[str, Any]:
        """The least that a request needs."""
        return {"model": "m", **({"messages": MESSAGES} if self.endpoint == "chat" else {"prompt": "q"})}

    @property
    def path(self) -> str:
        return "/v1/chat/completions" if self.endpoint == "chat" else "/v1/completions"

    def piece(self, text: str) -> bytes:
        """An event that adds text."""
        if self.endpoint == "chat":
            return chat_event(content=text)
        return event({"id": "c", "model": "m", "choices": [{"index": 0, "text": text}]})

    @property
    def end(self) -> bytes:
        """The event with the finish reason."""
        return CHAT_END if self.endpoint == "chat" else TEXT_END

    def answer(self, text: str = "ok", **keywords: Any) -> Answer:
        """A whole good answer."""
        if self.stream:
            return Answer((self.piece(text), self.end, DONE), **{"framing": "chunked", **keywords})
        choice: dict[str, Any] = {"index": 0, "finish_reason": "stop"}
        if self.endpoint == "chat":
            choice["message"] = {"role": "assistant", "content": text}
        else:
            choice["text"] = text
        return Answer(
            (json.dumps({"id": "c", "model": "m", "choices": [choice], "usage": USAGE}).encode(),), **keywords
        )

    def ask(self, options: dict[str, Any], /, **fields: Any) -> Outcome:
        """Ask with a new client of these options; `fields` go on top of the least that is needed."""
        given = {**self.fields, **fields}
        if self.is_async:
            return asyncio.run(self.ask_async(AsyncClient(**options), given))
        return self.ask_sync(Client(**options), given)

    def ask_sync(self, client: Client, fields: dict[str, Any]) -> Outcome:
        if not self.stream:
            return Outcome(getattr(client, _METHODS[self.endpoint])(**fields), [])
        stream = getattr(client, f"stream_{_METHODS[self.endpoint]}")(**fields)
        deltas = list(stream)
        return Outcome(stream.response, deltas)

    async def ask_async(self, client: AsyncClient, fields: dict[str, Any]) -> Outcome:
        if not self.stream:
            return Outcome(await getattr(client, _METHODS[self.endpoint])(**fields), [])
        stream = getattr(client, f"stream_{_METHODS[self.endpoint]}")(**fields)
        deltas = [delta async for delta in stream]
        return Outcome(stream.response, deltas)


_METHODS = {"chat": "chat", "completion": "complete"}
WAYS = [Way(e, s, a) for e in ("chat", "completion") for s in (False, True) for a in (False, True)]
STREAMS = [way for way in WAYS if way.stream]
WHOLE = [way for way in WAYS if not way.stream]


@contextlib.contextmanager
def raw_server(*answers: bytes) -> Iterator[str]:
    """A server that reads a request and says the next bytes, on one connection after the other, which it closes."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join(5)
    listener.close()


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something holds, and fail if it does not in time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.002)


@contextlib.contextmanager
def serving() -> Iterator[Server]:
    """A scripted server that is closed in the end."""
    server = Server()
    try:
        yield server
    finally:
        server.close()


def locals_shown(error: BaseException) -> str:
    """All local variables of our frames and of those below, but not of the tests'."""
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown: list[str] = []
    pending: list[traceback.TracebackException | None] = [report]
    while pending:
        one = pending.pop()
        if one is not None:
            pending += [one.__cause__, one.__context__]
            for frame in one.stack:
                if "/tests/" not in frame.filename:
                    shown += (frame.locals or {}).values()
    assert shown
    return "\n".join(shown)


def fails(ask: Callable[[], Any]) -> str:
    """What an error tracker shows of the failure of a call; see `locals_shown`."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 (which error it is, other tests say)
        ask()
    return locals_shown(caught.value)

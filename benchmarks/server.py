"""The loopback server: one process on a core of its own that does nothing but send bytes made before.

It tells streams from plain answers by the bytes `"stream":true` in the body; a compressed body gets a plain answer.
Blast streams are written at once. Paced ones are written token by token when they are due; when the server is late (or
the client's buffer full) what is due leaves together, as it would in a network. It ends when its standard input does.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from benchmarks.scenarios import CHAT_PATH, TEXT_PATH, Body, Scenario, answer_body, read_path, settle, stream_body

_OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
_STREAM_MARKS = (b'"stream":true', b'"stream": true', b"\xa6stream\xc3")


class Connection:
    """One client connection: collects a request, then sends its response."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.incoming = bytearray()
        self.body = Body(b"")
        self.sent = 0
        self.rate = 0
        self.begin = 0.0
        self.first_byte = 0.0
        self.needed = 0

    @property
    def busy(self) -> bool:
        """Whether bytes are still to be sent."""
        return self.sent < len(self.body.data)

    def receive(self, data: bytes) -> None:
        """Take bytes of a request, and prepare the response when it is whole."""
        if not self.incoming:
            self.first_byte = time.perf_counter()
        self.incoming += data
        if len(self.incoming) < self.needed:
            return
        end = self.incoming.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.incoming[:end])
        self.needed = end + 4 + content_length(head)
        if len(self.incoming) >= self.needed:
            content = bytes(self.incoming[end + 4 : self.needed])
            del self.incoming[: self.needed]
            self.needed = 0
            self.respond(head, content)

    def respond(self, head: bytes, content: bytes) -> None:
        """Choose the response of a request and when it begins."""
        self.body, scenario = choose(head, content)
        self.sent = 0
        self.rate = scenario.rate if self.body.offsets else 0
        self.begin = time.perf_counter()
        if scenario.uplink:
            self.begin = max(self.begin, self.first_byte + len(content) * 8 / (scenario.uplink * 1e6))

    def send(self, now: float) -> None:
        """Send what is due, as far as the client takes it."""
        if now < self.begin:
            return
        if not self.rate:
            end = len(self.body.data)
        else:
            due = min(int((now - self.begin) * self.rate) + 1, len(self.body.offsets))
            end = self.body.offsets[due - 1]
        if end > self.sent:
            try:
                self.sent += self.sock.send(memoryview(self.body.data)[self.sent : end])
            except BlockingIOError:
                return


def content_length(head: bytes) -> int:
    """Return the length of a request's body from its head."""
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def asks_for_stream(content: bytes) -> bool:
    """Whether a request's body asks for a stream."""
    return any(mark in content for mark in _STREAM_MARKS)


def choose(head: bytes, content: bytes) -> tuple[Body, Scenario]:
    """Return the response of a request, and its scenario."""
    path = head.split(b" ", 2)[1].decode("ascii")
    try:
        scenario, endpoint = read_path(path)
    except ValueError:
        return Body(_NOT_FOUND), Scenario()
    if endpoint not in (CHAT_PATH, TEXT_PATH):
        return Body(_OK), Scenario()
    scenario = settle(scenario, content)
    make = stream_body if asks_for_stream(content) else answer_body
    return make(scenario, endpoint), scenario


def serve(listener: socket.socket) -> None:
    """Answer requests until standard input ends. Spins instead of waiting while a response is running."""
    poll = select.epoll()
    poll.register(listener.fileno(), select.EPOLLIN)
    poll.register(sys.stdin.fileno(), select.EPOLLIN)
    connections: dict[int, Connection] = {}
    sending: dict[int, Connection] = {}
    while True:
        for number, events in poll.poll(0 if sending else -1):
            if number == sys.stdin.fileno():
                return
            if number == listener.fileno():
                _accept(listener, poll, connections)
            elif number in connections and not _read(connections[number], events):
                poll.unregister(number)
                sending.pop(number, None)
                connections.pop(number).sock.close()
            elif number in connections and connections[number].busy:
                sending[number] = connections[number]
        now = time.perf_counter()
        for number, connection in list(sending.items()):
            try:
                connection.send(now)
            except OSError:  # the client has left; epoll tells as well
                connection.sent = len(connection.body.data)
            if not connection.busy:
                del sending[number]


def _accept(listener: socket.socket, poll: select.epoll, connections: dict[int, Connection]) -> None:
    sock, _ = listener.accept()
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connections[sock.fileno()] = Connection(sock)
    poll.register(sock.fileno(), select.EPOLLIN)


def _read(connection: Connection, events: int) -> bool:
    """Read what has come; return False when the client has left."""
    try:
        data = connection.sock.recv(1 << 20)
    except BlockingIOError:
        return True
    except OSError:
        return False
    if data:
        connection.receive(data)
    return bool(data) and not events & select.EPOLLERR


CORES: tuple[int, ...] = tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()
"""The cores that this process may use before it is pinned; what it starts afterwards inherits the pin, not these."""


def pin(core: int) -> None:
    """Bind this process to a core by its number, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})


def client_core() -> int:
    """Return the number of the core that the measured process has."""
    return CORES[0] if CORES else 0


def server_core() -> int:
    """Return the number of the core that servers have; where there is one only, it is the client's as well."""
    return CORES[-1] if CORES else 0


@dataclass(frozen=True, slots=True)
class Address:
    """Where a running server is."""

    port: int

    def url(self, scenario: Scenario) -> str:
        """Return the base URL at which a scenario is answered; clients put `/v1/...` behind it."""
        return f"http://127.0.0.1:{self.port}{scenario.path}"


class Server:
    """The server in its own process, on the last core; it gives its address to a `with` block."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.server", str(server_core())],
            cwd=Path(__file__).resolve().parents[1],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
            process_group=0,  # an interrupt ends the run, which ends the server
        )
        assert self._process.stdout is not None
        self.address = Address(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stdin):
            if pipe is not None:
                pipe.close()

    def __enter__(self) -> Address:
        return self.address

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def main(core: int) -> None:
    """Listen on a free port, say which, and serve."""
    pin(core)
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    serve(listener)


if __name__ == "__main__":
    main(int(sys.argv[1]))

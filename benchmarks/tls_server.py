"""A server that speaks HTTP/1.1 and HTTP/2 over TLS: hypercorn on a core of its own, with a certificate by trustme.

It sends the same events as the loopback server, made before, but hypercorn does the framing: for HTTP/1.1 and HTTP/2
alike it costs more than reading them does, so that it sets the pace and only the client's CPU time can be compared. The
URL names the protocol (`/h1`, `/h2`), and a request that comes over the other one is refused.
"""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Coroutine
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.scenarios import Scenario, answer, dump, read_path, stream_events
from benchmarks.server import asks_for_stream, pin, server_core

VERSIONS = {"h1": "1.1", "h2": "2"}
_TURNS = 3
"""Turns of the event loop after each part, in which hypercorn sends it: without, it joins parts for HTTP/2 only."""
_JSON = [(b"content-type", b"application/json")]
_EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8")]


@lru_cache(maxsize=64)
def pieces(scenario: Scenario, endpoint: str, stream: bool) -> tuple[bytes, ...]:
    """Return what the parts of a response's body are."""
    if not stream:
        return (dump(answer(scenario, endpoint)),)
    frames = [b"data: " + dump(event) + b"\n\n" for event in stream_events(scenario, endpoint)]
    frames.append(b"data: [DONE]\n\n")
    return tuple(b"".join(frames[at : at + scenario.events]) for at in range(0, len(frames), scenario.events))


async def app(
    scope: dict[str, Any],
    receive: Callable[[], Coroutine[Any, Any, dict[str, Any]]],
    send: Callable[[dict[str, Any]], Coroutine[Any, Any, None]],
) -> None:
    """Answer a request (ASGI)."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        if part["type"] == "http.disconnect":
            return
        body, more = body + part.get("body", b""), part.get("more_body", False)
    _, protocol, rest = scope["path"].split("/", 2)
    if scope["http_version"] != VERSIONS[protocol]:
        await send({"type": "http.response.start", "status": 400, "headers": _JSON})
        await send({"type": "http.response.body", "body": b'{"message": "the wrong protocol"}'})
        return
    stream = asks_for_stream(body)
    parts = pieces(*read_path("/" + rest), stream)
    await send({"type": "http.response.start", "status": 200, "headers": _EVENTS if stream else _JSON})
    for piece in parts:
        await send({"type": "http.response.body", "body": piece, "more_body": True})
        for _ in range(_TURNS):
            await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b""})


class TlsServer:
    """The server in its own process, on the last core; `authority` is the file that clients trust."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.authority = str(Path(self._folder.name) / "authority.pem")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.tls_server", self._folder.name, str(server_core())],
            cwd=Path(__file__).resolve().parents[1],
            stdout=subprocess.PIPE,
            stdin=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self.close()
            raise RuntimeError("the server with TLS did not start")
        self.port = int(line)

    def url(self, protocol: str, scenario: Scenario) -> str:
        """Return the base URL at which a scenario is answered over a protocol, `h1` or `h2`."""
        return f"https://localhost:{self.port}/{protocol}{scenario.path}"

    def close(self) -> None:
        """End the process."""
        self._process.kill()  # to end in peace, hypercorn would wait for the connections
        self._process.wait()
        for pipe in (self._process.stdout, self._process.stdin):
            if pipe is not None:
                pipe.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


def main(folder: Path, core: int) -> None:
    """Write the certificates, listen on a free port, say which, and serve."""
    import trustme  # type: ignore[import-not-found,unused-ignore]
    from hypercorn.asyncio import serve  # type: ignore[import-not-found,unused-ignore]
    from hypercorn.config import Config  # type: ignore[import-not-found,unused-ignore]

    pin(core)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "server.pem")
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    config: Any = Config()
    config.certfile = config.keyfile = str(folder / "server.pem")
    config.bind = [f"fd://{listener.fileno()}"]
    config.loglevel, config.errorlog = "ERROR", None
    config.keep_alive_timeout, config.keep_alive_max_requests = 600, 10**9
    config.h2_max_concurrent_streams = 1000
    threading.Thread(target=_end_with_parent, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    asyncio.run(serve(app, config))  # type: ignore[arg-type,unused-ignore]


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

"""The emulator as a thread with an event loop, and what tests ask of it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from cerebras_ext.emulator.catalog import ModelCard, catalog
from cerebras_ext.emulator.connection import Connection
from cerebras_ext.emulator.faults import Fault, FaultQueue
from cerebras_ext.emulator.messages import HttpRequest, ReceivedRequest, Reply
from cerebras_ext.emulator.service import Service

_PATIENCE = 10.0
"""Seconds that waiting methods wait unless told otherwise."""


class Emulator:
    """A local stand-in for the service: an HTTP server on loopback in a thread of its own.

    Use it as a context manager, or call `start` and `stop`. Several may run at once.

    Args:
        port: Port to listen on; 0 for a free one.
        host: Address to listen on.
        api_key: The only key that is accepted; None accepts any.
        models: Ids or cards of models to know beside the built-in ones.
        context: Context length of every model, in tokens; None for the real ones.
        pace: Seconds before each chunk of every stream, to see one flow; 0 sends as fast as possible.
        clock: Source of the time in answers; a fixed one makes answers equal byte by byte from a fresh start.
    """

    def __init__(
        self,
        port: int = 0,
        *,
        host: str = "127.0.0.1",
        api_key: str | None = None,
        models: Iterable[str | ModelCard] = (),
        context: int | None = None,
        pace: float = 0.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.pace = pace
        self._address = (host, port)
        self._faults = FaultQueue()
        self._service = Service(catalog(models, context), api_key=api_key, clock=clock)
        self._requests: list[ReceivedRequest] = []
        self._connections: set[Connection] = set()
        self._opened = 0
        self._waiting = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._released: asyncio.Event | None = None
        self._emptied: asyncio.Event | None = None
        self._failure: BaseException | None = None

    # ---- life ----

    def start(self) -> Self:
        """Listen. Returns itself once connections are accepted.

        Raises:
            OSError: The port is taken.
            RuntimeError: It runs already.
        """
        if self._thread is not None:
            raise RuntimeError("the emulator runs already")
        ready = threading.Event()
        self._failure = None
        self._thread = threading.Thread(target=self._run, args=(ready,), name="cerebras-emulator", daemon=True)
        self._thread.start()
        ready.wait()
        if self._failure is not None:
            self.stop()
            raise self._failure
        return self

    def stop(self) -> None:
        """Close the port and all connections, and end the thread. Does nothing where it does not run."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stopping is not None and thread.is_alive():
            self._call(self._stopping.set)
        thread.join()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self, ready: threading.Event) -> None:
        try:
            asyncio.run(self._main(ready))
        except OSError as error:
            self._failure = error
        finally:
            self._loop = None
            ready.set()

    async def _main(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping, self._released, self._emptied = asyncio.Event(), asyncio.Event(), asyncio.Event()
        server = await self._loop.create_server(lambda: Connection(self), *self._address, backlog=1024)
        self._address = server.sockets[0].getsockname()[:2]
        ready.set()
        try:
            await self._stopping.wait()
        finally:
            server.close()
            self._emptied.clear()
            for connection in tuple(self._connections):
                connection.abort()
            if self._connections:
                await self._emptied.wait()

    def _call(self, function: Callable[[], object]) -> None:
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(function)

    # ---- where it is, what it saw ----

    @property
    def base_url(self) -> str:
        """Where it listens, without `/v1`.

        Raises:
            RuntimeError: It has to choose a port and was not started.
        """
        return f"http://{self._address[0]}:{self.port}"

    @property
    def port(self) -> int:
        """Port on which it listens; raises as `base_url` does."""
        if not self._address[1]:
            raise RuntimeError("the emulator has no port yet: start it, by `with Emulator() as emu` or `start()`")
        return self._address[1]

    @property
    def requests(self) -> list[ReceivedRequest]:
        """Requests that arrived since the start or the last `reset`, oldest first."""
        with self._changed:
            return list(self._requests)

    @property
    def connections_opened(self) -> int:
        """How many connections were made since the start or the last `reset`."""
        with self._changed:
            return self._opened

    @property
    def connections_open(self) -> int:
        """How many connections are open now. Clients that share connections keep them until the last one is closed."""
        with self._changed:
            return len(self._connections)

    @property
    def stalled_replies(self) -> int:
        """How many replies wait for `release` now."""
        with self._changed:
            return self._waiting

    def wait_until(self, condition: Callable[[Emulator], bool], timeout: float = _PATIENCE) -> None:
        """Wait until a condition on this emulator holds, such as `lambda emu: emu.stalled_replies == 1`.

        Raises:
            TimeoutError: It does not hold in time.
        """
        with self._changed:
            if not self._changed.wait_for(lambda: condition(self), timeout):
                raise TimeoutError(f"the condition did not hold within {timeout} s")

    # ---- scripting ----

    def script(self, *faults: Fault) -> None:
        """Queue deviations; each request takes the first one that is for its path.

        Raises:
            TypeError: Something else than a `Fault`.
        """
        for fault in faults:
            if not isinstance(fault, Fault):
                raise TypeError(f"script: takes Fault(...), got {fault!r}")
        with self._changed:
            self._faults.add(*faults)

    def fail(
        self,
        status: int,
        *,
        body: Any = None,
        headers: Mapping[str, str | None] | None = None,
        times: int | None = 1,
        path: str = "*",
    ) -> None:
        """Refuse the next requests; shorthand for `script(Fault(status=...))`.

        Args:
            status: HTTP status from 300.
            body: JSON value, text or bytes; the service's own body for the status by default.
            headers: Headers to add.
            times: How many requests; None for all.
            path: Pattern of the paths.

        Raises:
            ValueError: A value has no meaning here; see `Fault`.
        """
        if not isinstance(status, int) or status < 300:
            raise ValueError(f"status: must be that of a refusal, from 300, got {status!r}; see `respond` for others")
        self.script(Fault(status=status, body=body, headers=headers or {}, times=times, path=path))

    def respond(self, body: Any = None, *, stream: Any = None, times: int | None = 1, path: str = "*") -> None:
        """Answer the next requests with a given body or event stream; see `Fault`."""
        self.script(Fault(body=body, stream=stream, times=times, path=path))

    def release(self) -> None:
        """Let all stalled replies go on."""
        self._call(self._release)

    def _release(self) -> None:
        if self._released is not None:
            self._released.set()
            self._released = asyncio.Event()

    def reset(self) -> None:
        """Forget requests, counters and scripted deviations, and release stalled replies."""
        with self._changed:
            self._requests.clear()
            self._faults.clear()
            self._service.reset()
            self._opened = len(self._connections)
        self.release()

    # ---- what connections call, in the thread of the loop ----

    def reply_to(self, request: HttpRequest) -> Reply:
        """Note a request and answer it."""
        with self._changed:
            fault = self._faults.take(request.path)
        received, reply = self._service.handle(request, fault)
        with self._changed:
            self._requests.append(received)
            self._changed.notify_all()
        return reply

    def opened(self, connection: Connection) -> None:
        """Note a new connection."""
        with self._changed:
            self._connections.add(connection)
            self._opened += 1
            self._changed.notify_all()
        if self._stopping is not None and self._stopping.is_set():
            connection.abort()

    def closed(self, connection: Connection) -> None:
        """Note the end of a connection."""
        with self._changed:
            self._connections.discard(connection)
            if not self._connections and self._emptied is not None:
                self._emptied.set()
            self._changed.notify_all()

    async def stalled(self) -> None:
        """Wait for `release`."""
        assert self._released is not None
        self._count_stalled(1)
        try:
            await self._released.wait()
        finally:
            self._count_stalled(-1)

    def _count_stalled(self, change: int) -> None:
        with self._changed:
            self._waiting += change
            self._changed.notify_all()

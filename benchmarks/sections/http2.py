"""HTTP/1.1 against HTTP/2, both over TLS and from the same server, for the core's clients."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

from benchmarks.bench import Bench, sync_and_async
from benchmarks.candidates import Setup, Subject, libraries
from benchmarks.measure import Candidate, Work, run_async
from benchmarks.scenarios import Scenario
from benchmarks.tls_server import TlsServer

TOKENS = 1000
NEEDED = ("h2", "hypercorn", "trustme")
TITLES = {
    "stream": "HTTP/1.1 and HTTP/2 over TLS: one stream",
    "streams": "HTTP/1.1 and HTTP/2 over TLS: {} async streams at once",
    "call": "HTTP/1.1 and HTTP/2 over TLS: one call after the other",
    "calls": "HTTP/1.1 and HTTP/2 over TLS: 100 async calls at once",
}


def protocols(bench: Bench) -> None:
    """Streams and calls of the core over both protocols, and over aiohttp."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        print(f"http2: not measured without {', '.join(absent)}")
        return
    with TlsServer() as server:
        made = _subjects(server, Scenario(tokens=TOKENS))
        bench.compare(TITLES["stream"], "µs a token", sync_and_async(made, "stream", 1, TOKENS), 5)
        for count, tokens in ((10, 200), (100, 50)):
            made = _subjects(server, Scenario(tokens=tokens))
            candidates = [Candidate(key, _streams(one, count, tokens)) for key, one in made.items()]
            bench.compare(TITLES["streams"].format(count), "µs a token", candidates, 5)
        made = _subjects(server, Scenario(tokens=20))
        bench.compare(TITLES["call"], "µs a call", sync_and_async(made, "call", 30), 5)
        bench.compare(TITLES["calls"], "µs a call", [Candidate(key, _calls(one)) for key, one in made.items()], 5)


def _subjects(server: TlsServer, scenario: Scenario) -> dict[str, Subject]:
    core = libraries("plain", ("httpx", "sdk"))["core"]
    kinds: dict[str, tuple[str, dict[str, Any]]] = {"HTTP/1.1": ("h1", {}), "HTTP/2": ("h2", {"http2": True})}
    if find_spec("httpx_aiohttp") is not None:
        kinds["HTTP/1.1, aiohttp"] = ("h1", {"transport": "aiohttp"})
    return {
        name: core.make(Setup(server.url(protocol, scenario), options={**options, "verify": server.authority}))
        for name, (protocol, options) in kinds.items()
    }


def _streams(subject: Subject, count: int, tokens: int) -> Work:
    async def run() -> int:
        await asyncio.gather(*[subject.astream() for _ in range(count)])
        return tokens * count

    return lambda: run_async(run())


def _calls(subject: Subject) -> Work:
    async def run() -> int:
        await asyncio.gather(*[subject.acall() for _ in range(100)])
        return 100

    return lambda: run_async(run())

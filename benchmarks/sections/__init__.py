"""The sections of the benchmarks, by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.sections import calls, concurrency, http2, models, payloads, startup, streaming, tools

SECTIONS: dict[str, Callable[[Bench], None]] = {
    "import": startup.imports,
    "construction": startup.construction,
    "call": calls.one_call,
    "concurrent calls": concurrency.calls,
    "streaming": streaming.streams,
    "length": streaming.length,
    "paced": streaming.paced,
    "concurrent streams": concurrency.streams,
    "http2": http2.protocols,
    "tools": tools.deltas,
    "history": calls.history,
    "payloads": payloads.encodings,
    "token ids": payloads.token_ids,
    "link": payloads.link,
    "configurable": models.configurable,
    "agent": models.agent,
    "memory": startup.memory,
}

IN_QUICK = frozenset(
    ("import", "construction", "call", "concurrent calls", "streaming", "tools", "history", "token ids")
)
"""What shows a step backwards soon: these, with fewer rounds and without most of the other implementations."""

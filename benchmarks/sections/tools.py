"""Tool calls in streams: does a piece of arguments cost more the longer they are?"""

from __future__ import annotations

from benchmarks.bench import Bench, sync_and_async
from benchmarks.scenarios import Scenario

LENGTHS = (300, 3000)


def deltas(bench: Bench) -> None:
    """Streams of one tool call with 300 and 3,000 pieces of arguments."""
    candidates = []
    for tokens in LENGTHS[:1] if bench.quick else LENGTHS:
        # The LlamaIndex floor builds no tool calls, so that it would say nothing here.
        skip = (*("incumbent",) * (tokens > LENGTHS[0]), *("floor",) * (bench.group == "llamaindex"))
        subjects = bench.subjects(Scenario("tools", tokens), skip, tools=True)
        if tokens == LENGTHS[0]:
            subjects |= bench.fast(Scenario("tools", tokens), tools=True)
        named = {f"{key} {tokens:,}": subject for key, subject in subjects.items()}
        candidates += sync_and_async(named, "stream", max(1, 900 // tokens), tokens)
    samples = bench.compare(f"Tool-argument deltas, {bench.group}", "µs a delta", candidates, 7)
    bench.ratio(
        f"tools.incumbent.{bench.group}", samples, "ours 300 sync", "incumbent 300 sync", best="ours fast 300 sync"
    )
    bench.ratio(f"tools.linear.{bench.group}", samples, "ours 3,000 sync", "ours 300 sync")

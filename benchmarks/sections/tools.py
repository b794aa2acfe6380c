"""Tool calls in streams: does a piece of arguments cost more the longer they are?"""

from __future__ import annotations

from benchmarks.bench import FRAMEWORKS, Bench, sync_and_async
from benchmarks.scenarios import Scenario

LENGTHS = (300, 3000)


def deltas(bench: Bench) -> None:
    """Streams of one tool call with 300 and 3,000 pieces of arguments."""
    for framework in FRAMEWORKS if bench.quick else ("plain", *FRAMEWORKS):
        candidates = []
        for tokens in LENGTHS[:1] if bench.quick else LENGTHS:
            # The LlamaIndex floor builds no tool calls, so that it would say nothing here.
            skip = (*("incumbent",) * (tokens > LENGTHS[0]), *("floor",) * (framework == "llamaindex"))
            subjects = bench.subjects(framework, Scenario("tools", tokens), skip, tools=True)
            named = {f"{key} {tokens:,}": pair for key, pair in subjects.items()}
            candidates += sync_and_async(named, "stream", max(1, 900 // tokens), tokens)
        samples = bench.compare(f"Tool-argument deltas, {framework}", "µs a delta", candidates, 7)
        if framework != "plain":
            bench.ratio(f"tools.incumbent.{framework}", samples, "ours 300 sync", "incumbent 300 sync")
            bench.ratio(f"tools.linear.{framework}", samples, "ours 3,000 sync", "ours 300 sync")

"""Single calls: a short one, and one with a long history."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.bench import Bench, sync_and_async
from benchmarks.candidates.models import langchain_messages, llamaindex_messages
from benchmarks.measure import Candidate
from benchmarks.scenarios import Scenario


def one_call(bench: Bench) -> None:
    """One short call after the other, on a connection that is open."""
    scenario = Scenario(tokens=20)
    skip = ("sdk", "floor", "incumbent") if bench.quick else ()
    subjects = bench.httpx(scenario) | bench.subjects(scenario, skip) | bench.fast(scenario)
    samples = bench.compare(f"One call, {bench.group}", "µs a call", sync_and_async(subjects, "call", 30), 7)
    for path in ("sync", "async"):
        ours, best = f"ours {path}", f"ours fast {path}"
        bench.ratio(f"call.{path}.{bench.group}", samples, ours, f"httpx {path}", best=best)


def tool_history(rounds: int = 50) -> list[dict[str, Any]]:
    """Return a history of four messages a round: question, tool call, result, answer."""
    messages: list[dict[str, Any]] = []
    for number in range(rounds):
        arguments = json.dumps({"text": f"part {number} of the report"})
        call = {"id": f"call_{number:08x}", "type": "function"}
        call["function"] = {"name": "write_report", "arguments": arguments}  # type: ignore[assignment]
        messages += [
            {"role": "user", "content": f"Please write part {number} of the report now."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": f"Part {number} was written.", "tool_call_id": call["id"]},
            {"role": "assistant", "content": f"I have written part {number}; shall I go on?"},
        ]
    return messages


def history(bench: Bench) -> None:
    """A call with 200 messages of tool use, and the conversion of these messages alone."""
    messages = tool_history()
    scenario = Scenario(tokens=20)
    subjects = bench.subjects(scenario, messages=messages, tools=True)
    subjects |= bench.fast(scenario, messages=messages, tools=True)
    candidates = sync_and_async(subjects, "call", 3)
    samples = bench.compare(f"One call with 200 messages, {bench.group}", "µs a call", candidates, 9)
    bench.ratio(f"history.call.{bench.group}", samples, "ours sync", "incumbent sync", best="ours fast sync")
    _conversion(bench, messages)


def _conversion(bench: Bench, messages: list[dict[str, Any]]) -> None:
    from benchmarks.conversion import converters

    ours, by_hand = converters(bench.group)
    given = (langchain_messages if bench.group == "langchain" else llamaindex_messages)(messages)
    candidates = [
        Candidate("ours", lambda: _times(lambda: ours(given))),
        Candidate("by hand", lambda: _times(lambda: by_hand(given))),
    ]
    samples = bench.compare(f"Conversion of 200 messages, {bench.group}", "µs", candidates, 15)
    bench.ratio(f"history.convert.{bench.group}", samples, "ours", "by hand")


def _times(work: Any, count: int = 20) -> int:
    for _ in range(count):
        work()
    return count

"""Single calls: a short one, and one with a long history."""

from __future__ import annotations

import json
from typing import Any

from benchmarks.bench import FRAMEWORKS, Bench, sync_and_async
from benchmarks.candidates.models import langchain_messages, llamaindex_messages
from benchmarks.measure import Candidate
from benchmarks.scenarios import Scenario


def one_call(bench: Bench) -> None:
    """One short call after the other, on a connection that is open."""
    scenario = Scenario(tokens=20)
    plain = bench.subjects("plain", scenario, ("sdk", "core") if bench.quick else ())
    candidates = sync_and_async(plain, "call", 30)
    for framework in FRAMEWORKS:
        skip = ("floor", "incumbent") if bench.quick else ()
        subjects = bench.subjects(framework, scenario, skip) | bench.fast(framework, scenario)
        candidates += sync_and_async({f"{framework} {key}": pair for key, pair in subjects.items()}, "call", 30)
    samples = bench.compare("One call", "µs a call", candidates, 7)
    for framework in FRAMEWORKS:
        for path in ("sync", "async"):
            ours, best = f"{framework} ours {path}", f"{framework} ours fast {path}"
            bench.ratio(f"call.{path}.{framework}", samples, ours, f"httpx {path}", best=best)


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
    for framework in FRAMEWORKS:
        subjects = bench.subjects(framework, scenario, messages=messages, tools=True)
        candidates = sync_and_async(subjects, "call", 3)
        samples = bench.compare(f"One call with 200 messages, {framework}", "µs a call", candidates, 9)
        bench.ratio(f"history.call.{framework}", samples, "ours sync", "incumbent sync")
    _conversion(bench, messages)


def _conversion(bench: Bench, messages: list[dict[str, Any]]) -> None:
    from benchmarks.conversion import converters

    made = {"langchain": langchain_messages(messages), "llamaindex": llamaindex_messages(messages)}
    for framework in FRAMEWORKS:
        try:
            ours, by_hand = converters(framework)
        except (ImportError, AttributeError) as error:
            print(f"conversion, {framework}: {error}")
            continue
        given = made[framework]
        candidates = [
            Candidate("ours", lambda ours=ours, given=given: _times(lambda: ours(given))),  # type: ignore[misc]
            Candidate("by hand", lambda by_hand=by_hand, given=given: _times(lambda: by_hand(given))),  # type: ignore[misc]
        ]
        samples = bench.compare(f"Conversion of 200 messages, {framework}", "µs", candidates, 15)
        bench.ratio(f"history.convert.{framework}", samples, "ours", "by hand")


def _times(work: Any, count: int = 20) -> int:
    for _ in range(count):
        work()
    return count

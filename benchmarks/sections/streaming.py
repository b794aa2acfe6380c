"""Streams: what one token costs, by framework, kind, grouping, length and pace."""

from __future__ import annotations

from benchmarks.bench import Bench, sync_and_async
from benchmarks.candidates import Subject
from benchmarks.measure import Candidate, Sample, Work, ratio, run_async
from benchmarks.scenarios import Scenario
from benchmarks.targets import Figure

TOKENS = 1000


def streams(bench: Bench) -> None:
    """1,000 chunks as fast as possible: one and eight events a chunk, text, reasoning and completions."""
    group = bench.group
    for events in (1, 8):
        scenario = Scenario(tokens=TOKENS, events=events)
        skip = ("incumbent",) if bench.quick and events == 8 else ()
        subjects = bench.subjects(scenario, skip) | bench.fast(scenario)
        title = f"Streaming {TOKENS:,} chunks, {events} in an HTTP chunk, {group}"
        samples = bench.compare(title, "µs a token", sync_and_async(subjects, "stream", 1, TOKENS), 9)
        for path in ("sync", "async"):
            ours, best = f"ours {path}", f"ours fast {path}"
            bench.ratio(f"stream.k{events}.{group}.{path}", samples, ours, f"floor {path}", best=best)
            if events == 1:
                bench.ratio(f"incumbent.k1.{group}.{path}", samples, ours, f"incumbent {path}", best=best)
    if not bench.quick:
        _other_kinds(bench)


def _other_kinds(bench: Bench) -> None:
    for label, scenario, prompt in (
        ("reasoning", Scenario("reasoning", TOKENS), None),
        ("completions", Scenario(tokens=TOKENS), "Write a report."),
    ):
        skip: tuple[str, ...] = ("floor", "incumbent") if bench.group == "langchain" else ("floor",)
        subjects = bench.subjects(scenario, skip if prompt else (), prompt=prompt)
        title = f"Streaming {TOKENS:,} chunks, {label}, {bench.group}"
        bench.compare(title, "µs a token", sync_and_async(subjects, "stream", 1, TOKENS), 5)


def length(bench: Bench) -> None:
    """Streams of 100 to 30,000 chunks: does a chunk cost more the later it comes?"""
    candidates = []
    for tokens in (100, 1000, 10_000, 30_000):
        subjects = bench.subjects(Scenario(tokens=tokens, events=8), ("incumbent",))
        candidates += [Candidate(f"{key} {tokens:,}", _repeat(one, tokens)) for key, one in subjects.items()]
    samples = bench.compare(f"Streams by length, sync, {bench.group}", "µs a token", candidates, 5)
    ours, floor = _growth(samples, "ours"), _growth(samples, "floor")
    if ours.cpu and floor.cpu:
        bench.figures[f"growth.{bench.group}"] = Figure(*ratio(ours, floor))


def _growth(samples: dict[str, Sample], key: str) -> Sample:
    """Return, round by round, by how much a token of a long stream costs more."""
    long, short = samples.get(f"{key} 10,000"), samples.get(f"{key} 1,000")
    if long is None or short is None:
        return Sample(key)
    return Sample(key, [a / b for a, b in zip(long.cpu, short.cpu, strict=True)])


def _repeat(subject: Subject, tokens: int) -> Work:
    repeat = max(1, 1000 // tokens)

    def work() -> int:
        for _ in range(repeat):
            subject.stream()
        return tokens * repeat

    return work


def paced(bench: Bench) -> None:
    """One async stream at 2,500 tokens a second: nearly every token comes in a read of its own."""
    scenario = Scenario(tokens=TOKENS, rate=2500)
    subjects = bench.subjects(scenario, ("floor",)) | bench.fast(scenario)
    candidates = [Candidate(key, _tokens(one)) for key, one in subjects.items()]
    samples = bench.compare(f"One async stream at 2,500 tokens/s, {bench.group}", "µs a token", candidates, 7)
    bench.ratio(f"incumbent.p2500.{bench.group}", samples, "ours", "incumbent", best="ours fast")


def _tokens(subject: Subject) -> Work:
    async def run() -> int:
        await subject.astream()
        return TOKENS

    return lambda: run_async(run())

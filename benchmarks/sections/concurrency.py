"""Many calls, and many streams at the service's speed, on one event loop."""

from __future__ import annotations

import asyncio

from benchmarks.bench import Bench
from benchmarks.candidates import Subject
from benchmarks.measure import Candidate, Sample, Work, ratio, run_async, spread
from benchmarks.scenarios import Scenario
from benchmarks.targets import Figure

RATE = 2500
CALLS = (10, 100, 500)


def calls(bench: Bench) -> None:
    """10, 100 and 500 calls at once: what does one cost?"""
    scenario = Scenario(tokens=20)
    subjects = bench.ours(scenario) if bench.quick else bench.subjects(scenario) | bench.fast(scenario)
    candidates = [
        Candidate(f"{key} {count}", _gather(one, count))
        for count in ((10, 500) if bench.quick else CALLS)
        for key, one in subjects.items()
        if not (key in ("incumbent", "sdk") and count > 100)
    ]
    samples = bench.compare(f"Concurrent async calls, {bench.group}", "µs a call", candidates, 5)
    for count in CALLS[1:]:
        names = [f"ours {count}", "ours 10"]
        fast = [name.replace("ours", "ours fast") for name in names]
        bench.ratio(f"concurrent.{count}.{bench.group}", samples, *names, best=fast[0], best_under=fast[1])


def _gather(subject: Subject, count: int) -> Work:
    waves = max(1, 200 // count)

    async def run() -> int:
        for _ in range(waves):
            await asyncio.gather(*[subject.acall() for _ in range(count)])
        return waves * count

    return lambda: run_async(run())


def streams(bench: Bench) -> None:
    """1, 10, 100 and 500 async streams of 2,500 tokens a second each: how many tokens a second arrive?"""
    rates: dict[str, dict[int, float]] = {}
    for count, tokens, rounds in ((1, 1000, 3), (10, 1000, 3), (100, 250, 3), (500, 60, 3)):
        scenario = Scenario(tokens=tokens, rate=RATE)
        skip = ("incumbent", "sdk", "floor") if count == 500 else ("floor",)
        subjects = bench.subjects(scenario, skip) | bench.fast(scenario)
        candidates = [Candidate(key, _stream_all(one, count, tokens)) for key, one in subjects.items()]
        title = f"{count} async streams of {tokens:,} tokens at 2,500 tokens/s each, {bench.group}"
        samples = bench.compare(title, "µs a token", candidates, rounds)
        for key, sample in samples.items():
            rates.setdefault(f"{bench.group} {key}", {})[count] = 1e6 / sample.wall_median
        _figures(bench, count, samples)
    bench.tables["Tokens a second by concurrent streams"] = {"unit": "tokens/s", "rates": rates}


def _figures(bench: Bench, count: int, samples: dict[str, Sample]) -> None:
    if "ours" not in samples:
        return
    if count == 10:
        ideal = 1e6 / (RATE * count)
        shares = [ideal / wall for wall in samples["ours"].wall]
        best = ideal / samples["ours fast"].wall_median if "ours fast" in samples else None
        bench.figures[f"demand.10.{bench.group}"] = Figure(ideal / samples["ours"].wall_median, spread(shares), best)
    elif count == 100 and "incumbent" in samples:
        theirs = samples["incumbent"]
        value, by = ratio(theirs, samples["ours"], "wall")
        best = ratio(theirs, samples["ours fast"], "wall")[0] if "ours fast" in samples else None
        bench.figures[f"demand.100.{bench.group}"] = Figure(value, by, best)


def _stream_all(subject: Subject, count: int, tokens: int) -> Work:
    async def run() -> int:
        await asyncio.gather(*[subject.astream() for _ in range(count)])
        return tokens * count

    return lambda: run_async(run())

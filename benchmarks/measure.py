"""The harness: candidates take turns inside one run, so that what the machine does meanwhile hits all of them."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

Work = Callable[[], int]
"""Does the work once and returns how many units (tokens, calls, ...) that was."""

T = TypeVar("T")
_runners: list[asyncio.Runner] = []


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the one event loop of the harness, so that connections live on between measurements."""
    if not _runners:
        _runners.append(asyncio.Runner())
    return _runners[0].run(work)


def close_loop() -> None:
    """Close the event loop of the harness."""
    while _runners:
        _runners.pop().close()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One thing to measure under a name."""

    name: str
    work: Work


@dataclass(slots=True)
class Sample:
    """The measurements of one candidate, each divided by its units. In microseconds, unless said otherwise."""

    name: str
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Median of the CPU time a unit."""
        return statistics.median(self.cpu)

    @property
    def wall_median(self) -> float:
        """Median of the time a unit took."""
        return statistics.median(self.wall)

    @property
    def spread(self) -> float:
        """Distance of the quartiles of the CPU time, as a share of its median."""
        return spread(self.cpu)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object for the results."""
        return {
            **asdict(self),
            "median": self.median,
            "wall_median": self.wall_median,
            "spread": self.spread,
        }


def spread(values: Sequence[float]) -> float:
    """Return the distance of the quartiles as a share of the median; 0 where there are too few values or no median."""
    middle = statistics.median(values)
    if len(values) < 3 or not middle:
        return 0.0
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / abs(middle)


def ratio(over: Sample, under: Sample, values: str = "cpu") -> tuple[float, float]:
    """Return the median of the ratios of two candidates round by round, and the spread of these ratios.

    A round measures both within a moment, so that a slow moment of the machine cancels out.
    """
    pairs = zip(getattr(over, values), getattr(under, values), strict=True)
    ratios = [a / b for a, b in pairs if b > 0]
    if not ratios:
        return float("nan"), 0.0
    return statistics.median(ratios), spread(ratios)


def measure(work: Work) -> tuple[float, float]:
    """Do the work once and return microseconds of CPU (all threads of this process) and of time, a unit."""
    gc.collect(1)
    cpu, wall = time.process_time(), time.perf_counter()
    units = work()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return cpu * 1e6 / units, wall * 1e6 / units


def interleave(
    candidates: Sequence[Candidate],
    rounds: int,
    warmup: int = 1,
    failed: dict[str, str] | None = None,
    thorough: bool = True,
) -> dict[str, Sample]:
    """Measure all candidates in turns; every other round goes backwards, so that no one always follows the same.

    Args:
        candidates: What to measure.
        rounds: How often.
        warmup: How often each is run before.
        failed: Where to note why a candidate raised; it leaves the run, with what was measured of it.
        thorough: Whether to collect all garbage before each measurement, and not once a round (as a full collection
            walks the frameworks' objects, it takes longer than most measurements).
    """
    failed = {} if failed is None else failed
    samples = {candidate.name: Sample(candidate.name) for candidate in candidates}
    for number in range(-warmup, rounds):
        gc.collect()
        for candidate in candidates if max(number, 0) % 2 == 0 else reversed(candidates):
            if candidate.name not in samples:
                continue
            if thorough:
                gc.collect()
            try:
                cpu, wall = measure(candidate.work)
            except Exception as error:  # noqa: BLE001 (whatever it is, the others are measured)
                failed[candidate.name] = f"{type(error).__name__}: {error}"
                del samples[candidate.name]
                continue
            if number >= 0:
                samples[candidate.name].cpu.append(cpu)
                samples[candidate.name].wall.append(wall)
    return samples


def in_process(code: str) -> tuple[float, str]:
    """Run Python code in a fresh interpreter; return its CPU time in seconds and what it printed.

    Raises:
        RuntimeError: It failed.
    """
    # With bytecode: an import is measured as it is from the second time on.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise RuntimeError(f"{code!r} failed:\n{done.stderr}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout

"""One section in the process of its group: how thorough to be, and what has been found so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from benchmarks.candidates import Library, Setup, Subject, libraries
from benchmarks.measure import Candidate, Sample, interleave, ratio, run_async
from benchmarks.scenarios import Scenario
from benchmarks.server import Address
from benchmarks.targets import Figure

_PACKAGES = {"aiohttp": "httpx_aiohttp", "httptools": "httptools"}
ASYNC_ONLY = frozenset(("aiohttp",))
"""Transports that carry async calls only."""
COMPARED = ("aiohttp", "httptools")
"""Transports that the plain group measures one by one, without joining, as `core aiohttp` and so on."""


def best_transport() -> str:
    """Return the transport of the candidates that are `fast`: the best one that is installed."""
    return next((name for name in ("httptools", "aiohttp") if _installed(name)), "httpx")


def _installed(transport: str) -> bool:
    return find_spec(_PACKAGES[transport]) is not None


def fast_options() -> dict[str, Any]:
    """Return what "with the options for speed" means in this run: the settings of the candidates that are `fast`."""
    return {"coalesce": True, "transport": best_transport()}


@dataclass(slots=True)
class Bench:
    """Server, settings and findings of a section in the process of one group.

    Attributes:
        server: Where the loopback server is.
        group: `plain`, or the framework whose candidates are measured.
        quick: Whether to measure only what shows a step backwards, in under a minute altogether.
        tables: Findings by title: unit, and a row for each candidate.
        figures: The values that targets are about, each with its spread.
        failures: What raised, by where, and why.
    """

    server: Address
    group: str
    quick: bool = False
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """Whether this is the group without a framework."""
        return self.group == "plain"

    def rounds(self, full: int) -> int:
        """Return how many rounds to measure."""
        return 3 if self.quick else full

    def subjects(self, scenario: Scenario, skip: Sequence[str] = (), **setup: Any) -> dict[str, Subject]:
        """Make the subjects of the group for a scenario, by key: `ours`, `floor`, `incumbent`; `core`, `httpx`, `sdk`.

        Args:
            scenario: What the server answers.
            skip: Keys of subjects to leave out.
            **setup: Further fields of `Setup`.
        """
        return self._make(libraries(self.group, skip), scenario, setup)

    def httpx(self, scenario: Scenario, **setup: Any) -> dict[str, Subject]:
        """Make plain httpx as a subject, which every group has: what its ratios need is measured beside it."""
        return self._make(libraries("plain", ("core", "sdk")), scenario, setup)

    def fast(self, scenario: Scenario, **setup: Any) -> dict[str, Subject]:
        """Make ours with the options for speed: `ours fast`; for `plain`, `core fast` and the compared transports."""
        key = "core" if self.plain else "ours"
        variants = {"fast": fast_options()}
        if self.plain:
            variants |= {name: {"transport": name} for name in COMPARED if _installed(name)}
        made = {}
        for name, options in variants.items():
            for subject in self.ours(scenario, options=options, **setup).values():
                made[f"{key} {name}"] = subject
        return made

    def ours(self, scenario: Scenario, **setup: Any) -> dict[str, Subject]:
        """Make ours alone: `ours`, or `core`."""
        return self.subjects(scenario, ("incumbent", "floor", "httpx", "sdk"), **setup)

    def _make(self, found: dict[str, Library], scenario: Scenario, setup: dict[str, Any]) -> dict[str, Subject]:
        arguments = Setup(self.server.url(scenario), **setup)
        made = {}
        for key, library in found.items():
            try:
                made[key] = library.make(arguments)
            except Exception as error:  # noqa: BLE001 (whatever it is, the others are measured)
                self.fail(f"making {library.name}", error)
        return made

    def compare(self, title: str, unit: str, candidates: Sequence[Candidate], rounds: int) -> dict[str, Sample]:
        """Measure candidates in turns, print a table, and keep it."""
        failed: dict[str, str] = {}
        samples = interleave(candidates, self.rounds(rounds), failed=failed, thorough=not self.quick)
        for name, reason in failed.items():
            self.fail(f"{title}: {name}", reason)
        self.keep(title, unit, list(samples.values()))
        return samples

    def fail(self, where: str, reason: Exception | str) -> None:
        """Report what could not be measured; the run goes on, and ends with status 1."""
        text = f"{type(reason).__name__}: {reason}" if isinstance(reason, Exception) else reason
        self.failures[where] = text
        print(f"\nFAILED {where}: {text}", flush=True)

    def keep(self, title: str, unit: str, samples: Sequence[Sample]) -> None:
        """Print a table and keep it."""
        rows = [sample.to_dict() for sample in samples]
        self.tables[title] = {"unit": unit, "rows": rows}
        print(f"\n{title} ({unit})")
        for sample in samples:
            print(
                f"  {sample.name:44} cpu {sample.median:11.2f} ±{sample.spread * 100:3.0f} %"
                f"   time {sample.wall_median:11.2f}",
                flush=True,
            )

    def ratio(
        self,
        key: str,
        samples: dict[str, Sample],
        over: str,
        under: str,
        *,
        best: str = "",
        best_under: str = "",
        values: str = "cpu",
    ) -> None:
        """Keep the ratio of two candidates under a target's key, where both were measured.

        Args:
            key: The target's.
            samples: The measurements.
            over: Name of the candidate above the line.
            under: Name of the one below.
            best: Name of the one above the line with the options for speed.
            best_under: Name of the one below that; default the same.
            values: `cpu` or `wall`.
        """
        if over in samples and under in samples:
            value, spread = ratio(samples[over], samples[under], values)
            below = samples.get(best_under or under)
            fast = ratio(samples[best], below, values)[0] if best in samples and below is not None else None
            self.figures[key] = Figure(value, spread, fast)


def sync_and_async(
    subjects: dict[str, Subject], operation: str, repeat: int = 1, units: int | None = None
) -> list[Candidate]:
    """Return candidates for `stream` or `call` of each subject, named `<key> sync` and `<key> async`.

    A compared transport that is for async calls only has no `<key> sync`.

    Args:
        subjects: By key.
        operation: `stream` or `call`.
        repeat: How often a measurement does it.
        units: What one operation counts as; default what it returns (what a candidate yields may be fewer than the
            tokens that the server sent).
    """
    made = []
    for key, subject in subjects.items():
        if key.rpartition(" ")[2] not in ASYNC_ONLY:
            made.append(Candidate(f"{key} sync", _repeat(getattr(subject, operation), repeat, units)))
        once = getattr(subject, f"a{operation}")
        made.append(Candidate(f"{key} async", _repeat_async(once, repeat, units)))
    return made


def _repeat(once: Callable[[], int], repeat: int, units: int | None) -> Callable[[], int]:
    def work() -> int:
        count = 0
        for _ in range(repeat):
            count += once()
        return count if units is None else units * repeat

    return work


def _repeat_async(once: Callable[[], Any], repeat: int, units: int | None) -> Callable[[], int]:
    async def run() -> int:
        count = 0
        for _ in range(repeat):
            count += await once()
        return count if units is None else units * repeat

    return lambda: run_async(run())

"""The benchmarks: `python -m benchmarks.run [--quick] [--only SECTION ...] [--save FILE]`.

Ends with status 1 when a target is missed or something could not be run, and says which.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.bench import fast_options
from benchmarks.outcome import Outcome, Part, merge
from benchmarks.processes import Task, run_group
from benchmarks.sections import SECTIONS, plan
from benchmarks.server import Address, Server
from benchmarks.targets import Verdict, judge, missed

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
QUIET = 0.5
"""Load average before the start up to which a machine counts as idle."""
_PACKAGES = (
    "cerebras-ext", "langchain-core", "langchain", "llama-index-core", "httpx", "httpcore", "h11", "httptools",
    "httpx-aiohttp", "aiohttp", "pydantic", "pydantic-core", "ormsgpack", "isal", "h2", "hypercorn",
    "cerebras-cloud-sdk", "langchain-cerebras", "llama-index-llms-cerebras",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return what the results were measured on."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()


def run(address: Address, only: frozenset[str] = frozenset(), quick: bool = False) -> Outcome:
    """Measure the groups, each in a process of its own, one after the other."""
    parts: list[Part] = []
    for group, sections in plan(only, quick).items():
        parts += run_group(Task(group, sections, address.port, quick))
    return merge(parts)


def allow_files() -> None:
    """Raise the limit of open files to what is allowed: 500 connections are open on both sides for each candidate."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def save(path: Path, results: Outcome, verdicts: Sequence[Verdict], load: float) -> None:
    """Write the results as JSON."""
    saved = {
        "machine": {**machine(), "load": load},
        "fast": fast_options(),
        "targets": [verdict.to_dict() for verdict in verdicts],
        "tables": results.tables,
        "missing": results.missing,
        "failures": results.failures,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(saved, indent=1) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description="Benchmarks; status 1 when a target is missed.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and sections, in under a minute")
    parser.add_argument("--only", nargs="+", default=[], choices=list(SECTIONS), help="run these sections")
    parser.add_argument("--save", nargs="?", const=RESULTS, type=Path, help="write the results (for make bench-report)")
    options = parser.parse_args(arguments)
    os.environ.pop("LANGSMITH_TRACING", None)
    os.environ.setdefault("CEREBRAS_API_KEY", "sk-benchmark")
    allow_files()
    load = os.getloadavg()[0]
    if load > QUIET:
        print(f"The machine is busy (load {load:.1f}): figures may be off by more than their spread.", flush=True)
    started = time.perf_counter()
    try:
        with Server() as address:
            results = run(address, frozenset(options.only), options.quick)
    except KeyboardInterrupt:
        print("\nInterrupted: nothing is judged or saved.")
        return 130
    verdicts = judge(results.figures)
    if options.save:
        save(options.save, results, verdicts, load)
    return conclude(results, verdicts, time.perf_counter() - started)


def conclude(results: Outcome, verdicts: list[Verdict], seconds: float) -> int:
    """Print the verdicts, and what could not be measured; return the exit status."""
    print(f"\nTargets ({seconds:.0f} s)")
    for verdict in verdicts:
        print(f"  {verdict}")
    for name, reason in results.missing.items():
        print(f"  not measured: {name} ({reason})")
    for where, reason in results.failures.items():
        print(f"  failed: {where} ({reason})")
    failures = missed(verdicts)
    if failures:
        print("\nMissed: " + "; ".join(verdict.target.key for verdict in failures))
    return 1 if failures or results.failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""The process of one group: it has no other framework loaded, as a user's program has not, and measures one section
after the other.

It is started by `benchmarks.processes` and writes each section's findings as a line of JSON.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks import measure
from benchmarks.bench import Bench
from benchmarks.candidates import missing, strangers
from benchmarks.outcome import Part
from benchmarks.processes import Task
from benchmarks.sections import SECTIONS
from benchmarks.server import Address, client_core, pin


def run_section(task: Task, name: str) -> Part:
    """Measure one section; what raises is a failure of it, and the others are measured."""
    bench = Bench(Address(task.port), task.group, task.quick)
    started = time.perf_counter()
    try:
        SECTIONS[name].measure(bench)
    except Exception as error:  # noqa: BLE001 (whatever it is, the other sections are run)
        bench.fail(f"section {name!r}", error)
    loaded = strangers(task.group, list(sys.modules))
    if loaded:
        bench.fail(f"modules after section {name!r}", f"{len(loaded)} of another group are loaded, as {loaded[0]}")
    print(f"-- {name}, {task.group}: {time.perf_counter() - started:.0f} s", flush=True)
    return Part(task.group, name, bench.tables, bench.figures, bench.failures, dict(missing))


def main(pipe: int, task: Task) -> int:
    """Measure a group's sections and write what they found."""
    pin(client_core())
    with open(pipe, "w", encoding="utf-8") as found:
        try:
            for name in task.sections:
                print(run_section(task, name).to_json(), file=found, flush=True)
        except KeyboardInterrupt:
            return 130
        finally:
            measure.close_loop()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), Task(**json.loads(sys.argv[2]))))

"""A fresh process for each group, one after the other.

A full garbage collection walks all objects of a process; with every framework loaded it would walk a heap that no
user's program has.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.outcome import Part

ROOT = Path(__file__).resolve().parents[1]
WORKER = (sys.executable, "-m", "benchmarks.worker")
_PATIENCE = 5.0
"""Seconds that an interrupted process has to close what it opened."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a group's process is to do: sections by name, against the loopback server at a port."""

    group: str
    sections: list[str]
    port: int
    quick: bool = False


def run_group(task: Task, command: Sequence[str] = WORKER) -> list[Part]:
    """Measure a group in a fresh process.

    The process leads a process group, so that an interrupt comes to it from here only, and what it started ends with
    it.

    Args:
        task: What to measure.
        command: What to start; it gets the number of a pipe's end and the task as JSON.

    Returns:
        What each section found. Where the process ended before its time, the section that it was in is a failure.
    """
    reader, writer = os.pipe()
    with open(reader, encoding="utf-8") as lines:
        try:
            process = subprocess.Popen(
                [*command, str(writer), json.dumps(asdict(task))], cwd=ROOT, pass_fds=(writer,), process_group=0
            )
        finally:
            os.close(writer)
        try:
            parts = [Part.from_json(line) for line in lines if line.endswith("\n")]
            _ended(process)
        finally:
            status = _end(process)
    rest = task.sections[len(parts) :]
    if status or rest:
        where, skipped = (rest[0], rest[1:]) if rest else (task.sections[-1], [])
        parts.append(Part(task.group, where, failures={f"section {where!r}": _reason(status, skipped)}))
    return parts


def _reason(status: int, skipped: list[str]) -> str:
    how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
    after = f"; not measured after it: {', '.join(skipped)}" if skipped else ""
    return f"the process of the group ended {how}{after}"


def _ended(process: subprocess.Popen[bytes], seconds: float | None = None) -> bool:
    """Wait for the end of a process without collecting it: its number stays its own. Returns whether it has ended."""
    if seconds is None:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        return True
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


def _end(process: subprocess.Popen[bytes]) -> int:
    """End a process, if it has not ended, and all that it started; return its status."""
    try:
        if not _ended(process, 0):
            os.killpg(process.pid, signal.SIGINT)
            _ended(process, _PATIENCE)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()

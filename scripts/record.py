"""Record the cassettes again: from the real service when CEREBRAS_API_KEY is set, otherwise from the emulator.

record.py [PYTEST_ARGUMENT...]    for example: record.py tests/langchain/test_standard.py

Each test marked `vcr` runs against the source and its exchanges are written to `cassettes/`; then all of them run again
from what was written, with the network blocked. Without arguments, cassettes that no test uses any more disappear.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from cerebras_ext.emulator import Emulator

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
CASSETTES = ROOT / "cassettes"
SERVICE = "https://api.cerebras.ai"


@contextlib.contextmanager
def source() -> Iterator[dict[str, str]]:
    """Yield the environment that points the recorded tests at their source."""
    if os.environ.get("CEREBRAS_API_KEY"):
        print("Recording from the real service, with the key of CEREBRAS_API_KEY.")
        yield {"CEREBRAS_EXT_RECORD_URL": os.environ.get("CEREBRAS_BASE_URL", SERVICE)}
        return
    print("Recording from the emulator: CEREBRAS_API_KEY is not set.")
    with Emulator() as emulator:
        yield {"CEREBRAS_EXT_RECORD_URL": emulator.base_url}


def pytest(environment: dict[str, str], *arguments: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "vcr", *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise SystemExit(f"pytest ended with {done.returncode}: the cassettes are not complete")


def main(arguments: list[str]) -> None:
    if not arguments and CASSETTES.exists():
        shutil.rmtree(CASSETTES)
    with source() as environment:
        # langchain-tests measures a stream only once it is recorded.
        pytest(environment, "--record-mode=rewrite", "-W", "ignore:Benchmark fixture was not used", *arguments)
    environment = dict.fromkeys(("CEREBRAS_API_KEY", "CEREBRAS_EXT_RECORD_URL"), "")
    pytest(environment, "--record-mode=none", "--block-network", *arguments)


if __name__ == "__main__":
    main(sys.argv[1:])

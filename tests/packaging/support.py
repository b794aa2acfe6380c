"""Paths and helpers of the packaging tests."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cerebras_ext", "langchain_cerebras_ext", "llamaindex_cerebras_ext")
SOURCES = {name: ROOT / "shared" / name if name == "cerebras_ext" else ROOT / name for name in PACKAGES}


def run_python(code: str, folder: Path) -> str:
    """Run `code` in a fresh interpreter outside the checkout and return what it prints."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def load_script(name: str) -> ModuleType:
    """Import scripts/<name>.py, which is in no package."""
    spec = importlib.util.spec_from_file_location(f"script_{name}", ROOT / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

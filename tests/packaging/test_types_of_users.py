"""A user's program under `mypy --strict`, without the plugin of pydantic that this project uses for itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from cerebras_ext import ChatRequest, Client
from langchain_cerebras_ext import CerebrasLLM, ChatCerebras
from llamaindex_cerebras_ext import Cerebras, CerebrasCompletion

ChatCerebras(model="m")
ChatCerebras(model="m", temperature=0.5, max_tokens=5, transport="httptools", coalesce=True)
CerebrasLLM(model="m", max_tokens=5)
Cerebras(model="m", temperature=0.1, max_retries=3)
CerebrasCompletion(model="m", max_tokens=4)
ChatRequest(model="m", messages=[])
Client(api_key="k").chat(model="m", messages=[{"role": "user", "content": "q"}])
ChatCerebras(temperature=0.5)
Cerebras(model="m", temprature=0.1)
"""


@pytest.mark.slow
@pytest.mark.once
def test_models_are_made_without_complaint(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\nfollow_imports = silent\n", encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", "mypy.ini", "--cache-dir", "cache", "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line.partition(" error: ")[2] for line in done.stdout.splitlines() if ": error: " in line]
    assert [text.partition(" for ")[0] for text in found] == [
        'Missing named argument "model"',
        'Unexpected keyword argument "temprature"',
    ], done.stdout + done.stderr

"""What an import of the package loads: a new module has to be put on this list, so that nobody pays for it unseen."""

from __future__ import annotations

import json
import subprocess
import sys

FLOOR = "import llama_index.core.llms, llama_index.core.llms.function_calling, httpx, gzip"
OURS = {
    "base", "blocks", "calls", "chat", "config", "errors", "from_wire", "generators", "keywords", "objects", "redact",
    "structured", "to_wire", "token_ids", "tools",
}  # fmt: skip
"""Modules that every user of the chat model pays for. The completion model and structured outputs are none of them."""


def loaded(code: str) -> set[str]:
    code = f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_only_listed_modules_are_loaded() -> None:
    found = loaded("import llamaindex_cerebras_ext; llamaindex_cerebras_ext.Cerebras") - loaded(FLOOR)

    ours = {name.partition(".")[2] for name in found if name.startswith("llamaindex_cerebras_ext.")}
    assert ours - OURS == set()
    assert {name for name in found if name.startswith("llama_index.")} == set()
    assert {name for name in found if name.startswith(("openai", "langchain", "aiohttp.", "httptools"))} == set()

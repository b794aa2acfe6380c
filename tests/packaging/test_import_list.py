"""What `import cerebras_ext` may load: a new module has to be put on this list, so that nobody pays for it unseen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.packaging.support import run_python

if TYPE_CHECKING:
    from pathlib import Path

ELSEWHERE = """
import asyncio, difflib, gzip, importlib.util
import httpx
from pydantic import BaseModel, SecretStr, model_validator
type("Model", (BaseModel,), {})
"""
"""What is imported from elsewhere; whatever this loads, in whatever version, is not ours."""

OURS = {
    "_version", "assembly", "base_client", "body", "classify", "client", "coalesce", "connections", "encoding",
    "endpoints", "errors", "exchange", "hints", "jsontext", "keywords", "names", "pools", "ratelimit", "request_fields",
    "retry", "settings", "sse", "stream_state", "streams", "toolcalls", "types",
}  # fmt: skip
"""Modules of the core that every user pays for. The emulator, the schema dialect and aiohttp are none of them."""


def modules(code: str, folder: Path) -> set[str]:
    return set(json.loads(run_python(f"{code}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))", folder)))


def test_only_listed_modules_are_loaded(tmp_path: Path) -> None:
    loaded = modules("import cerebras_ext", tmp_path) - modules(ELSEWHERE, tmp_path)

    ours = {name.split(".")[1] for name in loaded if name.startswith("cerebras_ext.")}
    lazily = ("pydantic.", "httpx.", "httpcore.")  # some of their modules load at first use
    others = {name for name in loaded if name.partition(".")[0] != "cerebras_ext" and not name.startswith(lazily)}
    assert (ours - OURS, others) == (set(), set())

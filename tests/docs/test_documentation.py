"""Every example of the README, of the docs and of the public docstrings runs."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from tests.docs.blocks import ROOT, Block, blocks_of, documented, pages

if TYPE_CHECKING:
    from pathlib import Path

    from cerebras_ext.emulator import Emulator

PACKAGES = ("cerebras_ext", "langchain_cerebras_ext", "llamaindex_cerebras_ext", "cerebras_ext.emulator")
DOCSTRINGS = [
    pytest.param(blocks, id=f"{package}.{name}")
    for package in PACKAGES
    for name, blocks in documented(importlib.import_module(package))
]


def run(blocks: list[Block]) -> None:
    """Run the blocks one after the other with one set of names, as a reader would type them.

    In a thread of their own: `asyncio.run` in an example would leave the event loop of this thread's tests unclosed.
    """
    names: dict[str, Any] = {"__name__": "__main__"}

    def one_after_the_other() -> None:
        for block in blocks:
            exec(block.compiled(), names)  # type: ignore[arg-type]

    with ThreadPoolExecutor(1) as thread:
        thread.submit(one_after_the_other).result()


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_run(
    page: Path, emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run(blocks_of(page.read_text(encoding="utf-8"), str(page)))


COME_WITH_AN_EXTRA = {
    "cerebras_ext",
    "langchain_cerebras_ext",
    "llamaindex_cerebras_ext",
    "langchain_core",
    "llama_index",
    "pydantic",
}


def imported(code: str) -> set[str]:
    """Return the top-level packages that a program imports."""
    nodes = list(ast.walk(ast.parse(code)))
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_page_says_how_to_install_what_its_examples_import(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    packages = set().union(*(imported(block.code) for block in blocks_of(text, page.name)))
    others = packages - COME_WITH_AN_EXTRA - sys.stdlib_module_names

    assert [name for name in others if not re.search(rf"pip install {name}\b", text)] == []


@pytest.mark.parametrize("blocks", DOCSTRINGS)
def test_examples_of_a_docstring_run(
    blocks: list[Block], emulator: Emulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    run(blocks)


@pytest.mark.parametrize("page", sorted([ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]), ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    local = [target for target in targets if target and "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []

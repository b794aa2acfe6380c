"""The examples in the documentation, as programs that can be run."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(?P<indent> *)```python\n(?P<code>.*?)^ *```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced example: its code, and where it stands."""

    code: str
    place: str
    line: int

    def compiled(self) -> object:
        return compile("\n" * self.line + self.code, self.place, "exec")


def blocks_of(text: str, place: str, first_line: int = 0) -> list[Block]:
    """Return the ```python blocks of a text in their order."""
    found = []
    for match in FENCE.finditer(text):
        line = first_line + text.count("\n", 0, match.start("code"))
        found.append(Block(inspect.cleandoc(match["code"]), place, line))
    return found


def pages() -> list[Path]:
    """Every page of the documentation that holds an example."""
    return [
        page
        for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("**/*.md")))
        if page.exists() and blocks_of(page.read_text(encoding="utf-8"), page.name)
    ]


def documented(module: ModuleType) -> list[tuple[str, list[Block]]]:
    """Return the public objects of a package, and their public methods, whose docstrings hold an example."""
    found = []
    for name in module.__all__:
        public = getattr(module, name)
        if not getattr(public, "__module__", "").startswith(module.__name__):
            continue  # somebody else's class under a name of ours
        members = [(name, public)]
        if inspect.isclass(public):
            members += [(f"{name}.{key}", value) for key, value in vars(public).items() if not key.startswith("_")]
        for label, member in members:
            blocks = blocks_of(inspect.getdoc(member) or "", f"{module.__name__}.{label}")
            if blocks:
                found.append((label, blocks))
    return found

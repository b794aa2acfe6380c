"""Print what the job with the lowest versions installs, derived from pyproject.toml.

lowest.py constraints   the lower bound of every requirement that users get, as "name==version"
lowest.py tools         the test tools of the `dev` extra that go with them
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
OURS = "cerebras-ext"
# langchain-tests 1.1.9 needs httpx 0.28.1, above our own lower bound; its suite runs in the other jobs.
NEEDS_NEWER = {"langchain-tests"}


def name_of(requirement: str) -> str:
    return re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0].lower()


def constraints(project: dict[str, object]) -> list[str]:
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    groups = [project["dependencies"], *(extras[name] for name in extras if name not in ("dev", "bench"))]
    pinned = set()
    for requirement in (each for group in groups for each in group if name_of(each) != OURS):
        lower = re.search(r">=\s*([\w.]+)", requirement)
        if lower is None:
            raise SystemExit(f"{requirement} states no lower bound")
        pinned.add(f"{name_of(requirement)}=={lower[1]}")
    return sorted(pinned)


def tools(project: dict[str, object]) -> list[str]:
    extras = project["optional-dependencies"]
    assert isinstance(extras, dict)
    return [each for each in extras["dev"] if name_of(each) not in NEEDS_NEWER | {OURS}]


def main() -> None:
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    print("\n".join({"constraints": constraints, "tools": tools}[sys.argv[1]](project)))


if __name__ == "__main__":
    main()

"""What was found: by one section in the process of one group, and by a whole run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from benchmarks.candidates import GROUPS
from benchmarks.sections import SECTIONS
from benchmarks.targets import Figure


@dataclass(slots=True)
class Part:
    """Findings of one section for one group, as they are sent from its process.

    Attributes:
        group: The group.
        section: Name of the section.
        tables: By title: unit, and rows (or rates by candidate).
        figures: The values that targets are about.
        failures: What could not be measured though it should be, by where, and why.
        missing: Candidates that are not installed, and why.
    """

    group: str
    section: str
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read what `to_json` wrote."""
        values = json.loads(line)
        values["figures"] = {key: Figure(**figure) for key, figure in values["figures"].items()}
        return cls(**values)


@dataclass(slots=True)
class Outcome:
    """Findings of a run; failures name their group."""

    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def _add(self, part: Part) -> None:
        for title, table in part.tables.items():
            known = self.tables.setdefault(title, {"unit": table["unit"]})
            if "rates" in table:
                known["rates"] = known.get("rates", {}) | table["rates"]
            else:
                known["rows"] = known.get("rows", []) + table["rows"]
        self.figures |= part.figures
        self.failures |= {f"{part.group}: {where}": reason for where, reason in part.failures.items()}
        self.missing |= part.missing


def merge(parts: Iterable[Part]) -> Outcome:
    """Join what the groups found, in the order of the sections and, within one, of the groups."""
    sections, results = list(SECTIONS), Outcome()
    for part in sorted(parts, key=lambda part: (sections.index(part.section), GROUPS.index(part.group))):
        results._add(part)
    return results

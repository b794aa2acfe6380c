"""The sections of the benchmarks, by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.bench import Bench
from benchmarks.candidates import FRAMEWORKS, GROUPS
from benchmarks.sections import calls, concurrency, http2, models, payloads, startup, streaming, tools


@dataclass(frozen=True, slots=True)
class Section:
    """What is measured under one name.

    Attributes:
        measure: Measures the candidates of the process's group.
        groups: The groups that have some.
        quick: The groups that are measured in the quick form, with fewer rounds and without most of the other
            implementations: what shows a step backwards soon.
    """

    measure: Callable[[Bench], None]
    groups: tuple[str, ...] = GROUPS
    quick: tuple[str, ...] = ()


SECTIONS: dict[str, Section] = {
    "import": Section(startup.imports, quick=FRAMEWORKS),
    "construction": Section(startup.construction, quick=GROUPS),
    "call": Section(calls.one_call, quick=FRAMEWORKS),
    "concurrent calls": Section(concurrency.calls, quick=FRAMEWORKS),
    "streaming": Section(streaming.streams, quick=FRAMEWORKS),
    "length": Section(streaming.length, FRAMEWORKS),
    "paced": Section(streaming.paced),
    "concurrent streams": Section(concurrency.streams),
    "http2": Section(http2.protocols, ("plain",)),
    "tools": Section(tools.deltas, quick=FRAMEWORKS),
    "history": Section(calls.history, FRAMEWORKS, FRAMEWORKS),
    "payloads": Section(payloads.encodings),
    "token ids": Section(payloads.token_ids, quick=FRAMEWORKS),
    "link": Section(payloads.link, ("plain",)),
    "configurable": Section(models.configurable, ("langchain",)),
    "agent": Section(models.agent, FRAMEWORKS),
    "memory": Section(startup.memory, FRAMEWORKS),
}


def plan(only: frozenset[str] = frozenset(), quick: bool = False) -> dict[str, list[str]]:
    """Return the names of the sections that each group's process runs; groups with none are left out.

    Args:
        only: Sections that are asked for by name; none stands for all, or for those of the quick form.
        quick: Whether the quick form is asked for.
    """
    planned: dict[str, list[str]] = {group: [] for group in GROUPS}
    for name, section in SECTIONS.items():
        if only and name not in only:
            continue
        for group in (section.quick or section.groups * bool(only)) if quick else section.groups:
            planned[group].append(name)
    return {group: names for group, names in planned.items() if names}

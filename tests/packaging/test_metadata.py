"""What the distribution promises to installers: requirements, extras, versions."""

from __future__ import annotations

import importlib
import re
import tomllib
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from tests.packaging.support import PACKAGES, ROOT, load_script

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
FOR_DEVELOPERS = {"dev", "bench"}
FOR_USERS = {name: group for name, group in PROJECT["optional-dependencies"].items() if name not in FOR_DEVELOPERS}
STATED = [Requirement(line) for group in (PROJECT["dependencies"], *FOR_USERS.values()) for line in group]
BOUNDED = [requirement for requirement in STATED if requirement.name != PROJECT["name"]]


def bound(requirement: Requirement, operator: str) -> Version:
    (version,) = (each.version for each in requirement.specifier if each.operator == operator)
    return Version(version)


def expand(extra: str) -> set[str]:
    """The names that an extra brings, with the extras of ours that it refers to."""
    names = set()
    for requirement in map(Requirement, PROJECT["optional-dependencies"][extra]):
        if requirement.name == PROJECT["name"]:
            names |= set().union(*map(expand, requirement.extras))
        else:
            names.add(str(requirement))
    return names


def test_core_needs_little() -> None:
    names = {Requirement(line).name for line in PROJECT["dependencies"]}
    assert names == {"aiohappyeyeballs", "httpx", "pydantic"}


def test_extras_are_the_documented_ones() -> None:
    installed = metadata.metadata("cerebras-ext").get_all("Provides-Extra")

    expected = {
        "langchain",
        "llamaindex",
        "msgpack",
        "aiohttp",
        "httptools",
        "http2",
        "isal",
        "emulator",
        "all",
        "demo",
    }
    assert set(installed or ()) == expected | FOR_DEVELOPERS


@pytest.mark.parametrize("extra", sorted(set(FOR_USERS) - {"all", "demo"}))
def test_all_and_dev_bring_every_extra(extra: str) -> None:
    assert expand(extra) <= expand("all") <= expand("dev")


def test_dev_brings_what_the_demo_needs() -> None:
    assert expand("demo") <= expand("dev")


@pytest.mark.parametrize("requirement", BOUNDED, ids=str)
def test_requirement_has_a_lower_bound_and_a_cap_at_the_next_breaking_release(requirement: Requirement) -> None:
    lower, cap = bound(requirement, ">="), bound(requirement, "<")

    if lower.major:
        assert cap.release == (lower.major + 1,)
    elif requirement.name == "llama-index-core":
        assert cap.release == (0, lower.minor + 1)
    else:
        assert lower < cap <= Version("1")


def test_the_same_project_has_the_same_bounds_everywhere() -> None:
    bounds: dict[str, set[str]] = {}
    for requirement in BOUNDED:
        bounds.setdefault(requirement.name, set()).add(str(requirement.specifier))

    assert {name: found for name, found in bounds.items() if len(found) > 1} == {}


def test_the_lowest_versions_job_pins_every_lower_bound() -> None:
    pins = load_script("lowest").constraints(PROJECT)

    assert pins == sorted({f"{each.name}=={bound(each, '>=')}" for each in BOUNDED})


@pytest.mark.once
def test_supported_pythons_are_the_same_everywhere() -> None:
    script = (ROOT / "scripts" / "find-python.sh").read_text()
    supported = re.search(r'^supported="(.*)"', script, re.MULTILINE)
    assert supported is not None
    minors = supported[1].split()

    specifiers = SpecifierSet(PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(30, 0, -1) if specifiers.contains(f"3.{minor}.0")] == minors
    marker = "Programming Language :: Python :: 3."
    assert {each.rpartition(" ")[2] for each in PROJECT["classifiers"] if each.startswith(marker)} == set(minors)


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_has_the_version_of_the_distribution(name: str) -> None:
    assert importlib.import_module(name).__version__ == metadata.version("cerebras-ext")

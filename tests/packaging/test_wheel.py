"""What is in the built distributions, and which install the suite runs against."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.packaging.support import PACKAGES, ROOT, SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist and the wheel that was made from it."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def wheel(built: Path) -> Iterator[zipfile.ZipFile]:
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def source_files() -> set[str]:
    return {
        f"{name}/{path.relative_to(folder).as_posix()}"
        for name, folder in SOURCES.items()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


@pytest.mark.slow
@pytest.mark.once
def test_wheel_holds_the_three_packages_whole_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}

    assert {name.split("/")[0] for name in names} == set(PACKAGES)
    assert names == source_files()


@pytest.mark.slow
@pytest.mark.once
def test_wheel_marks_each_package_as_typed(wheel: zipfile.ZipFile) -> None:
    assert {f"{name}/py.typed" for name in PACKAGES} <= set(wheel.namelist())


@pytest.mark.slow
@pytest.mark.once
def test_wheel_states_name_licence_and_python(wheel: zipfile.ZipFile) -> None:
    (path,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(path).decode())

    assert metadata["Name"] == "cerebras-ext"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == "<3.14,>=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"


@pytest.mark.slow
@pytest.mark.once
def test_sdist_holds_the_tests_and_what_they_run(built: Path) -> None:
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "scripts/make_venv.py", "tests/conftest.py"} <= names
    assert not {name for name in names if name.startswith((".venv", ".git/", ".ci", "dist"))}


@pytest.mark.skipif(os.environ.get("CEREBRAS_EXT_TEST_WHEEL") != "1", reason="runs against an editable install")
@pytest.mark.parametrize("name", PACKAGES)
def test_the_installed_wheel_is_what_is_tested(name: str) -> None:
    module = importlib.import_module(name)

    assert "site-packages" in Path(module.__file__ or "").parts
    assert not any(folder.exists() for folder in SOURCES.values())

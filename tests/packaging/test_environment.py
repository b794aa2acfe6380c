"""The scripts behind the Makefile: choosing an interpreter, and making the environment once."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.packaging.support import ROOT, load_script

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.once


def fake_python(path: Path, version: str, usable: str = "yes") -> Path:
    """A stand-in that answers the script's question as a Python of this version would."""
    minor = ".".join(version.split(".")[:2])
    path.write_text(f"#!/bin/sh\necho '{minor} {usable} {version} {path}'\n")
    path.chmod(0o755)
    return path


def find_python(*arguments: str, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the script on a machine whose only programs are in `path`."""
    return subprocess.run(
        ["/bin/sh", str(ROOT / "scripts" / "find-python.sh"), *arguments],
        env={"PATH": str(path), "HOME": str(path / "home"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_python3_is_used_when_it_fits(tmp_path: Path) -> None:
    fake_python(tmp_path / "python3.13", "3.13.0")
    python = fake_python(tmp_path / "python3", "3.11.7")

    assert find_python(path=tmp_path).stdout == f"{python}\n"


@pytest.mark.parametrize("version", ["2.7.18", "3.9.18", "3.10.13", "3.14.0"])
def test_a_newer_or_older_python3_is_passed_over(version: str, tmp_path: Path) -> None:
    fake_python(tmp_path / "python3", version)
    python = fake_python(tmp_path / "python3.12", "3.12.1")

    assert find_python(path=tmp_path).stdout == f"{python}\n"


def test_pyenv_versions_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "home" / ".pyenv" / "versions" / "3.13.0" / "bin"
    folder.mkdir(parents=True)
    python = fake_python(folder / "python3", "3.13.0")

    assert find_python(path=tmp_path).stdout == f"{python}\n"


@pytest.mark.parametrize("version", ["3.9.18", "3.10.13"])
def test_only_too_old_is_refused_with_its_version_and_what_to_do(version: str, tmp_path: Path) -> None:
    fake_python(tmp_path / "python3", version)

    done = find_python(path=tmp_path, GOAL="test")

    assert done.returncode == 1
    assert version in done.stderr
    assert "needs Python 3.11 to 3.13" in done.stderr
    assert "make PYTHON=/path/to/python3.13 test" in done.stderr


def test_the_named_python_is_used_or_refused_never_replaced(tmp_path: Path) -> None:
    fake_python(tmp_path / "python3", "3.11.7")
    named = fake_python(tmp_path / "other", "3.12.1")
    old = fake_python(tmp_path / "old", "3.10.13")

    assert find_python(path=tmp_path, PYTHON=str(named)).stdout == f"{named}\n"
    refused = find_python(path=tmp_path, PYTHON=str(old))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "3.10.13" in refused.stderr
    assert find_python(path=tmp_path, PYTHON=str(tmp_path / "none")).returncode == 1


def test_a_python_without_venv_says_so(tmp_path: Path) -> None:
    fake_python(tmp_path / "python3", "3.11.2", usable="no")

    done = find_python(path=tmp_path)

    assert done.returncode == 1
    assert "python3-venv" in done.stderr


def test_no_python_at_all_says_so(tmp_path: Path) -> None:
    assert "No python3 was found" in find_python(path=tmp_path).stderr


def test_all_lists_each_version_once(tmp_path: Path) -> None:
    for version in ("3.10.13", "3.11.7", "3.13.0"):
        fake_python(tmp_path / f"python{version.rpartition('.')[0]}", version)

    done = find_python("--all", path=tmp_path)

    assert done.stdout.splitlines() == [f"3.13 {tmp_path}/python3.13", f"3.11 {tmp_path}/python3.11"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "shared" / "cerebras_ext").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    (tmp_path / "shared" / "cerebras_ext" / "_version.py").write_text("__version__ = '1'\n")
    return tmp_path


class Installs:
    """`ensure` of scripts/make_venv.py with the slow steps replaced; `done` lists the extras installed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.script = load_script("make_venv")
        self.done: list[str] = []
        self.fail = False
        monkeypatch.setattr(self.script, "create", lambda folder: folder.mkdir(exist_ok=True))
        monkeypatch.setattr(self.script, "install", self.install)

    def install(self, folder: Path, requirements: list[str], log_path: Path) -> None:
        if self.fail:
            raise KeyboardInterrupt
        self.done.append(requirements[-1].rpartition("[")[2].rstrip("]"))


@pytest.fixture
def installs(monkeypatch: pytest.MonkeyPatch) -> Installs:
    return Installs(monkeypatch)


def test_the_second_run_installs_nothing(checkout: Path, installs: Installs) -> None:
    for _ in range(2):
        python = installs.script.ensure(checkout, "demo")

    assert installs.done == ["demo"]
    assert python == checkout / ".venv" / "{}.{}".format(*sys.version_info[:2]) / "bin" / "python"


def test_the_demo_environment_is_extended_for_the_tests_and_serves_both_then(
    checkout: Path, installs: Installs
) -> None:
    for profile in ("demo", "dev", "demo"):
        installs.script.ensure(checkout, profile)

    assert installs.done == ["demo", "dev"]


@pytest.mark.parametrize("changed", ["pyproject.toml", "shared/cerebras_ext/_version.py"])
def test_a_changed_project_is_installed_again(changed: str, checkout: Path, installs: Installs) -> None:
    installs.script.ensure(checkout, "dev")
    (checkout / changed).write_text("# changed\n")
    installs.script.ensure(checkout, "dev")

    assert installs.done == ["dev", "dev"]


def test_an_interrupted_install_is_repeated(checkout: Path, installs: Installs) -> None:
    installs.fail = True
    with pytest.raises(KeyboardInterrupt):
        installs.script.ensure(checkout, "dev")
    installs.fail = False
    installs.script.ensure(checkout, "dev")

    assert installs.done == ["dev"]


def test_an_environment_that_was_not_finished_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("make_venv")
    made = []

    def make(folder: Path, **_: object) -> None:
        folder.mkdir()
        made.append(folder)

    monkeypatch.setattr(script.venv, "create", make)
    folder = tmp_path / "3.11"
    folder.mkdir()
    (folder / "half").touch()

    script.create(folder)

    assert made == [folder]
    assert not (folder / "half").exists()
    assert (folder / ".made").exists()


@pytest.mark.parametrize(
    ("works", "tried"),
    [({"get uv", "uv"}, ["get uv", "uv"]), ({"pip"}, ["get uv", "pip"]), ({"get uv", "pip"}, ["get uv", "uv", "pip"])],
)
def test_pip_installs_where_uv_cannot(
    works: set[str], tried: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = load_script("make_venv")
    seen = []

    def attempt(command: list[object], log: object) -> bool:
        name = "uv" if str(command[0]).endswith("/uv") else "get uv" if command[-1] == "uv" else "pip"
        seen.append(name)
        return name in works

    monkeypatch.setattr(script, "attempt", attempt)
    script.install(tmp_path, ["-e", "x"], tmp_path / "log")

    assert seen == tried


def test_a_failed_install_shows_its_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script("make_venv")
    monkeypatch.setattr(script, "attempt", lambda command, log: log.write("no such package\n") < 0)

    with pytest.raises(SystemExit, match="the whole log is"):
        script.install(tmp_path, ["-e", "x"], tmp_path / "log")
    assert "no such package" in capsys.readouterr().err


def test_make_refuses_an_old_python_by_name(tmp_path: Path) -> None:
    old = fake_python(tmp_path / "old", "3.9.18")

    done = subprocess.run(
        ["make", "-C", str(ROOT), f"PYTHON={old}", "demo"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode != 0
    assert "3.9.18" in done.stderr
    assert "make PYTHON=/path/to/python3.13 demo" in done.stderr

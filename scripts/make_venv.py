"""One virtual environment per Python in .venv/<major.minor>, with the checkout installed editable.

Prints the path of its python. Uses the standard library only: it runs before anything is installed.
A stamp is written after an install has succeeded, so an interrupted one is repeated at the next call.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
# Each profile is an extra of pyproject.toml; an environment that has a later one has the earlier ones.
PROFILES = ("demo", "dev", "bench")
LOG_LINES_SHOWN = 60


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def lock(path: Path) -> Iterator[None]:
    """Keep two runs of make from installing into the same environment at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def fingerprint(root: Path) -> str:
    """Changes when what must be installed may have changed, or when the checkout was moved."""
    digest = hashlib.sha256(str(root).encode())
    for name in ("pyproject.toml", "shared/cerebras_ext/_version.py"):
        digest.update((root / name).read_bytes())
    return digest.hexdigest()


def runs(python: Path) -> bool:
    """Whether the environment's interpreter still works and still is of the version asked for."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == "{}.{}".format(*sys.version_info[:2])


def create(folder: Path) -> None:
    """Make an empty environment, unless there is a whole one."""
    made = folder / ".made"
    if made.exists() and runs(folder / "bin" / "python"):
        return
    shutil.rmtree(folder, ignore_errors=True)
    say(f"Making a virtual environment for Python {'.'.join(map(str, sys.version_info[:3]))} in {folder}")
    venv.create(folder, with_pip=True, symlinks=True)
    made.touch()


def attempt(command: Sequence[str | Path], log: TextIO) -> bool:
    log.write("$ " + " ".join(map(str, command)) + "\n")
    log.flush()
    try:
        done = subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        log.write(f"{error}\n")
        return False
    return done.returncode == 0


def install(folder: Path, requirements: Sequence[str], log_path: Path) -> None:
    """Install with uv when pip can get it, which is many times faster, else with pip itself."""
    python = folder / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
    with log_path.open("w") as log:
        done = (
            attempt([*pip, "uv"], log)
            and attempt([folder / "bin" / "uv", "pip", "install", "--python", python, *requirements], log)
        ) or attempt([*pip, *requirements], log)
    if not done:
        lines = log_path.read_text(errors="replace").splitlines()
        say("\n".join(lines[-LOG_LINES_SHOWN:]))
        raise SystemExit(f"Installing {' '.join(requirements)} failed; the whole log is {log_path}")


def ensure(root: Path, profile: str) -> Path:
    """Return the python of an environment in which `profile` is installed."""
    folder = root / ".venv" / "{}.{}".format(*sys.version_info[:2])
    with lock(folder.with_name(f"{folder.name}.lock")):
        create(folder)
        wanted = fingerprint(root)
        stamps = [folder / f".installed-{name}" for name in PROFILES[PROFILES.index(profile) :]]
        if not any(stamp.exists() and stamp.read_text() == wanted for stamp in stamps):
            say(f"Installing cerebras-ext[{profile}] and what it needs (once; a minute or so)")
            install(folder, ["-e", f"{root}[{profile}]"], folder / f"install-{profile}.log")
            stamps[0].write_text(wanted)
    return folder / "bin" / "python"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("profile", choices=PROFILES)
    arguments = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    print(ensure(ROOT, arguments.profile))


if __name__ == "__main__":
    main()

"""What holds for all tests."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.replay import cassettes

if TYPE_CHECKING:
    from collections.abc import Generator

    from vcr import VCR

RECORDINGS_REQUIRED = os.environ.get("CEREBRAS_EXT_REQUIRE_RECORDINGS") == "1"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn the skip of a test that needs the recordings into a failure where they must be there."""
    report = yield
    skipped = report.skipped and not hasattr(report, "wasxfail")
    if RECORDINGS_REQUIRED and skipped and item.get_closest_marker("recordings"):
        report.outcome = "failed"
        report.longrepr = f"the recordings are required here, but {item.nodeid} was skipped: {report.longrepr}"
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse test ids with an address in them: they differ between the processes that share the tests."""
    moving = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if moving:
        raise pytest.UsageError("these tests have another id in every process: " + ", ".join(moving))


def pytest_recording_configure(config: pytest.Config, vcr: VCR) -> None:
    vcr.register_matcher("meaning", cassettes.same_meaning)
    vcr.register_serializer("yaml", cassettes.LabelledSerializer)


@pytest.fixture(scope="session")
def vcr_config() -> dict[str, Any]:
    return dict(cassettes.CONFIG)


@pytest.fixture(scope="module")
def vcr_cassette_dir(request: pytest.FixtureRequest) -> str:
    """`cassettes/langchain/standard` for `tests/langchain/test_standard.py`."""
    module = Path(str(request.path)).relative_to(Path(__file__).parent)
    return str(cassettes.FOLDER / module.parent / module.stem.removeprefix("test_"))

"""What holds for all tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

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

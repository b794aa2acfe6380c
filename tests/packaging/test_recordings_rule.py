"""A test that needs the recordings may not be skipped where they must be there."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.packaging.support import ROOT, run_python

if TYPE_CHECKING:
    from pathlib import Path

SUITE = """
import pytest

@pytest.mark.recordings
def test_needs_them(): pytest.skip("no recordings")

def test_does_not(): pytest.skip("something else")

@pytest.mark.recordings
@pytest.mark.xfail(reason="known")
def test_expected_to_fail(): assert False
"""
CODE = """
import os, sys, pytest
os.environ["CEREBRAS_EXT_REQUIRE_RECORDINGS"] = "{required}"
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "."]) not in (0, 1))
"""


@pytest.mark.once
@pytest.mark.parametrize(
    ("required", "closing"), [("0", "2 skipped, 1 xfailed"), ("1", "1 failed, 1 skipped, 1 xfailed")]
)
def test_skip_is_a_failure_only_where_they_are_required(required: str, closing: str, tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    recordings: x\n")
    (tmp_path / "test_it.py").write_text(SUITE)

    assert closing in run_python(CODE.format(required=required), tmp_path)

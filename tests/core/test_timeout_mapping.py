"""Limits of time in the form in which dumps of models hold them."""

from __future__ import annotations

import httpx
import pytest

from cerebras_ext.settings import make_timeout


def test_mapping_of_all_limits_is_a_timeout() -> None:
    timeout = httpx.Timeout(5.0, connect=1.0, pool=None)

    assert make_timeout(timeout.as_dict()) == timeout


def test_mapping_with_other_names_is_refused() -> None:
    with pytest.raises(ValueError, match="timeout: a mapping needs connect, read, write and pool"):
        make_timeout({"read": 5.0})

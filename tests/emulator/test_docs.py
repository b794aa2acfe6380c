"""The examples of the emulator's page run."""

from __future__ import annotations

import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "emulator.md"


def examples() -> list[str]:
    return (
        re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
        if PAGE.is_file()
        else []
    )


@pytest.mark.parametrize("number", range(len(examples()) or 1))
def test_examples_run(number: int) -> None:
    if not PAGE.is_file():
        pytest.skip("the page is not beside the tests (they run from an installed wheel)")
    exec(compile(examples()[number], f"{PAGE.name}[{number}]", "exec"), {"__name__": "__main__"})


def test_every_field_of_a_fault_is_on_the_page() -> None:
    from cerebras_ext.emulator import Fault

    if not PAGE.is_file():
        pytest.skip("the page is not beside the tests (they run from an installed wheel)")
    text = PAGE.read_text("utf-8")
    assert [name for name in Fault.__dataclass_fields__ if f"`{name}`" not in text] == []

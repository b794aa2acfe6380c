"""What importing each package loads, and what it says when its framework is missing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.packaging.support import run_python

if TYPE_CHECKING:
    from pathlib import Path

LANGCHAIN = {"langchain", "langchain_core", "langgraph", "langsmith"}
LLAMAINDEX = {"llama_index", "llama_index_instrumentation", "workflows"}
PROVIDERS = {"openai", "cerebras", "langchain_openai", "langchain_cerebras"}
OPTIONAL = {"ormsgpack", "aiohttp", "httpx_aiohttp", "httptools", "h2"}

BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
"""


def loaded_by(module: str, folder: Path) -> set[str]:
    code = f"import json, sys; import {module}; print(json.dumps(sorted(sys.modules)))"
    return set(json.loads(run_python(code, folder).splitlines()[-1]))


def roots(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_core_loads_no_framework_and_nothing_optional(tmp_path: Path) -> None:
    by_httpx = loaded_by("httpx", tmp_path)  # older httpcore loads h2 by itself where it is installed
    loaded = loaded_by("cerebras_ext", tmp_path) - by_httpx

    assert roots(loaded) & (LANGCHAIN | LLAMAINDEX | PROVIDERS | OPTIONAL) == set()
    assert {name for name in loaded if name.startswith("cerebras_ext.emulator")} == set()


def test_emulator_loads_no_framework(tmp_path: Path) -> None:
    assert roots(loaded_by("cerebras_ext.emulator", tmp_path)) & (LANGCHAIN | LLAMAINDEX | PROVIDERS) == set()


@pytest.mark.parametrize(
    ("adapter", "others"),
    [
        ("langchain_cerebras_ext", LLAMAINDEX | PROVIDERS | {"llamaindex_cerebras_ext"}),
        ("llamaindex_cerebras_ext", LANGCHAIN | PROVIDERS | {"langchain_cerebras_ext"}),
    ],
)
def test_adapter_never_loads_the_other_framework(adapter: str, others: set[str], tmp_path: Path) -> None:
    assert roots(loaded_by(adapter, tmp_path)) & others == set()


@pytest.mark.parametrize(
    ("adapter", "blocked", "extra"),
    [
        ("langchain_cerebras_ext", LANGCHAIN, "langchain"),
        ("llamaindex_cerebras_ext", LLAMAINDEX, "llamaindex"),
    ],
)
def test_missing_framework_names_the_pip_command(adapter: str, blocked: set[str], extra: str, tmp_path: Path) -> None:
    code = BLOCK.format(blocked=blocked) + (
        f"try:\n    import {adapter}\nexcept ImportError as error:\n    print(error)\nelse:\n    print('imported')\n"
    )

    assert f'pip install "cerebras-ext[{extra}]"' in run_python(code, tmp_path)


@pytest.mark.parametrize(
    ("adapter", "blocked"),
    [("langchain_cerebras_ext", LLAMAINDEX), ("llamaindex_cerebras_ext", LANGCHAIN)],
)
def test_adapter_works_without_the_other_framework(adapter: str, blocked: set[str], tmp_path: Path) -> None:
    assert run_python(BLOCK.format(blocked=blocked) + f"import {adapter}; print('imported')", tmp_path) == "imported\n"


def test_everything_works_without_the_optional_packages(tmp_path: Path) -> None:
    code = BLOCK.format(blocked=OPTIONAL) + "import cerebras_ext, cerebras_ext.emulator; print('imported')"

    assert run_python(code, tmp_path) == "imported\n"


LOADS = """
import os, sys
os.environ["CEREBRAS_API_KEY"] = "csk-test"
finders = list(sys.meta_path)
{first}
loaded_early = "llama_index.core.llms.loading" in sys.modules
{second}
from llama_index.core.llms import loading
llm = loading.load_llm({{"class_name": "Cerebras", "model": "m"}})
assert loading.__loader__ is loading.__spec__.loader
assert sys.meta_path == finders
print(loaded_early, type(llm).__name__)
"""


@pytest.mark.parametrize(
    ("first", "second", "loaded_early"),
    [
        ("import llamaindex_cerebras_ext", "from llama_index.core.llms.loading import load_llm", False),
        ("from llama_index.core.llms.loading import load_llm", "import llamaindex_cerebras_ext", True),
    ],
)
def test_load_llm_knows_our_classes_in_either_order(
    first: str, second: str, loaded_early: bool, tmp_path: Path
) -> None:
    assert run_python(LOADS.format(first=first, second=second), tmp_path).split() == [str(loaded_early), "Cerebras"]

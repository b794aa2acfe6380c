"""Check an install without extras: the core works, and each adapter says which extra it lacks."""

from __future__ import annotations

import importlib
import importlib.util

ADAPTERS = {
    "langchain_cerebras_ext": ("langchain_core", 'pip install "cerebras-ext[langchain]"'),
    "llamaindex_cerebras_ext": ("llama_index", 'pip install "cerebras-ext[llamaindex]"'),
}


def main() -> None:
    core = importlib.import_module("cerebras_ext")
    importlib.import_module("cerebras_ext.emulator")
    for name, (framework, command) in ADAPTERS.items():
        if importlib.util.find_spec(framework) is not None:
            raise SystemExit(f"{framework} is installed: this is no bare environment")
        try:
            importlib.import_module(name)
        except ImportError as error:
            if command not in str(error):
                raise SystemExit(f"{name} does not say {command}, but: {error}") from error
        else:
            raise SystemExit(f"{name} was imported without {framework}")
    print(f"bare install of {core.__version__}: the core imports, and each adapter names its extra")


if __name__ == "__main__":
    main()

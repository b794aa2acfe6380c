"""What it costs before the first token: importing, making instances, and the memory that calls leave behind."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.candidates import KEY, MODEL, Setup, libraries
from benchmarks.measure import Candidate, Sample, in_process
from benchmarks.scenarios import Scenario
from benchmarks.targets import Figure

ROOT = Path(__file__).resolve().parents[2]

_IMPORTS: dict[str, dict[str, str]] = {
    "plain": {"core": "import cerebras_ext", "httpx": "import httpx", "sdk": "import cerebras.cloud.sdk"},
    "langchain": {
        # Nothing that the chat model does without, such as the text models: that would flatter it.
        "framework and httpx": "import langchain_core.language_models.chat_models, httpx",
        "ours": "import langchain_cerebras_ext; langchain_cerebras_ext.ChatCerebras",
        "incumbent": "import langchain_cerebras",
    },
    "llamaindex": {
        "framework and httpx": "import llama_index.core.llms, llama_index.core.llms.function_calling, httpx",
        "ours": "import llamaindex_cerebras_ext; llamaindex_cerebras_ext.Cerebras",
        "incumbent": "import llama_index.llms.cerebras",
    },
}
_OTHERS = ("incumbent", "sdk")
"""What need not be installed, and is not measured in the quick form."""


_COLLECTING = {"": "import gc; gc.disable()", ", collecting": "pass"}
"""Without and with garbage collections. Whether a full one falls into an import, which walks all that was imported
before, is decided by a few hundred objects more or less, so that the ratio is formed without."""


def imports(bench: Bench) -> None:
    """CPU time until a package is imported in a fresh interpreter, less that of one that imports nothing."""
    codes = {
        f"{name}{label}": f"{first}\n{code}"
        for label, first in _COLLECTING.items()
        for name, code in _IMPORTS[bench.group].items()
        if not (bench.quick and (name in _OTHERS or label))
    }
    samples = {name: Sample(name) for name in codes}
    first = 1 if bench.quick else 0
    for number in range(first, 3 if bench.quick else 10):
        empty = _until_imported("pass")
        for name, code in codes.items():
            if name not in samples:
                continue
            try:
                used = _until_imported(code)
            except RuntimeError as error:
                del samples[name]
                _not_imported(bench, name, str(error).splitlines()[-1])
                continue
            if number:  # the first round writes the bytecode
                samples[name].cpu.append((used - empty) * 1e3)
                samples[name].wall.append((used - empty) * 1e3)
    bench.keep(f"Import, {bench.group}", "ms", list(samples.values()))
    bench.ratio(f"import.{bench.group}", samples, "ours", "framework and httpx")


def _until_imported(code: str) -> float:
    """Return the seconds of CPU time that a fresh interpreter has used when it has run the code."""
    _, printed = in_process(f"{code}\nimport time; print(time.process_time())")
    return float(printed.split()[-1])


def _not_imported(bench: Bench, name: str, reason: str) -> None:
    if name.partition(",")[0] in _OTHERS and reason.startswith("ModuleNotFoundError"):
        print(f"  {name}: {reason}")
    else:
        bench.fail(f"Import, {bench.group}: {name}", reason)


def _empty_model(framework: str) -> Callable[[], Any]:
    """Return a factory of a framework's minimal model with 30 optional fields."""
    from pydantic import create_model

    from benchmarks.candidates import floors

    fields: dict[str, Any] = {f"field_{number}": (int | None, None) for number in range(30)}
    model = getattr(floors, framework)().make(Setup("http://127.0.0.1" + Scenario().path)).model
    kind: Callable[[], Any] = create_model(f"Empty{framework}", __base__=type(model), **fields)
    return kind


def _makers(framework: str, quick: bool) -> dict[str, Callable[[], Any]]:
    """Return what makes an instance of each library of a framework, its clients included."""
    url = "https://127.0.0.1:1"
    makers: dict[str, Callable[[], Any]] = {"empty": _empty_model(framework)}
    found = libraries(framework, ("incumbent",) if quick else ())
    if "ours" in found:
        makers["ours"] = _maker(framework, url)
    if "incumbent" in found:
        setup = Setup(url)
        makers["incumbent"] = lambda: found["incumbent"].make(setup)
    return makers


def _maker(framework: str, url: str) -> Callable[[], Any]:
    if framework == "langchain":
        from langchain_cerebras_ext import ChatCerebras

        return lambda: ChatCerebras(model=MODEL, api_key=KEY, base_url=url)
    from llamaindex_cerebras_ext import Cerebras

    return lambda: Cerebras(model=MODEL, api_key=KEY, api_base=url)


def construction(bench: Bench) -> None:
    """Time and memory of one more instance; without a framework, the TLS contexts that several clients make."""
    if bench.plain:
        bench.figures["ssl"] = Figure(_tls_contexts())
        return
    makers = _makers(bench.group, bench.quick)
    candidates = [Candidate(name, _many(make, 20 if name == "incumbent" else 1000)) for name, make in makers.items()]
    samples = bench.compare(f"One more instance, {bench.group}", "µs", candidates, 9)
    bench.ratio(f"instance.{bench.group}", samples, "ours", "empty")
    sizes = []
    for name, make in makers.items():
        size = _size(make, 10 if name == "incumbent" else 300)
        sizes.append(Sample(name, [size], [size]))
    bench.keep(f"Memory of an instance, {bench.group}", "KiB", sizes)


def _many(make: Callable[[], Any], count: int) -> Callable[[], int]:
    def work() -> int:
        for _ in range(count):
            make()
        return count

    return work


def _size(make: Callable[[], Any], count: int) -> float:
    """Return the KiB of Python memory that an instance takes."""
    make()
    gc.collect()
    tracemalloc.start()
    kept = [make() for _ in range(count)]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size / count / 1024


_TLS = """
import ssl
made = []
init = ssl.SSLContext.__new__
def count(kind, *args, **kwargs):
    made.append(1)
    return init(kind, *args, **kwargs)
ssl.SSLContext.__new__ = count
from cerebras_ext import Client, errors
clients = [Client(api_key="sk-x", base_url="https://127.0.0.1:1", max_retries=0) for _ in range(5)]
before = len(made)
for client in clients:
    try:
        client.models()
    except errors.CerebrasError:
        pass
print(len(made) if before == 0 else 1000 + before)
"""


def _tls_contexts() -> float:
    """Return how many TLS contexts five clients with equal settings made; over 1,000 if some before a request."""
    _, printed = in_process(_TLS)
    return float(printed.split()[-1])


_MEMORY = """
import gc, resource, sys
sys.path[:0] = {path!r}
from benchmarks.candidates import Setup, libraries
subject = libraries({framework!r}, ("floor", "incumbent"))["ours"].make(Setup({url!r}))
def now():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 1e6
for _ in range(200):
    subject.call()
before = now()
for _ in range({calls} - 200):
    subject.call()
print(now() - before)
"""


def memory(bench: Bench) -> None:
    """How much a process that only calls grows between call 200 and call 10,000."""
    if "ours" not in libraries(bench.group, ("floor", "incumbent")):
        return
    url = bench.server.url(Scenario(tokens=20))
    code = _MEMORY.format(path=[str(ROOT)], framework=bench.group, url=url, calls=10_000)
    _, printed = in_process(code)
    grown = float(printed.split()[-1])
    print(f"\nGrowth from call 200 to 10,000, {bench.group}: {grown:.2f} MB")
    bench.figures[f"memory.{bench.group}"] = Figure(grown)

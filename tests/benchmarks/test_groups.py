"""A process for each group: what is planned, what its death leaves behind, how findings are joined, what is loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of the wheel")

from benchmarks import bench as benches
from benchmarks import processes, run, worker
from benchmarks.bench import Bench, fast_options, sync_and_async
from benchmarks.candidates import FRAMEWORKS, GROUPS, strangers
from benchmarks.measure import Candidate, in_process
from benchmarks.outcome import Part, merge
from benchmarks.processes import Task, run_group
from benchmarks.scenarios import Scenario
from benchmarks.sections import SECTIONS, Section, plan, startup
from benchmarks.server import Address, Server
from benchmarks.targets import Figure

NOWHERE = Address(1)


def rows(*names: str) -> dict[str, Any]:
    return {"unit": "µs", "rows": [{"name": name} for name in names]}


def fake(tmp_path: Path, code: str) -> list[str]:
    """Return a command that runs code in place of the worker; `send(part)` is there for it."""
    file = tmp_path / "fake.py"
    head = "import json, os, signal, subprocess, sys\n"
    head += "from benchmarks.outcome import Part\nfrom benchmarks.targets import Figure\n"
    head += "pipe, task = os.fdopen(int(sys.argv[1]), 'w'), json.loads(sys.argv[2])\n"
    head += "def send(part):\n    print(part.to_json(), file=pipe, flush=True)\n"
    file.write_text(f"import sys\nsys.path.insert(0, {str(processes.ROOT)!r})\n" + head + code, encoding="utf-8")
    return [sys.executable, str(file)]


def test_findings_keep_their_values_on_the_way() -> None:
    figures = {"ssl": Figure(1.5, 0.1, None), "x": Figure(2.0, 0.0, 3.0)}
    part = Part("plain", "call", {"t": rows("a")}, figures, {"f": "why"}, {"m": "no"})
    assert Part.from_json(part.to_json()) == part


def test_findings_are_joined_in_the_order_of_sections_and_groups() -> None:
    late, early = list(SECTIONS)[3], next(iter(SECTIONS))
    rates = "rates"
    parts = [
        Part("llamaindex", late, {"4": rows("a"), rates: {"unit": "t", "rates": {"l": {"1": 1}}}}, {"k": Figure(1)}),
        Part("llamaindex", early, {"2": rows("a")}, failures={"making x": "why"}),
        Part("plain", late, {"3": rows("a"), rates: {"unit": "t", "rates": {"p": {"1": 2}}}}, missing={"sdk": "no"}),
        Part("langchain", early, {"1": rows("a")}, {"j": Figure(2)}, {"making x": "other"}),
    ]
    outcome = merge(parts)
    assert list(outcome.tables) == ["1", "2", "3", rates, "4"]
    assert outcome.tables[rates] == {"unit": "t", "rates": {"p": {"1": 2}, "l": {"1": 1}}}
    assert outcome.figures == {"j": Figure(2), "k": Figure(1)}
    assert outcome.failures == {"langchain: making x": "other", "llamaindex: making x": "why"}
    assert outcome.missing == {"sdk": "no"}


def test_a_table_of_several_groups_loses_no_row() -> None:
    name = next(iter(SECTIONS))
    outcome = merge([Part("langchain", name, {"t": rows("b")}), Part("plain", name, {"t": rows("a")})])
    assert outcome.tables == {"t": rows("a", "b")}


def test_a_process_that_dies_is_named_and_what_it_found_is_kept(tmp_path: Path) -> None:
    code = "send(Part(task['group'], 'call', figures={'ssl': Figure(1.0)}))\n"
    code += 'pipe.write(\'{"group": "lang\')\npipe.flush()\nos.kill(os.getpid(), signal.SIGKILL)\n'
    parts = run_group(Task("langchain", ["call", "streaming", "tools"], 1), fake(tmp_path, code))
    outcome = merge(parts)
    assert outcome.figures == {"ssl": Figure(1.0)}
    assert outcome.failures == {
        "langchain: section 'streaming'": "the process of the group ended by SIGKILL; not measured after it: tools"
    }


@pytest.mark.parametrize(
    ("code", "where", "reason"),
    [
        ("sys.exit(3)", "call", "ended with status 3; not measured after it: tools"),
        ("", "call", "ended with status 0; not measured after it: tools"),
        ("[send(Part('plain', name)) for name in task['sections']]\nsys.exit(4)", "tools", "ended with status 4"),
    ],
    ids=["at the start", "in silence", "at the end"],
)
def test_a_process_that_ends_before_its_time_is_a_failure(tmp_path: Path, code: str, where: str, reason: str) -> None:
    failures = merge(run_group(Task("plain", ["call", "tools"], 1), fake(tmp_path, code))).failures
    assert failures == {f"plain: section {where!r}": f"the process of the group {reason}"}


def test_an_interrupt_ends_the_process_and_what_it_started(tmp_path: Path) -> None:
    sleeper = "import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN); print('up', flush=True)"
    code = f"subprocess.Popen([sys.executable, '-c', {sleeper + '; time.sleep(600)'!r}])\nsignal.pause()\n"
    task = "Task('plain', ['call'], 1)"
    starts = f"from benchmarks.processes import Task, run_group; run_group({task}, {fake(tmp_path, code)!r})"
    parent = subprocess.Popen(
        [sys.executable, "-c", starts],
        cwd=processes.ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    parent.send_signal(signal.SIGINT)
    with parent.stdout:
        assert parent.stdout.read() == ""  # ends when no one holds the other side any more
    assert parent.wait() != 0


def _raise() -> int:
    raise ConnectionError("refused")


def test_a_section_that_raises_does_not_end_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(bench: Bench) -> None:
        raise RuntimeError("no")

    def works(bench: Bench) -> None:
        bench.compare("table", "µs", [Candidate("bad", _raise), Candidate("good", lambda: 1)], 2)
        bench.figures["ssl"] = Figure(1.0)

    monkeypatch.setattr(worker, "SECTIONS", {"broken": Section(broken), "works": Section(works)})
    monkeypatch.setattr(worker, "strangers", lambda group, loaded: [])
    task = Task("plain", ["broken", "works"], 1)
    first, second = (worker.run_section(task, name) for name in task.sections)
    assert first.failures == {"section 'broken'": "RuntimeError: no"}
    assert second.failures == {"table: bad": "ConnectionError: refused"}
    assert second.figures == {"ssl": Figure(1.0)}


def test_modules_of_another_group_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "SECTIONS", {"empty": Section(lambda bench: None)})
    monkeypatch.setattr(worker, "sys", type("Modules", (), {"modules": {"llama_index.core": None, "httpx": None}}))
    assert worker.run_section(Task("llamaindex", ["empty"], 1), "empty").failures == {}
    failures = worker.run_section(Task("langchain", ["empty"], 1), "empty").failures
    assert failures == {"modules after section 'empty'": "1 of another group are loaded, as llama_index.core"}


def test_each_group_owns_its_packages() -> None:
    loaded = [
        "cerebras",
        "cerebras.cloud.sdk",
        "cerebras_ext",
        "httpx",
        "langchain_cerebras_ext",
        "langsmith.run_trees",
    ]
    loaded += ["llama_index.core", "llamaindex_cerebras_ext"]
    assert strangers("plain", loaded) == loaded[4:]
    assert strangers("langchain", loaded) == [loaded[1], *loaded[6:]]
    assert strangers("llamaindex", loaded) == [loaded[1], *loaded[4:6]]


def test_every_group_is_measured_without_the_modules_of_the_others() -> None:
    with Server() as server:
        found = {group: run_group(Task(group, ["construction"], server.port, True)) for group in GROUPS}
    for group, parts in found.items():
        (part,) = parts
        assert (part.group, part.section, part.failures) == (group, "construction", {})
    assert list(found["plain"][0].figures) == ["ssl"]
    for framework in FRAMEWORKS:
        assert list(found[framework][0].figures) == [f"instance.{framework}"]


def test_the_whole_form_plans_every_section_for_its_groups() -> None:
    planned = plan()
    assert list(planned) == list(GROUPS)
    for name, section in SECTIONS.items():
        assert [group for group, names in planned.items() if name in names] == list(section.groups)
    assert all(names == [name for name in SECTIONS if name in names] for names in planned.values())


def test_the_quick_form_and_names_choose_sections() -> None:
    assert plan(frozenset(("http2",))) == {"plain": ["http2"]}
    assert plan(frozenset(("http2",)), quick=True) == {"plain": ["http2"]}
    assert plan(frozenset(("call",)), quick=True) == {framework: ["call"] for framework in FRAMEWORKS}
    assert "length" not in plan(quick=True)["langchain"]
    assert all(set(section.quick) <= set(section.groups) for section in SECTIONS.values())


@pytest.mark.parametrize(
    ("figure", "failure", "status"), [(1.0, "", 0), (2.0, "", 1), (1.0, "RuntimeError: no", 1)], ids=str
)
def test_status_is_1_for_a_missed_target_or_a_failure(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    figure: float,
    failure: str,
    status: int,
) -> None:
    def found(task: Task) -> list[Part]:
        assert task.sections == ["http2"]
        failures = {"somewhere": failure} if failure else {}
        return [Part(task.group, "http2", {"t": rows("a")}, {"ssl": Figure(figure)}, failures)]

    monkeypatch.setattr(run, "run_group", found)
    monkeypatch.setattr(run, "allow_files", lambda: None)
    monkeypatch.setenv("CEREBRAS_API_KEY", "k")
    saved = tmp_path / "results.json"
    assert run.main(["--only", "http2", "--save", str(saved)]) == status
    printed = capsys.readouterr().out
    assert ("Missed: ssl" in printed) == (figure > 1)
    assert ("failed: plain: somewhere" in printed) == bool(failure)
    results = json.loads(saved.read_text(encoding="utf-8"))
    assert results["tables"] == {"t": rows("a")}
    assert [target["value"] for target in results["targets"]] == [figure]
    assert results["fast"] == fast_options()


def test_an_interrupt_saves_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(task: Task) -> list[Part]:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "run_group", interrupted)
    monkeypatch.setattr(run, "allow_files", lambda: None)
    monkeypatch.setenv("CEREBRAS_API_KEY", "k")
    assert run.main(["--only", "http2", "--save", str(tmp_path / "results.json")]) == 130
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="processes cannot be bound to a core here")
def test_a_server_has_the_last_core_though_its_parent_is_bound_to_the_first() -> None:
    code = "import os; from benchmarks.server import CORES, Server, client_core, pin; pin(client_core())\n"
    code += "server = Server(); server.address; found = os.sched_getaffinity(server._process.pid); server.close()\n"
    code += "print(found == {CORES[-1]} and os.sched_getaffinity(0) == {CORES[0]})"
    _, printed = in_process(f"import sys; sys.path.insert(0, {str(processes.ROOT)!r})\n{code}")
    assert printed == "True\n"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_framework_that_our_import_is_held_against_has_nothing_that_ours_does_without(framework: str) -> None:
    codes = startup._IMPORTS[framework]
    floor, ours = (
        set(in_process(f"{codes[name]}\nimport sys; print(*sys.modules)")[1].split())
        for name in ("framework and httpx", "ours")
    )
    assert floor - ours == set()


class _Subject:
    def __init__(self, setup: Any) -> None:
        self.options = setup.options

    def call(self) -> int:
        return 1

    async def acall(self) -> int:
        return 1


def _bench(monkeypatch: pytest.MonkeyPatch, group: str, installed: bool = True) -> Bench:
    def only(group: str, skip: Any = ()) -> dict[str, Any]:
        key = "core" if group == "plain" else "ours"
        return {key: type("Made", (), {"name": key, "make": _Subject})}

    monkeypatch.setattr(benches, "libraries", only)
    monkeypatch.setattr(benches, "_installed", lambda transport: installed)
    return Bench(NOWHERE, group)


@pytest.mark.parametrize(("installed", "transport"), [(True, "httptools"), (False, "httpx")])
def test_fast_is_joining_over_the_best_transport(
    monkeypatch: pytest.MonkeyPatch, installed: bool, transport: str
) -> None:
    made: dict[str, Any] = _bench(monkeypatch, "langchain", installed).fast(Scenario())
    assert list(made) == ["ours fast"]
    assert made["ours fast"].options == {"coalesce": True, "transport": transport}


def test_transports_are_compared_one_by_one_without_a_framework(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(_bench(monkeypatch, "langchain").fast(Scenario())) == ["ours fast"]
    made: dict[str, Any] = _bench(monkeypatch, "plain").fast(Scenario())
    assert {key: one.options for key, one in made.items() if key != "core fast"} == {
        "core aiohttp": {"transport": "aiohttp"},
        "core httptools": {"transport": "httptools"},
    }
    names = [candidate.name for candidate in sync_and_async(made, "call")]
    assert "core aiohttp async" in names
    assert "core aiohttp sync" not in names  # it would be httpx
    assert "core httptools sync" in names

"""docs/performance.md says what the recorded results say."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of the wheel")

from benchmarks import findings, report
from benchmarks.targets import Figure, Target, Verdict

RESULTS: dict[str, Any] = json.loads(report.RESULTS.read_text(encoding="utf-8"))
TITLE = "HTTP/1.1 and HTTP/2 over TLS: one stream"


def table(unit: str, **rows: float) -> dict[str, Any]:
    made = [{"name": name, "median": value, "wall_median": value, "spread": 0.0} for name, value in rows.items()]
    return {"unit": unit, "rows": made}


def test_the_page_matches_the_recorded_results() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    assert page == report.put_into(page, report.page_part(RESULTS)), "run `make bench-report`"


@pytest.mark.parametrize(
    ("image", "titles"),
    [
        ("cost-a-token", ["Streaming 1,000 chunks, 1 in an HTTP chunk, {}"]),
        ("instances", ["One more instance, {}", "Memory of an instance, {}"]),
    ],
)
def test_the_plots_show_the_recorded_results(image: str, titles: list[str]) -> None:
    drawn = (report.IMAGES / f"{image}.svg").read_text(encoding="utf-8")
    for framework in ("langchain", "llamaindex"):
        for title in titles:
            for row in report.rows_of(RESULTS, title.format(framework)):
                if report.drawn(RESULTS, row["name"]):
                    assert f" {findings.number(row['median'])}<" in drawn, (title, row["name"])


def test_verdicts_of_the_recorded_results_are_those_of_their_figures() -> None:
    for one in RESULTS["targets"]:
        target = Target(one["key"], one["title"], one["must"], one["excellent"], one["at_least"])
        assert Verdict(target, Figure(one["value"], one["spread"], one["best"])).status == one["status"]


def test_no_measured_number_stands_outside_of_the_generated_part() -> None:
    page = report.PAGE.read_text(encoding="utf-8")
    prose = page[: page.index(report.BEGIN)] + page[page.index(report.END) :]
    found = re.findall(r"[\d.,]+ (?:µs|ms|%|MB|KB|tokens/s)", prose)
    assert found == ["0.4 ms"]  # what the service takes for a token


def test_http2_is_compared_row_by_row() -> None:
    rows = {"HTTP/1.1 sync": 20.0, "HTTP/2 sync": 30.0, "HTTP/1.1, aiohttp sync": 20.0, "HTTP/1.1 async": 40.0}
    rows |= {"HTTP/2 async": 80.0, "HTTP/1.1, aiohttp async": 10.0}
    lines = findings.http2_lines({"tables": {TITLE: table("µs a token", **rows)}})
    assert lines[2:] == [
        "| one stream, sync (µs a token) | 20 | 30 | 1.5 |  |",
        "| one stream, async (µs a token) | 40 | 80 | 2 | 10 |",
    ]
    assert findings.http2_lines({"tables": {}}) == ["Not measured."]


def test_findings_are_made_of_the_results_alone() -> None:
    chunks = "Streaming 1,000 chunks, {} in an HTTP chunk, plain"
    encoding = {"json (1,000 bytes)": 100.0, "gzip (250 bytes)": 40.0}
    link = {"4 KB, json": 10.0, "4 KB, gzip": 9.0}
    tables = {
        chunks.format(1): table("µs", **{"httpx sync": 9.0}),
        chunks.format(8): table("µs", **{"httpx sync": 2.0}),
        "Encoding of 200 KB chat": table("µs", **encoding),
        "100 Mbit/s uplink, 4,000 bytes": table("µs", **link),
    }
    first, second, third = findings.findings({"tables": tables})
    assert "costs plain httpx 8 µs" in first
    assert second.endswith("(100 µs): gzip 40 % of the CPU time and 25 % of the size.")
    assert third.endswith("-10 % at 4 KB.")
    assert findings.findings({"tables": {}}) == []


@pytest.mark.parametrize(
    ("fast", "sentence", "name", "sync"),
    [
        ({}, "with aiohttp and joining", "cerebras-ext, aiohttp + coalesce", False),
        ({"fast": {"transport": "aiohttp"}}, "with aiohttp and joining", "cerebras-ext, aiohttp + coalesce", False),
        (
            {"fast": {"transport": "httptools"}},
            "with httptools and joining",
            "cerebras-ext, httptools + coalesce",
            True,
        ),
        ({"fast": {"transport": "httpx"}}, "with joining", "cerebras-ext, coalesce", False),
    ],
    ids=["old", "aiohttp", "httptools", "httpx"],
)
def test_the_options_for_speed_are_named_as_they_were_measured(
    fast: dict[str, Any], sentence: str, name: str, sync: bool
) -> None:
    title = "One async stream at 2,500 tokens/s, langchain"
    results = {"tables": {title: table("µs", **{"ours": 3.0, "ours fast": 2.0, "incumbent": 9.0})}, **fast}
    assert f" 2 {sentence}, " in findings.findings(results)[0]
    assert report.name_of(results, "ours fast") == name
    assert report.drawn(results, "ours fast sync") == sync

"""Makes the tables of docs/performance.md and its plots from recorded results: `python -m benchmarks.report [FILE]`.

The plots need matplotlib (extra `bench`).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.bench import ASYNC_ONLY
from benchmarks.findings import fast_transport, findings, http2_lines, number

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results" / "latest.json"
PAGE = ROOT / "docs" / "performance.md"
IMAGES = ROOT / "docs" / "images"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"

Results = dict[str, Any]
_NAMES = {
    "ours": "cerebras-ext", "floor": "the framework alone", "incumbent": "the incumbent", "core": "the core",
    "httpx": "plain httpx", "sdk": "official SDK",
}  # fmt: skip
_COLOURS = {"ours": "#0b6e4f", "ours fast": "#6bbf59", "incumbent": "#c84630", "floor": "#8d99ae", "empty": "#8d99ae"}
_COLOURS |= {"core": "#0b6e4f", "core fast": "#6bbf59", "httpx": "#457b9d", "sdk": "#e9a03b"}


def rows_of(results: Results, title: str) -> list[dict[str, Any]]:
    """Return the rows of a table, or none if it was not measured."""
    rows: list[dict[str, Any]] = results["tables"].get(title, {}).get("rows", [])
    return rows


def name_of(results: Results, key: str, otherwise: str = "") -> str:
    """Return the name of a candidate in the plots."""
    if key == "ours fast":
        return "cerebras-ext, " + " + ".join(filter(None, (fast_transport(results), "coalesce")))
    return _NAMES.get(key, otherwise or key)


def drawn(results: Results, name: str) -> bool:
    """Whether the plot of tokens shows a row: not the options for speed where they do not change the transport."""
    return name != "ours fast sync" or fast_transport(results) not in {"", *ASYNC_ONLY}


def target_table(results: Results) -> list[str]:
    """Return the table of targets as lines of Markdown."""
    lines = [
        "| figure | default | with the options for speed | must | excellent | |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for target in results["targets"]:
        sign = "≥" if target["at_least"] else "≤"
        best = "" if target["best"] is None else number(target["best"])
        lines.append(
            f"| {target['title']} | {number(target['value'])} ±{target['spread'] * 100:.0f} % | {best} "
            f"| {sign} {target['must']:g} | {sign} {target['excellent']:g} | {target['status']} |"
        )
    return lines


def measurement_tables(results: Results) -> list[str]:
    """Return all measurements as lines of Markdown."""
    lines: list[str] = []
    for title, table in results["tables"].items():
        lines += ["", f"**{title}** ({table['unit']})", ""]
        if "rows" in table:
            lines += ["| | CPU | spread | time |", "|---|---:|---:|---:|"]
            lines += [
                f"| {row['name']} | {number(row['median'])} | {row['spread'] * 100:.0f} % "
                f"| {number(row['wall_median'])} |"
                for row in table["rows"]
            ]
            continue
        counts = sorted({int(count) for rates in table["rates"].values() for count in rates})
        lines += ["| | " + " | ".join(f"{count}" for count in counts) + " |", "|---|" + "---:|" * len(counts)]
        for name, rates in table["rates"].items():
            found = [rates.get(str(count)) for count in counts]
            lines.append(f"| {name} | " + " | ".join("" if rate is None else number(rate) for rate in found) + " |")
    return lines


def machine_line(results: Results) -> str:
    """Return what the results were measured on."""
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    busy = f" The machine was busy before the run (load {load:.1f})." if (load := machine.get("load", 0)) > 0.5 else ""
    return (
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, {machine['system']}, "
        f"Python {machine['python']}; {versions}.{busy}"
    )


def page_part(results: Results) -> str:
    """Return the generated part of the page."""
    lines = [machine_line(results), "", "## Targets", "", *target_table(results)]
    for kind in ("missing", "failures"):
        lines += [f"\nNot measured: {name} ({reason})." for name, reason in results.get(kind, {}).items()]
    lines += ["", "## Findings", "", *(findings(results) or ["Not measured."])]
    lines += ["", "## HTTP/1.1 and HTTP/2", "", *http2_lines(results), "", "## All measurements"]
    return "\n".join([*lines, *measurement_tables(results)])


def put_into(page: str, part: str) -> str:
    """Return the page with its generated part replaced.

    Raises:
        ValueError: The page has no place for it.
    """
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page needs the lines {BEGIN} and {END}")
    return f"{head}{BEGIN}\n\n{part}\n\n{END}{tail}"


def _figure(width: float, height: float, columns: int = 1) -> Any:
    import matplotlib as mpl  # type: ignore[import-not-found,unused-ignore]

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "cerebras-ext", "font.size": 9, "axes.spines.top": False})
    mpl.rcParams.update({"axes.spines.right": False, "svg.fonttype": "none"})
    from matplotlib import pyplot

    return pyplot.subplots(1, columns, figsize=(width, height), squeeze=False, layout="constrained")


def _save(figure: Any, name: str) -> None:
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


def _bars(axes: Any, rows: list[tuple[str, str, float]], unit: str, title: str, *, log: bool = False) -> None:
    rows.reverse()
    bars = axes.barh([label for _, label, _ in rows], [value for *_, value in rows])
    for bar, (key, _, value) in zip(bars, rows, strict=True):
        bar.set_color(_COLOURS.get(key, "#8d99ae"))
        axes.text(value, bar.get_y() + bar.get_height() / 2, f" {number(value)}", va="center")
    if log:
        axes.set_xscale("log")
    axes.margins(x=0.2)
    axes.set_xlabel(unit)
    axes.set_title(title, loc="left")


def plot_tokens(results: Results) -> None:
    """Draw what a streamed token costs."""
    figure, axes = _figure(9.5, 3.2, 2)
    for axis, framework in zip(axes[0], ("langchain", "llamaindex"), strict=True):
        rows = []
        for row in rows_of(results, f"Streaming 1,000 chunks, 1 in an HTTP chunk, {framework}"):
            key, _, path = row["name"].rpartition(" ")
            if drawn(results, row["name"]):
                rows.append((key, f"{name_of(results, key)}, {path}", row["median"]))
        _bars(axis, rows, "µs of CPU a token", "LangChain" if framework == "langchain" else "LlamaIndex")
    _save(figure, "cost-a-token")


def plot_streams(results: Results) -> None:
    """Draw the tokens a second that arrive, against the number of concurrent streams."""
    table = results["tables"].get("Tokens a second by concurrent streams")
    if table is None:
        return
    figure, axes = _figure(9.5, 3.6, 2)
    for axis, framework in zip(axes[0], ("langchain", "llamaindex"), strict=True):
        for name, rates in table["rates"].items():
            owner, _, key = name.partition(" ")
            if owner != framework:
                continue
            points = sorted((int(count), rate) for count, rate in rates.items())
            axis.plot(*zip(*points, strict=True), marker="o", label=name_of(results, key), color=_COLOURS.get(key))
        counts = [1, 10, 100, 500]
        axis.plot(counts, [2500 * count for count in counts], color="#cccccc", linestyle=":", label="what is sent")
        axis.set(xscale="log", yscale="log", xlabel="concurrent streams of 2,500 tokens/s", ylabel="tokens/s")
        axis.set_title("LangChain" if framework == "langchain" else "LlamaIndex", loc="left")
        axis.legend(frameon=False)
    _save(figure, "concurrent-streams")


def plot_instances(results: Results) -> None:
    """Draw time and memory of one more instance."""
    figure, axes = _figure(9.5, 3.0, 2)
    for axis, (title, unit) in zip(
        axes[0], (("One more instance", "µs"), ("Memory of an instance", "KiB")), strict=True
    ):
        rows = [
            (row["name"], f"{framework}: {name_of(results, row['name'], 'an empty model')}", row["median"])
            for framework in ("langchain", "llamaindex")
            for row in rows_of(results, f"{title}, {framework}")
        ]
        _bars(axis, rows, unit, title, log=True)
    _save(figure, "instances")


def main(path: Path = RESULTS) -> None:
    """Write tables and plots."""
    results = json.loads(path.read_text(encoding="utf-8"))
    PAGE.write_text(put_into(PAGE.read_text(encoding="utf-8"), page_part(results)), encoding="utf-8")
    for plot in (plot_tokens, plot_streams, plot_instances):
        plot(results)


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:2]))

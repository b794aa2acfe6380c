"""The sentences of docs/performance.md that hold numbers: each is made from recorded results, or left out."""

from __future__ import annotations

from typing import Any

Results = dict[str, Any]
STREAM = "Streaming 1,000 chunks, {} in an HTTP chunk, {}"
HTTP2 = "HTTP/1.1 and HTTP/2 over TLS: "


_RECORDED_BEFORE = {"coalesce": True, "transport": "aiohttp"}
"""What was fast in results that do not say it."""


def fast_transport(results: Results) -> str:
    """Return the transport of the candidates with the options for speed; empty for the default one."""
    transport: str = results.get("fast", _RECORDED_BEFORE)["transport"]
    return "" if transport == "httpx" else transport


def number(value: float) -> str:
    """Return a number with three significant digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def value(results: Results, title: str, name: str, kind: str = "median") -> float | None:
    """Return the median of a candidate, by its name or what this begins with, if it was measured."""
    rows = results["tables"].get(title, {}).get("rows", ())
    found: float | None = next(
        (row[kind] for row in rows if row["name"] == name or row["name"].startswith(f"{name} (")), None
    )
    return found


def findings(results: Results) -> list[str]:
    """Return the sentences, as lines of a Markdown list."""
    made = [*_transport(results), *_encodings(results), *_link(results)]
    return [f"- {sentence}" for sentence in made]


def _transport(results: Results) -> list[str]:
    made = []
    plain, grouped = (value(results, STREAM.format(size, "plain"), "httpx sync") for size in (1, 8))
    if plain and grouped:
        made.append(
            f"An HTTP chunk more costs plain httpx {number((plain - grouped) * 8 / 7)} µs, sync (from streams with one "
            "and with eight events in an HTTP chunk); nothing that stands on it can cost less."
        )
    options = " and ".join(filter(None, (fast_transport(results), "joining")))
    for framework, name in (("langchain", "LangChain"), ("llamaindex", "LlamaIndex")):
        title = f"One async stream at 2,500 tokens/s, {framework}"
        ours, fast, theirs = (value(results, title, key) for key in ("ours", "ours fast", "incumbent"))
        if ours and fast and theirs:
            made.append(
                f"{name}, one async stream at 2,500 tokens/s: {number(ours)} µs a token by default, {number(fast)} "
                f"with {options}, {number(theirs)} in the incumbent."
            )
    return made


def _encodings(results: Results) -> list[str]:
    made = []
    for subject in ("200 KB chat", "50,000 token ids"):
        title = f"Encoding of {subject}"
        rows = results["tables"].get(title, {}).get("rows", ())
        sizes = {row["name"].split(" (")[0]: row["name"].split(" (")[1].removesuffix(" bytes)") for row in rows}
        plain = value(results, title, "json")
        if not plain:
            continue
        parts = [
            f"{name} {number((value(results, title, name) or 0) / plain * 100)} % of the CPU time and "
            f"{int(size.replace(',', '')) / int(sizes['json'].replace(',', '')) * 100:.0f} % of the size"
            for name, size in sizes.items()
            if name != "json"
        ]
        made.append(f"Encoding {subject}, against plain JSON ({number(plain)} µs): {'; '.join(parts)}.")
    return made


def _link(results: Results) -> list[str]:
    parts = []
    for size in (2_000, 4_000, 8_000, 16_000, 64_000, 200_000):
        title = f"100 Mbit/s uplink, {size:,} bytes"
        json, gzip = (value(results, title, f"{size // 1000} KB, {key}", "wall_median") for key in ("json", "gzip"))
        if json and gzip:
            parts.append(f"{(gzip / json - 1) * 100:+.0f} % at {size // 1000} KB")
    return [f"Time of a call over an uplink of 100 Mbit/s, gzip against plain JSON: {', '.join(parts)}."] * bool(parts)


def http2_lines(results: Results) -> list[str]:
    """Return what HTTP/2 costs as lines of Markdown: its CPU time over that of HTTP/1.1, from the same server."""
    lines = ["| | HTTP/1.1 | HTTP/2 | HTTP/2 over HTTP/1.1 | HTTP/1.1 by aiohttp |", "|---|---:|---:|---:|---:|"]
    for title, table in results["tables"].items():
        if not title.startswith(HTTP2):
            continue
        cpu = {row["name"]: row["median"] for row in table["rows"]}
        for path in ("", " sync", " async"):
            old, new = cpu.get(f"HTTP/1.1{path}"), cpu.get(f"HTTP/2{path}")
            if old is None or new is None:
                continue
            other = None if path == " sync" else cpu.get(f"HTTP/1.1, aiohttp{path}")
            label = title.removeprefix(HTTP2) + (path and "," + path)
            lines.append(
                f"| {label} ({table['unit']}) | {number(old)} | {number(new)} | {number(new / old)} "
                f"| {'' if other is None else number(other)} |"
            )
    return lines if len(lines) > 2 else ["Not measured."]

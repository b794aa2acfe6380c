"""The targets: each is a ratio (or a number) out of one run, with a bound that must hold and one that is wished."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """A bound for one figure. `at_least` turns the bounds round."""

    key: str
    title: str
    must: float
    excellent: float
    at_least: bool = False

    def meets(self, value: float, bound: float) -> bool:
        """Whether a value keeps a bound; what could not be measured does not."""
        if math.isnan(value):
            return False
        return value >= bound if self.at_least else value <= bound


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured for a target.

    Attributes:
        value: With the defaults.
        spread: Distance of the quartiles as a share of the median.
        best: With the options that are there for speed (httptools, joining, MessagePack), where these were measured.
    """

    value: float
    spread: float = 0.0
    best: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one target. "must" is about the defaults; "excellent" may need the options."""

    target: Target
    figure: Figure

    @property
    def status(self) -> str:
        """`excellent`, `met` or `missed`."""
        value, best = self.figure.value, self.figure.best
        if not self.target.meets(value, self.target.must):
            return "missed"
        reached = [value] if best is None else [value, best]
        return "excellent" if any(self.target.meets(one, self.target.excellent) for one in reached) else "met"

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON object for the results."""
        return {**asdict(self.target), **asdict(self.figure), "status": self.status}

    def __str__(self) -> str:
        sign = ">=" if self.target.at_least else "<="
        best = "" if self.figure.best is None else f"{self.figure.best:8.3f}"
        return (
            f"{self.status:9}  {self.target.title:74} {self.figure.value:8.3f} ±{self.figure.spread * 100:3.0f} % "
            f"{best:8} (must {sign} {self.target.must:g}, excellent {sign} {self.target.excellent:g})"
        )


def _pair(key: str, title: str, must: float, excellent: float, *parts: str, at_least: bool = False) -> list[Target]:
    return [
        Target(f"{key}.{part}" if part else key, title.format(part), must, excellent, at_least)
        for part in parts or ("",)
    ]


_BOTH = ("langchain", "llamaindex")
_PATHS = ("sync", "async")

TARGETS: tuple[Target, ...] = (
    *_pair(
        "stream.k1.langchain", "LangChain {} stream over the framework's floor, one event a chunk", 2.6, 1.2, *_PATHS
    ),
    *_pair("stream.k8.langchain", "LangChain {} stream over the floor, eight events a chunk", 1.8, 1.1, *_PATHS),
    *_pair("stream.k1.llamaindex", "LlamaIndex {} stream over the floor, one event a chunk", 2.3, 1.25, *_PATHS),
    *_pair("incumbent.k1.langchain", "LangChain {} stream over the incumbent, one event a chunk", 0.22, 0.12, *_PATHS),
    *_pair(
        "incumbent.k1.llamaindex", "LlamaIndex {} stream over the incumbent, one event a chunk", 0.22, 0.12, *_PATHS
    ),
    *_pair("incumbent.p2500", "{} async stream at 2,500 tokens/s over the incumbent", 0.55, 0.22, *_BOTH),
    *_pair("demand.10", "{}: share of the demand of 10 streams at 2,500 tokens/s", 0.80, 0.93, *_BOTH, at_least=True),
    Target("demand.100.langchain", "LangChain: tokens/s of 100 such streams over the incumbent", 3.5, 25, True),
    Target("demand.100.llamaindex", "LlamaIndex: tokens/s of 100 such streams over the incumbent", 3, 7.5, True),
    Target(
        "growth.langchain", "LangChain: rise of a chunk's cost from 1,000 to 10,000 over the floor's rise", 1.1, 1.0
    ),
    *_pair("import", "import of the {} adapter over framework and httpx", 1.10, 1.05, *_BOTH),
    *_pair("instance", "{}: second and later instance over an empty model with 30 fields", 3, 1.5, *_BOTH),
    Target("ssl", "TLS contexts a process for one configuration", 1, 1),
    *_pair("call.sync", "{}: one sync call over a bare httpx post", 1.7, 1.0, *_BOTH),
    *_pair("call.async", "{}: one async call over a bare httpx post", 1.6, 0.8, *_BOTH),
    *_pair("concurrent.100", "{}: async call at 100 concurrent over that at 10", 1.3, 1.1, *_BOTH),
    *_pair("concurrent.500", "{}: async call at 500 concurrent over that at 10", 1.6, 1.1, *_BOTH),
    *_pair("history.convert", "{}: conversion of a 200-message tool history over hand-written", 1.3, 1.1, *_BOTH),
    *_pair("history.call", "{}: call with that history over the incumbent", 0.06, 0.04, *_BOTH),
    *_pair("ids", "{}: 50,000 token ids to completions over bare httpx with json", 1.1, 0.25, *_BOTH),
    *_pair("memory", "{}: MB that the process grows from call 200 to call 10,000", 1.0, 1.0, *_BOTH),
    *_pair("tools.incumbent", "{}: tool-argument deltas over the incumbent", 0.33, 0.15, *_BOTH),
    *_pair("tools.linear", "{}: a tool-argument delta at 3,000 over that at 300", 1.3, 1.1, *_BOTH),
)


def judge(figures: dict[str, Figure]) -> list[Verdict]:
    """Return a verdict for each target that was measured, in the order of the table."""
    return [Verdict(target, figures[target.key]) for target in TARGETS if target.key in figures]


def missed(verdicts: list[Verdict]) -> list[Verdict]:
    """Return those whose "must" does not hold."""
    return [verdict for verdict in verdicts if verdict.status == "missed"]

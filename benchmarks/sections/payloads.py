"""Large requests: a 200 KB chat, 50,000 token ids, and the encodings over a slow link."""

from __future__ import annotations

import random
from importlib.util import find_spec
from typing import Any

from benchmarks.bench import Bench, fast_options, sync_and_async
from benchmarks.candidates import MODEL
from benchmarks.measure import Candidate, Sample
from benchmarks.scenarios import Scenario
from cerebras_ext.encoding import encode_body

IDS = 50_000


def text(size: int) -> str:
    """Return English-like text of about `size` bytes; it compresses as prose does, not as repetition."""
    chooser = random.Random(7)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    weights = [1 / (rank + 1) for rank in range(len(letters))]
    words = ["".join(chooser.choices(letters, weights, k=chooser.randint(1, 9))) for _ in range(4000)]
    ranks = [1 / (rank + 3) for rank in range(len(words))]
    made, length = [], 0
    while length < size:
        word = chooser.choices(words, ranks)[0]
        made.append(word)
        length += len(word) + 1
    return " ".join(made)


def chat_body(size: int) -> dict[str, Any]:
    """Return a chat request of about `size` bytes, as a conversation with messages of about 2 KB."""
    whole = text(size)
    pieces = [whole[at : at + 2000] for at in range(0, len(whole), 2000)]
    roles = ("user", "assistant")
    return {"model": MODEL, "messages": [{"role": roles[i % 2], "content": piece} for i, piece in enumerate(pieces)]}


def ids_body() -> dict[str, Any]:
    """Return a completions request of 50,000 token ids."""
    chooser = random.Random(7)
    return {"model": MODEL, "prompt": [min(int(chooser.paretovariate(0.3)), 200_000) for _ in range(IDS)]}


def payloads() -> list[str]:
    """Return the encodings that this environment can make."""
    names = ["json", "gzip"]
    return [*names, "msgpack", "msgpack+gzip"] if find_spec("ormsgpack") else names


def encodings(bench: Bench) -> None:
    """CPU and size of a body in each encoding (without a framework), and of a whole call with it."""
    if bench.plain:
        _bodies(bench)
    messages = chat_body(200_000)["messages"]
    scenario = Scenario(tokens=20)
    candidates = sync_and_async(bench.httpx(scenario, messages=messages), "call", 5)
    if bench.plain:
        for payload in payloads():
            made = bench.ours(scenario, messages=messages, options={"payload": payload})
            candidates += sync_and_async({f"core, {payload}": subject for subject in made.values()}, "call", 5)
    others = bench.subjects(scenario, ("core", "httpx", "floor"), messages=messages)
    candidates += sync_and_async(others, "call", 5)
    bench.compare(f"One call of a 200 KB chat, {bench.group}", "µs a call", candidates, 7)


def _bodies(bench: Bench) -> None:
    for name, body in (("200 KB chat", chat_body(200_000)), ("50,000 token ids", ids_body())):
        candidates = [
            Candidate(f"{payload} ({len(encode_body(body, payload)[0]):,} bytes)", _encode(body, payload))  # type: ignore[arg-type]
            for payload in payloads()
        ]
        bench.compare(f"Encoding of {name}", "µs", candidates, 9)


def _encode(body: dict[str, Any], payload: Any) -> Any:
    def work() -> int:
        for _ in range(5):
            encode_body(body, payload)
        return 5

    return work


def token_ids(bench: Bench) -> None:
    """A completions call with 50,000 token ids."""
    scenario = Scenario(tokens=20)
    prompt = ids_body()["prompt"]
    subjects = bench.httpx(scenario, prompt=prompt) | bench.ours(scenario, prompt=prompt)
    if find_spec("ormsgpack"):
        for name, options in (("msgpack", {}), ("fast", fast_options())):
            made = bench.ours(scenario, prompt=prompt, options={"payload": "msgpack", **options})
            subjects |= {f"{key} {name}": subject for key, subject in made.items()}
    title = f"One call of {IDS:,} token ids, {bench.group}"
    samples = bench.compare(title, "µs a call", sync_and_async(subjects, "call", 3), 9)
    bench.ratio(f"ids.{bench.group}", samples, "ours sync", "httpx sync", best="ours fast sync")


def link(bench: Bench) -> None:
    """Time to the answer over an uplink of 100 Mbit/s, by size of the request and encoding: what `auto` is based on."""
    scenario = Scenario(tokens=20, uplink=100)
    samples: list[Sample] = []
    for size in (1_000, 2_000, 4_000, 8_000, 16_000, 64_000, 200_000):
        messages = chat_body(size)["messages"]
        candidates = []
        for payload in payloads():
            subjects = bench.ours(scenario, messages=messages, options={"payload": payload})
            candidates += [Candidate(f"{size // 1000} KB, {payload}", one.call) for one in subjects.values()]
        samples += bench.compare(f"100 Mbit/s uplink, {size:,} bytes", "µs a call", candidates, 31).values()

"""The harness of the benchmarks: statistics, turns, targets, and what the loopback server sends."""

from __future__ import annotations

import json
import math
import urllib.request
from functools import partial
from typing import Any

import pytest

pytest.importorskip("benchmarks", reason="the benchmarks are not part of the wheel")

from benchmarks import measure, report, scenarios, tls_server
from benchmarks.measure import Candidate, Sample, interleave, ratio, spread
from benchmarks.scenarios import CHAT_PATH, TEXT_PATH, Scenario, answer, read_path, settle, stream_body, stream_events
from benchmarks.server import Connection, Server, choose
from benchmarks.targets import TARGETS, Figure, Target, Verdict, judge, missed
from cerebras_ext import Client
from cerebras_ext.types import ChatChunk, ChatResponse, CompletionResponse


def test_spread_is_the_distance_of_the_quartiles_as_a_share_of_the_median() -> None:
    assert spread([8, 9, 10, 11, 12]) == pytest.approx(0.2)
    assert spread([1.0, 2.0]) == 0.0
    assert spread([0.0, 0.0, 0.0]) == 0.0


def test_ratio_is_formed_round_by_round() -> None:
    ours, theirs = Sample("ours", [2.0, 20.0, 3.0]), Sample("theirs", [1.0, 10.0, 1.0])
    middle, wide = ratio(ours, theirs)
    assert (middle, wide) == (2.0, 0.25)
    assert math.isnan(ratio(Sample("a", [1.0]), Sample("b", [0.0]))[0])


def test_candidates_take_turns_and_each_round_turns_round(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def note(name: str) -> int:
        order.append(name)
        return 1

    monkeypatch.setattr(measure, "measure", lambda work: (float(work()), 1.0))
    candidates = [Candidate(name, partial(note, name)) for name in "abc"]
    samples = interleave(candidates, rounds=2)
    assert "".join(order) == "abc" + "abc" + "cba"
    assert samples["b"].cpu == [1.0, 1.0]


def _raise() -> int:
    raise ConnectionError("refused")


def test_a_candidate_that_raises_leaves_the_run_and_is_named() -> None:
    failed: dict[str, str] = {}
    samples = interleave([Candidate("bad", _raise), Candidate("good", lambda: 1)], rounds=2, failed=failed)
    assert failed == {"bad": "ConnectionError: refused"}
    assert list(samples) == ["good"]
    assert len(samples["good"].cpu) == 2


async def test_the_server_with_tls_sends_each_event_apart_and_refuses_the_wrong_protocol() -> None:
    async def ask(path: str, version: str) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b'{"stream":true}'}

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        await tls_server.app({"type": "http", "path": path, "http_version": version}, receive, send)
        return sent

    path = "/h2" + Scenario(tokens=5).path + CHAT_PATH
    start, *parts, end = await ask(path, "2")
    assert (start["status"], end["body"]) == (200, b"")
    assert [part["body"].count(b"data: ") for part in parts] == [1] * 8  # role, five words, the end, [DONE]
    assert (await ask(path, "1.1"))[0]["status"] == 400


def test_a_measurement_is_divided_by_its_units() -> None:
    def work() -> int:
        sum(range(200_000))
        return 1000

    cpu, wall = measure.measure(work)
    assert 0 < cpu < 1e6 / 1000
    assert wall > 0


LOW, HIGH = Target("low", "low", 2.0, 1.0), Target("high", "high", 0.8, 0.9, at_least=True)


@pytest.mark.parametrize(
    ("target", "figure", "status"),
    [
        (LOW, Figure(1.0), "excellent"),
        (LOW, Figure(1.5), "met"),
        (LOW, Figure(1.5, best=0.9), "excellent"),
        (LOW, Figure(2.1, best=0.9), "missed"),
        (LOW, Figure(math.nan), "missed"),
        (HIGH, Figure(0.95), "excellent"),
        (HIGH, Figure(0.8), "met"),
        (HIGH, Figure(0.7, best=0.99), "missed"),
    ],
)
def test_must_is_about_the_defaults_and_excellent_may_need_options(target: Target, figure: Figure, status: str) -> None:
    assert Verdict(target, figure).status == status


def test_missed_targets_are_named() -> None:
    verdicts = judge({"ssl": Figure(2.0), "instance.langchain": Figure(1.0)})
    assert [verdict.target.key for verdict in verdicts] == ["instance.langchain", "ssl"]
    assert [verdict.target.key for verdict in missed(verdicts)] == ["ssl"]
    assert "TLS contexts" in str(verdicts[1])


def test_targets_have_keys_of_their_own_and_bounds_in_order() -> None:
    assert len({target.key for target in TARGETS}) == len(TARGETS)
    for target in TARGETS:
        assert (target.excellent >= target.must) if target.at_least else (target.excellent <= target.must)


def test_a_scenario_is_read_from_its_path() -> None:
    scenario = Scenario("tools", 300, 8, 2500, 100)
    assert read_path(scenario.path + CHAT_PATH) == (scenario, CHAT_PATH)
    with pytest.raises(ValueError, match="not a scenario"):
        read_path(CHAT_PATH)


@pytest.mark.parametrize("endpoint", [CHAT_PATH, TEXT_PATH])
def test_streams_have_the_shape_of_the_service(endpoint: str) -> None:
    events = list(stream_events(Scenario(tokens=5), endpoint))
    model: Any = ChatChunk if endpoint == CHAT_PATH else CompletionResponse
    for item in events:
        parsed = model.model_validate(item)
        assert not parsed.model_extra
        assert not parsed.choices[0].model_extra
    assert events[-1]["choices"][0]["finish_reason"] == "stop"
    assert events[-1]["usage"]["completion_tokens"] == 5


def test_an_answer_has_the_words_of_its_stream() -> None:
    whole = ChatResponse.model_validate(answer(Scenario(tokens=7), CHAT_PATH))
    pieces = [item["choices"][0]["delta"].get("content", "") for item in stream_events(Scenario(tokens=7), CHAT_PATH)]
    assert whole.text == "".join(pieces) != ""


def test_http_chunks_end_where_the_offsets_say() -> None:
    body = stream_body(Scenario(tokens=9, events=4), CHAT_PATH)
    assert len(body.offsets) == 3  # role, nine words, the end and [DONE], in fours
    assert body.offsets[-1] == len(body.data)
    for end in body.offsets[:-1]:
        assert body.data[:end].endswith(b"}\n\n\r\n")
    assert body.data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_an_agent_is_answered_with_a_tool_call_first() -> None:
    agent = Scenario("agent", 5)
    assert settle(agent, b'{"messages":[{"role":"user"}]}').kind == "tools"
    assert settle(agent, b'{"messages":[{"role": "tool"}]}').kind == "text"


def test_a_paced_response_sends_what_is_due() -> None:
    sent: list[bytes] = []

    class Socket:
        def send(self, data: memoryview) -> int:
            sent.append(bytes(data))
            return len(data)

    socket: Any = Socket()
    connection = Connection(socket)
    path = Scenario(tokens=10, rate=100).path + CHAT_PATH
    connection.body, scenario = choose(f"POST {path} HTTP/1.1".encode(), b'{"stream":true}')
    connection.rate, connection.begin = scenario.rate, 50.0
    for now in (49.9, 50.0, 50.005, 50.0301, 99.0):
        connection.send(now)
    assert [piece.count(b"data: ") for piece in sent] == [1, 3, 9]
    assert not connection.busy


def test_server_answers_a_client_of_ours() -> None:
    with Server() as server:
        client = Client(api_key="k", base_url=server.url(Scenario("mixed", 6)))
        stream = client.stream_chat(model="m", messages=[{"role": "user", "content": "q"}])
        assert len(list(stream)) == 7
        assert stream.response.reasoning == " alpha beta"
        assert (
            client.complete(model="m", prompt="q").text == answer(Scenario(tokens=6), TEXT_PATH)["choices"][0]["text"]
        )
        with urllib.request.urlopen(server.url(Scenario()) + "/v1/tcp_warming") as response:
            assert response.status == 200


def test_results_become_a_page() -> None:
    sample = Sample("ours sync", [1234.5, 1234.5, 1234.5], [0.5, 0.5, 0.5])
    results = {
        "machine": {
            "date": "2026-11-30", "processor": "P", "cores": 2, "system": "Linux", "python": "3.11",
            "versions": {"httpx": "1"},
        },
        "targets": [Verdict(LOW, Figure(1.5, 0.1, 0.9)).to_dict()],
        "tables": {
            "One call": {"unit": "µs", "rows": [sample.to_dict()]},
            "Rates": {"unit": "tokens/s", "rates": {"ours": {"10": 25_000.0}}},
        },
    }  # fmt: skip
    results = json.loads(json.dumps(results))
    page = report.put_into(f"a\n{report.BEGIN}\nold\n{report.END}\nb", report.page_part(results))
    assert "old" not in page
    assert "| low | 1.5 ±10 % | 0.9 | ≤ 2 | ≤ 1 | excellent |" in page
    assert "| ours sync | 1,234 | 0 % | 0.5 |" in page
    assert "| ours | 25,000 |" in page
    assert page.startswith("a\n")
    assert page.endswith("\nb")
    with pytest.raises(ValueError, match="needs the lines"):
        report.put_into("no place", "x")


def test_bodies_are_made_once() -> None:
    assert scenarios.stream_body(Scenario(tokens=3), CHAT_PATH) is scenarios.stream_body(Scenario(tokens=3), CHAT_PATH)

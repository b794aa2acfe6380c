"""Scripted deviations."""

from __future__ import annotations

import concurrent.futures
import socket
import time
from typing import Any

import httpx
import pytest

from cerebras_ext.emulator import Emulator, Fault
from tests.emulator.support import CHAT, COMPLETIONS, HEADERS, chat_body, events, get, post

STREAM = chat_body("say 'one two three four'", stream=True)
ERROR = {
    "status_code": 500,
    "error": {
        "message": "Encountered a server error, please try again.",
        "type": "server_error",
        "param": "",
        "code": "",
        "id": "",
    },
}


def chunks(emulator: Emulator, body: Any = STREAM) -> list[bytes]:
    """Return the body's network chunks as far as they come."""
    received: list[bytes] = []
    with httpx.stream(
        "POST", emulator.base_url + CHAT, json=body, headers=HEADERS, trust_env=False, verify=False
    ) as answer:
        try:
            received.extend(answer.iter_raw())
        except httpx.RemoteProtocolError:
            received.append(b"<cut>")
        except httpx.ReadError:
            received.append(b"<reset>")
    return received


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "wrong_api_format"), (401, "wrong_api_key"), (402, "payment_required"), (404, "model_not_found"),
     (429, "request_quota_exceeded"), (500, None), (503, None), (418, None)],
)  # fmt: skip
def test_fail_answers_with_the_services_body(emu: Emulator, status: int, code: str | None) -> None:
    emu.fail(status)
    answer = post(emu, CHAT, STREAM)
    assert (answer.status_code, answer.json().get("code")) == (status, code)
    assert post(emu, CHAT, STREAM).status_code == 200


def test_fail_with_body_headers_times_and_path(emu: Emulator) -> None:
    emu.fail(429, body={"a": 1}, headers={"Retry-After-Ms": "660"}, times=2, path="*/chat/*")
    assert get(emu, "/v1/models").status_code == 200
    for _ in range(2):
        answer = post(emu, CHAT, STREAM)
        assert (answer.status_code, answer.json(), answer.headers["retry-after-ms"]) == (429, {"a": 1}, "660")
    assert post(emu, CHAT, STREAM).status_code == 200


def test_times_none_lasts_until_reset(emu: Emulator) -> None:
    emu.fail(503, times=None)
    assert {post(emu, CHAT, STREAM).status_code for _ in range(3)} == {503}
    emu.reset()
    assert post(emu, CHAT, STREAM).status_code == 200
    assert len(emu.requests) == 1


def test_bodies_of_every_kind(emu: Emulator) -> None:
    emu.fail(502, body="<html>bad gateway</html>")
    emu.fail(500, body=b"\xff\xfe")
    emu.fail(500, body="")
    html, binary, empty = (post(emu, CHAT, STREAM) for _ in range(3))
    assert html.headers["content-type"].startswith("text/html")
    assert binary.content == b"\xff\xfe"
    assert empty.content == b""


def test_canned_answers(emu: Emulator) -> None:
    emu.respond({"id": "mine"})
    emu.respond(stream="data: one\r\n\r\ndata: [DONE]\n\n")
    emu.respond(stream=[b"data: {", b'"a":1}\n\n', {"b": 2}])
    assert post(emu, CHAT, STREAM).json() == {"id": "mine"}
    raw = post(emu, CHAT, STREAM)
    assert raw.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert raw.text == "data: one\r\n\r\ndata: [DONE]\n\n"
    assert events(post(emu, CHAT, STREAM).text) == [{"a": 1}, {"b": 2}]


def test_headers_can_be_taken_away(emu: Emulator) -> None:
    emu.script(Fault(headers={"x-request-id": None, "x-extra": "1"}))
    headers = post(emu, CHAT, STREAM).headers
    assert "x-request-id" not in headers
    assert headers["x-extra"] == "1"


@pytest.mark.parametrize(("cut", "mark"), [("close", [b"<cut>"]), ("reset", [b"<reset>"]), ("complete", [])])
def test_cut_after_chunks(emu: Emulator, cut: Any, mark: list[bytes]) -> None:
    whole = post(emu, CHAT, STREAM).content
    emu.script(Fault(cut_after_chunks=2, cut=cut))
    received = chunks(emu)
    ending = [part for part in received if part.startswith(b"<")]
    body = b"".join(part for part in received if not part.startswith(b"<"))
    assert ending == mark
    assert body.count(b"\n\n") == 2
    assert _choices(whole)[:2] == _choices(body)


def _choices(content: bytes) -> list[Any]:
    return [event["choices"] for event in events(content.decode())]


@pytest.mark.parametrize("size", [0, 1, 100, 300])
def test_cut_after_bytes(emu: Emulator, size: int) -> None:
    emu.script(Fault(cut_after_bytes=size))
    received = chunks(emu)
    assert received[-1] == b"<cut>"
    assert sum(map(len, received[:-1])) == size


def test_a_whole_answer_can_be_cut(emu: Emulator) -> None:
    emu.script(Fault(cut_after_bytes=10))
    with pytest.raises(httpx.RemoteProtocolError):
        post(emu, CHAT, chat_body("hello"))


def test_error_event_after_chunks(emu: Emulator) -> None:
    emu.script(Fault(error_after_chunks=1), Fault(error_after_chunks=0, error={"error": "boom"}))
    first = events(post(emu, CHAT, STREAM).text)
    assert first[1:] == [ERROR]
    assert events(post(emu, CHAT, STREAM).text) == [{"error": "boom"}]


def test_error_event_leaves_whole_answers_alone(emu: Emulator) -> None:
    emu.script(Fault(error_after_chunks=0))
    assert "choices" in post(emu, CHAT, chat_body("hello")).json()


def test_split_at_positions(emu: Emulator) -> None:
    emu.script(Fault(split_at=[3, 10, 9999999], path=CHAT))
    received = chunks(emu)
    assert [len(part) for part in received[:2]] == [3, 7]
    assert len(received) == 3


def test_delay_and_chunk_delay(emu: Emulator) -> None:
    emu.script(Fault(delay=0.05), Fault(chunk_delay=0.01, cut_after_chunks=5, cut="complete"))
    for least in (0.05, 0.05):
        start = time.monotonic()
        chunks(emu)
        assert time.monotonic() - start >= least


def test_stall_until_released(emu: Emulator) -> None:
    emu.script(Fault(stall_after_chunks=2), Fault(stall_before_headers=True))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        answers = [pool.submit(post, emu, CHAT, STREAM) for _ in range(2)]
        emu.wait_until(lambda emulator: emulator.stalled_replies == 2)
        assert not any(answer.done() for answer in answers)
        emu.release()
        assert [answer.result(10).status_code for answer in answers] == [200, 200]
    assert emu.stalled_replies == 0


def test_stalled_before_the_chunk_that_it_names(emu: Emulator) -> None:
    emu.script(Fault(stall_after_chunks=1))
    with httpx.stream(
        "POST", emu.base_url + CHAT, json=STREAM, headers=HEADERS, trust_env=False, verify=False
    ) as answer:
        lines = answer.iter_lines()
        assert "assistant" in next(lines)
        emu.wait_until(lambda emulator: emulator.stalled_replies == 1)
    emu.wait_until(lambda emulator: emulator.connections_open == 0 and emulator.stalled_replies == 0)


def test_stop_ends_stalled_replies() -> None:
    with Emulator() as emulator:
        emulator.script(Fault(stall_before_headers=True))
        connection = socket.create_connection(("127.0.0.1", emulator.port), timeout=10)
        connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        emulator.wait_until(lambda emulator: emulator.stalled_replies == 1)
    try:
        assert connection.recv(100) == b""
    except ConnectionResetError:
        pass
    finally:
        connection.close()


def test_wait_until_gives_up(emu: Emulator) -> None:
    with pytest.raises(TimeoutError):
        emu.wait_until(lambda emulator: False, timeout=0.01)


def test_pace_spreads_a_stream() -> None:
    with Emulator(pace=0.01) as emulator:
        start = time.monotonic()
        number = len(events(post(emulator, CHAT, STREAM).text))
        assert time.monotonic() - start >= 0.01 * number
        assert post(emulator, COMPLETIONS, {"model": "gpt-oss-120b", "prompt": "x"}).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cut", "complte"), ("cut", None), ("delay", "a"), ("delay", -1), ("chunk_delay", float("nan")),
        ("times", 0), ("times", -1), ("times", "2"), ("times", True), ("status", "429"), ("status", 99),
        ("status", 600), ("status", True), ("stall_after_chunks", -1), ("cut_after_bytes", 1.5),
        ("cut_after_chunks", "1"), ("error_after_chunks", True), ("path", None), ("headers", None),
        ("headers", [("a", "b")]), ("split_at", "12"), ("split_at", [1.5]),
    ],
)  # fmt: skip
def test_a_fault_without_meaning_is_refused_at_once_by_its_name(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}: must be"):
        Fault(**{name: value})


@pytest.mark.parametrize("status", [299, 200, "x", 600, None])
def test_fail_takes_refusals_only(emu: Emulator, status: Any) -> None:
    with pytest.raises(ValueError, match=r"^status: must be"):
        emu.fail(status)
    assert post(emu, CHAT, chat_body("hello")).status_code == 200


def test_fail_takes_no_empty_number_of_times(emu: Emulator) -> None:
    with pytest.raises(ValueError, match=r"^times: must be"):
        emu.fail(429, times=0)
    with pytest.raises(ValueError, match=r"^times: must be"):
        emu.respond({}, times=0)


def test_script_takes_faults_only(emu: Emulator) -> None:
    wrong: Any = {"status": 429}
    with pytest.raises(TypeError, match=r"script: takes Fault\(\.\.\.\)"):
        emu.script(Fault(status=429), wrong)
    assert post(emu, CHAT, chat_body("hello")).status_code == 200, "nothing of it was queued"

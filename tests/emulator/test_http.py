"""The HTTP server itself: framing, connections, starting and stopping."""

from __future__ import annotations

import concurrent.futures
import gzip
import json
import socket
import subprocess
import sys
import threading
import tracemalloc

import httpx
import pytest

from cerebras_ext.emulator import Emulator
from tests.emulator.support import CHAT, HEADERS, MODEL, chat_body, get, post


def exchange(emulator: Emulator, *pieces: bytes) -> bytes:
    """Send raw bytes and return all that comes until the server closes."""
    with socket.create_connection(("127.0.0.1", emulator.port), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        received = b""
        while part := connection.recv(65536):
            received += part
        return received


def raw(body: bytes, *headers: str, version: str = "1.1") -> bytes:
    lines = [f"POST {CHAT} HTTP/{version}", "Host: x", "Authorization: Bearer k", "Content-Type: application/json"]
    lines += headers or (f"Content-Length: {len(body)}",)
    return "\r\n".join([*lines, "", ""]).encode() + body


BODY = json.dumps(chat_body("hello")).encode()


def test_two_requests_share_a_connection(emu: Emulator) -> None:
    with httpx.Client(base_url=emu.base_url, headers=HEADERS, trust_env=False, verify=False) as client:
        assert [client.post(CHAT, json=chat_body("hello")).status_code for _ in range(2)] == [200, 200]
        assert emu.connections_opened == 1
    emu.wait_until(lambda emulator: emulator.connections_open == 0)


def test_requests_sent_at_once_are_answered_in_order(emu: Emulator) -> None:
    second = raw(BODY, f"Content-Length: {len(BODY)}", "Connection: close")
    assert exchange(emu, raw(BODY) + second).count(b"HTTP/1.1 200 OK") == 2


def test_chunked_request_bodies_are_read(emu: Emulator) -> None:
    chunks = b"5\r\n" + BODY[:5] + b"\r\n%x;ext=1\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n0\r\nTrailer: x\r\n\r\n"
    head = raw(b"", "Transfer-Encoding: chunked", "Connection: close")
    assert b"200 OK" in exchange(emu, head, chunks)
    assert emu.requests[0].body == json.loads(BODY)


def test_a_body_that_arrives_byte_by_byte_is_read(emu: Emulator) -> None:
    whole = raw(BODY, f"Content-Length: {len(BODY)}", "Connection: close")
    assert b"200 OK" in exchange(emu, *(whole[index : index + 1] for index in range(len(whole))))


def test_expect_100_continue(emu: Emulator) -> None:
    head = raw(b"", f"Content-Length: {len(BODY)}", "Expect: 100-continue", "Connection: close")
    with socket.create_connection(("127.0.0.1", emu.port), timeout=10) as connection:
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        connection.sendall(BODY)
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "sent",
    [b"NONSENSE\r\n\r\n", raw(b"", "Content-Length: -1"), raw(b"", "bad header"), b"x" * 70_000],
    ids=["request line", "length", "header", "head too long"],
)
def test_what_is_not_http_is_refused(emu: Emulator, sent: bytes) -> None:
    assert exchange(emu, sent).startswith(b"HTTP/1.1 400")


def test_http_1_0_gets_no_chunks(emu: Emulator) -> None:
    received = exchange(emu, raw(BODY, f"Content-Length: {len(BODY)}", version="1.0"))
    assert b"transfer-encoding" not in received
    assert received.endswith(b"}")


def test_answers_and_streams_are_chunked_and_errors_are_not(emu: Emulator) -> None:
    assert post(emu, CHAT, chat_body("hello")).headers["transfer-encoding"] == "chunked"
    assert post(emu, CHAT, chat_body("hello", stream=True)).headers["transfer-encoding"] == "chunked"
    assert "content-length" in post(emu, CHAT, {}).headers


def test_models_warming_and_head(emu: Emulator) -> None:
    listed = get(emu, "/v1/models").json()
    assert listed["object"] == "list"
    assert listed["data"][0] == {"id": MODEL, "object": "model", "created": 0, "owned_by": "Cerebras"}
    assert get(emu, f"/v1/models/{MODEL}").json() == listed["data"][0]
    assert get(emu, "/v1/models/nothing").json()["code"] == "model_not_found"
    assert get(emu, "/v1/tcp_warming", headers={}).status_code == 200
    assert get(emu, "/public/v1/models", headers={}).json() == listed
    head = httpx.head(f"{emu.base_url}/v1/models", headers=HEADERS, trust_env=False, verify=False)
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", CHAT, 405), ("POST", "/v1/models", 405), ("GET", "/x", 404)]
)
def test_unknown_paths_and_methods(emu: Emulator, method: str, path: str, status: int) -> None:
    answer = httpx.request(method, emu.base_url + path, headers=HEADERS, trust_env=False, verify=False)
    assert answer.status_code == status
    assert answer.json()["message"]


def test_bodies_are_compressed_for_clients_that_offer_it(emu: Emulator) -> None:
    plain = post(emu, CHAT, chat_body("hello"), {"accept-encoding": "identity"})
    zipped = post(emu, CHAT, chat_body("hello"), {"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert zipped.headers["content-encoding"] == "gzip"
    assert zipped.json()["choices"] == plain.json()["choices"]
    refused = post(emu, CHAT, chat_body("hello") | {"model": "x" * 100}, {"accept-encoding": "gzip"})
    assert (refused.status_code, refused.headers["content-encoding"]) == (404, "gzip")
    assert refused.json()["code"] == "model_not_found"


def test_gzip_and_msgpack_bodies(emu: Emulator) -> None:
    ormsgpack = pytest.importorskip("ormsgpack")
    body = chat_body("hello")
    packed = {"content-type": "application/vnd.msgpack"}
    zipped = {"content-encoding": "gzip"}
    for content, headers in (
        (BODY, {}),
        (gzip.compress(BODY), zipped),
        (ormsgpack.packb(body), packed),
        (gzip.compress(ormsgpack.packb(body)), packed | zipped),
    ):
        assert post(emu, CHAT, content, headers).status_code == 200
    assert [request.encoding for request in emu.requests] == ["json", "gzip", "msgpack", "msgpack+gzip"]
    assert all(request.body == body for request in emu.requests)
    assert emu.requests[0].size == len(BODY)


def test_msgpack_without_its_library_is_refused_with_the_pip_command(
    emu: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ormsgpack", None)
    answer = post(emu, CHAT, b"\x80", {"content-type": "application/msgpack"})
    assert answer.status_code == 415
    assert "pip install" in answer.json()["message"]


def test_requests_hold_what_arrived_but_no_key(emu: Emulator) -> None:
    post(emu, CHAT + "?a=1", chat_body("hello"), {"queue_threshold": "500"})
    request = emu.requests[0]
    assert (request.method, request.path, request.query) == ("POST", CHAT, "a=1")
    assert request.headers["queue_threshold"] == "500"
    assert "test-key" not in repr(request)


def test_many_connections_at_once(emu: Emulator) -> None:
    with concurrent.futures.ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(lambda number: post(emu, CHAT, chat_body(f"say '{number}'")), range(200)))
    said = [answer.json()["choices"][0]["message"]["content"] for answer in answers]
    assert said == [str(number) for number in range(200)]


def test_answers_are_marked_and_equal_from_a_fresh_start() -> None:
    contents = []
    for _ in range(2):
        with Emulator(clock=lambda: 1_796_000_000.25) as emulator:
            answer = post(emulator, CHAT, chat_body("hello", stream=True))
            assert answer.headers["x-cerebras-ext-emulator"] == "1"
            contents.append(answer.content)
    assert contents[0] == contents[1]
    assert b"fp_emulator" in contents[0]


def test_several_at_once_and_nothing_left_after_stop() -> None:
    before = set(threading.enumerate())
    with Emulator() as first, Emulator() as second:
        assert first.port != second.port
        client = httpx.Client(headers=HEADERS, trust_env=False, verify=False)
        assert client.post(first.base_url + CHAT, json=chat_body("hello")).status_code == 200
        assert (len(first.requests), len(second.requests)) == (1, 0)
    assert set(threading.enumerate()) == before
    with pytest.raises(httpx.ConnectError):
        client.get(first.base_url)
    client.close()


def test_start_and_stop_without_a_with_block() -> None:
    emulator = Emulator().start()
    with pytest.raises(RuntimeError, match="runs already"):
        emulator.start()
    with pytest.raises(OSError, match="in use"):
        Emulator(emulator.port).start()
    port = emulator.port
    emulator.stop()
    emulator.stop()
    with emulator:  # again, on the same port
        assert emulator.port == port
        assert get(emulator, "/v1/models").status_code == 200


def test_command_line() -> None:
    command = [sys.executable, "-m", "cerebras_ext.emulator", "--port", "0", "--api-key", "right"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            url = next(word.rstrip(",") for word in line.split() if word.startswith("http"))
            wrong = httpx.get(f"{url}/v1/models", headers=HEADERS, trust_env=False, verify=False)
            right = httpx.get(
                f"{url}/v1/models", headers={"authorization": "Bearer right"}, trust_env=False, verify=False
            )
        finally:
            process.terminate()
    assert (wrong.status_code, right.status_code) == (401, 200)


def test_the_core_does_not_import_it() -> None:
    code = "import sys, cerebras_ext; sys.exit(any(name.startswith('cerebras_ext.emulator') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("length", ["-1", "\xb2", "9" * 5000, "1, 1", "0x5", ""])
def test_a_length_that_is_no_number_is_refused(emu: Emulator, length: str) -> None:
    sent = f"POST {CHAT} HTTP/1.1\r\ncontent-length: {length}\r\n\r\n".encode("latin-1")
    assert exchange(emu, sent).startswith(b"HTTP/1.1 400 ")


def test_a_small_body_that_unpacks_to_a_large_one_is_refused_before_it_fills_the_memory(emu: Emulator) -> None:
    bomb = gzip.compress(bytes(200 * 1024 * 1024), compresslevel=1)
    tracemalloc.start()
    try:
        assert post(emu, CHAT, bomb, {"content-encoding": "gzip"}).status_code == 413
        assert tracemalloc.get_traced_memory()[1] < 170 * 1024 * 1024
    finally:
        tracemalloc.stop()


def test_there_is_no_address_before_the_start() -> None:
    emulator = Emulator()
    for name in ("base_url", "port"):
        with pytest.raises(RuntimeError, match="start it"):
            getattr(emulator, name)
    with emulator:
        assert emulator.base_url.endswith(f":{emulator.port}")
    assert Emulator(8123).base_url == "http://127.0.0.1:8123"

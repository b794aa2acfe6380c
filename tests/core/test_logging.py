"""The logger `cerebras_ext`: silent by default, and without secrets or prompts when it speaks."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client, connections, errors
from tests.support import KEY, WAYS, Answer, Server, Way


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_debug_lines_tell_the_exchange_and_no_secret(
    server: Server, options: dict[str, Any], naps: list[float], caplog: pytest.LogCaptureFixture, way: Way
) -> None:
    server.script = [Answer((f'{{"message":"{KEY}"}}'.encode(),), 503), way.answer("secret answer")]
    with caplog.at_level(logging.DEBUG):
        way.ask({**options, "base_url": server.url.replace("http://", "http://user:pa55w0rd@")}, user="secret prompt")
    ours = [record.getMessage() for record in caplog.records if record.name == "cerebras_ext"]
    assert any(f"POST http://***@{server.url[7:]}{way.path} -> 503 in " in line for line in ours)
    assert any("-> 200 in " in line for line in ours)
    assert any("attempt 1 failed (ServerError), next in " in line for line in ours)
    for text in (KEY, "pa55w0rd", "secret answer", "secret prompt"):
        assert text not in "\n".join(ours)
        assert text not in caplog.text


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_nothing_is_logged_above_debug(
    server: Server, options: dict[str, Any], caplog: pytest.LogCaptureFixture, way: Way
) -> None:
    server.script = [Answer((b"{}",), 500, {"retry-after": "0"})]
    with caplog.at_level(logging.INFO), pytest.raises(errors.ServerError):
        way.ask({**options, "max_retries": 1})
    assert [record for record in caplog.records if record.name.startswith("cerebras_ext")] == []


def test_a_program_without_logging_set_up_prints_nothing() -> None:
    code = (
        "import cerebras_ext, logging\n"
        "logger = logging.getLogger('cerebras_ext')\n"
        "assert logger.level == logging.NOTSET and logger.propagate\n"
        "try: cerebras_ext.Client(api_key='k', base_url='http://127.0.0.1:9', max_retries=0).models()\n"
        "except cerebras_ext.CerebrasError: pass\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True)
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("is_async", [False, True])
def test_http2_does_not_log_the_headers(caplog: pytest.LogCaptureFixture, is_async: bool) -> None:
    """hpack logs each header that it writes, and each that it drops."""
    hpack = pytest.importorskip("hpack")
    options: dict[str, Any] = {"api_key": KEY, "base_url": "http://127.0.0.1:9", "http2": True, "max_retries": 0}
    connections._hide_headers.cache_clear()
    try:
        with pytest.raises(errors.APIConnectionError):
            asyncio.run(AsyncClient(**options).models()) if is_async else Client(**options).models()
        with caplog.at_level(logging.DEBUG):
            encoder = hpack.Encoder()
            encoder.encode([(b"authorization", f"Bearer {KEY}".encode())])
            encoder.header_table_size = 0
        assert KEY not in caplog.text
    finally:
        for name in ("hpack.hpack", "hpack.table"):
            logging.getLogger(name).filters.clear()
        connections._hide_headers.cache_clear()

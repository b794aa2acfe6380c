"""Error trackers show the local variables of all frames of a traceback: the key is in none of ours."""

from __future__ import annotations

import asyncio
import gc
import socket
from typing import Any

import pytest

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import APITimeoutError
from cerebras_ext.settings import resolve_settings
from tests.support import KEY, TRANSPORTS, WAYS, Answer, Cut, Server, Wait, Way, fails, locals_shown

CUT = Answer((b'{"a"', Cut()), framing="chunked")
ANSWERS = {
    "reset": CUT,
    "slow": Answer((b'{"a"', Wait(0.4), b"}"), framing="chunked"),
    "refused": Answer((b'{"message": "no"}',), status=400),
    "not json": Answer((b"data: nothing http://[\n\n",)),
}
NOWHERE = "http://127.0.0.1:9"


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_a_failed_call_shows_no_key(server: Server, options: dict[str, Any], way: Way, answer: Answer) -> None:
    server.script = [answer]
    assert KEY not in fails(lambda: way.ask({**options, "max_retries": 0, "timeout": 0.1}))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "bad", [{"extra_headers": {"X": "a\n"}}, {"extra_body": {"x": object()}}, {"n": 0}], ids=["header", "body", "field"]
)
def test_a_refused_request_shows_no_key(options: dict[str, Any], way: Way, bad: dict[str, Any]) -> None:
    assert KEY not in fails(lambda: way.ask(options, **bad))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("nowhere", [True, False])
@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_the_other_transports_show_no_key(
    server: Server, options: dict[str, Any], way: Way, nowhere: bool, transport: str
) -> None:
    server.script = [CUT]
    url = NOWHERE if nowhere else server.url
    assert KEY not in fails(lambda: way.ask({**options, "base_url": url, "max_retries": 0, "transport": transport}))


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_request_that_cannot_be_sent_to_its_end_shows_no_key(way: Way, transport: str) -> None:
    """The key is in the bytes that are sent, and the frames that send them have these as variables."""
    with socket.create_server(("127.0.0.1", 0)) as listener:  # nobody reads
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        options = {"api_key": KEY, "base_url": url, "max_retries": 0, "transport": transport, "timeout": 0.2}
        with pytest.raises(APITimeoutError) as caught:
            way.ask(options, user="x" * 8_000_000)
    assert KEY not in locals_shown(caught.value)
    del caught
    gc.collect()  # aiohttp leaves a connection that it cannot write to to the end of the loop, with a warning


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("bad", [{"timeout": -1}, {"verify": "/nowhere"}, {"api_key": KEY + "€"}], ids=str)
def test_a_client_that_cannot_be_made_shows_no_key(kind: Any, bad: dict[str, Any]) -> None:
    """The client itself, half made, is among the variables too and has to have a text."""
    assert KEY not in fails(lambda: kind(**{"api_key": KEY, **bad}))


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_headers_and_addresses_with_secrets_are_not_shown(kind: Any) -> None:
    options = {
        "base_url": "http://user:PLANTED@127.0.0.1:9",
        "proxy": "http://user:PLANTED@127.0.0.1:9",
        "default_headers": {"X-Auth": "PLANTED"},
        "max_retries": 0,
    }
    client = kind(api_key=KEY, **options)
    fields = {**WAYS[0].fields, "extra_headers": {"X-Other": "a\n"}}
    assert "PLANTED" not in repr(resolve_settings(**options))  # type: ignore[arg-type]

    async def ask() -> None:
        await client.chat(**fields)

    call = (lambda: client.chat(**fields)) if kind is Client else (lambda: asyncio.run(ask()))
    assert "PLANTED" not in fails(call)

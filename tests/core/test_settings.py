"""Settings: arguments, then environment, then defaults; what is refused and how it is told."""

from __future__ import annotations

import ssl
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from cerebras_ext import AsyncClient, Client
from cerebras_ext.errors import MissingAPIKeyError, RequestValidationError
from cerebras_ext.settings import make_timeout, mask_url, normalize_base_url, resolve_settings
from tests.support import KEY, WAYS, Server, Way

CLIENTS = [Client, AsyncClient]
AnyClient = type[Client] | type[AsyncClient]


# ---- key ----


@pytest.mark.parametrize("make", CLIENTS)
def test_a_missing_key_says_where_to_get_and_set_one(make: AnyClient) -> None:
    with pytest.raises(MissingAPIKeyError, match=r"cloud\.cerebras\.ai.*CEREBRAS_API_KEY.*api_key") as caught:
        make()
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    "given", [KEY, SecretStr(KEY), lambda: KEY, f" {KEY}\n"], ids=["str", "secret", "call", "blanks"]
)
@pytest.mark.parametrize("way", WAYS, ids=str)
def test_every_form_of_key_is_sent(server: Server, way: Way, given: Any) -> None:
    server.script = [way.answer()]
    way.ask({"api_key": given, "base_url": server.url})
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("make", CLIENTS)
@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_an_empty_key_is_none(make: AnyClient, empty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", empty)
    for given in ({}, {"api_key": None}, {"api_key": empty}, {"api_key": SecretStr(empty)}):
        with pytest.raises(MissingAPIKeyError):
            make(**given)


@pytest.mark.parametrize("bad", ["k\u00e9y", "a b", "a\nb", "a\x00b", "\u201ck\u201d"])
def test_a_key_that_no_header_holds_is_refused_without_showing_it(bad: str) -> None:
    with pytest.raises(ValueError, match="api_key: has characters") as caught:
        Client(api_key=bad)
    assert bad not in str(caught.value)


@pytest.mark.parametrize("make", CLIENTS)
def test_environment_is_read_when_a_client_is_made(make: AnyClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    monkeypatch.setenv("CEREBRAS_BASE_URL", "http://later:1/v1")
    client = make()
    assert client.base_url == "http://later:1"
    assert client._key().get_secret_value() == KEY


# ---- base URL ----


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("https://h", "https://h"),
        ("https://h/", "https://h"),
        ("https://h/v1", "https://h"),
        ("https://h/v1/", "https://h"),
        (" https://h:8/gate/way/v1// ", "https://h:8/gate/way"),
        ("http://[::1]:5/v1", "http://[::1]:5"),
        ("https://h/v10", "https://h/v10"),
        ("https://h/v1?x=1#y", "https://h"),
        ("HTTPS://H/V", "https://H/V"),
    ],
)
def test_base_urls_are_taken_with_and_without_v1(given: str, expected: str) -> None:
    assert normalize_base_url(given) == expected


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_requests_go_to_v1_once(server: Server, way: Way, suffix: str) -> None:
    server.script = [way.answer()]
    way.ask({"api_key": KEY, "base_url": server.url + suffix})
    assert server.requests[0].path == way.path


@pytest.mark.parametrize("bad", ["h", "ftp://h", "http://", "//h", "file:///x", "https://u:pw@"])
def test_a_url_that_is_none_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match="base_url: must be an http or https URL") as caught:
        Client(api_key=KEY, base_url=bad)
    assert "pw" not in str(caught.value)


def test_both_variables_are_read_and_the_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_BASE", "http://base:1/v1")
    assert resolve_settings().base_url == "http://base:1"
    monkeypatch.setenv("CEREBRAS_BASE_URL", "http://url:2/v1/")
    assert resolve_settings().base_url == "http://url:2"
    assert resolve_settings(base_url="http://arg:3").base_url == "http://arg:3"
    monkeypatch.setenv("CEREBRAS_BASE_URL", "")
    assert resolve_settings().base_url == "http://base:1"


def test_user_and_password_of_urls_are_masked() -> None:
    assert mask_url("https://u:p@h:1/x?y") == "https://***@h:1/x?y"
    assert mask_url("https://h/x@y") == "https://h/x@y"


# ---- numbers ----


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("timeout", 0), ("timeout", -1), ("timeout", float("nan")), ("timeout", float("inf")), ("timeout", "5"),
        ("timeout", True), ("max_retries", -1), ("max_retries", 1.5), ("max_retries", True), ("max_retries", "2"),
        ("max_retry_wait", -1), ("max_retry_wait", float("nan")), ("max_retry_wait", "5"),
        ("queue_threshold", 49), ("queue_threshold", 20_001), ("queue_threshold", 100.5), ("queue_threshold", "100"),
        ("queue_threshold", True), ("stream_idle_timeout", 0), ("stream_idle_timeout", -1),
        ("stream_idle_timeout", "1"), ("stream_idle_timeout", float("nan")), ("payload", "xml"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("make", CLIENTS)
def test_a_setting_out_of_range_names_itself_and_the_value(make: AnyClient, name: str, bad: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: must be") as caught:
        make(api_key=KEY, **{name: bad})
    assert repr(bad) in str(caught.value)


@pytest.mark.parametrize("make", CLIENTS)
def test_an_unknown_setting_is_refused_with_the_nearest_name(make: AnyClient) -> None:
    with pytest.raises(TypeError, match="unknown setting 'max_retry'; did you mean 'max_retr"):
        make(api_key=KEY, max_retry=1)  # type: ignore[call-arg]


def test_a_float_limits_each_wait_and_connecting_to_five_seconds() -> None:
    assert make_timeout(None) == httpx.Timeout(60.0, connect=5.0)
    assert make_timeout(2) == httpx.Timeout(2.0, connect=2.0)
    assert make_timeout(90.5) == httpx.Timeout(90.5, connect=5.0)
    own = httpx.Timeout(None, read=3.0)
    assert make_timeout(own) is own


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_settings_of_a_call_win_and_are_checked(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [way.answer()]
    client = {**options, "queue_threshold": 50, "default_headers": {"X-A": "client", "X-B": "client"}}
    way.ask(client)
    way.ask(client, queue_threshold=20_000, extra_headers={"x-a": "call", "CF-RAY": "r"})
    first, second = server.requests
    assert (first.headers["queue_threshold"], second.headers["queue_threshold"]) == ("50", "20000")
    assert (first.headers["x-a"], second.headers["x-a"], second.headers["x-b"]) == ("client", "call", "client")
    assert second.headers["cf-ray"] == "r"
    assert not {"queue_threshold", "extra_headers", "timeout"} & second.json.keys()
    for bad in ({"queue_threshold": 49}, {"timeout": 0}, {"timeout": "x"}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            way.ask(client, **bad)
    assert len(server.requests) == 2


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "headers",
    [{"X-A": "a\nb"}, {"X-A": "a\r\nb"}, {"X-A": "é"}, {"É": "a"}, {" ": "a"}, {"X-A": 5}, {5: "a"}],
    ids=repr,
)
def test_headers_that_cannot_be_sent_are_refused(
    server: Server, options: dict[str, Any], way: Way, headers: dict[Any, Any]
) -> None:
    with pytest.raises(RequestValidationError, match="extra_headers"):
        way.ask(options, extra_headers=headers)
    with pytest.raises(RequestValidationError, match="headers"):
        way.ask({**options, "default_headers": headers})
    assert server.requests == []


def test_a_service_tier_is_not_checked_against_the_threshold(server: Server, options: dict[str, Any]) -> None:
    server.script = [WAYS[0].answer()]
    WAYS[0].ask(options, service_tier="priority", queue_threshold=1500)
    received = server.requests[0]
    assert (received.headers["queue_threshold"], received.json["service_tier"]) == ("1500", "priority")
    assert "queue_threshold" not in received.json


# ---- TLS ----


def test_tls_settings_are_told_apart(tmp_path: Any) -> None:
    context = ssl.create_default_context()
    kinds = [resolve_settings(verify=verify).connection for verify in (True, False, str(tmp_path), context)]
    assert len(set(kinds)) == 4
    assert resolve_settings(verify=True).connection == resolve_settings().connection


# ---- extras ----


@pytest.mark.parametrize("make", CLIENTS)
def test_http2_without_its_package_is_told_when_the_client_is_made(
    make: AnyClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cerebras_ext.settings.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'http2 needs the package h2: pip install "cerebras-ext\[http2\]"'):
        make(api_key=KEY, http2=True)
    assert make(api_key=KEY, http2=False) is not None

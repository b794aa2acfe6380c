"""What is sent to break a reader: texts that take long, nest deeply or only look like something, on either side."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
import pytest

from cerebras_ext import Client, errors
from cerebras_ext.classify import read_error_body, status_error
from cerebras_ext.settings import check_headers, mask_url, resolve_proxy
from tests.support import KEY, WAYS, Answer, Cut, Server, Way

WAY_OUT = "What the library does not know can be sent with extra_body."
DEEP = b"[" * 100_000


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("body", [DEEP, b'{"a":' * 100_000, b"see http://[oops for more"])
def test_bodies_that_break_parsers_are_typed_errors(
    server: Server, options: dict[str, Any], way: Way, status: int, body: bytes
) -> None:
    framed = b"data: %s\n\n" % body if way.stream and status == 200 else body
    server.script = [Answer((framed,), status=status)]
    with pytest.raises(errors.CerebrasError) as caught:
        way.ask({**options, "max_retries": 0})
    assert isinstance(caught.value, errors.APIResponseError if status == 200 else errors.APIStatusError)


@pytest.mark.parametrize(
    "page", ["<html>" + "<script " * 50_000, "<html>" + "<" * 400_000, "<html>" + "<style>" * 50_000]
)
def test_pages_with_tags_that_are_never_closed_are_read_at_once(page: str) -> None:
    started = time.perf_counter()
    read_error_body(page)
    assert time.perf_counter() - started < 2


def test_lengths_with_thousands_of_digits_are_none() -> None:
    message = f"Please reduce the length of the messages: length is {'1' * 5000} while limit is 5"
    error = status_error(400, {}, {"message": message})
    assert isinstance(error, errors.ContextLengthExceededError)
    assert error.current_length is None


def test_text_that_is_no_url_is_masked_whole_where_it_may_hold_a_password() -> None:
    assert mask_url("http://[oops") == "http://[oops"
    assert mask_url("http://u:PLANTED@[oops") == "***"


@pytest.mark.parametrize(
    "url", ["http://h:abc", "http://h:99999", "http://[::1", "http://a b", "http://h\x00", 5, b"http://h"], ids=repr
)
def test_base_urls_that_cannot_be_called_are_refused_at_construction(url: Any) -> None:
    with pytest.raises(ValueError, match="base_url: must be an http or https URL"):
        Client(api_key=KEY, base_url=url)


def test_space_around_a_base_url_is_dropped() -> None:
    assert Client(api_key=KEY, base_url=" http://h/v1\n").base_url == "http://h"


@pytest.mark.parametrize("setting", ["api_key", "proxy", "default_headers"])
@pytest.mark.parametrize("value", [5, ["a"], b"a"], ids=repr)
def test_settings_of_a_wrong_type_are_named(setting: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{setting}: must be "):
        Client(**{"api_key": KEY, setting: value})


@pytest.mark.parametrize(
    "proxy", ["http://", "http://h:abc", "http://u:PLANTED@[h", "http://h:99999", "h:1", "socks4://h"]
)
def test_a_proxy_that_is_no_url_is_refused_at_construction_without_its_password(proxy: str) -> None:
    with pytest.raises(ValueError, match="proxy: must be a URL with") as caught:
        Client(api_key=KEY, proxy=proxy)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("variable", ["socks4://h:1", "://", "http://[bad"])
def test_an_unusable_proxy_of_the_environment_is_named(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv("https_proxy", variable)
    with pytest.raises(ValueError, match="proxy: the environment's"):
        resolve_proxy(None, "https://h")
    assert resolve_proxy("", "https://h") is None


@pytest.mark.parametrize(
    "headers",
    [{"X": "a\0b"}, {"X": "a\x7f"}, {"X": " a"}, {"X": "a "}, {"X Y": "a"}, {"X:": "a"}, {"": "a"}, [("X", "a")]],
    ids=repr,
)
def test_headers_that_http_has_no_form_for_are_refused(options: dict[str, Any], headers: Any) -> None:
    with pytest.raises(errors.RequestValidationError, match="extra_headers"):
        Client(**options).chat(**WAYS[0].fields, extra_headers=headers)
    with pytest.raises(errors.RequestValidationError, match="default_headers"):
        Client(**options, default_headers=headers)


def test_a_refused_header_does_not_show_its_value() -> None:
    with pytest.raises(errors.RequestValidationError) as caught:
        check_headers("default_headers", {"X-Secret": "PLANTED\n"})
    assert "PLANTED" not in str(caught.value)
    assert check_headers("default_headers", {"X": "", "Y": "a\tb c", "z": "~"}) == (
        ("X", ""),
        ("Y", "a\tb c"),
        ("z", "~"),
    )


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_content_type_of_the_users_is_not_sent_beside_ours(server: Server, options: dict[str, Any], way: Way) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, content=b"".join(p for p in way.answer().pieces if isinstance(p, bytes)))

    headers = {"content-type": "application/json; charset=utf-8"}
    if way.is_async:
        http_async = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        way.ask({**options, "http_async_client": http_async}, extra_headers=headers)
    else:
        with httpx.Client(transport=httpx.MockTransport(answer)) as http:
            way.ask({**options, "http_client": http}, extra_headers=headers)
    assert sent[0].headers.get_list("content-type") == ["application/json"]


@pytest.mark.parametrize("request_", [{1: 2}, {"model": "m", None: 1}], ids=repr)
def test_names_of_fields_are_text(options: dict[str, Any], request_: Any) -> None:
    with pytest.raises(errors.RequestValidationError, match="names of fields must be text"):
        Client(**options).chat(request_)


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"content": 5}, ["messages.0.user.content: Input should be a valid string (got 5)",
                          "messages.0.user.content: Input should be a valid list (got 5)"]),
        ({"content": [{"type": "text"}]}, ["messages.0.user.content.0.text.text: required, but not given"]),
        ({"content": "q", "str": 1}, [f"messages.0.user.str: unknown field. {WAY_OUT}"]),
    ],
)  # fmt: skip
def test_faults_are_told_without_the_branches_of_unions(
    options: dict[str, Any], fields: dict[str, Any], lines: list[str]
) -> None:
    with pytest.raises(errors.RequestValidationError) as caught:
        Client(**options).chat(model="m", messages=[{"role": "user", **fields}])
    assert str(caught.value).splitlines() == lines


def test_too_many_stops_are_told_in_one_line(options: dict[str, Any]) -> None:
    with pytest.raises(errors.RequestValidationError, match=r"^stop: List should have at most 4 items[^\n]*$"):
        Client(**options).complete(model="m", prompt="q", stop=["a"] * 5)


@pytest.mark.parametrize("way", [way for way in WAYS if not way.stream], ids=str)
def test_an_index_of_null_is_the_first(server: Server, options: dict[str, Any], way: Way) -> None:
    answer = json.loads(way.answer("hello").pieces[0])  # type: ignore[arg-type]
    answer["choices"][0]["index"] = None
    server.script = [Answer((json.dumps(answer).encode(),))]
    response = way.ask(options).response
    assert (response.text, response.choices[0].index) == ("hello", 0)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_connection_that_broke_is_told_from_one_that_was_never_made(
    server: Server, options: dict[str, Any], way: Way
) -> None:
    server.script = [Answer((b'{"a"', Cut()), framing="chunked")]
    with pytest.raises(errors.APIConnectionError, match=r"^lost the connection to 127\.0\.0\.1:\d+ \("):
        way.ask({**options, "max_retries": 0})
    with pytest.raises(errors.APIConnectionError, match=r"^no connection to 127\.0\.0\.1:9 \("):
        way.ask({**options, "base_url": "http://127.0.0.1:9", "max_retries": 0})

"""Refusals and broken answers: one class per status, every envelope, nothing secret, everything picklable."""

from __future__ import annotations

import copy
import gzip
import json
import pathlib
import pickle
import traceback
from typing import Any

import httpx
import pytest

from cerebras_ext import Client, errors
from cerebras_ext.classify import body_status, decode_body, read_error_body, should_retry, status_error
from tests.conformance import recordings
from tests.support import (
    CHAT_END,
    DONE,
    KEY,
    MESSAGES,
    STREAMS,
    WAYS,
    WHOLE,
    Answer,
    Cut,
    Server,
    Stall,
    Way,
    chat_event,
    event,
)

CLASSES = {
    400: errors.BadRequestError,
    401: errors.AuthenticationError,
    402: errors.PaymentRequiredError,
    403: errors.PermissionDeniedError,
    404: errors.NotFoundError,
    408: errors.RequestTimeoutError,
    409: errors.ConflictError,
    413: errors.PayloadTooLargeError,
    418: errors.APIStatusError,
    422: errors.UnprocessableEntityError,
    429: errors.RateLimitError,
    500: errors.ServerError,
    502: errors.ServerError,
    529: errors.ServerError,
}


def known_bodies() -> list[Any]:
    path = pathlib.Path(recordings.FOLDER).parent / "errors.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines] or [None]


@pytest.mark.recordings
@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("known", known_bodies(), ids=lambda known: str(known and known["body"])[:40])
def test_every_known_error_body_keeps_what_it_says(
    server: Server, options: dict[str, Any], known: dict[str, Any] | None, way: Way
) -> None:
    if known is None:
        pytest.skip("the folder of recordings is not beside the checkout")
    body, status = known["body"], known["status"]
    content = json.dumps(body).encode()
    if status == 200 and way.stream:
        content = b"data: " + content + b"\n\n"
    if known["headers"].get("content-encoding") == "gzip":
        content = gzip.compress(content)
    server.script = [Answer((content,), status, known["headers"])]
    with pytest.raises(errors.APIStatusError) as caught:
        way.ask({**options, "max_retries": 0})
    said = body.get("error", body)
    error = caught.value
    expected = body.get("status_code", status)
    if said.get("code") == "context_length_exceeded":
        assert type(error) is errors.ContextLengthExceededError
        assert isinstance(error, errors.BadRequestError)
        numbers = [int(word) for word in said["message"].split() if word.isdigit()]
        assert [error.current_length, error.limit] == numbers
    else:
        assert type(error) is CLASSES[expected]
    assert (error.status_code, error.message, error.body) == (expected, said["message"], body)
    assert (error.type, error.param, error.code) == tuple(said.get(k) or None for k in ("type", "param", "code"))
    assert said["message"] in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.__dict__) == (type(error), str(error), error.__dict__)


@pytest.mark.parametrize("status", CLASSES)
@pytest.mark.parametrize("way", WHOLE[:2], ids=str)
def test_each_status_has_its_class(server: Server, options: dict[str, Any], way: Way, status: int) -> None:
    server.script = [Answer((b'{"message":"no"}',), status)]
    with pytest.raises(CLASSES[status]) as caught:
        way.ask({**options, "max_retries": 0})
    assert type(caught.value) is CLASSES[status]
    assert caught.value.status_code == status
    assert isinstance(caught.value, errors.CerebrasError)


def test_timeouts_and_connection_faults_are_also_the_builtin_ones() -> None:
    assert issubclass(errors.RequestTimeoutError, TimeoutError)
    assert issubclass(errors.APITimeoutError, TimeoutError)
    assert issubclass(errors.APIConnectionError, ConnectionError)
    assert issubclass(errors.StreamTruncatedError, errors.APIConnectionError)
    assert issubclass(errors.RequestValidationError, ValueError)
    assert issubclass(errors.MissingAPIKeyError, ValueError)


def test_the_docstring_draws_every_class_of_the_tree() -> None:
    found = [errors.CerebrasError]
    for cls in found:
        found.extend(sub for sub in cls.__subclasses__() if sub.__module__ == errors.__name__)
    assert errors.__doc__ is not None
    assert all(cls.__name__ in errors.__doc__ for cls in found)


# ---- envelopes ----


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        ({"message": "m", "code": "c"}, "m", "c"),
        ({"error": {"message": "m", "code": "c"}}, "m", "c"),
        ({"error": "m", "code": "c"}, "m", "c"),
        ({"error": {"message": None, "code": 7}}, "the service gave no reason", "7"),
        ({"detail": "m"}, "m", None),
        ({"detail": [{"loc": ["body"], "msg": "m"}]}, '[{"loc": ["body"], "msg": "m"}]', None),
        ({"message": {"deep": 1}, "code": ["c"]}, "{'deep': 1}", "['c']"),
        ({}, "the service gave no reason", None),
        ("", "the service gave no reason", None),
        (None, "the service gave no reason", None),
        ([1, "x"], '[1, "x"]', None),
        ("plain text", "plain text", None),
        (5, "5", None),
        (
            "<!DOCTYPE html><html><style>x{}</style><body><h1>502</h1> Bad\n gateway</body></html>",
            "502 Bad gateway",
            None,
        ),
    ],
    ids=repr,
)
def test_every_envelope_is_read(body: Any, message: str, code: str | None) -> None:
    error = status_error(400, {}, body)
    assert (error.message, error.code) == (message, code)
    assert error.body == body


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"<html><body>Bad Gateway</body></html>", b"null", b"[]", b'"x"', b"x" * 100_000],
    ids=lambda content: repr(content[:12]),
)
def test_broken_error_bodies_keep_the_status(server: Server, options: dict[str, Any], way: Way, content: bytes) -> None:
    server.script = [Answer((content,), 502, {"content-type": "text/html", "cf-ray": "ray"})]
    with pytest.raises(errors.ServerError) as caught:
        way.ask({**options, "max_retries": 0})
    assert (caught.value.status_code, caught.value.request_id) == (502, "ray")
    assert len(str(caught.value)) < 1000
    assert len(str(caught.value.body)) <= 2000


def test_ids_are_taken_from_headers_then_from_the_body() -> None:
    body = {"message": "m", "id": "body"}
    assert status_error(400, {"X-Request-Id": "r", "CF-Ray": "c"}, body).request_id == "r"
    assert status_error(400, {"CF-Ray": "c"}, body).request_id == "c"
    assert status_error(400, {}, body).request_id == "body"
    assert status_error(400, {}, {**body, "id": ""}).request_id is None


@pytest.mark.parametrize("status", [413, 422])
def test_an_overflow_under_another_status_is_still_one(status: int) -> None:
    text = "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192"
    for body, numbers in (
        ({"message": text}, (9000, 8192)),
        ({"message": "too long", "code": "context_length_exceeded"}, (None, None)),
    ):
        error = status_error(status, {}, body)
        assert isinstance(error, errors.ContextLengthExceededError)
        assert (error.status_code, error.current_length, error.limit) == (status, *numbers)
    error = status_error(400, {}, {"message": text, "code": "context_length_exceeded"})
    assert isinstance(error, errors.ContextLengthExceededError)
    assert (error.current_length, error.limit) == (9000, 8192)
    again = pickle.loads(pickle.dumps(error))
    assert (again.current_length, again.limit) == (9000, 8192)


# ---- error objects in a 200 ----


@pytest.mark.parametrize("way", WHOLE, ids=str)
@pytest.mark.parametrize(
    ("body", "cls"),
    [
        ({"error": {"message": "busy", "code": "overloaded", "id": "r1"}, "status_code": 503}, errors.ServerError),
        ({"error": {"message": "busy"}, "status_code": 429}, errors.RateLimitError),
        ({"error": {"message": "busy"}}, errors.ServerError),
        ({"error": "busy", "status_code": None}, errors.ServerError),
        ({"error": {"message": "busy"}, "status_code": True}, errors.ServerError),
        ({"error": {"message": "busy"}, "status_code": 400, "choices": []}, errors.BadRequestError),
    ],
    ids=repr,
)
def test_an_error_object_in_a_200_is_its_own_status(
    server: Server, options: dict[str, Any], way: Way, body: dict[str, Any], cls: type[errors.CerebrasError]
) -> None:
    server.script = [Answer((json.dumps(body).encode(),))]
    with pytest.raises(cls, match="busy") as caught:
        way.ask({**options, "max_retries": 0})
    assert type(caught.value) is cls


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_error_object_in_a_200_is_repeated_by_its_status(
    server: Server, options: dict[str, Any], way: Way, naps: list[float]
) -> None:
    error = {"error": {"message": "busy"}, "status_code": 503}
    server.script = [Answer((event(error) if way.stream else json.dumps(error).encode(),)), way.answer()]
    assert way.ask(options).response.text == "ok"
    assert len(server.requests) == 2


def test_no_error_is_no_error() -> None:
    assert body_status({"error": None, "choices": []}) is None
    assert body_status({"error": {}}) is None
    assert body_status([]) is None


# ---- error events of streams ----

BOOM = {"error": {"message": "boom", "code": "x", "type": "server_error", "param": "p", "id": "r"}, "status_code": 500}


@pytest.mark.parametrize("way", STREAMS, ids=str)
@pytest.mark.parametrize("name", ["", "error"])
def test_an_error_event_raises_after_what_came(server: Server, options: dict[str, Any], way: Way, name: str) -> None:
    server.script = [Answer((way.piece("par") + event(BOOM, name),))]
    with pytest.raises(errors.ServerError) as caught:
        way.ask(options)
    error = caught.value
    assert (error.status_code, error.code, error.type, error.param, error.request_id) == (
        500, "x", "server_error", "p", "r",
    )  # fmt: skip
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b'event: error\ndata: {"message":"boom","status_code":429}\n\n', 500),
        (b"event: error\ndata: boom\n\n", 500),
        (b'data: {"error":"boom"}\n\n', 500),
        (b'data: {"error":{"message":"boom"},"status_code":400,"choices":[]}\n\n', 400),
        (b'data: {"error":{"message":"boom"},"status_code":"503"}\n\n', 500),
    ],
)
def test_error_events_of_other_forms(server: Server, options: dict[str, Any], data: bytes, status: int) -> None:
    server.script = [Answer((data,))]
    with pytest.raises(errors.APIStatusError, match="boom") as caught:
        list(Client(**options, max_retries=0).stream_chat(model="m", messages=MESSAGES))
    expected = 429 if b"429" in data else status
    assert caught.value.status_code == expected


def test_an_error_after_the_finish_reason_is_not_swallowed(server: Server, options: dict[str, Any]) -> None:
    server.script = [Answer((chat_event(content="a") + CHAT_END + event(BOOM) + DONE,))]
    stream = iter(Client(**options).stream_chat(model="m", messages=MESSAGES))
    assert [next(stream).content, next(stream).content] == ["a", ""]
    with pytest.raises(errors.ServerError):
        next(stream)


# ---- what they are ----


def example(cls: type[errors.CerebrasError]) -> errors.CerebrasError:
    if issubclass(cls, errors.APIStatusError):
        return cls(
            "m", status_code=1, code="c", headers={"x-ratelimit-limit-tokens-day": "1"}, body={"a": [1]}, hint="h"
        )
    if issubclass(cls, errors.APIResponseError):
        return cls("m", body="b", request_id="r", response_id="i", usage={"a": 1})
    return cls() if issubclass(cls, errors.MissingAPIKeyError) else cls("m")


ALL = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, errors.CerebrasError)]


@pytest.mark.parametrize("cls", ALL)
def test_errors_survive_pickling_and_copying(cls: type[errors.CerebrasError]) -> None:
    error = example(cls)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(again), again.args, str(again), again.__dict__) == (cls, error.args, str(error), error.__dict__)


class AdaptedError(errors.RateLimitError, LookupError):
    """A class as an adapter makes them."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.added = "yes"


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_adapters_can_replace_classes(server: Server, options: dict[str, Any], way: Way) -> None:
    server.script = [Answer((b'{"message":"slow down"}',), 429)]
    with pytest.raises(LookupError) as caught:
        way.ask({**options, "max_retries": 0, "error_types": {errors.RateLimitError: AdaptedError}})
    assert type(caught.value) is AdaptedError
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), again.added, again.status_code) == (AdaptedError, "yes", 429)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize(
    "answer",
    [
        Answer((json.dumps({"message": f"bad key {KEY}", "param": KEY, KEY: [KEY]}).encode(),), 401, {"x-echo": KEY}),
        Answer((f"<html>{KEY}</html>".encode(),), 500),
        Answer((f"not json {KEY}".encode(),)),
        Answer((event({"error": {"message": KEY}}),)),
        Answer((f"data: {KEY}\n\n".encode(),)),
    ],
    ids=["flat", "html", "text", "event", "broken-event"],
)
def test_no_error_holds_the_key(server: Server, options: dict[str, Any], way: Way, answer: Answer) -> None:
    server.script = [answer]
    with pytest.raises(errors.CerebrasError) as caught:
        way.ask({**options, "max_retries": 0})
    error = caught.value
    shown = "".join(traceback.format_exception(error))
    for text in (str(error), repr(error), repr(error.args), repr(error.__dict__), shown):
        assert KEY not in text
    assert KEY.encode() not in pickle.dumps(error)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("fault", ["refused", "silent", "cut"])
def test_no_cause_of_an_error_holds_the_key(server: Server, options: dict[str, Any], way: Way, fault: str) -> None:
    stall = Stall()
    server.script = [Answer((stall if fault == "silent" else Cut(), *way.answer().pieces), framing="chunked")]
    if fault == "refused":
        options["base_url"] = "http://user:pa55w0rd@127.0.0.1:9"
    with pytest.raises(errors.CerebrasError) as caught:
        way.ask({**options, "max_retries": 0, "timeout": 0.1 if fault == "silent" else 5})
    stall.release()
    assert type(caught.value) is (errors.APITimeoutError if fault == "silent" else errors.APIConnectionError)
    assert isinstance(caught.value.__cause__, httpx.TransportError)
    assert type(caught.value.__cause__).__name__ in str(caught.value)
    error: BaseException | None = caught.value
    while error is not None:
        request = getattr(error, "_request", None)
        shown = f"{error!r}{error.__dict__}{request and (request.url, request.headers)}"
        assert KEY not in shown
        assert "pa55w0rd" not in shown
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize("kind", [httpx.ConnectError, httpx.ReadTimeout])
def test_no_cause_from_a_client_of_the_users_holds_the_key(kind: type[httpx.TransportError]) -> None:
    def fail(request: httpx.Request) -> httpx.Response:
        raise kind("failed", request=request)

    with httpx.Client(transport=httpx.MockTransport(fail)) as http, pytest.raises(errors.CerebrasError) as caught:
        Client(api_key=KEY, max_retries=0, http_client=http).chat(model="m", messages=MESSAGES)
    cause = caught.value.__cause__
    assert isinstance(cause, kind)
    assert (cause.request.method, str(cause.request.url)) == ("POST", "https://api.cerebras.ai/v1/chat/completions")
    assert KEY not in str(cause.request.headers)
    assert cause.request.content == b""


def test_reading_bodies_is_pure() -> None:
    body = {"error": {"message": "m"}, "a": 1}
    before = copy.deepcopy(body)
    read_error_body(body)
    status_error(400, {}, body, secret=KEY)
    assert body == before
    assert decode_body(b"{}") == {}


@pytest.mark.parametrize(
    ("told", "status", "retried"),
    [("false", 429, False), ("true", 400, True), ("FALSE", 500, False), ("", 500, True), ("maybe", 400, False)],
)
def test_x_should_retry_wins(told: str, status: int, retried: bool) -> None:
    assert should_retry(status, {"x-should-retry": told}) is retried

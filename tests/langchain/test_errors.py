"""Errors: langchain-core's classes and the core's at once, what traces get, what is retried."""

from __future__ import annotations

import copy
import json
import pathlib
import pickle
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from langchain_core import exceptions as lc
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage
from langchain_core.outputs import LLMResult

from cerebras_ext import errors as core
from cerebras_ext.strict_schema import SchemaError
from langchain_cerebras_ext import ChatCerebras, errors
from tests.conformance import recordings
from tests.langchain.service import ALL_PATHS, KEY, PATHS, Bytes, Service, delta, end, event

LADDER: dict[int, tuple[type[core.CerebrasError], type[Exception], bool]] = {
    400: (core.BadRequestError, lc.ModelInvalidRequestError, False),
    401: (core.AuthenticationError, lc.ModelAuthenticationError, False),
    402: (core.PaymentRequiredError, lc.ModelPermissionDeniedError, False),
    403: (core.PermissionDeniedError, lc.ModelPermissionDeniedError, False),
    404: (core.NotFoundError, lc.ModelNotFoundError, False),
    408: (core.RequestTimeoutError, lc.ModelTimeoutError, True),
    409: (core.ConflictError, lc.ModelAPIError, True),
    413: (core.PayloadTooLargeError, lc.ModelInvalidRequestError, False),
    418: (core.APIStatusError, lc.ModelError, False),
    422: (core.UnprocessableEntityError, lc.ModelInvalidRequestError, False),
    429: (core.RateLimitError, lc.ModelRateLimitError, True),
    500: (core.ServerError, lc.ModelAPIError, True),
    503: (core.ServerError, lc.ModelAPIError, True),
}


def refusing(status: int, body: Any = None, **headers: str) -> Service:
    """A service that refuses everything."""
    given = {"message": "no", "type": "t", "param": "p", "code": "c"} if body is None else body
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Service(answer=lambda: httpx.Response(status, json=given, headers=names))


class Recorder(BaseCallbackHandler):
    """Notes what a tracer sees of a failure."""

    def __init__(self) -> None:
        self.results: list[LLMResult] = []
        self.ended = 0

    def on_llm_error(self, error: BaseException, **kwargs: Any) -> None:
        self.results.append(kwargs["response"])

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.ended += 1


# ---- the tree ----


def subclasses(base: type[Any]) -> set[type[Any]]:
    return {base}.union(*(subclasses(cls) for cls in base.__subclasses__()))


def test_every_class_of_the_core_has_ours_under_the_same_name() -> None:
    of_core = {cls for cls in subclasses(core.CerebrasError) if cls.__module__ == core.__name__} | {SchemaError}
    assert set(errors.ERROR_TYPES) == of_core
    for cls, ours in errors.ERROR_TYPES.items():
        assert ours.__name__ == cls.__name__
        assert issubclass(ours, (cls, lc.ModelError))
        assert issubclass(ours, errors.CerebrasError)
        assert getattr(errors, cls.__name__) is ours
        for parent in cls.__mro__[1:]:
            if parent in of_core:  # `except` of ours catches what `except` of the core's does
                assert issubclass(ours, errors.ERROR_TYPES[parent])


def test_the_picture_in_the_docstring_shows_every_class() -> None:
    for cls in subclasses(errors.CerebrasError):
        assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize("path", ALL_PATHS)
@pytest.mark.parametrize("status", LADDER)
async def test_status_has_its_class_in_both_trees_and_is_retryable_as_it_should(status: int, path: str) -> None:
    ours, theirs, retryable = LADDER[status]
    service = refusing(status)
    with pytest.raises(ours) as caught:
        await ALL_PATHS[path](service.model(), "hi")
    assert isinstance(caught.value, theirs)
    assert type(caught.value) is errors.ERROR_TYPES[ours]
    assert caught.value.is_retryable is retryable
    assert len(service.requests) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_context_overflow_is_langchains_and_names_both_lengths(path: str) -> None:
    body = {
        "message": "Please reduce the length of the messages or completion. "
        "Current length is 140000 while limit is 131000",
        "type": "invalid_request_error", "param": "messages", "code": "context_length_exceeded",
    }  # fmt: skip
    with pytest.raises(lc.ContextOverflowError) as caught:
        await PATHS[path](refusing(400, body).model(), "hi")
    assert isinstance(caught.value, errors.ContextLengthExceededError)
    assert isinstance(caught.value, lc.ModelInvalidRequestError)
    assert (caught.value.current_length, caught.value.limit) == (140000, 131000)
    assert caught.value.is_retryable is False


QUOTA = {
    "message": "Requests per minute limit exceeded",
    "type": "too_many_requests_error", "param": "quota", "code": "request_quota_exceeded",
}  # fmt: skip


@pytest.mark.parametrize("body", [QUOTA, {"error": QUOTA}])
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_rate_limit_says_which_quota_and_when_to_come_back(path: str, body: dict[str, Any]) -> None:
    service = refusing(429, body, retry_after="2", x_request_id="r1", x_ratelimit_remaining_requests_day="0")
    with pytest.raises(lc.ModelRateLimitError) as caught:
        await ALL_PATHS[path](service.model(), "hi")
    error: Any = caught.value
    assert (error.code, error.type, error.param) == (QUOTA["code"], QUOTA["type"], "quota")
    assert (error.retry_after, error.request_id) == (2.0, "r1")
    assert error.headers["x-ratelimit-remaining-requests-day"] == "0"
    assert QUOTA["message"] in str(error)


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_unknown_model_is_named_with_the_place_of_the_list(path: str) -> None:
    text = "Model old-model does not exist or you do not have access to it."
    body = {"message": text, "type": "not_found_error", "param": "model", "code": "model_not_found"}
    service = refusing(404, body)
    with pytest.raises(lc.ModelNotFoundError) as caught:
        await ALL_PATHS[path](service.model(model="old-model", max_retries=2), "hi")
    assert text in str(caught.value)
    assert "/v1/models" in str(caught.value)
    assert len(service.requests) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_an_error_inside_of_a_200_is_the_error_of_its_status_and_retried_as_that(path: str) -> None:
    bad = {"error": {"message": "busy", "type": "server_error", "code": "overloaded", "id": "r1"}, "status_code": 503}
    service = Service([bad], bad)
    with pytest.raises(lc.ModelAPIError) as caught:
        await PATHS[path](service.model(max_retries=1), "hi")
    assert isinstance(caught.value, errors.ServerError)
    assert (caught.value.status_code, caught.value.code) == (503, "overloaded")
    assert len(service.requests) == 2


@pytest.mark.recordings
def test_every_known_error_body_gives_an_error_of_ours() -> None:
    file = recordings.FOLDER.parent / "errors.jsonl"
    if not file.is_file():
        pytest.skip("the list of error bodies is not beside the checkout")
    seen = 0
    for line in pathlib.Path(file).read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        status = case.get("status")
        if not isinstance(status, int) or status < 400:
            continue
        body = case["body"] if isinstance(case["body"], str) else json.dumps(case["body"])
        service = Service(answer=lambda status=status, body=body: httpx.Response(status, content=body))
        with pytest.raises(errors.APIStatusError) as caught:
            service.model().invoke("hi")
        assert isinstance(caught.value, lc.ModelError)
        seen += 1
    assert seen > 15


# ---- retryable by instance ----


@pytest.mark.parametrize(
    ("headers", "retryable"),
    [
        ({}, True),
        ({"x-should-retry": "false"}, False),
        ({"retry-after": "3"}, True),
        ({"retry-after": "86399"}, False),
        ({"retry-after-ms": "90000"}, False),
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_is_retryable_is_the_instances(path: str, headers: dict[str, str], retryable: bool) -> None:
    service = Service(answer=lambda: httpx.Response(429, json={"message": "slow"}, headers=headers))
    with pytest.raises(lc.ModelRateLimitError) as caught:
        await PATHS[path](service.model(), "hi")
    assert caught.value.is_retryable is retryable
    assert lc.ModelRateLimitError.is_retryable is True


async def test_should_retry_header_makes_another_refusal_retryable() -> None:
    service = refusing(400, x_should_retry="true")
    with pytest.raises(errors.BadRequestError) as caught:
        service.model().invoke("hi")
    assert caught.value.is_retryable is True


# ---- what is not a status ----


def failing(error: Exception) -> Service:
    def answer() -> httpx.Response:
        raise error

    return Service(answer=answer)


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_no_connection_and_timeout_are_langchains_and_pythons(path: str) -> None:
    with pytest.raises(lc.ModelConnectionError, match="refused") as caught:
        await ALL_PATHS[path](failing(httpx.ConnectError("refused")).model(), "hi")
    assert isinstance(caught.value, (errors.APIConnectionError, ConnectionError))
    assert caught.value.is_retryable is True
    with pytest.raises(lc.ModelTimeoutError) as late:
        await ALL_PATHS[path](failing(httpx.ReadTimeout("late")).model(), "hi")
    assert isinstance(late.value, errors.APITimeoutError)
    assert isinstance(late.value, TimeoutError)
    assert late.value.is_retryable is True
    assert not hasattr(late.value, "response")


STREAMS = [path for path in ALL_PATHS if "stream" in path]


@pytest.mark.parametrize("path", STREAMS)
async def test_truncated_stream_is_a_connection_error_of_langchain(path: str) -> None:
    service = Service([delta(content="par")])
    with pytest.raises(lc.ModelConnectionError) as caught:
        await ALL_PATHS[path](service.model(), "hi")
    assert isinstance(caught.value, errors.StreamTruncatedError)
    assert len(service.requests) == 1


@pytest.mark.parametrize("path", STREAMS)
async def test_error_event_has_the_class_of_its_status(path: str) -> None:
    bad = {"status_code": 429, "error": {"message": "busy", "type": "t", "code": "queue_exceeded", "param": "queue"}}
    service = Service([delta(content="par"), bad])
    with pytest.raises(lc.ModelRateLimitError) as caught:
        await ALL_PATHS[path](service.model(max_retries=2), "hi")
    assert isinstance(caught.value, errors.RateLimitError)
    assert (caught.value.status_code, caught.value.code) == (429, "queue_exceeded")
    assert len(service.requests) == 1


@pytest.mark.parametrize("path", PATHS)
async def test_unreadable_answer_is_an_api_error_that_is_not_retried(path: str) -> None:
    service = Service(events=b"data: {]\n\n", answer={"id": "c", "choices": [], "usage": {"prompt_tokens": 1}})
    with pytest.raises(lc.ModelAPIError) as caught:
        await PATHS[path](service.model(max_retries=2), "hi")
    assert isinstance(caught.value, errors.APIResponseError)
    assert caught.value.is_retryable is False
    assert caught.value.response.status_code == 200


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_wrong_requests_are_langchains_invalid_requests(path: str) -> None:
    service = Service()
    for options in ({"temperature": 9}, {"unknown_option": 1}):
        with pytest.raises(lc.ModelInvalidRequestError) as caught:
            await ALL_PATHS[path](service.model(), "hi", **options)
        assert isinstance(caught.value, (errors.RequestValidationError, ValueError))
        assert caught.value.is_retryable is False
    assert not service.requests


OPEN = {"title": "Open", "type": "object", "additionalProperties": {"type": "string"}}
OPEN_TOOL = {"type": "function", "function": {"name": "open", "parameters": OPEN, "strict": True}}
WITHOUT_STRICT_FORM: dict[str, Callable[[ChatCerebras], Any]] = {
    "structured output": lambda model: model.with_structured_output(OPEN),
    "tools": lambda model: model.bind_tools([OPEN_TOOL]),
    "response format of a call": lambda model: model.invoke("hi", response_format=OPEN),
    "tools of a call": lambda model: model.invoke("hi", tools=[OPEN_TOOL]),
}


@pytest.mark.parametrize("way", WITHOUT_STRICT_FORM)
def test_schema_without_a_strict_form_is_an_invalid_request_that_no_retry_repeats(way: str) -> None:
    service = Service()
    with pytest.raises(SchemaError) as caught:
        WITHOUT_STRICT_FORM[way](service.model())
    assert isinstance(caught.value, errors.SchemaError)
    assert isinstance(caught.value, (lc.ModelInvalidRequestError, errors.CerebrasError))
    assert caught.value.is_retryable is False
    assert not service.requests


def test_missing_key_is_an_authentication_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CEREBRAS_API_KEY", raising=False)
    with pytest.raises(lc.ModelAuthenticationError, match="CEREBRAS_API_KEY") as caught:
        Service().model(api_key=None)
    assert isinstance(caught.value, errors.MissingAPIKeyError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("path", PATHS)
async def test_closed_model_raises_an_error_of_ours(path: str) -> None:
    model = Service().model()
    await model.aclose()
    with pytest.raises(errors.ClientClosedError):
        await PATHS[path](model, "hi")


# ---- what traces get ----

SECRETS = {"set-cookie": "__cf_bm=abc", "x-request-id": "req-1", "content-type": "application/json", "x-echo": KEY}


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_trace_of_a_failure_has_the_answer_and_no_secret(path: str) -> None:
    body = {"message": f"Wrong API Key {KEY}", "type": "invalid_request_error", "code": "wrong_api_key"}
    service = Service(answer=lambda: httpx.Response(401, json=body, headers=SECRETS))
    recorder = Recorder()
    with pytest.raises(errors.AuthenticationError) as caught:
        await ALL_PATHS[path](service.model(callbacks=[recorder]), "hi")
    (result,) = recorder.results
    if "v3" in path and not result.generations:
        pytest.skip("this langchain-core hands no answer of a failed v3 stream to its tracers")
    (generation,) = result.generations[-1]
    metadata = generation.message.response_metadata  # type: ignore[union-attr]
    assert metadata["status_code"] == 401
    assert metadata["request_id"] == "req-1"
    assert metadata["body"] == {**body, "message": "Wrong API Key ***"}
    assert metadata["headers"]["x-request-id"] == "req-1"
    assert KEY not in repr(result)
    assert "__cf_bm" not in repr(result)
    assert KEY not in str(caught.value)
    assert not hasattr(caught.value, "request")
    assert not hasattr(caught.value.response, "request")
    assert recorder.ended == 0


@pytest.mark.parametrize("path", ["stream", "astream", "streaming invoke", "streaming ainvoke"])
async def test_what_came_before_the_failure_was_handed_out_and_the_end_is_an_error(path: str) -> None:
    bad = {"status_code": 500, "error": {"message": "boom", "type": "server_error", "code": "x"}}
    recorder = Recorder()
    model = Service([delta(content="par"), bad]).model(callbacks=[recorder])
    seen: list[str] = []

    async def read() -> None:
        if path == "stream":
            seen.extend(chunk.text for chunk in model.stream("hi"))
        elif path == "astream":
            async for chunk in model.astream("hi"):
                seen.append(chunk.text)  # noqa: PERF401
        else:
            await ALL_PATHS[path](model, "hi")

    with pytest.raises(errors.ServerError, match="boom"):
        await read()
    assert seen == (["par"] if path in ("stream", "astream") else [])
    assert len(recorder.results) == 1
    assert recorder.ended == 0


def test_response_snapshot_of_a_text_body() -> None:
    service = Service(answer=lambda: httpx.Response(502, text="<html><body>Bad gateway</body></html>"))
    with pytest.raises(errors.ServerError) as caught:
        service.model().invoke("hi")
    response = caught.value.response
    assert response.status_code == 502
    assert "Bad gateway" in response.text
    with pytest.raises(ValueError, match="not JSON"):
        response.json()
    with pytest.raises(errors.BadRequestError) as other:
        refusing(400, {"message": "ö"}).model().invoke("hi")
    assert json.loads(other.value.response.text) == other.value.response.json() == {"message": "ö"}


# ---- the objects ----


def test_errors_survive_pickle_and_copy() -> None:
    with pytest.raises(errors.RateLimitError) as caught:
        refusing(429, x_should_retry="false", x_request_id="r").model().invoke("hi")
    for twin in (pickle.loads(pickle.dumps(caught.value)), copy.copy(caught.value)):
        assert type(twin) is errors.RateLimitError
        assert (twin.request_id, twin.is_retryable, twin.response.status_code) == ("r", False, 429)
        assert str(twin) == str(caught.value)
    with pytest.raises(errors.APIConnectionError) as connection:
        failing(httpx.ConnectError("refused")).model().invoke("hi")
    assert type(pickle.loads(pickle.dumps(connection.value))) is errors.APIConnectionError


def test_refusal_and_truncation_errors_are_typed_and_keep_the_message() -> None:
    message = AIMessage("half")
    refusal = errors.RefusalError("withheld", raw_message=message)
    assert isinstance(refusal, errors.ModelRefusalError)
    assert refusal.raw_message is message
    truncated = errors.OutputTruncatedError("cut off", raw_message=message)
    assert isinstance(truncated, lc.OutputParserException)
    assert (truncated.raw_message, truncated.llm_output) == (message, "half")
    assert refusal.is_retryable is truncated.is_retryable is False


async def test_error_before_the_first_piece_of_a_stream_is_retried_and_the_stream_is_clean() -> None:
    answers = [
        httpx.Response(
            200,
            headers={"content-type": "text/event-stream"},
            stream=Bytes([event({"status_code": 503, "error": {"message": "busy"}})]),
        ),
        httpx.Response(
            200,
            headers={"content-type": "text/event-stream", "retry-after-ms": "0"},
            stream=Bytes([event(delta(content="ok")), event(end())]),
        ),
    ]
    service = Service(answer=lambda: answers.pop(0))
    assert "".join(chunk.text for chunk in service.model(max_retries=1).stream("hi")) == "ok"
    assert len(service.requests) == 2

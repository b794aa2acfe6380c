"""What both models promise of construction, keywords, options, errors and keys."""

from __future__ import annotations

import logging
import ssl
import statistics
import time
import warnings
from typing import Any

import httpx
import pytest
from langchain_core.load import dumps
from pydantic import SecretStr, ValidationError

from cerebras_ext.errors import (
    APIStatusError,
    MissingAPIKeyError,
    NotFoundError,
    PaymentRequiredError,
    RateLimitError,
    RequestValidationError,
)
from langchain_cerebras_ext.base import CerebrasBase
from tests.langchain.models import CLASSES, KEY, PATHS, Service, ask

both = pytest.mark.parametrize("cls", CLASSES)
paths = pytest.mark.parametrize("path", PATHS)
Cls = type[CerebrasBase]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CEREBRAS_API_KEY", "CEREBRAS_BASE_URL", "CEREBRAS_API_BASE"):
        monkeypatch.delenv(name, raising=False)


# ---- construction ----


@both
def test_construction_opens_nothing_and_costs_microseconds(cls: Cls, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a model that was only made has made a client")

    cls(model="m", api_key=KEY)
    for name in ("Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport"):
        monkeypatch.setattr(httpx, name, refuse)
    monkeypatch.setattr(ssl, "create_default_context", refuse)
    times = []
    for _ in range(200):
        started = time.perf_counter()
        cls(model="gpt-oss-120b", api_key=KEY, temperature=0.5, max_retries=1)
        times.append(time.perf_counter() - started)
    assert statistics.median(times) < 0.002


@both
def test_standard_keywords_construct(cls: Cls) -> None:
    fields = {"base_url": "http://u/v1/", "timeout": 3, "max_retries": 0, "max_tokens": 5, "temperature": 0}
    model = cls(model="m", api_key="k", stop=["s"], streaming=True, **fields)

    assert isinstance(model.api_key, SecretStr)
    assert model.model_dump(include={*fields, "stop", "streaming"}) == {
        **fields,
        "base_url": "http://u",
        "stop": ["s"],
        "streaming": True,
    }


@both
def test_model_is_required_and_no_name_is_refused(cls: Cls) -> None:
    without: dict[str, Any] = {"api_key": "k"}
    with pytest.raises(ValidationError, match="model"):
        cls(**without)
    assert cls(model="brand-new-1", api_key="k").model == "brand-new-1"


@both
def test_missing_key_is_told_at_construction_with_the_way_out(cls: Cls) -> None:
    with pytest.raises(MissingAPIKeyError, match="CEREBRAS_API_KEY"):
        cls(model="m")


@both
@paths
async def test_key_and_address_come_from_the_environment(cls: Cls, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEREBRAS_API_KEY", KEY)
    monkeypatch.setenv("CEREBRAS_API_BASE", "https://gateway.example/v1")
    service = Service()
    model = service.model(cls, api_key=None)

    assert await ask(model, path) == "ok"

    (request,) = service.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert str(request.url).startswith("https://gateway.example/v1/")
    assert model.api_key.get_secret_value() == KEY


@both
@paths
async def test_key_can_be_a_function(cls: Cls, path: str) -> None:
    service = Service()

    await ask(service.model(cls, api_key=lambda: KEY), path)

    assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"


@both
@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": 3},
        {"stop": ["1", "2", "3", "4", "5"]},
        {"max_tokens": -2},
        {"timeout": -1},
        {"max_retries": -1},
        {"queue_threshold": 49},
        {"queue_threshold": 20_001},
        {"base_url": "localhost"},
        {"payload": "xml"},
        {"stream_idle_timeout": 0},
        {"http_client": "no client"},
    ],
    ids=str,
)
def test_settings_out_of_range_are_refused_at_construction(cls: Cls, wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        cls(model="m", api_key="k", **wrong)


@both
def test_versions_are_kept_for_traces(cls: Cls) -> None:
    versions = (cls(model="m", api_key="k").metadata or {})["lc_versions"]  # type: ignore[attr-defined]

    assert {"langchain-core", "cerebras-ext"} <= versions.keys()


# ---- keywords of the constructor ----

ALIASES = [
    ("model_name", "model", "m2"),
    ("max_completion_tokens", "max_tokens", 9),
    ("stop_sequences", "stop", ["x"]),
    ("request_timeout", "timeout", 3.0),
    ("cerebras_api_base", "base_url", "https://u.example"),
    ("openai_api_base", "base_url", "https://u.example"),
    ("cerebras_api_key", "api_key", SecretStr("csk-other-key")),
    ("openai_api_key", "api_key", SecretStr("csk-other-key")),
    ("extra_headers", "default_headers", {"x-a": "1"}),
    ("cerebras_proxy", "proxy", "http://proxy.example:1"),
]


@both
@pytest.mark.parametrize(("alias", "field", "value"), ALIASES)
def test_other_spellings_of_a_field(cls: Cls, alias: str, field: str, value: Any) -> None:
    given = {"model": "m", "api_key": "k"}
    given.pop(field, None)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(cls(**given, **{alias: value}), field) == value


@both
def test_two_spellings_that_differ_are_refused_and_equal_ones_taken(cls: Cls) -> None:
    assert cls(model="m", api_key="k", max_tokens=9, max_completion_tokens=9).max_tokens == 9
    assert cls(model="m", api_key="k", max_tokens=9, max_completion_tokens=None).max_tokens == 9
    with pytest.raises(RequestValidationError, match="max_completion_tokens and max_tokens"):
        cls(model="m", api_key="k", max_tokens=9, max_completion_tokens=8)


@both
@paths
async def test_unknown_constructor_keyword_warns_at_the_callers_line_and_is_sent(cls: Cls, path: str) -> None:
    service = Service()
    with pytest.warns(UserWarning, match=r"temprature.*Did you mean 'temperature'") as caught:
        model = service.model(cls, temprature=0.1)

    await ask(model, path)

    assert [warning.filename.rpartition("/")[2] for warning in caught] == ["models.py"]
    assert model.model_kwargs == {"temprature": 0.1}
    assert service.bodies[0]["temprature"] == 0.1


@both
@pytest.mark.parametrize(
    "foreign", ["stream", "stream_usage", "store", "use_responses_api", "organization", "verbosity", "async_client"]
)
def test_keywords_of_other_providers_warn_and_are_dropped(cls: Cls, foreign: str) -> None:
    service = Service()
    with pytest.warns(UserWarning, match=f"{foreign} is another provider's keyword"):
        model = service.model(cls, **{foreign: True})

    model.invoke("q")

    assert model.model_kwargs == {}
    assert foreign not in service.bodies[0]


@both
def test_field_inside_model_kwargs_is_lifted_or_refused(cls: Cls) -> None:
    lifted = cls(model="m", api_key="k", model_kwargs={"temperature": 0.5, "max_completion_tokens": 3, "x": 1})

    assert (lifted.temperature, lifted.max_tokens, lifted.model_kwargs) == (0.5, 3, {"x": 1})
    assert cls(model="m", api_key="k", temperature=0.5, model_kwargs={"temperature": 0.5}).model_kwargs == {}
    with pytest.raises(RequestValidationError, match="temperature"):
        cls(model="m", api_key="k", temperature=0.1, model_kwargs={"temperature": 0.5})


@both
def test_headers_and_body_inside_model_kwargs_go_where_they_belong(cls: Cls) -> None:
    """`ChatOpenAI` hands `model_kwargs` to its SDK, whose methods take these two."""
    service = Service()
    service.model(cls, model_kwargs={"extra_headers": {"x-a": "1"}, "extra_body": {"b": 2}}).invoke("q")

    assert service.requests[0].headers["x-a"] == "1"
    assert service.bodies[0]["b"] == 2
    assert not {"extra_headers", "extra_body"} & service.bodies[0].keys()


@both
def test_dictionaries_of_the_caller_stay_as_they_are(cls: Cls) -> None:
    kwargs, body = {"temperature": 0.5, "x": 1}, {"y": 2}
    service = Service()
    service.model(cls, model_kwargs=kwargs, extra_body=body).invoke("q", extra_body={"z": 3})

    assert (kwargs, body) == ({"temperature": 0.5, "x": 1}, {"y": 2})
    assert {name: service.bodies[0][name] for name in "xyz"} == {"x": 1, "y": 2, "z": 3}


# ---- options of a call ----


@both
@paths
@pytest.mark.parametrize("bound", [False, True])
async def test_options_that_frameworks_add_for_themselves_are_dropped(cls: Cls, path: str, bound: bool) -> None:
    service = Service()
    options = {"stream_usage": True, "ls_structured_output_format": {"kwargs": {}, "schema": {}}, "ls_x": 1}
    model = service.model(cls)

    await ask(model.bind(**options) if bound else model, path, **({} if bound else options))

    assert service.bodies[0].keys() <= {"model", "messages", "prompt", "stream", "stream_options"}


@both
@paths
async def test_unknown_call_option_raises_with_the_nearest_name(cls: Cls, path: str) -> None:
    service = Service()

    with pytest.raises(ValueError, match=r"temprature.*did you mean 'temperature'"):
        await ask(service.model(cls), path, temprature=0.1)
    assert service.requests == []


@both
@paths
async def test_call_options_of_other_providers_warn_and_are_dropped(cls: Cls, path: str) -> None:
    service = Service()

    with pytest.warns(UserWarning, match="store is another provider's option"):
        await ask(service.model(cls), path, store=True)

    assert "store" not in service.bodies[0]


@both
@pytest.mark.parametrize("option", ["messages", "prompt"])
def test_input_is_no_option(cls: Cls, option: str) -> None:
    with pytest.raises((ValueError, TypeError), match=option):
        Service().model(cls).invoke("q", **{option: "x"})


@both
@paths
async def test_transport_options_of_a_call(cls: Cls, path: str) -> None:
    service = Service()
    model = service.model(cls, queue_threshold=1500, default_headers={"x-a": "1"}, timeout=50)

    await ask(model, path)
    await ask(model, path, queue_threshold=60, extra_headers={"x-b": "2"}, timeout=7)

    first, second = service.requests
    assert [request.headers["queue_threshold"] for request in (first, second)] == ["1500", "60"]
    assert [request.headers.get("x-b") for request in (first, second)] == [None, "2"]
    assert [request.headers["x-a"] for request in (first, second)] == ["1", "1"]
    assert [request.extensions["timeout"]["read"] for request in (first, second)] == [50, 7]
    for body in service.bodies:
        assert not {"queue_threshold", "extra_headers", "timeout"} & body.keys()


@both
@paths
async def test_model_of_the_call_is_sent(cls: Cls, path: str) -> None:
    service = Service()
    await ask(service.model(cls).bind(model="bound"), path)
    await ask(service.model(cls).bind(model="bound"), path, model_name="called")

    assert [body["model"] for body in service.bodies] == ["bound", "called"]


# ---- retries and errors ----


@both
@paths
@pytest.mark.parametrize("retries", [0, 2])
async def test_exactly_one_request_and_the_retries(cls: Cls, path: str, retries: int) -> None:
    service = Service(httpx.Response(429, json={"message": "slow down"}, headers={"retry-after": "0"}))

    with pytest.raises(RateLimitError):
        await ask(service.model(cls, max_retries=retries), path)

    assert len(service.requests) == 1 + retries


@both
@paths
async def test_bad_requests_are_not_repeated(cls: Cls, path: str) -> None:
    refusals = {402: PaymentRequiredError, 404: NotFoundError, 400: APIStatusError}
    for status, error in refusals.items():
        service = Service(httpx.Response(status, json={"message": "Model m is gone", "code": "x"}))
        with pytest.raises(error, match="gone"):
            await ask(service.model(cls), path)
        assert len(service.requests) == 1


# ---- keys stay secret ----


@both
def test_key_shows_nowhere(cls: Cls, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    service = Service(httpx.Response(401, json={"message": f"Wrong API Key {KEY}"}))
    model = service.model(cls, default_headers={"x-token": f"h-{KEY}"}, proxy=f"http://u:{KEY}@proxy.example:1")

    with pytest.raises(APIStatusError) as caught:
        model.invoke("q")

    shown = [repr(model), str(model), dumps(model), str(model.to_json()), str(model.asdict()), str(model._serialized)]
    shown += [str(model.model_dump()), model.model_dump_json(exclude={"api_key"}, fallback=str)]
    shown += [str(caught.value), repr(caught.value), str(vars(caught.value)), caplog.text]
    assert [text for text in shown if "PLANTED" in text] == []
    assert model.api_key.get_secret_value() == KEY


@both
def test_password_in_an_address_is_masked(cls: Cls) -> None:
    model = cls(model="m", api_key="k", base_url="https://user:hunter2@gateway.example")

    assert "hunter2" not in repr(model) + str(model._identifying_params) + dumps(model) + dumps(model.bind(seed=1))
    assert "gateway.example" in repr(model)


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("fields", [{}, {"model": None}, {"model": "m", "temperature": "hot"}, {"api_key": [KEY]}])
def test_key_is_not_in_the_text_of_a_refusal_at_construction(cls: type[CerebrasBase], fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as caught:
        cls(**{"api_key": KEY, **fields})
    assert "PLANTED" not in str(caught.value) + repr(caught.value)

"""`CerebrasLLM`: what is sent to the completions endpoint, and what comes back, on every path."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.outputs import GenerationChunk
from langchain_core.prompts import PromptTemplate

from cerebras_ext.errors import APIResponseError, BadRequestError, RequestValidationError, ServerError
from langchain_cerebras_ext.completions import parse_token_ids, token_text
from langchain_cerebras_ext.llm import CerebrasLLM
from tests.langchain.text_service import (
    HEAD,
    PATHS,
    TIME_INFO,
    USAGE,
    Recorder,
    TextService,
    ask,
    event,
    logprobs_of,
    texts,
)


@pytest.fixture
def service() -> TextService:
    return TextService()


SENT = {"model": "m", "prompt": "a"}
STREAMED = {**SENT, "stream": True}
INFO = {
    "model_provider": "cerebras",
    "finish_reason": "stop",
    "id": "chatcmpl-1",
    "created": 7,
    "model_name": "m-served",
    "system_fingerprint": "fp_1",
    "time_info": TIME_INFO,
    "token_usage": USAGE,
}


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_is_sent_that_was_not_set(service: TextService, path: str) -> None:
    await ask(service.llm(), path, "a")

    assert service.bodies == [STREAMED if "stream" in path else SENT]


@pytest.mark.parametrize("path", PATHS)
async def test_text_and_generation_info_are_the_same_on_every_path(service: TextService, path: str) -> None:
    text, generation = await ask(service.llm(), path, "a")

    assert text == "<a#0>"
    assert generation["text"] == text
    assert generation["generation_info"] == INFO


@pytest.mark.parametrize("path", ["invoke", "ainvoke"])
async def test_streaming_makes_a_plain_call_stream(service: TextService, path: str) -> None:
    text, generation = await ask(service.llm(streaming=True), path, "a")

    assert service.bodies == [STREAMED]
    assert (text, generation["generation_info"]) == ("<a#0>", INFO)


def test_streaming_call_has_the_llm_output_of_a_plain_one(service: TextService) -> None:
    plain, streamed = service.llm().generate(["a"]), service.llm(streaming=True).generate(["a"])

    assert plain.llm_output == streamed.llm_output
    assert plain.llm_output == {
        "model_provider": "cerebras",
        "token_usage": USAGE,
        "model_name": "m-served",
        "system_fingerprint": "fp_1",
    }


@pytest.mark.parametrize("given", [{"n": 2}, {"n": 1, "best_of": 3}])
def test_streaming_gives_way_where_there_is_no_stream(service: TextService, given: dict[str, int]) -> None:
    service.llm(streaming=True, **given).generate(["a"])
    service.llm(streaming=True).generate(["a", "b"])

    assert [body.get("stream") for body in service.bodies] == [None, None]


# ---- many prompts ----


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_all_prompts_of_a_batch_go_in_one_request(service: TextService, asynchronous: bool) -> None:
    llm = service.llm()
    answers = await llm.abatch(["a", "b", "c"]) if asynchronous else llm.batch(["a", "b", "c"])

    assert answers == ["<a#0>", "<b#0>", "<c#0>"]
    assert service.bodies == [{"model": "m", "prompt": ["a", "b", "c"]}]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_batch_size_limits_a_request(service: TextService, asynchronous: bool) -> None:
    llm = service.llm(batch_size=2)
    prompts = ["a", "b", "c", "d", "e"]
    result = await llm.agenerate(prompts) if asynchronous else llm.generate(prompts)

    assert [body["prompt"] for body in service.bodies] == [["a", "b"], ["c", "d"], "e"]
    assert texts(result) == [[f"<{prompt}#0>"] for prompt in prompts]
    assert result.llm_output is not None
    assert result.llm_output["token_usage"] == {
        "prompt_tokens": 12,
        "completion_tokens": 6,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3},
    }


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_answers_are_put_back_by_their_number(service: TextService, asynchronous: bool) -> None:
    llm = service.llm(n=2, best_of=4)
    result = await llm.agenerate(["a", "b"]) if asynchronous else llm.generate(["a", "b"])

    assert service.bodies == [{"model": "m", "prompt": ["a", "b"], "n": 2, "best_of": 4}]
    assert texts(result) == [["<a#0>", "<a#1>"], ["<b#0>", "<b#1>"]]


def test_number_of_answers_counts_wherever_it_is_given(service: TextService) -> None:
    for llm in (service.llm(n=2), service.llm(extra_body={"n": 2}), service.llm(model_kwargs={"n": 2})):
        assert texts(llm.generate(["a", "b"])) == [["<a#0>", "<a#1>"], ["<b#0>", "<b#1>"]]


def test_usage_of_a_shared_request_is_counted_once(service: TextService) -> None:
    result = service.llm().generate(["a", "b"])

    infos = [row[0].generation_info or {} for row in result.generations]
    assert [("token_usage" in info, info["finish_reason"]) for info in infos] == [(False, "stop"), (False, "stop")]
    assert (result.llm_output or {})["token_usage"] == USAGE


@pytest.mark.parametrize(
    "numbers", [[0], [0, 1, 2], [0, 0], [1, 2], []], ids=["missing", "extra", "twice", "shifted", "none"]
)
def test_missing_or_surplus_answers_are_an_error(service: TextService, numbers: list[int]) -> None:
    choices = [{"index": number, "text": "t", "finish_reason": "stop"} for number in numbers]
    service.answer = lambda body: httpx.Response(200, json={**HEAD, "choices": choices})

    with pytest.raises(APIResponseError):
        service.llm().generate(["a", "b"])


def test_nothing_to_do_makes_no_request(service: TextService) -> None:
    assert service.llm().generate([]).generations == []
    assert service.llm().batch([]) == []
    assert service.bodies == []


def test_failing_batch_fails_every_run(service: TextService) -> None:
    service.answer = lambda body: httpx.Response(500, json={"message": "broken", "type": "server_error"})
    recorder = Recorder()

    answers = service.llm().batch(["a", "b"], {"callbacks": [recorder]}, return_exceptions=True)

    assert [isinstance(answer, ServerError) for answer in answers] == [True, True]
    assert ["broken" in (run.error or "") for run in recorder.runs] == [True, True]


# ---- token ids ----


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    ("prompts", "sent", "expected"),
    [
        ([[5, 0, 12]], [5, 0, 12], [["<[5, 0, 12]#0>"]]),
        ([[5], [6, 7]], [[5], [6, 7]], [["<[5]#0>"], ["<[6, 7]#0>"]]),
    ],
)
async def test_prompts_of_token_ids(
    service: TextService, prompts: list[list[int]], sent: Any, expected: list[list[str]], asynchronous: bool
) -> None:
    llm = service.llm()
    result = await llm.agenerate_token_ids(prompts) if asynchronous else llm.generate_token_ids(prompts)

    assert service.bodies == [{"model": "m", "prompt": sent}]
    assert texts(result) == expected


@pytest.mark.parametrize("path", PATHS)
async def test_token_ids_as_call_option(service: TextService, path: str) -> None:
    text, _ = await ask(service.llm().bind(token_ids=True), path, "5, 6 7")

    assert service.bodies[0]["prompt"] == [5, 6, 7]
    assert text == "<[5, 6, 7]#0>"


@pytest.mark.parametrize("prompt", ["", "five", "1 -2", "1.5", "²", "[1]"])
def test_token_ids_that_are_none_are_refused(service: TextService, prompt: str) -> None:
    with pytest.raises(RequestValidationError, match="token ids"):
        service.llm().invoke(prompt, token_ids=True)
    assert service.bodies == []


# ---- parameters that change the answer ----


@pytest.mark.parametrize("path", PATHS)
async def test_logprobs_are_kept_as_the_service_sends_them(service: TextService, path: str) -> None:
    _, generation = await ask(service.llm(logprobs=2), path, "a")

    assert generation["generation_info"]["logprobs"] == logprobs_of(["<a", "#0>"])


@pytest.mark.parametrize("path", PATHS)
async def test_raw_tokens(service: TextService, path: str) -> None:
    text, generation = await ask(service.llm(return_raw_tokens=True), path, "a")

    assert text == ""
    assert generation["generation_info"]["tokens"] == [2, 3]


@pytest.mark.parametrize("path", PATHS)
async def test_response_headers_on_request(service: TextService, path: str) -> None:
    _, without = await ask(service.llm(), path, "a")
    _, of_all = await ask(service.llm(include_response_headers=True), path, "a")
    _, of_one = await ask(service.llm(), path, "a", include_response_headers=True)

    assert "headers" not in without["generation_info"]
    for generation in (of_all, of_one):
        assert generation["generation_info"]["headers"]["x-request-id"] == "r-1"
        assert "set-cookie" not in generation["generation_info"]["headers"]


@pytest.mark.parametrize("given", [{"best_of": 3}, {"n": 2}], ids=str)
@pytest.mark.parametrize("level", ["constructor", "call", "bind", "extra_body"])
async def test_what_cannot_be_one_stream_is_refused_before_it_is_sent(
    service: TextService, given: dict[str, int], level: str
) -> None:
    llm: Any = service.llm(**given) if level == "constructor" else service.llm()
    llm = llm.bind(**given) if level == "bind" else llm
    places: dict[str, dict[str, Any]] = {"call": dict(given), "extra_body": {"extra_body": given}}
    options = places.get(level, {})

    with pytest.raises(ValueError, match=f"{next(iter(given))}.* streamed"):
        list(llm.stream("a", **options))
    with pytest.raises(ValueError, match=f"{next(iter(given))}.* streamed"):
        [piece async for piece in llm.astream("a", **options)]
    assert service.bodies == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"n": 2, "best_of": 2}, "best_of"),
        ({"stop": ["1", "2", "3", "4", "5"]}, "stop"),
        ({"logprobs": 21}, "logprobs"),
        ({"min_tokens": -2}, "min_tokens"),
        ({"temperature": 2.5}, "temperature"),
    ],
)
@pytest.mark.parametrize("level", ["constructor", "call"])
def test_conflicts_and_ranges_are_refused_with_the_field_named(
    service: TextService, given: dict[str, Any], told: str, level: str
) -> None:
    def call() -> None:
        if level == "constructor":
            service.llm(**given).invoke("a")
        else:
            service.llm().invoke("a", **given)

    with pytest.raises(RequestValidationError, match=told):
        call()
    assert service.bodies == []


def test_stop_of_the_call_replaces_that_of_the_constructor(service: TextService) -> None:
    llm = service.llm(stop=["x"])
    llm.invoke("a")
    llm.invoke("a", stop=["y"])
    llm.bind(stop="z").invoke("a")

    assert [body["stop"] for body in service.bodies] == [["x"], ["y"], "z"]


@pytest.mark.parametrize("path", PATHS)
async def test_usage_options_of_the_user_are_kept_and_only_streamed(service: TextService, path: str) -> None:
    await ask(service.llm(stream_options={"include_usage": False}), path, "a")

    expected = {"include_usage": False} if "stream" in path else None
    assert service.bodies[0].get("stream_options") == expected


# ---- callbacks ----


@pytest.mark.parametrize("path", ["stream", "invoke"])
def test_new_tokens_are_told_before_they_are_handed_out(service: TextService, path: str) -> None:
    seen: list[str] = []

    class Handler(BaseCallbackHandler):
        def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
            assert isinstance(chunk, GenerationChunk)
            assert chunk.text == token
            seen.append(f"told {token}")

    llm = service.llm(streaming=True)
    if path == "stream":
        seen.extend(f"got {piece}" for piece in llm.stream("a", {"callbacks": [Handler()]}))
        assert seen == ["told <a", "got <a", "told #0>", "got #0>", "told ", "got "]
    else:
        llm.invoke("a", {"callbacks": [Handler()]})
        assert seen == ["told <a", "told #0>", "told "]


async def test_new_tokens_are_told_to_async_handlers(service: TextService) -> None:
    seen: list[str] = []

    class Handler(AsyncCallbackHandler):
        async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
            await asyncio.sleep(0)
            seen.append(f"told {token}")

    async for piece in service.llm().astream("a", {"callbacks": [Handler()]}):
        seen.append(f"got {piece}")  # noqa: PERF401 - the order of two writers counts

    assert seen == ["told <a", "got <a", "told #0>", "got #0>", "told ", "got "]


@pytest.mark.parametrize("path", ["stream", "astream"])
async def test_failure_within_a_stream_keeps_what_came_and_ends_the_run_as_failed(
    service: TextService, path: str
) -> None:
    broken = {"status_code": 500, "error": {"message": "boom", "type": "server_error", "code": "x"}}
    first = event({**HEAD, "choices": [{"index": 0, "text": "par"}]})
    service.answer = lambda body: httpx.Response(
        200, content=first + event(broken), headers={"content-type": "text/event-stream"}
    )
    recorder = Recorder()
    pieces: list[str] = []

    async def read() -> None:
        if path == "stream":
            pieces.extend(service.llm().stream("a", {"callbacks": [recorder]}))
        else:
            async for piece in service.llm().astream("a", {"callbacks": [recorder]}):
                pieces.append(piece)  # noqa: PERF401 - what came before the failure counts

    with pytest.raises(ServerError, match="boom"):
        await read()

    assert pieces == ["par"]
    assert "boom" in (recorder.runs[0].error or "")


@pytest.mark.parametrize("path", PATHS)
async def test_errors_of_the_service_are_typed(service: TextService, path: str) -> None:
    refused = {"message": "no such thing", "type": "invalid_request_error", "code": "wrong_api_format"}
    service.answer = lambda body: httpx.Response(400, json=refused)

    with pytest.raises(BadRequestError, match="no such thing") as caught:
        await ask(service.llm(), path, "a")
    assert type(caught.value).__module__ == "langchain_cerebras_ext.errors"


def test_tracers_learn_provider_model_and_parameters(service: TextService) -> None:
    recorder = Recorder()
    service.llm(temperature=0.5, stop=["s"]).invoke("a", {"callbacks": [recorder]}, model="other", max_tokens=9)

    (run,) = recorder.runs
    metadata = (run.extra or {})["metadata"]
    assert {name: value for name, value in metadata.items() if name in INFO_OF_TRACES} == INFO_OF_TRACES
    assert "PLANTED" not in str(run.serialized) + str(run.extra)


INFO_OF_TRACES = {
    "ls_provider": "cerebras",
    "ls_model_type": "llm",
    "ls_model_name": "other",
    "ls_temperature": 0.5,
    "ls_max_tokens": 9,
    "ls_stop": ["s"],
}


# ---- consumers ----


def test_works_in_a_chain(service: TextService) -> None:
    chain = PromptTemplate.from_template("say {x}") | service.llm().bind(stop=["."]) | str.upper

    assert chain.invoke({"x": "hi"}) == "<SAY HI#0>"
    assert service.bodies == [{"model": "m", "prompt": "say hi", "stop": ["."]}]


def test_leaving_a_stream_early_gives_the_connection_back(service: TextService) -> None:
    stream: Any = service.llm().stream("a")
    assert next(stream) == "<a"
    stream.close()


def test_class_is_named_and_typed_for_core() -> None:
    llm = CerebrasLLM(model="m", api_key="k")

    assert (llm._llm_type, llm.model_name) == ("cerebras", "m")
    assert llm.asdict() == {"model": "m", "base_url": "https://api.cerebras.ai", "_type": "cerebras"}


@pytest.mark.parametrize("prompt", [[1, 22, 0], (3,), [2**70]])
def test_the_text_of_token_ids_stands_for_them_with_and_without_the_ids(prompt: list[int]) -> None:
    text = token_text(prompt)
    assert text == " ".join(map(str, prompt))
    assert parse_token_ids(text) == parse_token_ids(str(text[:])) == list(prompt)


@pytest.mark.parametrize("prompt", [[], [-1], [True], [1.5], ["1", "x"], "12"])
def test_what_is_no_token_id_is_left_to_the_reading_of_the_text(prompt: Any) -> None:
    assert type(token_text(prompt)) is str
    assert token_text(prompt) == " ".join(map(str, prompt))

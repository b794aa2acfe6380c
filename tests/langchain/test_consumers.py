"""Chains, fallbacks, retries, callbacks, tracers and instrumentors over our model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.callbacks import UsageMetadataCallbackHandler, get_usage_metadata_callback
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.exceptions import ModelRateLimitError
from langchain_core.messages import AIMessageChunk
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnablePassthrough
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.tools import tool
from langchain_core.tracers.base import BaseTracer
from langchain_core.tracers.schemas import Run
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from langchain_cerebras_ext.errors import AuthenticationError
from tests.langchain.stub import MODEL, PATHS, Stub, ask, call, refuse, say

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "Be short."), MessagesPlaceholder("history", optional=True), ("human", "{question}")]
)


@tool
def weather(city: str) -> str:
    """Weather of a city."""
    return f"sun in {city}"


# ---- chains ----


@pytest.mark.parametrize("path", PATHS)
async def test_a_chain_of_prompt_model_and_parser(path: str) -> None:
    stub = Stub(say("Hello there."))
    chain = PROMPT | stub.model() | StrOutputParser()
    assert await ask(chain, path, {"question": "Hi?"}) == "Hello there."
    assert stub.bodies[0]["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hi?"},
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_a_chain_with_memory_replays_text_and_reasoning(path: str) -> None:
    stub = Stub(say("Hello Ada.", reasoning="Hm."), say("Ada."))
    histories: dict[str, InMemoryChatMessageHistory] = {}
    chain = RunnableWithMessageHistory(
        PROMPT | stub.model(),
        lambda session_id: histories.setdefault(session_id, InMemoryChatMessageHistory()),
        input_messages_key="question",
        history_messages_key="history",
    )
    config: Any = {"configurable": {"session_id": "1"}}
    await ask(chain, path, {"question": "I am Ada."}, config=config)
    await ask(chain, path, {"question": "Who am I?"}, config=config)
    assert stub.bodies[1]["messages"] == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello Ada.", "reasoning": "Hm."},
        {"role": "user", "content": "Who am I?"},
    ]


@pytest.mark.parametrize("path", PATHS)
async def test_models_run_side_by_side_in_one_chain(path: str) -> None:
    one, two = Stub(say("one")), Stub(say("two"))
    parts = {"left": one.model() | StrOutputParser(), "right": two.model() | StrOutputParser()}
    assert await ask(RunnablePassthrough() | parts, path) == {"left": "one", "right": "two"}


# ---- fallbacks and retries ----


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [401, 429, 500])
async def test_a_fallback_takes_over_before_the_first_token(path: str, status: int) -> None:
    bad, good = Stub(refuse(status, "no")), Stub(say("Hi."))
    model = bad.model().with_fallbacks([good.model()])
    assert (await ask(model, path)).text == "Hi."
    assert (len(bad.bodies), len(good.bodies)) == (1, 1)


async def test_a_fallback_of_bound_tools_sends_the_same_tools() -> None:
    bad, good = Stub(refuse(500, "no")), Stub(call(("weather", '{"city": "Oslo"}')))
    model = bad.model().bind_tools([weather]).with_fallbacks([good.model().bind_tools([weather])])
    assert (await model.ainvoke("q")).tool_calls[0]["args"] == {"city": "Oslo"}
    assert bad.body == good.body


@pytest.mark.parametrize("path", ["invoke", "ainvoke"])
async def test_with_retry_repeats_what_it_is_told_to(path: str) -> None:
    stub = Stub(refuse(429, "slow down"), say("Hi."))
    model = stub.model().with_retry(
        retry_if_exception_type=(ModelRateLimitError,), wait_exponential_jitter=False, stop_after_attempt=2
    )
    assert (await ask(model, path)).text == "Hi."
    assert len(stub.bodies) == 2
    bad = Stub(refuse(401, "no"))
    with pytest.raises(AuthenticationError):
        await ask(bad.model().with_retry(retry_if_exception_type=(ModelRateLimitError,)), path)
    assert len(bad.bodies) == 1


# ---- usage ----

USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


@pytest.mark.parametrize("path", PATHS)
async def test_the_usage_handler_counts_by_the_model_that_answered(path: str) -> None:
    handler = UsageMetadataCallbackHandler()
    stub = Stub(say("Hi."))
    await ask(stub.model(), path, config={"callbacks": [handler]})
    await ask(stub.model(), path, config={"callbacks": [handler]}, model="qwen-3.8-27b")
    assert handler.usage_metadata == {MODEL: USAGE, "qwen-3.8-27b": USAGE}


def test_the_usage_context_counts_agents_and_structured_output() -> None:
    class Person(BaseModel):
        name: str

    with get_usage_metadata_callback() as counted:
        Stub(say('{"name": "Ada"}')).model().with_structured_output(Person).invoke("q")
        list(Stub(say("Hi.")).model().stream("q"))
    assert counted.usage_metadata == {MODEL: {"input_tokens": 20, "output_tokens": 10, "total_tokens": 30}}


# ---- tracers ----


class Tracer(BaseTracer):
    """Collects finished root runs, as the tracer of LangSmith sends them."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def _persist_run(self, run: Run) -> None:
        self.runs.append(run)


@pytest.mark.parametrize("path", PATHS)
async def test_a_tracer_gets_parameters_message_and_usage(path: str) -> None:
    tracer = Tracer()
    stub = Stub(call(("weather", '{"city": "Oslo"}')))
    model = stub.model(temperature=0.5, max_tokens=9).bind_tools([weather])
    await ask(model, path, config={"callbacks": [tracer]})
    (run,) = tracer.runs
    assert run.run_type == "llm"
    assert run.error is None
    assert run.extra is not None
    parameters = run.extra["invocation_params"]
    assert (parameters["_type"], parameters["temperature"]) == ("cerebras-chat", 0.5)
    metadata = run.extra["metadata"]
    expected = {"ls_provider": "cerebras", "ls_model_name": MODEL, "ls_model_type": "chat", "ls_temperature": 0.5}
    assert {key: metadata[key] for key in expected} == expected
    assert run.outputs is not None
    message = run.outputs["generations"][0][0]["message"]["kwargs"]
    assert message["usage_metadata"] == USAGE
    assert message["tool_calls"][0]["args"] == {"city": "Oslo"}
    assert "csk-test" not in repr(run.extra) + repr(run.serialized) + repr(run.inputs) + repr(run.outputs)


@pytest.mark.parametrize("path", PATHS)
async def test_a_tracer_gets_the_error_and_what_the_service_said_without_the_key(path: str) -> None:
    tracer = Tracer()
    with pytest.raises(AuthenticationError):
        await ask(
            Stub(refuse(401, "Wrong API Key", code="wrong_api_key")).model(), path, config={"callbacks": [tracer]}
        )
    (run,) = tracer.runs
    assert run.error is not None
    assert "Wrong API Key" in run.error
    assert "csk-test" not in repr(run.error) + repr(run.extra) + repr(run.outputs) + repr(run.serialized)


def test_a_tracer_sees_one_model_run_under_a_structured_chain() -> None:
    class Person(BaseModel):
        name: str

    tracer = Tracer()
    stub = Stub(say('{"name": "Ada"}'))
    stub.model().with_structured_output(Person).invoke("q", config={"callbacks": [tracer]})
    (root,) = tracer.runs
    assert [child.run_type for child in root.child_runs] == ["llm", "parser"]


# ---- OpenInference ----


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=provider)
    yield exporter
    instrumentor.uninstrument()


def llm_span(exporter: InMemorySpanExporter) -> ReadableSpan:
    found = [
        span
        for span in exporter.get_finished_spans()
        if span.attributes and span.attributes.get("openinference.span.kind") == "LLM"
    ]
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize("path", PATHS)
async def test_openinference_reads_model_tokens_and_tool_calls(path: str, spans: InMemorySpanExporter) -> None:
    stub = Stub(call(("weather", '{"city": "Oslo"}')))
    await ask(stub.model(temperature=0.5).bind_tools([weather]), path)
    attributes: Any = llm_span(spans).attributes
    assert attributes["llm.model_name"] == MODEL
    assert attributes["llm.token_count.prompt"] == 10
    assert attributes["llm.token_count.completion"] == 5
    assert attributes["llm.token_count.total"] == 15
    prefix = "llm.output_messages.0.message.tool_calls.0.tool_call.function."
    assert attributes[f"{prefix}name"] == "weather"
    assert json.loads(attributes[f"{prefix}arguments"]) == {"city": "Oslo"}
    assert json.loads(attributes["llm.invocation_parameters"])["temperature"] == 0.5
    assert "csk-test" not in repr(attributes)


async def test_openinference_reads_version_3_streams(spans: InMemorySpanExporter) -> None:
    stream = Stub(say("Hi.")).model().stream_events("q", version="v3")
    assert "".join(stream.text) == "Hi."
    attributes: Any = llm_span(spans).attributes
    assert attributes["llm.token_count.total"] == 15


def test_chunks_of_a_stream_stay_chunks_through_a_chain() -> None:
    stub = Stub(say("abcdef"))
    assert all(isinstance(chunk, AIMessageChunk) for chunk in (PROMPT | stub.model()).stream({"question": "q"}))

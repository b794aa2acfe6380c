"""What observers read: exact token counts, model, temperature and finish reason, from every path."""

from __future__ import annotations

import importlib.util
import json
import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.callbacks import CallbackManager, LlamaDebugHandler, TokenCountingHandler
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.llms import ChatMessage
from llama_index.core.memory import Memory
from llama_index.core.utilities.token_counting import TokenCounter

from tests.llamaindex.scripted import (
    COMPLETE_PATHS,
    ESTIMATES_BLOCKS,
    PATHS,
    USAGE,
    ask,
    both,
    call,
    chunk,
    last,
    scripted,
)

ARGUMENTS = '{"city": "Bern"}'
CALLS = [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": ARGUMENTS}}]
ANSWER = both(
    {"content": "Hello", "reasoning": "hm", "tool_calls": CALLS},
    {"reasoning": "hm"},
    {"content": "Hel"},
    {"content": "lo"},
    {"tool_calls": [call(0, "c1", "weather", ARGUMENTS)]},
    finish_reason="tool_calls",
)
ALL_PATHS = [*PATHS, *COMPLETE_PATHS]


def argument(path: str) -> Any:
    return "q" if path in COMPLETE_PATHS else ask()


# ---- core's own ----


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_token_counting_handler_counts_what_the_service_told(path: str) -> None:
    counter = TokenCountingHandler()
    llm, _ = scripted(ANSWER, callback_manager=CallbackManager([counter]))
    await last(llm, path, argument(path))
    assert (counter.prompt_llm_token_count, counter.completion_llm_token_count) == (10, 5)
    assert len(counter.llm_token_counts) == 1


@pytest.mark.parametrize("path", ["stream_chat", "astream_chat"])
async def test_token_counting_handler_counts_a_usage_only_chunk(path: str) -> None:
    counter = TokenCountingHandler()
    events = [chunk({"content": "a"}), chunk({}, finish_reason="stop"), {"choices": [], "usage": USAGE}]
    llm, _ = scripted(events, callback_manager=CallbackManager([counter]))
    await last(llm, path, ask())
    assert (counter.prompt_llm_token_count, counter.completion_llm_token_count) == (10, 5)


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_token_counting_handler_estimates_without_usage_and_does_not_fail(path: str) -> None:
    counter = TokenCountingHandler(tokenizer=str.split)
    answer = both({"content": "one two"}, {"content": "one "}, {"content": "two"}, usage=None)
    llm, _ = scripted(answer, callback_manager=CallbackManager([counter]))
    await last(llm, path, argument(path))
    assert counter.prompt_llm_token_count > 0
    assert counter.completion_llm_token_count > 0


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_debug_handler_sees_one_pair_of_events(path: str) -> None:
    debug = LlamaDebugHandler(print_trace_on_end=False)
    llm, _ = scripted(ANSWER, callback_manager=CallbackManager([debug]))
    await last(llm, path, argument(path))
    assert len(debug.get_llm_inputs_outputs()) == 1


@pytest.mark.skipif(not ESTIMATES_BLOCKS, reason="this core does not estimate tokens by block")
@pytest.mark.parametrize("path", PATHS)
async def test_tokens_of_a_message_are_estimated_from_its_blocks_once(path: str) -> None:
    llm, _ = scripted(ANSWER)
    message = (await last(llm, path, ask())).message
    counter = TokenCounter(tokenizer=str.split)
    bare = ChatMessage(role="assistant", blocks=message.blocks)
    assert counter.estimate_tokens_in_messages([message]) == counter.estimate_tokens_in_messages([bare])
    assert message.blocks[0].estimate_tokens(str.split) == 2, "the service's count of reasoning tokens"


@pytest.mark.parametrize("path", PATHS)
async def test_memory_counts_the_tool_calls_of_a_message(path: str) -> None:
    llm, _ = scripted(ANSWER)
    message = (await last(llm, path, ask())).message
    memory = Memory.from_defaults(session_id="s", tokenizer_fn=str.split)
    without = ChatMessage(role="assistant", blocks=message.blocks)
    assert memory._estimate_token_count(message) > memory._estimate_token_count(without)


# ---- OpenTelemetry ----


@pytest.fixture
def exporter() -> Any:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    return InMemorySpanExporter()


@pytest.fixture
def provider(exporter: Any) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider


@pytest.fixture
def dispatcher_restored() -> Iterator[None]:
    dispatcher = get_dispatcher()
    events, spans = list(dispatcher.event_handlers), list(dispatcher.span_handlers)
    yield
    dispatcher.event_handlers[:] = events
    dispatcher.span_handlers[:] = spans


def attributes(exporter: Any, name: str) -> list[dict[str, Any]]:
    return [dict(span.attributes) for span in exporter.get_finished_spans() if name in span.name]


@pytest.fixture
def open_telemetry(provider: Any, exporter: Any, dispatcher_restored: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("wrapt")
    if importlib.util.find_spec("opentelemetry.instrumentation") is None:
        pytest.skip("opentelemetry-instrumentation-llamaindex is not installed")
    if importlib.util.find_spec("llama_index.llms") is None:
        # The instrumentor imports this namespace, which exists only where some llama-index-llms-* is installed.
        namespace = types.ModuleType("llama_index.llms")
        namespace.__path__ = []
        monkeypatch.setitem(sys.modules, "llama_index.llms", namespace)
        import llama_index

        monkeypatch.setattr(llama_index, "llms", namespace, raising=False)
    module = pytest.importorskip("opentelemetry.instrumentation.llamaindex.dispatcher_wrapper")
    module.instrument_with_dispatcher(provider.get_tracer("test"))
    return exporter


@pytest.mark.parametrize("path", PATHS)
async def test_open_telemetry_reads_request_and_answer(path: str, open_telemetry: Any) -> None:
    llm, _ = scripted(ANSWER, temperature=0.25)
    await last(llm, path, ask())
    (span,) = attributes(open_telemetry, "Cerebras")
    assert (span["gen_ai.request.model"], span["gen_ai.request.temperature"]) == ("some-model", 0.25)
    assert (span["gen_ai.response.model"], span["gen_ai.response.id"]) == ("served-model", "chatcmpl-1")
    assert (span["gen_ai.usage.input_tokens"], span["gen_ai.usage.output_tokens"]) == (10, 5)
    assert span["gen_ai.usage.cache_read.input_tokens"] == 4
    assert span["gen_ai.response.finish_reasons"] == ("tool_call",)
    assert span["gen_ai.provider.name"] == "cerebras"
    (message,) = json.loads(span["gen_ai.output.messages"])
    assert {"type": "tool_call", "id": "c1", "name": "weather", "arguments": {"city": "Bern"}} in message["parts"]


# ---- OpenInference ----


@pytest.fixture
def open_inference(provider: Any, exporter: Any, dispatcher_restored: None) -> Iterator[Any]:
    module = pytest.importorskip("openinference.instrumentation.llama_index")
    instrumentor = module.LlamaIndexInstrumentor()
    instrumentor.instrument(tracer_provider=provider, skip_dep_check=True)
    yield exporter
    instrumentor.uninstrument()


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_open_inference_reads_counts_model_and_finish_reason(path: str, open_inference: Any) -> None:
    llm, _ = scripted(ANSWER, temperature=0.25)
    await last(llm, path, argument(path))
    (span,) = attributes(open_inference, f"Cerebras.{path}")
    counts = {name.removeprefix("llm.token_count."): value for name, value in span.items() if "token_count" in name}
    assert counts == {
        "prompt": 10,
        "completion": 5,
        "total": 15,
        "prompt_details.cache_read": 4,
        "completion_details.reasoning": 2,
    }
    assert span["llm.model_name"] == "some-model"
    assert span["llm.finish_reason"] == "tool_calls"
    if path in PATHS:
        prefix = "llm.output_messages.0.message.tool_calls.0.tool_call"
        assert span[f"{prefix}.function.name"] == "weather"
        assert json.loads(span[f"{prefix}.function.arguments"]) == {"city": "Bern"}
        assert not any(".tool_calls.1." in name for name in span), "each call once"

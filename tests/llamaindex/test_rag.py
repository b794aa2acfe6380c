"""LlamaIndex's own consumers of an LLM, end to end: they work, and how many calls they cost."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import Settings, VectorStoreIndex
from llama_index.core.callbacks import CallbackManager, TokenCountingHandler
from llama_index.core.chat_engine import CondensePlusContextChatEngine, CondenseQuestionChatEngine, SimpleChatEngine
from llama_index.core.chat_engine.context import ContextChatEngine
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.evaluation import (
    AnswerRelevancyEvaluator,
    CorrectnessEvaluator,
    FaithfulnessEvaluator,
    RelevancyEvaluator,
)
from llama_index.core.extractors import KeywordExtractor, QuestionsAnsweredExtractor, SummaryExtractor, TitleExtractor
from llama_index.core.memory import ChatMemoryBuffer
from llama_index.core.postprocessor import LLMRerank, StructuredLLMRerank
from llama_index.core.program.function_program import FunctionCallingProgram
from llama_index.core.query_engine import RetrieverQueryEngine, RouterQueryEngine, SubQuestionQueryEngine
from llama_index.core.question_gen import LLMQuestionGenerator
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from llama_index.core.selectors import LLMSingleSelector, PydanticSingleSelector
from llama_index.core.tools import QueryEngineTool
from pydantic import BaseModel

from llamaindex_cerebras_ext import Cerebras
from tests.llamaindex.scripted import Json, Wire, call, scripted, streamed, whole

CHUNK = "The river is long and the town is old. " * 100
"""About 900 tokens, so that ten of them do not fit core's default window of 3900."""

JSON_ANSWERS: dict[str, Json] = {
    "City": {"name": "Paris"},
    "DocumentRankingItem": {"index": 1, "relevance": 9},
    "DocumentRelevanceList": {"documents": [{"document_number": 2, "relevance": 9}]},
}


class City(BaseModel):
    """A city."""

    name: str


def answering(text: str = "ok", arguments: Json | None = None) -> Callable[[Json], Any]:
    """A service that calls the tool it is forced to call, fills the schema it is given, and else says `text`."""

    def answer(body: Json) -> Any:
        if body.get("tools"):
            name = body["tools"][0]["function"]["name"]
            found = call(None, "call_1", name, json.dumps(arguments))
            if body.get("stream"):
                return streamed({"tool_calls": [{**found, "index": 0}]}, finish_reason="tool_calls")
            return whole({"tool_calls": [found]}, finish_reason="tool_calls")
        content = text
        if "response_format" in body:
            content = json.dumps(JSON_ANSWERS[body["response_format"]["json_schema"]["name"]])
        return streamed({"content": content}) if body.get("stream") else whole({"content": content})

    return answer


def make(text: str = "ok", arguments: Json | None = None, **fields: Any) -> tuple[Cerebras, Wire]:
    return scripted(answering(text, arguments), **{"model": "gpt-oss-120b", **fields})


@pytest.fixture(autouse=True)
def main_loop(request: pytest.FixtureRequest) -> Iterator[None]:
    """Core runs async parts of sync calls in the main thread's loop, makes one where there is none, and leaves it."""
    if inspect.iscoroutinefunction(request.function):
        yield
        return
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


def memory(llm: Cerebras) -> ChatMemoryBuffer:
    """The memory without a database, which nobody would close."""
    return ChatMemoryBuffer.from_defaults(llm=llm)


def index(chunks: int = 10) -> VectorStoreIndex:
    nodes = [TextNode(text=f"{number}. {CHUNK}", id_=str(number)) for number in range(chunks)]
    return VectorStoreIndex(nodes, embed_model=MockEmbedding(embed_dim=4))


def roles(body: Json) -> list[str]:
    return [message["role"] for message in body["messages"]]


# ---- query engines ----


WINDOW_FILLING = ["compact", "tree_summarize", "simple_summarize"]


@pytest.mark.parametrize(
    ("mode", "streaming"),
    [*((mode, streaming) for mode in WINDOW_FILLING for streaming in (False, True)), ("compact_accumulate", False)],
)
def test_a_query_over_ten_chunks_costs_one_call(mode: str, streaming: bool) -> None:
    llm, wire = make("the answer")
    engine = index().as_query_engine(llm=llm, similarity_top_k=10, response_mode=mode, streaming=streaming)
    assert "the answer" in str(engine.query("What?"))
    assert len(wire.bodies) == 1
    assert roles(wire.body) == ["system", "user"]
    assert all(f"{number}. The river" in wire.body["messages"][-1]["content"] for number in range(10))


@pytest.mark.parametrize("mode", ["compact", "tree_summarize"])
async def test_async_queries_cost_the_same(mode: str) -> None:
    llm, wire = make("the answer")
    engine = index().as_query_engine(llm=llm, similarity_top_k=10, response_mode=mode)
    assert str(await engine.aquery("What?")) == "the answer"
    assert len(wire.bodies) == 1


def test_refine_costs_a_call_a_chunk() -> None:
    llm, wire = make("the answer")
    engine = index().as_query_engine(llm=llm, similarity_top_k=3, response_mode="refine")
    assert str(engine.query("What?")) == "the answer"
    assert [roles(body) for body in wire.bodies] == [["system", "user"], ["user"], ["user"]]


def test_the_window_decides_how_many_calls_there_are() -> None:
    llm, wire = make("the answer", context_window=3900)
    index().as_query_engine(llm=llm, similarity_top_k=10).query("What?")
    assert len(wire.bodies) >= 4  # versions of core pack a little differently


def test_a_token_limit_close_to_the_window_leaves_room_for_the_prompt() -> None:
    llm, wire = make("the answer", max_completion_tokens=131_000)
    assert str(index(2).as_query_engine(llm=llm).query("What?")) == "the answer"
    assert len(wire.bodies) == 1


def test_output_cls_of_a_query_engine_is_one_structured_call() -> None:
    llm, wire = make()
    engine = index(2).as_query_engine(llm=llm, output_cls=City, response_mode="compact")
    assert engine.query("Which city?").response == City(name="Paris")  # type: ignore[union-attr]
    assert wire.body["response_format"]["json_schema"]["name"] == "City"


def test_a_structured_llm_in_a_query_engine_is_one_structured_call() -> None:
    llm, wire = make()
    engine = index(2).as_query_engine(llm=llm.as_structured_llm(City), response_mode="compact")
    assert engine.query("Which city?").response == City(name="Paris")  # type: ignore[union-attr]
    assert len(wire.bodies) == 1


def test_settings_llm_is_used_and_its_tokens_are_counted_exactly() -> None:
    handler = TokenCountingHandler()
    llm, wire = make("the answer")
    before = Settings._llm, Settings._callback_manager
    Settings.llm, Settings.callback_manager = llm, CallbackManager([handler])
    try:
        assert str(index(2).as_query_engine().query("What?")) == "the answer"
    finally:
        Settings._llm, Settings._callback_manager = before
    assert len(wire.bodies) == 1
    assert (handler.prompt_llm_token_count, handler.completion_llm_token_count) == (10, 5)


# ---- chat engines ----


async def said(engine: Any, how: str, text: str) -> str:
    """What a chat engine answers, by one of its four methods."""
    if how == "chat":
        return str(engine.chat(text))
    if how == "achat":
        return str(await engine.achat(text))
    if how == "stream_chat":
        return "".join(engine.stream_chat(text).response_gen)
    return "".join([token async for token in (await engine.astream_chat(text)).async_response_gen()])


HOW = ["chat", "achat", "stream_chat", "astream_chat"]


@pytest.mark.parametrize("how", HOW)
async def test_simple_chat_engine_costs_one_call_a_turn_and_remembers(how: str) -> None:
    llm, wire = make("hello")
    engine = SimpleChatEngine.from_defaults(llm=llm, system_prompt="Be brief.", memory=memory(llm))
    assert [await said(engine, how, "one"), await said(engine, how, "two")] == ["hello", "hello"]
    assert [roles(body) for body in wire.bodies] == [
        ["system", "user"],
        ["system", "user", "assistant", "user"],
    ]


@pytest.mark.parametrize("how", HOW)
async def test_context_chat_engine_costs_one_call_a_turn(how: str) -> None:
    llm, wire = make("hello")
    engine = ContextChatEngine.from_defaults(retriever=index(2).as_retriever(), llm=llm, memory=memory(llm))
    assert await said(engine, how, "one") == "hello"
    assert roles(wire.body) == ["system", "user"]
    assert "The river" in wire.body["messages"][0]["content"]


@pytest.mark.parametrize("how", HOW)
async def test_condense_plus_context_costs_one_call_more_from_the_second_turn_on(how: str) -> None:
    llm, wire = make("hello")
    engine = CondensePlusContextChatEngine.from_defaults(retriever=index(2).as_retriever(), llm=llm, memory=memory(llm))
    await said(engine, how, "one")
    assert len(wire.bodies) == 1
    await said(engine, how, "two")
    assert len(wire.bodies) == 3


@pytest.mark.parametrize("how", ["chat", "achat"])
async def test_condense_question_costs_two_calls_a_turn(how: str) -> None:
    llm, wire = make("hello")
    queries = index(2).as_query_engine(llm=llm)
    engine = CondenseQuestionChatEngine.from_defaults(query_engine=queries, llm=llm, memory=memory(llm))
    assert await said(engine, how, "one") == "hello"
    assert len(wire.bodies) == 1
    assert await said(engine, how, "two") == "hello"
    assert len(wire.bodies) == 3


# ---- routers, sub-questions, fusion ----


def tools(llm: Cerebras) -> list[QueryEngineTool]:
    engine = index(2).as_query_engine(llm=llm)
    return [
        QueryEngineTool.from_defaults(engine, name=name, description=f"About {name}.") for name in ("rivers", "towns")
    ]


def test_router_selects_by_a_call_and_asks_by_another() -> None:
    llm, wire = make("the answer", arguments={"index": 2, "reason": "towns"})
    engine = RouterQueryEngine.from_defaults(tools(llm), llm=llm)
    assert str(engine.query("What?")) == "the answer"
    assert len(wire.bodies) == 2
    assert wire.bodies[0]["tool_choice"] in ("required", {"type": "function", "function": {"name": "SingleSelection"}})


@pytest.mark.parametrize("is_async", [False, True])
async def test_pydantic_selector_is_one_forced_call(is_async: bool) -> None:
    llm, wire = make(arguments={"index": 2, "reason": "towns"})
    selector = PydanticSingleSelector.from_defaults(llm=llm)
    choices = [tool.metadata for tool in tools(llm)]
    result = await selector.aselect(choices, "q") if is_async else selector.select(choices, "q")
    assert result.ind == 1
    assert wire.body["tool_choice"] == "required"


def test_llm_selector_is_one_call_of_text() -> None:
    llm, wire = make('[{"choice": 2, "reason": "towns"}]')
    assert LLMSingleSelector.from_defaults(llm=llm).select([tool.metadata for tool in tools(llm)], "q").ind == 1
    assert len(wire.bodies) == 1


def test_sub_questions_cost_one_call_each_and_two_around_them() -> None:
    questions = [{"sub_question": "Which river?", "tool_name": "rivers"}, {"sub_question": "?", "tool_name": "towns"}]
    llm, wire = make("```json\n" + json.dumps({"items": questions}) + "\n```")
    engine = SubQuestionQueryEngine.from_defaults(
        tools(llm),
        llm=llm,
        question_gen=LLMQuestionGenerator.from_defaults(llm=llm),
        use_async=False,
        verbose=False,
    )
    engine.query("What?")
    assert len(wire.bodies) == 4


@pytest.mark.parametrize("is_async", [False, True])
async def test_query_fusion_costs_one_call(is_async: bool) -> None:
    llm, wire = make("second\nthird")
    retriever = QueryFusionRetriever([index(2).as_retriever()], llm=llm, num_queries=3, use_async=False)
    found = await retriever.aretrieve("first") if is_async else retriever.retrieve("first")
    assert found
    assert len(wire.bodies) == 1
    assert roles(wire.body) == ["user"]


def test_fusion_in_a_query_engine_costs_two_calls() -> None:
    llm, wire = make("the answer")
    retriever = QueryFusionRetriever([index(2).as_retriever()], llm=llm, num_queries=2, use_async=True)
    assert str(RetrieverQueryEngine.from_args(retriever, llm=llm).query("q")) == "the answer"
    assert len(wire.bodies) == 2


# ---- programs ----


@pytest.mark.parametrize("is_async", [False, True])
async def test_function_calling_program_forces_its_tool(is_async: bool) -> None:
    llm, wire = make(arguments={"name": "Paris"})
    program = FunctionCallingProgram.from_defaults(City, prompt_template_str="Which {what}?", llm=llm)
    found = await program.acall(what="city") if is_async else program(what="city")
    assert found == City(name="Paris")
    assert wire.body["tool_choice"] == "required"


# ---- evaluators and extractors ----


@pytest.mark.parametrize(
    ("evaluator", "text", "passing", "calls"),
    [
        (FaithfulnessEvaluator, "YES", True, 1),
        (RelevancyEvaluator, "YES", True, 1),
        (CorrectnessEvaluator, "4.5\nGood.", True, 1),
        (AnswerRelevancyEvaluator, "Good. [RESULT] 2", None, 1),
    ],
)
def test_evaluators_cost_one_call(evaluator: Any, text: str, passing: bool | None, calls: int) -> None:
    llm, wire = make(text)
    result = evaluator(llm=llm).evaluate(query="q", response="r", contexts=["c"], reference="ref")
    assert result.passing is passing or passing is None
    assert not result.invalid_result
    assert len(wire.bodies) == calls


@pytest.mark.parametrize(
    ("extractor", "key", "calls"),
    [
        (SummaryExtractor, "section_summary", 3),
        (QuestionsAnsweredExtractor, "questions_this_excerpt_can_answer", 3),
        (KeywordExtractor, "excerpt_keywords", 3),
        (TitleExtractor, "document_title", 4),
    ],
)
def test_extractors_cost_one_call_a_node_and_a_title_one_more(extractor: Any, key: str, calls: int) -> None:
    llm, wire = make("found")
    nodes = [TextNode(text=f"text {number}") for number in range(3)]
    found = extractor(llm=llm, show_progress=False).process_nodes(nodes)
    assert all(node.metadata[key] for node in found)
    assert len(wire.bodies) == calls


# ---- rerankers ----


def scored(number: int) -> list[NodeWithScore]:
    return [NodeWithScore(node=TextNode(text=f"text {index}", id_=str(index)), score=0.1) for index in range(number)]


def test_structured_rerank_is_one_structured_call_a_batch() -> None:
    llm, wire = make()
    found = StructuredLLMRerank(llm=llm, choice_batch_size=5, top_n=1).postprocess_nodes(scored(10), QueryBundle("q"))
    assert len(wire.bodies) == 2
    assert all("response_format" in body and "tools" not in body for body in wire.bodies)
    assert len(found) == 1


def test_llm_rerank_is_one_call_a_batch() -> None:
    llm, wire = make("Doc: 2, Relevance: 9")
    found = LLMRerank(llm=llm, choice_batch_size=5, top_n=1).postprocess_nodes(scored(5), QueryBundle("q"))
    assert [node.node.node_id for node in found] == ["1"]
    assert len(wire.bodies) == 1

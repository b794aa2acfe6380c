"""What LangChain asks a chat model about itself: names, parameters, versions, cache keys; and how answers look."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import BaseCallbackHandler, UsageMetadataCallbackHandler
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage
from langchain_core.outputs import LLMResult
from langchain_core.rate_limiters import InMemoryRateLimiter

import cerebras_ext
from langchain_cerebras_ext import ChatCerebras
from tests.langchain.service import ALL_PATHS, KEY, PATHS, USAGE, Service, delta, end, reasoning_of, whole


def model_of(**fields: Any) -> ChatCerebras:
    return ChatCerebras(**{"model": "m", "api_key": KEY, **fields})


# ---- names and parameters ----


def test_type_provider_and_namespace() -> None:
    model = model_of()
    assert model._llm_type == "cerebras-chat"
    assert model._get_ls_params()["ls_provider"] == "cerebras"
    assert model.model_name == "m"
    assert ChatCerebras.lc_id() == ["langchain_cerebras_ext", "chat", "ChatCerebras"]


def test_standard_parameters_of_a_run() -> None:
    model = model_of(temperature=0.5, max_tokens=9, stop=["a"])
    assert model._get_ls_params() == {
        "ls_provider": "cerebras", "ls_model_type": "chat", "ls_model_name": "m", "ls_temperature": 0.5,
        "ls_max_tokens": 9, "ls_stop": ["a"],
    }  # fmt: skip
    found = model._get_ls_params(stop=["b"], model="other", temperature=0.0, max_completion_tokens=5)
    assert found == {
        "ls_provider": "cerebras", "ls_model_type": "chat", "ls_model_name": "other", "ls_temperature": 0.0,
        "ls_max_tokens": 5, "ls_stop": ["b"],
    }  # fmt: skip


def test_a_factory_s_standard_keywords_construct() -> None:
    model = model_of(
        base_url="http://127.0.0.1:1/v1", timeout=3, max_retries=0, max_tokens=5, temperature=0,
        rate_limiter=InMemoryRateLimiter(),
    )  # fmt: skip
    assert (model.base_url, model.timeout, model.max_tokens) == ("http://127.0.0.1:1", 3, 5)


def test_identifying_parameters_are_all_that_was_set_and_no_secret() -> None:
    model = model_of(temperature=0.5, reasoning_effort="low", base_url="http://user:secret@127.0.0.1:1")
    params = model._identifying_params
    assert {"model": "m", "temperature": 0.5, "reasoning_effort": "low"}.items() <= params.items()
    assert KEY not in repr(params)
    assert "secret" not in repr(params)


def test_versions_of_all_layers_are_in_the_metadata() -> None:
    versions = (model_of().metadata or {}).get("lc_versions")
    if versions is None:
        pytest.skip("this langchain-core tracks no versions")
    assert versions["cerebras-ext"] == cerebras_ext.__version__
    assert "langchain-core" in versions


def test_hooks_are_native_on_both_sides() -> None:
    for name in ("_generate", "_agenerate", "_stream", "_astream"):
        assert getattr(ChatCerebras, name) is not getattr(BaseChatModel, name)
    for name in ("_stream_chat_model_events", "_astream_chat_model_events"):
        assert callable(getattr(ChatCerebras, name))


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_model_name_is_that_of_the_answer(path: str) -> None:
    service = Service()
    message = await ALL_PATHS[path](service.model(model="alias"), "hi")
    assert message.response_metadata["model_name"] == "m-1"
    assert message.response_metadata["model_provider"] == "cerebras"
    message = await ALL_PATHS[path](service.model().bind(model="other"), "hi")
    assert [body["model"] for body in service.bodies] == ["alias", "other"]


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_usage_callback_counts_under_the_name_of_the_answer(path: str) -> None:
    handler = UsageMetadataCallbackHandler()
    await ALL_PATHS[path](Service().model(callbacks=[handler]), "hi")
    assert handler.usage_metadata == {"m-1": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}}


# ---- results ----


class Results(BaseCallbackHandler):
    """Keeps what runs ended with."""

    def __init__(self) -> None:
        self.results: list[LLMResult] = []

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.results.append(response)


@pytest.mark.parametrize("path", [path for path in ALL_PATHS if "v3" not in path])
async def test_finish_reason_is_in_the_generation_info(path: str) -> None:
    results = Results()
    await ALL_PATHS[path](Service().model(callbacks=[results]), "hi")
    ((generation,),) = results.results[0].generations
    assert (generation.generation_info or {})["finish_reason"] == "stop"


async def test_generate_adds_up_the_usage_of_several_prompts() -> None:
    usage = {**USAGE, "prompt_tokens_details": {"cached_tokens": 4}}
    model = Service(answer=whole(usage=usage)).model()
    prompts = [[HumanMessage("a")], [HumanMessage("b")]]
    for result in (model.generate(prompts), await model.agenerate(prompts)):
        assert result.llm_output == {
            "model_name": "m-1",
            "system_fingerprint": "fp_1",
            "token_usage": {
                "prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 8},
            },
        }  # fmt: skip


async def test_generate_adds_up_where_some_answers_have_no_usage() -> None:
    model = model_of()
    assert model._combine_llm_outputs(
        [None, {}, {"token_usage": {"a": 1, "d": None}}, {"token_usage": {"a": 2, "d": 3}}]
    ) == {"token_usage": {"a": 3, "d": 3}}
    assert model._combine_llm_outputs([]) == {}


# ---- reasoning ----


@pytest.mark.parametrize("options", [{}, {"reasoning_effort": "low"}, {"reasoning_format": "parsed"}])
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_content_stays_text_whatever_reasoning_is_asked_for(path: str, options: dict[str, Any]) -> None:
    events = [delta(reasoning="thi"), delta(reasoning="nk"), delta(content="ok"), end()]
    message = await ALL_PATHS[path](
        Service(events, whole({"reasoning": "think", "content": "ok"})).model(), "hi", **options
    )
    assert message.additional_kwargs == {"reasoning_content": "think"}
    assert [block["type"] for block in message.content_blocks] == ["reasoning", "text"]
    assert reasoning_of(message) == "think"
    if "v3" not in path:  # whose output is always blocks
        assert message.content == "ok"


@pytest.mark.parametrize("path", ALL_PATHS)
async def test_reasoning_under_its_other_name_is_read(path: str) -> None:
    events = [delta(reasoning_content="thi"), delta(reasoning_content="nk"), delta(content="ok"), end()]
    answer = whole({"reasoning_content": "think", "content": "ok"})
    message = await ALL_PATHS[path](Service(events, answer).model(), "hi")
    assert message.additional_kwargs == {"reasoning_content": "think"}


@pytest.mark.parametrize("finish_reason", ["stop", "length"])
@pytest.mark.parametrize("path", ALL_PATHS)
async def test_reasoning_without_content_is_an_answer_and_is_not_promoted(path: str, finish_reason: str) -> None:
    usage = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 5}}
    service = Service(
        [delta(reasoning="42"), end(finish_reason, usage=usage)],
        whole({"content": None, "reasoning": "42"}, finish_reason=finish_reason, usage=usage),
    )
    message = await ALL_PATHS[path](service.model(), "hi")
    assert message.text == ""
    assert message.content in ("", [{"type": "reasoning", "reasoning": "42", "index": 0}]) or "v3" in path
    assert message.additional_kwargs == {"reasoning_content": "42"}
    assert message.response_metadata["finish_reason"] == finish_reason
    assert message.usage_metadata["output_token_details"] == {"reasoning": 5}
    assert len(service.requests) == 1


THINKING = {
    "<think>a</think>b": ("a", "b"),
    "<think>\na\n</think>\n\nb": ("a", "b"),
    "  <think>a b</think> c d ": ("a b", "c d "),
    "<think>never closed": ("never closed", ""),
    "<think></think>b": ("", "b"),
    "b <think>a</think>": ("", "b <think>a</think>"),
    "<thin": ("", "<thin"),
    "a < b </think>": ("", "a < b </think>"),
    "<think>x</thin</think>y": ("x</thin", "y"),
    "no tags": ("", "no tags"),
    "": ("", ""),
}


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("content", THINKING)
@pytest.mark.parametrize("path", [*PATHS, "stream_events v3", "astream_events v3"])
async def test_leading_think_block_is_moved_where_asked_for_however_it_is_cut(
    path: str, content: str, size: int
) -> None:
    pieces = [content[at : at + size] for at in range(0, len(content), size)]
    events = [*(delta(content=piece) for piece in pieces), end()]
    service = Service(events, whole({"content": content}))
    reasoning, text = THINKING[content]
    message = await ALL_PATHS[path](service.model(split_think_tags=True), "hi")
    assert (message.additional_kwargs.get("reasoning_content", ""), message.text) == (reasoning, text)
    bound = await ALL_PATHS[path](service.model().bind(split_think_tags=True), "hi")
    assert (bound.additional_kwargs, bound.text) == (message.additional_kwargs, text)
    message = await ALL_PATHS[path](service.model(), "hi")
    assert (message.additional_kwargs, message.text) == ({}, content)
    assert all("split_think_tags" not in body for body in service.bodies)


# ---- caches ----

KEY_SCRIPT = """
from tests.langchain.test_chat_model import cache_key
print(cache_key())
"""


def cache_key() -> str:
    model = model_of(temperature=0.5, max_tokens=9, extra_body={"b": 1, "a": 2}, reasoning_effort="low")
    return model._get_llm_string(stop=["x"], tools=[{"type": "function", "function": {"name": "f"}}])


@pytest.mark.once
def test_cache_key_is_equal_in_two_processes_and_holds_no_secret_and_no_address() -> None:
    env = {"PYTHONPATH": ":".join([str(pathlib.Path(__file__).parents[2]), *sys.path]), "PYTHONHASHSEED": "1"}
    other = subprocess.run([sys.executable, "-c", KEY_SCRIPT], env=env, check=True, capture_output=True, text=True)
    key = cache_key()
    assert other.stdout.strip() == key
    assert "0x" not in key
    assert KEY not in key


def llm_string(options: dict[str, Any] | None = None, **fields: Any) -> str:
    return model_of(**fields)._get_llm_string(**(options or {}))


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 0.1}, {"model": "other"}, {"reasoning_effort": "low"}, {"response_format": {"type": "text"}},
        {"tools": [{"type": "function", "function": {"name": "f"}}]}, {"extra_body": {"x": 1}},
        {"base_url": "http://127.0.0.1:1"}, {"model_kwargs": {"x": 1}}, {"replay_reasoning": "off"},
        {"split_think_tags": True},
    ],
)  # fmt: skip
def test_cache_key_differs_when_anything_that_is_sent_differs(fields: dict[str, Any]) -> None:
    assert llm_string(**fields) != llm_string()
    assert llm_string(**fields) == llm_string(**fields)


def test_cache_key_differs_by_the_options_of_a_call_and_not_by_the_key() -> None:
    assert llm_string({"temperature": 0.1}) != llm_string()
    assert llm_string({"tools": [{"type": "function", "function": {"name": "f"}}]}) != llm_string()
    assert llm_string(api_key="csk-another-key-0123") == llm_string()


def test_cache_key_does_not_change_by_use() -> None:
    model = Service().model()
    before = model._get_llm_string()
    model.invoke("hi")
    assert model._get_llm_string() == before


@pytest.mark.parametrize("path", ["invoke", "ainvoke", "stream", "astream"])
async def test_cache_hit_makes_no_request_and_its_answer_can_be_sent_back(path: str) -> None:
    cache = InMemoryCache()
    service = Service()
    await PATHS[path](service.model(cache=cache), "hi")
    await PATHS[path](service.model(cache=cache), "hi")
    assert len(service.requests) == (1 if path in ("invoke", "ainvoke") else 2)  # langchain-core caches no streams
    hit = await PATHS["invoke"](service.model(cache=cache), "hi")
    service.requests.clear()
    await PATHS[path](service.model(), [HumanMessage("hi"), hit, HumanMessage("and?")])
    assert service.body["messages"][1] == {"role": "assistant", "content": "ok"}

"""An LLM as an object: stored, copied, pickled, used from several loops and threads, and planned with."""

from __future__ import annotations

import asyncio
import copy
import gc
import json
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from llama_index.core import Settings
from llama_index.core.async_utils import asyncio_run, run_jobs
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.extractors import SummaryExtractor
from llama_index.core.ingestion.pipeline import get_transformation_hash
from llama_index.core.schema import TextNode

from tests.llamaindex.conformance.service import Service, ask, text_of
from tests.llamaindex.conformance.subjects import KEY, Subject

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "model_copy": lambda llm: llm.model_copy(deep=True),
    "pickle": lambda llm: pickle.loads(pickle.dumps(llm)),
}


@pytest.fixture
def key_in_environment(subject: Subject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(subject.key_variable, KEY)


# ---- planning ----


def test_metadata_is_real_and_cheap(service: Service) -> None:
    metadata = service.make().metadata
    assert metadata.context_window >= 8192
    assert metadata.num_output == -1 or metadata.num_output > 0
    assert metadata.model_name == "gpt-oss-120b"
    assert metadata.is_chat_model is (service.subject.endpoint == "chat")
    assert metadata.is_function_calling_model is ("tools" in service.subject.features)
    assert service.bodies == []


def test_an_unknown_model_works(service: Service) -> None:
    assert service.make(model="brand-new-1").metadata.context_window >= 8192


def test_the_class_is_an_llm_with_a_name(service: Service) -> None:
    llm = service.make()
    assert BaseLLM.__name__ in [cls.__name__ for cls in type(llm).__mro__]
    assert llm.class_name() not in ("base_component", "custom_llm")
    assert llm.to_payload()["class_name"] == llm.class_name()


# ---- secrets ----


def test_the_key_is_shown_nowhere(service: Service) -> None:
    llm = service.make()
    shown = [repr(llm), str(llm), llm.to_json(), str(llm.to_dict()), str(llm.model_dump()), str(llm.to_payload())]
    assert not [text for text in shown if KEY in text]


def test_the_key_is_not_hashed_into_pipelines(service: Service) -> None:
    node = [TextNode(text="a", id_="1")]
    hashes = [
        get_transformation_hash(node, SummaryExtractor(llm=service.make(api_key=key))) for key in (KEY, "csk-other")
    ]
    assert hashes[0] == hashes[1]


@pytest.mark.usefixtures("key_in_environment")
def test_a_pickle_holds_no_key_from_the_environment(service: Service) -> None:
    llm = service.make(api_key=None)
    service.says("complete", "a")
    assert llm.complete("q").text == "a"
    assert KEY.encode() not in pickle.dumps(llm)


# ---- storing and copying ----


@pytest.mark.usefixtures("key_in_environment")
def test_from_dict_of_to_dict_is_equal(service: Service) -> None:
    llm = service.make(api_key=None, temperature=0.5, timeout=3, additional_kwargs={"seed": 1}, system_prompt="s")
    assert type(llm).from_dict(llm.to_dict()) == llm
    assert type(llm).from_json(llm.to_json()) == llm
    assert json.loads(llm.to_json())["class_name"] == llm.class_name()


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("used", [False, True])
async def test_copies_are_equal_and_work(service: Service, how: str, used: bool) -> None:
    llm = service.make(temperature=0.5)
    if used:
        for path in ("complete", "acomplete"):
            service.says(path, "a")
            await ask(llm, path)
    twin = COPIES[how](llm)
    assert twin == llm
    assert type(twin) is type(llm)
    for asked in (twin, llm):
        for path in ("complete", "acomplete", "stream_complete"):
            service.says(path, "b")
            assert text_of((await ask(asked, path))[-1]) == "b"
    assert service.bodies[-1]["temperature"] == 0.5


@pytest.mark.parametrize("how", COPIES)
def test_a_changed_copy_does_not_change_the_original(service: Service, how: str) -> None:
    llm = service.make(temperature=0.5, model="first")
    twin = COPIES[how](llm)
    twin.model = "second"
    assert llm.model == "first"
    service.emulator.respond({"choices": [{"index": 0, "text": "a", "message": {"content": "a"}}]}, times=2)
    llm.complete("q")
    twin.complete("q")
    assert [body["model"] for body in service.bodies] == ["first", "second"]


# ---- loops and threads ----


@pytest.fixture
def loops_without_shutdown(service: Service) -> Iterator[None]:
    """For tests in which core closes a loop without shutting it down, so that nobody can close its connections.

    Python warns of them when they are collected, which is done here, after the next loop has made us forget them.
    """
    yield
    service.says("acomplete", "a")
    asyncio.run(ask(service.make(), "acomplete"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


async def _one(llm: Any) -> Any:
    return text_of((await ask(llm, "achat"))[-1])


@pytest.mark.usefixtures("loops_without_shutdown")
def test_several_loops_one_after_the_other(service: Service) -> None:
    llm = service.make()
    service.says("achat", "a", times=6)
    assert [asyncio.run(_one(llm)) for _ in range(3)] == ["a"] * 3
    assert [asyncio_run(_one(llm)) for _ in range(3)] == ["a"] * 3


@pytest.mark.usefixtures("loops_without_shutdown")
def test_core_s_way_out_of_a_running_loop(service: Service) -> None:
    llm = service.make()
    service.says("achat", "a", times=3)

    async def nested() -> list[Any]:
        return [await _one(llm), asyncio_run(_one(llm)), await _one(llm)]

    assert asyncio.run(nested()) == ["a"] * 3


def test_sync_and_async_calls_can_be_mixed(service: Service) -> None:
    llm = service.make()
    for path in ("chat", "achat", "stream_chat", "astream_chat") * 2:
        service.says(path, "a")
        assert text_of(asyncio.run(ask(llm, path))[-1]) == "a"


def test_threads_with_loops_of_their_own(service: Service) -> None:
    llm = service.make()
    service.says("achat", "a", times=None)  # type: ignore[arg-type]
    answers: list[Any] = []

    async def three() -> list[Any]:
        return await run_jobs([_one(llm) for _ in range(3)], workers=3)

    threads = [threading.Thread(target=lambda: answers.extend(asyncio.run(three()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == ["a"] * 24


# ---- settings ----


def test_settings_keep_the_llm_as_it_is(service: Service) -> None:
    llm = service.make()
    before = Settings._llm
    try:
        Settings.llm = llm
        assert Settings.llm is llm
    finally:
        Settings._llm = before

"""A standard suite for text models (`BaseLLM`), as langchain-tests has one for chat models.

Subclass `LLMUnitTests` and `LLMIntegrationTests`, override the properties, and pytest does the rest. Nothing here knows
which integration it looks at.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from langchain_core.caches import InMemoryCache
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.language_models.llms import BaseLLM
from langchain_core.load import dumps
from langchain_core.load import loads as loads_of_core
from langchain_core.outputs import LLMResult
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import RunnableLambda


class LLMTests:
    """What a subclass says of its integration."""

    @property
    def llm_class(self) -> type[BaseLLM]:
        """The class under test."""
        raise NotImplementedError

    @property
    def llm_params(self) -> dict[str, Any]:
        """Keywords to make an instance with."""
        return {}

    @property
    def secret(self) -> str | None:
        """A secret among the keywords, which must show nowhere; None where there is none."""
        return None

    @property
    def has_stream(self) -> bool:
        """Whether it streams piece by piece."""
        return True

    @property
    def tells_tokens(self) -> bool:
        """Whether callbacks learn of each piece; text models have to see to that themselves."""
        return True

    @property
    def tells_finish_reason(self) -> bool:
        """Whether generations say why they ended."""
        return True

    @property
    def is_deterministic(self) -> bool:
        """Whether the same prompt always has the same answer."""
        return False

    @property
    def returns_usage(self) -> bool:
        """Whether answers say how many tokens they took."""
        return True

    @property
    def accepts_model(self) -> bool:
        """Whether a call may name another model."""
        return True

    @property
    def model_override(self) -> str:
        """The name of another model."""
        return "other"

    @property
    def accepts_stop(self) -> bool:
        """Whether stop sequences are honoured."""
        return True

    @property
    def load_options(self) -> dict[str, Any] | None:
        """Options by which langchain-core's loader takes the class; None where it cannot be loaded."""
        return None

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        """Environment, keywords, and the attributes that an instance has then."""
        return {}, {}, {}

    def make(self, **more: Any) -> Any:
        return self.llm_class(**{**self.llm_params, **more})


class LLMUnitTests(LLMTests):
    """What holds without a request."""

    def test_init(self) -> None:
        assert isinstance(self.make(), BaseLLM)

    def test_init_from_env(self, monkeypatch: pytest.MonkeyPatch) -> None:
        environment, keywords, expected = self.init_from_env_params
        if not environment:
            pytest.skip("the class reads nothing from the environment")
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        model = self.llm_class(**keywords)
        for name, value in expected.items():
            found = getattr(model, name)
            assert getattr(found, "get_secret_value", lambda found=found: found)() == value

    def test_type_is_a_name(self) -> None:
        kind = self.make()._llm_type

        assert isinstance(kind, str)
        assert kind

    def test_standard_keywords(self) -> None:
        model = self.make(cache=False, tags=["t"], metadata={"a": 1}, verbose=True, callbacks=[BaseCallbackHandler()])

        assert (model.cache, model.tags, model.metadata["a"], model.verbose) == (False, ["t"], 1, True)

    def test_identifying_params_are_json_and_hold_no_secret(self) -> None:
        params = json.dumps(self.make().asdict())

        assert self.secret is None or self.secret not in params

    def test_secret_shows_nowhere(self) -> None:
        if self.secret is None:
            pytest.skip("there is no secret among the keywords")
        model = self.make()

        for text in (repr(model), str(model), dumps(model), str(model.to_json()), str(model.asdict())):
            assert self.secret not in text

    def test_tracing_parameters(self) -> None:
        params = self.make()._get_ls_params(stop=["x"])

        assert params["ls_model_type"] == "llm"
        assert params["ls_provider"]
        assert params["ls_stop"] == ["x"]

    def test_tracing_parameters_name_the_model_of_the_call(self) -> None:
        if not self.accepts_model:
            pytest.skip("a call cannot name another model")
        assert self.make()._get_ls_params(model=self.model_override)["ls_model_name"] == self.model_override

    def test_equal_settings_are_equal(self) -> None:
        assert self.make() == self.make()
        assert self.make().asdict() == self.make().asdict()

    def test_pickle(self) -> None:
        model = self.make()

        assert pickle.loads(pickle.dumps(model)) == model

    def test_dump_and_load(self) -> None:
        if self.load_options is None:
            pytest.skip("the class cannot be loaded")
        model = self.make()

        assert loads_of_core(dumps(model), **self.load_options) == model

    def test_binding(self) -> None:
        bound: Any = self.make().bind(stop=["x"])

        assert bound.kwargs == {"stop": ["x"]}


class _Listener(BaseCallbackHandler):
    def __init__(self) -> None:
        self.told: list[str] = []
        self.result: LLMResult | None = None

    def on_llm_start(self, serialized: dict[str, Any], prompts: list[str], **kwargs: Any) -> None:
        self.told.append("start")

    def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.told.append("token")

    def on_llm_end(self, response: LLMResult, **kwargs: Any) -> None:
        self.told.append("end")
        self.result = response


class _AsyncListener(AsyncCallbackHandler):
    def __init__(self) -> None:
        self.tokens: list[str] = []

    async def on_llm_new_token(self, token: Any, **kwargs: Any) -> None:
        self.tokens.append(token)


class LLMIntegrationTests(LLMTests):
    """What holds over requests."""

    def test_invoke(self) -> None:
        answer = self.make().invoke("Hello")

        assert isinstance(answer, str)
        assert answer

    async def test_ainvoke(self) -> None:
        answer = await self.make().ainvoke("Hello")

        assert isinstance(answer, str)
        assert answer

    def test_stream(self) -> None:
        pieces = list(self.make().stream("Hello"))

        assert all(isinstance(piece, str) for piece in pieces)
        assert "".join(pieces)
        if self.has_stream:
            assert len([piece for piece in pieces if piece]) > 1

    async def test_astream(self) -> None:
        pieces = [piece async for piece in self.make().astream("Hello")]

        assert "".join(pieces)
        if self.has_stream:
            assert len([piece for piece in pieces if piece]) > 1

    def test_batch(self) -> None:
        answers = self.make().batch(["Hello", "Hey"])

        assert [type(answer) for answer in answers] == [str, str]
        assert all(answers)

    async def test_abatch(self) -> None:
        answers = await self.make().abatch(["Hello", "Hey"])

        assert [type(answer) for answer in answers] == [str, str]

    def test_batch_with_limited_concurrency(self) -> None:
        assert len(self.make().batch(["a", "b", "c"], {"max_concurrency": 2})) == 3

    def test_generate_keeps_the_order_of_prompts(self) -> None:
        """Prompts that answers must differ for; each alone gives what it gives among others."""
        prompts = ["Hello", "Count: 1 2 3", "Le ciel est"]
        model = self.make()

        together = [row[0].text for row in model.generate(prompts).generations]

        assert len(together) == len(prompts)
        if self.is_deterministic:
            assert together == [model.generate([prompt]).generations[0][0].text for prompt in prompts]

    async def test_agenerate(self) -> None:
        result = await self.make().agenerate(["Hello", "Hey"])

        assert [len(row) for row in result.generations] == [1, 1]

    def test_empty_list_of_prompts(self) -> None:
        assert self.make().generate([]).generations == []

    def test_usage(self) -> None:
        if not self.returns_usage:
            pytest.skip("answers do not say how many tokens they took")
        usage = (self.make().generate(["Hello"]).llm_output or {})["token_usage"]

        assert usage["prompt_tokens"] > 0
        assert usage["completion_tokens"] > 0
        assert usage["total_tokens"] >= usage["prompt_tokens"] + usage["completion_tokens"]

    def test_usage_of_a_stream_is_told_once(self) -> None:
        if not self.returns_usage:
            pytest.skip("answers do not say how many tokens they took")
        listener = _Listener()
        list(self.make().stream("Hello", {"callbacks": [listener]}))

        assert listener.result is not None
        info = listener.result.generations[0][0].generation_info or {}
        assert info["token_usage"]["completion_tokens"] > 0

    def test_finish_reason(self) -> None:
        if not self.tells_finish_reason:
            pytest.skip("generations do not say why they ended")
        generation = self.make().generate(["Hello"]).generations[0][0]

        assert (generation.generation_info or {})["finish_reason"] in ("stop", "length")

    def test_callbacks_of_a_call(self) -> None:
        listener = _Listener()
        self.make().invoke("Hello", {"callbacks": [listener]})

        assert (listener.told[0], listener.told[-1]) == ("start", "end")

    def test_callbacks_of_a_stream(self) -> None:
        if not self.tells_tokens:
            pytest.skip("callbacks do not learn of pieces")
        listener = _Listener()
        pieces = list(self.make().stream("Hello", {"callbacks": [listener]}))

        assert (listener.told[0], listener.told[-1]) == ("start", "end")
        assert listener.told.count("token") == len(pieces)
        assert listener.result is not None
        assert listener.result.generations[0][0].text == "".join(pieces)

    async def test_callbacks_of_an_async_stream(self) -> None:
        if not self.tells_tokens:
            pytest.skip("callbacks do not learn of pieces")
        listener = _AsyncListener()
        pieces = [piece async for piece in self.make().astream("Hello", {"callbacks": [listener]})]

        assert listener.tokens == pieces

    async def test_async_events(self) -> None:
        if not self.tells_tokens:
            pytest.skip("callbacks do not learn of pieces")
        kinds = [event["event"] async for event in self.make().astream_events("Hello", version="v2")]

        assert (kinds[0], kinds[-1]) == ("on_llm_start", "on_llm_end")
        assert "on_llm_stream" in kinds

    def test_stop_sequence(self) -> None:
        if not self.accepts_stop:
            pytest.skip("stop sequences are not honoured")
        model = self.make()
        whole = model.invoke("Hello")
        stop = whole.strip().split()[-1]

        assert stop not in model.invoke("Hello", stop=[stop])
        assert stop not in model.bind(stop=[stop]).invoke("Hello")
        assert stop not in "".join(model.stream("Hello", stop=[stop]))

    def test_model_of_the_call(self) -> None:
        if not self.accepts_model:
            pytest.skip("a call cannot name another model")
        result = self.make().generate(["Hello"], model=self.model_override)

        assert (result.llm_output or {})["model_name"] == self.model_override

    def test_cache(self) -> None:
        model = self.make(cache=InMemoryCache())

        assert model.invoke("Hello") == model.invoke("Hello")

    def test_unicode(self) -> None:
        assert self.make().invoke("Grüße, 世界 🦜 \u2028 und mehr")

    def test_in_a_chain(self) -> None:
        chain = PromptTemplate.from_template("Say {word}") | self.make() | RunnableLambda(len)

        assert chain.invoke({"word": "hello"}) > 0

    async def test_in_an_async_chain(self) -> None:
        chain = PromptTemplate.from_template("Say {word}") | self.make()

        assert "".join([piece async for piece in chain.astream({"word": "hello"})])

    def test_after_a_pickle(self) -> None:
        model = self.make()
        model.invoke("Hello")

        assert pickle.loads(pickle.dumps(model)).invoke("Hello")

"""Swapping models by configuration at run time: fields, alternatives, and histories that another model wrote."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import ConfigurableField, Runnable
from langchain_core.runnables.history import RunnableWithMessageHistory

from langchain_cerebras_ext import ChatCerebras
from langchain_cerebras_ext.base import CerebrasBase
from langchain_cerebras_ext.llm import CerebrasLLM
from tests.langchain.models import CLASSES, PATHS, Service, ask

both = pytest.mark.parametrize("cls", CLASSES)
Cls = type[CerebrasBase]

FIELDS: dict[str, Any] = {
    "model": "qwen-3.8-27b",
    "temperature": 0.25,
    "max_tokens": 7,
    "top_p": 0.5,
    "seed": 3,
    "stop": ["x"],
}


class Other(GenericFakeChatModel):
    """Stands for another provider's class; keeps what it was sent."""

    seen: list[list[BaseMessage]]

    @property
    def _llm_type(self) -> str:
        return "other-chat"

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.seen.append(messages)
        return super()._generate(messages, *args, **kwargs)


def other(*messages: AIMessage | str) -> Other:
    return Other(messages=iter(messages), seen=[])


@both
@pytest.mark.parametrize("path", PATHS)
async def test_every_parameter_is_configurable_at_run_time(cls: Cls, path: str) -> None:
    service = Service()
    model = service.model(cls).configurable_fields(**{name: ConfigurableField(name) for name in FIELDS})

    await ask(model, path)
    await ask(model.with_config(configurable=FIELDS), path)

    first, second = service.bodies
    fields = {"max_completion_tokens" if n == "max_tokens" and cls is ChatCerebras else n: v for n, v in FIELDS.items()}
    assert fields.keys() & first.keys() == {"model"}
    assert {name: second[name] for name in fields} == fields


@both
def test_every_field_is_taken_back_by_the_constructor(cls: Cls) -> None:
    """`configurable_fields` makes a model anew from the values of all fields of another one."""
    service = Service()
    model = service.model(cls, temperature=0.5, extra_body={"a": 1}, model_kwargs={"b": 2}, timeout=3)

    twin = cls(**{name: getattr(model, name) for name in cls.model_fields})

    assert twin == model


@both
def test_configurable_fields_have_a_schema(cls: Cls) -> None:
    """Playgrounds and platforms make forms of it."""
    model: Any = cls(model="m", api_key="k")
    names = (*FIELDS, "api_key", "base_url", "max_retries", "extra_body", "logit_bias", "streaming", "user")
    configurable = model.configurable_fields(**{name: ConfigurableField(name) for name in names})

    schema = configurable.config_schema(include=["configurable"]).model_json_schema()

    assert schema["$defs"]["Configurable"]["properties"].keys() == set(names)


@both
def test_connection_is_configurable(cls: Cls) -> None:
    first, second = Service(), Service()
    model = first.model(cls).configurable_fields(
        api_key=ConfigurableField("key"), base_url=ConfigurableField("url"), http_client=ConfigurableField("client")
    )

    model.invoke("q", {"configurable": {"key": "csk-second-key", "client": second.model(cls).http_client}})
    model.invoke("q", {"configurable": {"url": "https://u.example/v1"}})

    assert second.requests[0].headers["authorization"] == "Bearer csk-second-key"
    assert first.requests[0].url.host == "u.example"


def test_bound_options_survive_a_configured_model() -> None:
    service = Service()
    model = service.model(ChatCerebras).configurable_fields(model=ConfigurableField("model"))
    tool = {"type": "function", "function": {"name": "lookup", "parameters": {"type": "object", "properties": {}}}}

    model.bind(tools=[tool]).invoke("q", {"configurable": {"model": "m2"}})

    assert (service.bodies[0]["model"], service.bodies[0]["tools"][0]["function"]["name"]) == ("m2", "lookup")


@pytest.mark.parametrize("made", ["instance", "factory"])
@pytest.mark.parametrize("path", PATHS)
async def test_alternatives_to_and_from_another_class(made: str, path: str) -> None:
    service = Service()
    ours, theirs = service.model(ChatCerebras), other("theirs", "theirs")
    which = ConfigurableField("which")
    from_ours = ours.configurable_alternatives(
        which, default_key="ours", theirs=theirs if made == "instance" else lambda: theirs
    )
    from_theirs = theirs.configurable_alternatives(
        which, default_key="theirs", ours=ours if made == "instance" else lambda: ours
    )

    for model in (from_ours, from_theirs):
        assert await ask(model.with_config(configurable={"which": "ours"}), path) == "ok"
        assert await ask(model.with_config(configurable={"which": "theirs"}), path) == "theirs"
    assert len(service.requests) == 2


def chain_of(model: Runnable[Any, Any], history: InMemoryChatMessageHistory) -> RunnableWithMessageHistory:
    prompt = ChatPromptTemplate([("system", "Be brief."), MessagesPlaceholder("history"), ("user", "{question}")])
    return RunnableWithMessageHistory(
        prompt | model, lambda session_id: history, input_messages_key="question", history_messages_key="history"
    )


FOREIGN = AIMessage(
    [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "I look it up."},
        {"type": "tool_use", "id": "t1", "name": "lookup", "input": {"word": "a"}},
    ],
    tool_calls=[{"id": "t1", "name": "lookup", "args": {"word": "a"}}],
    response_metadata={"model_provider": "anthropic", "model_name": "other-1"},
)


def test_chain_with_history_swaps_from_another_class_to_ours() -> None:
    service, history = Service(), InMemoryChatMessageHistory()
    model = other(FOREIGN, "done").configurable_alternatives(
        ConfigurableField("which"), default_key="theirs", ours=service.model(ChatCerebras)
    )
    chain = chain_of(model, history)
    config: Any = {"configurable": {"session_id": "1", "which": "theirs"}}

    chain.invoke({"question": "first"}, config)
    history.add_message(ToolMessage("a letter", tool_call_id="t1", name="lookup", status="success"))
    config["configurable"]["which"] = "ours"
    answer = chain.invoke({"question": "second"}, config)

    assert answer.text == "ok"
    call = {"id": "t1", "type": "function", "function": {"name": "lookup", "arguments": '{"word": "a"}'}}
    (body,) = service.bodies
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "I look it up.", "tool_calls": [call]},
        {"role": "tool", "content": "a letter", "tool_call_id": "t1"},
        {"role": "user", "content": "second"},
    ]


def test_chain_with_history_swaps_from_ours_to_another_class_and_back() -> None:
    service, history = Service(), InMemoryChatMessageHistory()
    theirs = other("theirs")
    model = service.model(ChatCerebras).configurable_alternatives(
        ConfigurableField("which"), default_key="ours", theirs=theirs
    )
    chain = chain_of(model, history)

    for number, which in enumerate(("ours", "theirs", "ours")):
        config: Any = {"configurable": {"session_id": "1", "which": which}}
        chain.invoke({"question": f"q{number}"}, config)

    assert [(type(message), message.content) for message in theirs.seen[0][1:]] == [
        (HumanMessage, "q0"),
        (AIMessage, "ok"),
        (HumanMessage, "q1"),
    ]
    assert [message["content"] for message in service.bodies[1]["messages"]] == [
        "Be brief.", "q0", "ok", "q1", "theirs", "q2",
    ]  # fmt: skip


def test_chat_and_text_models_are_alternatives_of_each_other() -> None:
    service = Service()
    chat, text = service.model(ChatCerebras), service.model(CerebrasLLM)
    model = chat.configurable_alternatives(ConfigurableField("which"), default_key="chat", text=text)
    chain = PromptTemplate.from_template("{x}") | model

    assert chain.invoke({"x": "q"}).text == "ok"
    assert chain.invoke({"x": "q"}, {"configurable": {"which": "text"}}) == "ok"
    assert [request.url.path for request in service.requests] == ["/v1/chat/completions", "/v1/completions"]


@both
@pytest.mark.parametrize("path", PATHS)
async def test_fallbacks_to_and_from_another_class(cls: Cls, path: str) -> None:
    working, broken = Service(), Service(httpx.ConnectError("no network"))

    assert await ask(working.model(cls).with_fallbacks([other("theirs")]), path) == "ok"
    assert await ask(broken.model(cls, max_retries=0).with_fallbacks([other("theirs")]), path) == "theirs"
    assert await ask(other().with_fallbacks([working.model(cls)], exceptions_to_handle=(Exception,)), path) == "ok"

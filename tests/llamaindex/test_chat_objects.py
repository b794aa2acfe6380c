"""Chunks are made without pydantic's checks: they have to equal, member by member, what the constructors make."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from llama_index.core.instrumentation.events.llm import LLMChatInProgressEvent
from pydantic import BaseModel, Field, PrivateAttr

from llamaindex_cerebras_ext import objects

CASES: list[tuple[Any, type[BaseModel], dict[str, Any]]] = [
    (objects.text_block, TextBlock, {"text": "a"}),
    (objects.thinking_block, ThinkingBlock, {"content": "a", "additional_information": {}}),
    (
        objects.tool_call_block,
        ToolCallBlock,
        {"tool_call_id": "c", "tool_name": "f", "tool_kwargs": '{"a"'},
    ),
    (
        objects.chat_message,
        ChatMessage,
        {
            "role": MessageRole.ASSISTANT,
            "additional_kwargs": {"tool_calls": [{"id": "c"}]},
            "blocks": [TextBlock(text="a"), ToolCallBlock(tool_name="f")],
        },
    ),
    (
        objects.chat_response,
        ChatResponse,
        {
            "message": ChatMessage(role="assistant", content="a"),
            "raw": {"id": "x"},
            "delta": "a",
            "logprobs": None,
            "additional_kwargs": {"thinking_delta": "t"},
        },
    ),
    (
        objects.whole_response,
        ChatResponse,
        {
            "message": ChatMessage(role="assistant", content="a"),
            "raw": {"id": "x"},
            "logprobs": None,
            "additional_kwargs": {"prompt_tokens": 1},
        },
    ),
]

case = pytest.mark.parametrize(("make", "cls", "values"), CASES, ids=lambda value: getattr(value, "__name__", ""))


@case
def test_made_object_equals_a_constructed_one(make: Any, cls: type[BaseModel], values: dict[str, Any]) -> None:
    made, constructed = make(dict(values)), cls(**values)
    assert type(made) is type(constructed)
    assert made == constructed
    assert list(made.__dict__.items()) == list(constructed.__dict__.items())
    for member in ("__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"):
        assert getattr(made, member) == getattr(constructed, member), member
    assert made.model_dump_json() == constructed.model_dump_json()
    assert (repr(made), str(made)) == (repr(constructed), str(constructed))


@case
def test_made_object_behaves_as_a_constructed_one(make: Any, cls: type[BaseModel], values: dict[str, Any]) -> None:
    made = make(dict(values))
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made.model_copy() == made
    assert cls.model_validate(made) is made
    assert cls.model_validate_json(made.model_dump_json()).model_dump() == made.model_dump()
    other = make(dict(values))
    name = next(iter(values))
    setattr(made, name, "changed")
    assert getattr(other, name) == values[name]
    assert made.model_fields_set is not other.model_fields_set


def test_nothing_is_made_by_hand_where_a_class_does_more_than_hold_fields() -> None:
    class Private(BaseModel):
        a: int
        _b: int = PrivateAttr(1)

    class After(BaseModel):
        a: int

        def model_post_init(self, context: Any) -> None:
            self.a += 1

    class Factory(BaseModel):
        a: int
        b: list[int] = Field(default_factory=list)

    class Required(BaseModel):
        a: int
        b: int

    assert objects.maker(Private, "a")({"a": 1})._b == 1
    assert objects.maker(After, "a")({"a": 1}).a == 2
    assert objects.maker(Factory, "a")({"a": 1}).b == []
    with pytest.raises(ValueError, match="b"):
        objects.maker(Required, "a")({"a": 1})


def test_all_objects_of_chunks_are_made_by_hand() -> None:
    for make, cls, values in CASES:
        made = make({**values, next(iter(values)): object()})
        assert type(made) is cls, "the constructor would have refused the value"


def test_event_keeps_the_chunk_itself() -> None:
    chunk = objects.chat_response(dict(CASES[-1][2]))
    assert LLMChatInProgressEvent(messages=[], response=chunk).response is chunk

"""LlamaIndex's response objects made without checking values that are right by construction: half the cost of a chunk.

An object made here equals, member by member, the one that the class's constructor makes; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock, ThinkingBlock, ToolCallBlock
from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)


def maker(cls: type[ModelT], *given: str) -> Callable[[dict[str, Any]], ModelT]:
    """Return a function from the values of the given fields to an instance.

    Args:
        cls: The class.
        *given: Fields that every call gives. Another field that has no constant default has to be among them, else the
            class's own constructor is used; so it is where the class does more than to hold its fields.
    """
    fields = cls.model_fields
    constant = {name: field.default for name, field in fields.items() if field.default_factory is None}
    plain = (
        all(name in given or (name in constant and not fields[name].is_required()) for name in fields)
        and not cls.__private_attributes__
        and cls.__pydantic_post_init__ is None
        and cls.model_config.get("extra") in (None, "ignore")
    )
    if not plain:
        return lambda values: cls(**values)
    template = {name: constant.get(name) for name in fields}
    new, put = cls.__new__, object.__setattr__

    def make(values: dict[str, Any]) -> ModelT:
        made = new(cls)
        put(made, "__dict__", {**template, **values})
        put(made, "__pydantic_fields_set__", set(values))
        put(made, "__pydantic_extra__", None)
        put(made, "__pydantic_private__", None)
        return made

    return make


text_block = maker(TextBlock, "text")
thinking_block = maker(ThinkingBlock, "content", "additional_information")
tool_call_block = maker(ToolCallBlock, "tool_call_id", "tool_name", "tool_kwargs")
chat_message = maker(ChatMessage, "role", "blocks", "additional_kwargs")
chat_response = maker(ChatResponse, "message", "delta", "raw", "logprobs", "additional_kwargs")

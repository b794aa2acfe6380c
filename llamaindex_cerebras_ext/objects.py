"""LlamaIndex's response objects made without checking values that are right by construction: half the cost of a chunk.

An object made here equals, member by member, the one that the class's constructor makes; a test says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, TextBlock, ThinkingBlock, ToolCallBlock
from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound=BaseModel)
_SLOTS = {"__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__"}


def maker(cls: type[ModelT], *given: str) -> Callable[[dict[str, Any]], ModelT]:
    """Return a function from the values of the given fields to an instance, which keeps the dictionary.

    Args:
        cls: The class.
        *given: Fields that every call gives, in this order. Another field that has no constant default has to be among
            them, else the class's own constructor is used; so it is where the class does more than to hold its fields.
    """
    fields = cls.model_fields
    constant = {name: field.default for name, field in fields.items() if field.default_factory is None}
    plain = (
        all(name in given or (name in constant and not fields[name].is_required()) for name in fields)
        and not cls.__private_attributes__
        and cls.__pydantic_post_init__ is None
        and cls.model_config.get("extra") in (None, "ignore")
        and BaseModel.__dict__.keys() >= _SLOTS
    )
    if not plain:
        return lambda values: cls(**values)
    template = {} if given == tuple(fields) else {name: constant.get(name) for name in fields}
    set_fields = set(given)
    new, slots = cls.__new__, BaseModel.__dict__
    # Faster than object.__setattr__, which looks for these first.
    put_values, put_set = slots["__dict__"].__set__, slots["__pydantic_fields_set__"].__set__
    put_extra, put_private = slots["__pydantic_extra__"].__set__, slots["__pydantic_private__"].__set__

    def make(values: dict[str, Any]) -> ModelT:
        made = new(cls)
        put_values(made, {**template, **values} if template else values)
        put_set(made, set_fields.copy())
        put_extra(made, None)
        put_private(made, None)
        return made

    return make


text_block = maker(TextBlock, "text")
thinking_block = maker(ThinkingBlock, "content", "additional_information")
tool_call_block = maker(ToolCallBlock, "tool_call_id", "tool_name", "tool_kwargs")
chat_message = maker(ChatMessage, "role", "additional_kwargs", "blocks")
chat_response = maker(ChatResponse, "message", "raw", "delta", "logprobs", "additional_kwargs")
whole_response = maker(ChatResponse, "message", "raw", "logprobs", "additional_kwargs")

"""Chat messages of LlamaIndex on the wire: roles, blocks, tool calls, thinking, and nothing of the caller's changed."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.llms.types import (
    AudioBlock,
    CacheControl,
    CachePoint,
    ChatMessage,
    CitableBlock,
    CitationBlock,
    DocumentBlock,
    ImageBlock,
    MessageRole,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    VideoBlock,
)

from cerebras_ext.errors import RequestValidationError
from llamaindex_cerebras_ext.to_wire import to_wire
from tests.llamaindex.messaging import called, result, wire
from tests.llamaindex.scripted import PATHS, ask, both, last, scripted

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
PNG_URI = "data:image/png;base64," + base64.b64encode(PNG).decode()


@pytest.mark.parametrize("path", PATHS)
async def test_messages_reach_the_wire_on_every_path(path: str) -> None:
    llm, service = scripted(both({"content": "a"}, {"content": "a"}))
    await last(llm, path, [ChatMessage(role="system", content="s"), *ask()])
    assert service.body["messages"] == [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}]


@pytest.mark.parametrize(
    ("role", "sent"),
    [
        ("system", "system"),
        ("developer", "developer"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("chatbot", "assistant"),
        ("model", "assistant"),
    ],
)
def test_role_is_mapped(role: str, sent: str) -> None:
    assert wire(ChatMessage(role=role, content="x")) == [{"role": sent, "content": "x"}]


def test_every_role_of_llama_index_is_known() -> None:
    for role in MessageRole:
        assert wire(called(ToolCallBlock(tool_call_id="t", tool_name="f")), ChatMessage(role=role, content="x"))


def test_function_role_is_a_tool_result() -> None:
    messages = wire(
        ChatMessage(role="assistant", additional_kwargs={"function_call": {"name": "f", "arguments": '{"a": 1}'}}),
        ChatMessage(role="function", content="7", additional_kwargs={"name": "f"}),
    )
    call_id = messages[0]["tool_calls"][0]["id"]
    assert messages[1] == {"role": "tool", "content": "7", "tool_call_id": call_id}


def test_name_comes_from_additional_kwargs() -> None:
    message = ChatMessage(role="user", content="x", additional_kwargs={"name": "ann", "refusal": None, "store": True})
    assert wire(message) == [{"role": "user", "content": "x", "name": "ann"}]


def test_tool_message_has_no_name() -> None:
    messages = wire(called(ToolCallBlock(tool_call_id="t", tool_name="f")), result("ok", "t", name="f"))
    assert messages[1].keys() == {"role", "content", "tool_call_id"}


# ---- text ----


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_text_blocks_are_joined_as_llama_index_joins_them(role: str) -> None:
    message = ChatMessage(role=role, blocks=[TextBlock(text="a"), TextBlock(text="b")])
    assert wire(message)[0]["content"] == message.content == "a\nb"


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_message_without_blocks_is_an_empty_text(role: str) -> None:
    assert wire(ChatMessage(role=role)) == [{"role": role, "content": ""}]


def test_cache_points_of_other_providers_are_left_out() -> None:
    point = CachePoint(cache_control=CacheControl(type="ephemeral"))
    assert wire(ChatMessage(role="user", blocks=[TextBlock(text="z"), point])) == [{"role": "user", "content": "z"}]


def test_citable_text_keeps_title_and_source() -> None:
    block = CitableBlock(title="Report", source="r.pdf", content="the text")  # type: ignore[arg-type]
    assert wire(ChatMessage(role="user", blocks=[block]))[0]["content"] == "Report (r.pdf):\nthe text"


def test_citations_beside_an_answer_are_left_out() -> None:
    citation = CitationBlock(cited_content="x", source="s", title="t", additional_location_info={})  # type: ignore[arg-type]
    message = ChatMessage(role="assistant", blocks=[TextBlock(text="A"), citation])
    assert wire(message) == [{"role": "assistant", "content": "A"}]


# ---- images ----


def image(block: ImageBlock) -> dict[str, Any]:
    message = wire(ChatMessage(role="user", blocks=[TextBlock(text="see"), block]))[0]
    assert message["content"][0] == {"type": "text", "text": "see"}
    assert len(message["content"]) == 2
    part: dict[str, Any] = message["content"][1]
    assert part.keys() == {"type", "image_url"}
    assert part["type"] == "image_url"
    found: dict[str, Any] = part["image_url"]
    return found


def test_image_bytes_become_a_data_uri() -> None:
    assert image(ImageBlock(image=PNG)) == {"url": PNG_URI}
    assert image(ImageBlock(image=b"hi", image_mimetype="image/png")) == {"url": "data:image/png;base64,aGk="}


def test_image_detail_is_kept_inside_image_url() -> None:
    assert image(ImageBlock(image=PNG, detail="low")) == {"url": PNG_URI, "detail": "low"}


def test_image_file_is_read(tmp_path: Path) -> None:
    named = tmp_path / "a.png"
    named.write_bytes(PNG)
    assert image(ImageBlock(path=named)) == {"url": PNG_URI}
    unnamed = tmp_path / "no-suffix"
    unnamed.write_bytes(PNG)
    assert image(ImageBlock(path=unnamed)) == {"url": PNG_URI}


def test_image_buffer_is_read_and_left_where_it_was() -> None:
    buffer = io.BytesIO(PNG)
    buffer.seek(3)
    try:
        block = ImageBlock(image=buffer)
    except ValueError:
        pytest.skip("this core takes images as bytes only")
    assert image(block) == {"url": PNG_URI}
    assert buffer.tell() == 3
    with pytest.raises(RequestValidationError, match="empty"):
        image(ImageBlock(image=io.BytesIO(b"")))


def test_image_data_uri_is_passed_on() -> None:
    assert image(ImageBlock(url=PNG_URI)) == {"url": PNG_URI}


def test_image_address_is_passed_on_and_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetched(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("the image was fetched")

    monkeypatch.setattr(ImageBlock, "resolve_image", fetched)
    assert image(ImageBlock(url="https://example.com/a.png")) == {"url": "https://example.com/a.png"}


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (ImageBlock(image=b"no image at all"), "image_mimetype"),
        (ImageBlock(), "needs image, path or url"),
        (ImageBlock(url="file:///etc/passwd"), "data URI or a web address"),
    ],
)
def test_unreadable_image_is_refused(block: ImageBlock, reason: str) -> None:
    with pytest.raises(RequestValidationError, match=f"message 0 .*{reason}"):
        to_wire([ChatMessage(role="user", blocks=[block])])


@pytest.mark.parametrize(
    "block",
    [AudioBlock(audio=b"x"), VideoBlock(video=b"x"), DocumentBlock(data=b"x"), ThinkingBlock(content="t")],
    ids=lambda block: block.block_type,
)
def test_block_that_the_service_cannot_take_is_named(block: Any) -> None:
    llm, service = scripted({})
    with pytest.raises(RequestValidationError, match=f"message 1 .*{block.block_type}"):
        llm.chat([*ask(), ChatMessage(role="user", blocks=[TextBlock(text="x"), block])])
    assert service.bodies == []


@pytest.mark.parametrize("role", ["system", "assistant", "tool"])
def test_image_is_not_dropped_in_silence_where_it_cannot_go(role: str) -> None:
    message = ChatMessage(role=role, blocks=[ImageBlock(image=PNG)], additional_kwargs={"tool_call_id": "t"})
    with pytest.raises(RequestValidationError, match="images go into user messages of the chat model"):
        to_wire([message])


# ---- thinking ----


def thought(content: str | None = "because", text: str = "4", **about: Any) -> ChatMessage:
    return ChatMessage(
        role="assistant", blocks=[ThinkingBlock(content=content, additional_information=about), TextBlock(text=text)]
    )


def test_thinking_is_replayed_as_reasoning() -> None:
    assert wire(thought()) == [{"role": "assistant", "content": "4", "reasoning": "because"}]


def test_thinking_is_replayed_beside_tool_calls() -> None:
    blocks = [ThinkingBlock(content="r"), TextBlock(text=""), ToolCallBlock(tool_call_id="t", tool_name="f")]
    message = wire(ChatMessage(role="assistant", blocks=blocks))[0]
    assert message["reasoning"] == "r"
    assert "content" not in message


def test_thinking_alone_is_a_turn() -> None:
    assert wire(thought(text="")) == [{"role": "assistant", "reasoning": "because"}]


def test_thinking_can_be_replayed_as_tags() -> None:
    assert wire(thought(), replay_reasoning="think_tags") == [
        {"role": "assistant", "content": "<think>\nbecause\n</think>\n\n4"}
    ]


def test_thinking_can_be_left_out() -> None:
    assert wire(thought(), replay_reasoning="off") == [{"role": "assistant", "content": "4"}]


@pytest.mark.parametrize(("mode", "member"), [("reasoning", "because"), ("off", None)])
@pytest.mark.parametrize("path", PATHS)
async def test_replay_setting_holds_on_every_path(path: str, mode: str, member: str | None) -> None:
    llm, service = scripted(both({"content": "a"}, {"content": "a"}), replay_reasoning=mode)
    await last(llm, path, [*ask(), thought(), *ask()])
    assert service.body["messages"][1].get("reasoning") == member


@pytest.mark.parametrize(
    "about",
    [
        {"signature": "sig"},
        {"thought_signature": b"x"},
        {"provider": "anthropic"},
        {"encrypted_content": None, "id": "rs"},
    ],
    ids=str,
)
def test_thinking_of_another_provider_is_never_replayed(about: dict[str, Any]) -> None:
    assert wire(thought(**about)) == [{"role": "assistant", "content": "4"}]


def test_thinking_that_says_it_is_ours_is_replayed() -> None:
    assert wire(thought(model_provider="cerebras"))[0]["reasoning"] == "because"


def test_redacted_thinking_without_text_is_nothing() -> None:
    assert wire(thought(content=None)) == [{"role": "assistant", "content": "4"}]


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_in_kwargs_is_only_ever_written_as_reasoning(key: str) -> None:
    message = wire(ChatMessage(role="assistant", content="4", additional_kwargs={key: "2+2"}))[0]
    assert message == {"role": "assistant", "content": "4", "reasoning": "2+2"}


def test_thinking_survives_storage() -> None:
    message = ChatMessage.model_validate_json(thought().model_dump_json())
    assert wire(message)[0]["reasoning"] == "because"


# ---- the caller's objects ----


@pytest.mark.parametrize("path", PATHS)
async def test_nothing_of_the_callers_is_changed(path: str) -> None:
    llm, _ = scripted(both({"content": "a"}, {"content": "a"}))
    messages = [
        ChatMessage(role="user", blocks=[TextBlock(text="x"), ImageBlock(image=PNG)]),
        called(
            ToolCallBlock(tool_call_id="t", tool_name="f", tool_kwargs={"a": [1]}),
            additional_kwargs={"tool_calls": [{"id": "t", "function": {"name": "f", "arguments": '{"a":[1]}'}}]},
        ),
        result("7", "t"),
    ]
    before = [message.model_copy(deep=True) for message in messages]
    kwargs: dict[str, Any] = {"stop": ["x"], "logit_bias": {"1": 2}, "extra_body": {"a": {"b": 1}}}
    given = {name: value.copy() for name, value in kwargs.items()}
    await last(llm, path, messages, **kwargs)
    assert messages == before
    assert kwargs == given


@pytest.mark.parametrize("role", ["system", "user", "assistant", "tool"])
def test_what_other_integrations_keep_in_additional_kwargs_is_not_sent(role: str) -> None:
    kept = {"refusal": None, "store": True, "audio": None, "annotations": [1], "thought_signatures": [b"x"], "id": "m1"}
    sent = wire(ChatMessage(role=role, content="a", additional_kwargs={**kept, "tool_call_id": "t"}))
    assert sent[0].keys() == {"role", "content"} | ({"tool_call_id"} if role == "tool" else set())

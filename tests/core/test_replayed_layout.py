"""Arguments in history keep their layout, byte for byte; only illegal text is rewritten."""

from __future__ import annotations

import json

import pytest

from cerebras_ext.toolcalls import replayed_arguments


@pytest.mark.parametrize("text", ['{"a": 1}', '{\n  "a": 1,\n\t"b": "\\n"\n}', '{"a":"ü"}\n'])
def test_legal_text_is_replayed_byte_for_byte(text: str) -> None:
    assert replayed_arguments(text) == text


@pytest.mark.parametrize("text", ['{"a": "x\ny"}', '{\n"a": "x\ty"\n}'])
def test_control_characters_inside_of_strings_are_written_as_escapes(text: str) -> None:
    sent = replayed_arguments(text)
    assert json.loads(sent) == json.loads(text, strict=False)

"""Arguments of earlier tool calls are written as the `json` module writes them, by an encoder that is set up once."""

from __future__ import annotations

import json
import json.encoder
from collections import OrderedDict
from types import MappingProxyType
from typing import Any

import pytest

from cerebras_ext import jsontext
from cerebras_ext.errors import RequestValidationError
from cerebras_ext.jsontext import dump_text
from cerebras_ext.toolcalls import replayed_arguments

CIRCULAR: dict[str, Any] = {}
CIRCULAR["me"] = CIRCULAR


def test_the_encoder_is_in_use() -> None:
    assert jsontext._encoder is not None


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"text": 'hé\u2028\u2029\x00\x1f"\\/\n\ud83e', "ü\n": "🙂"},
        {"a": [1, -2.5, 1e300, 10**30, True, False, None, "", [], {}], "b": (1, 2), "c": {"d": {"e": [{}]}}},
        {1: 2, 2.5: 3, False: 4, None: 5},
        OrderedDict(a=1),
    ],
)
def test_text_is_that_of_the_json_module(value: Any) -> None:
    assert dump_text(value) == json.dumps(value, ensure_ascii=False)
    assert replayed_arguments(MappingProxyType(value)) == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize("value", [{"a": float("nan")}, {"a": {1}}, {"a": b""}, {(1,): 1}, CIRCULAR])
def test_what_json_has_no_form_for_is_refused_by_name(value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestValidationError, match="call of 'f'") as ready:
        replayed_arguments(value, "f")
    monkeypatch.setattr(jsontext, "_encoder", None)
    with pytest.raises(RequestValidationError) as standard:
        replayed_arguments(value, "f")
    assert str(ready.value) == str(standard.value)


def test_the_standard_encoder_writes_where_there_is_no_ready_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real: Any = json.encoder.c_make_encoder  # type: ignore[attr-defined]

    def other(markers: Any, *rest: Any) -> Any:
        return real(markers, *rest) if markers is not None else lambda value, level: ("{}",)

    monkeypatch.setattr("json.encoder.c_make_encoder", other)
    assert jsontext._ready_encoder() is None
    monkeypatch.setattr("json.encoder.c_make_encoder", None)
    assert jsontext._ready_encoder() is None
    monkeypatch.setattr(jsontext, "_encoder", None)
    assert dump_text({"a": 1}) == '{"a": 1}'

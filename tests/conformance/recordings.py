"""Reads the recorded exchanges without any help of the library, so that expectations are independent of it."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import pytest

FOLDER = pathlib.Path(
    os.environ.get("CEREBRAS_EXT_RECORDINGS")
    or pathlib.Path(__file__).resolve().parents[3] / "shared" / "wire" / "recorded"
)


def numbers() -> list[str]:
    """Numbers of the exchanges, or one placeholder where the folder is absent (its tests skip)."""
    return sorted(path.stem for path in FOLDER.glob("[0-9]*.json")) or ["absent"]


def load(number: str) -> dict[str, Any]:
    if number == "absent":
        pytest.skip("the folder of recordings is not beside the checkout")
    exchange: dict[str, Any] = json.loads((FOLDER / f"{number}.json").read_text(encoding="utf-8"))
    return exchange


def events(exchange: dict[str, Any]) -> list[dict[str, Any]]:
    """The JSON events of a recorded stream."""
    lines = exchange["response"]["text"].split("\n")
    return [json.loads(line[6:]) for line in lines if line.startswith("data: {")]


def is_stream(exchange: dict[str, Any]) -> bool:
    return "event-stream" in exchange["response"]["headers"].get("content-type", "")


def body(exchange: dict[str, Any]) -> bytes:
    answer = exchange["response"]
    return (answer["text"] if "text" in answer else json.dumps(answer["json"])).encode()

"""Observers of events, spans and old callbacks that keep what they are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.schema import CBEventType
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from pydantic import PrivateAttr


class Events(BaseEventHandler):
    """Keeps every event of the root dispatcher."""

    _kept: list[BaseEvent] = PrivateAttr(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        return "Events"

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self._kept.append(event)

    def of(self, kind: type[BaseEvent]) -> list[Any]:
        return [event for event in self._kept if type(event) is kind]


class Legacy(BaseCallbackHandler):
    """Keeps the starts and ends that old callback handlers are told."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.told: list[tuple[str, dict[str, Any]]] = []

    def on_event_start(self, event_type: CBEventType, payload: Any = None, *args: Any, **kwargs: Any) -> str:
        if event_type == CBEventType.LLM:
            self.told.append(("start", payload))
        return ""

    def on_event_end(self, event_type: CBEventType, payload: Any = None, *args: Any, **kwargs: Any) -> None:
        if event_type == CBEventType.LLM:
            self.told.append(("end", payload))

    def start_trace(self, trace_id: str | None = None) -> None: ...

    def end_trace(self, trace_id: str | None = None, trace_map: Any = None) -> None: ...


@pytest.fixture(name="observed")
def observed_fixture() -> Iterator[tuple[Events, SimpleSpanHandler]]:
    dispatcher = get_dispatcher()
    events, spans = Events(), SimpleSpanHandler()
    dispatcher.add_event_handler(events)
    dispatcher.add_span_handler(spans)
    yield events, spans
    dispatcher.event_handlers.remove(events)
    dispatcher.span_handlers.remove(spans)

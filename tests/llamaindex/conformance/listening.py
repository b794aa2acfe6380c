"""Listens to LlamaIndex's instrumentation and to its older callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import llama_index.core.instrumentation as instrument
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.callbacks.schema import CBEventType
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span import SimpleSpan
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler
from pydantic import Field


class _Events(BaseEventHandler):
    seen: list[Any] = Field(default_factory=list)

    def handle(self, event: BaseEvent, **kwargs: Any) -> None:
        self.seen.append(event)


class _Spans(BaseSpanHandler[SimpleSpan]):
    def new_span(self, id_: str, bound_args: Any, instance: Any = None, parent_span_id: str | None = None,
                 tags: dict[str, Any] | None = None, **kwargs: Any) -> SimpleSpan:  # fmt: skip
        return SimpleSpan(id_=id_, parent_id=parent_span_id)

    def prepare_to_exit_span(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **kwargs: Any
    ) -> SimpleSpan:
        span = self.open_spans[id_]
        self.completed_spans.append(span)
        return span

    def prepare_to_drop_span(
        self, id_: str, bound_args: Any, instance: Any = None, err: BaseException | None = None, **kwargs: Any
    ) -> SimpleSpan:
        span = self.open_spans[id_]
        self.dropped_spans.append(span)
        return span


class Listener:
    """What was told since it began to listen."""

    def __init__(self, events: _Events, spans: _Spans) -> None:
        self._events = events
        self._spans = spans

    @property
    def events(self) -> list[Any]:
        """All events."""
        return self._events.seen

    def of(self, *names: str) -> list[Any]:
        """The events whose class has one of the names."""
        return [event for event in self.events if type(event).__name__ in names]

    def names(self, prefix: str = "LLM") -> list[str]:
        """Names of the event classes in the order in which they were told."""
        found = [type(event).__name__ for event in self.events]
        return [name for name in found if name.startswith(prefix) or name == "ExceptionEvent"]

    @property
    def span_methods(self) -> list[str]:
        """Names of the methods whose spans ended well."""
        return [span.id_.split("-")[0].rpartition(".")[2] for span in self._spans.completed_spans]

    @property
    def failed_span_methods(self) -> list[str]:
        """Names of the methods whose spans ended with an error."""
        return [span.id_.split("-")[0].rpartition(".")[2] for span in self._spans.dropped_spans]


@contextlib.contextmanager
def listening() -> Iterator[Listener]:
    """Listen to everything for a while."""
    root = instrument.get_dispatcher()  # type: ignore[attr-defined]
    events, spans = _Events(seen=[]), _Spans(open_spans={}, completed_spans=[], dropped_spans=[], current_span_ids={})
    root.add_event_handler(events)
    root.add_span_handler(spans)
    try:
        yield Listener(events, spans)
    finally:
        root.event_handlers.remove(events)
        root.span_handlers.remove(spans)


class Callbacks(BaseCallbackHandler):
    """Keeps what the older callbacks of an LLM are told."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.starts: list[dict[str, Any]] = []
        self.ends: list[dict[str, Any]] = []

    def on_event_start(
        self, event_type: CBEventType, payload: dict[str, Any] | None = None, event_id: str = "",
        parent_id: str = "", **kwargs: Any,
    ) -> str:  # fmt: skip
        if event_type == CBEventType.LLM:
            self.starts.append(payload or {})
        return event_id

    def on_event_end(
        self, event_type: CBEventType, payload: dict[str, Any] | None = None, event_id: str = "", **kwargs: Any
    ) -> None:
        if event_type == CBEventType.LLM:
            self.ends.append(payload or {})

    def start_trace(self, trace_id: str | None = None) -> None:
        pass

    def end_trace(self, trace_id: str | None = None, trace_map: dict[str, list[str]] | None = None) -> None:
        pass

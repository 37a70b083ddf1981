"""A tracer that keeps the spans it is given, for tests of the code that records them."""

from collections.abc import Sequence
from typing import NamedTuple

from shared.contracts.identity import span_id
from shared.telemetry.tracing import Attributes, Event


class Span(NamedTuple):
    """One call of `Tracer.span`."""

    name: str
    trace_id: str
    start_ms: int
    end_ms: int
    parent: str
    attributes: Attributes
    links: Sequence[str]
    events: Sequence[Event]
    error: str
    span_id: str


class KeptSpans:
    """Implements `shared.telemetry.tracing.Tracer`."""

    lost = 0

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.spans: list[Span] = []

    def keeps(self, trace_id: str) -> bool:
        """All or nothing."""
        return self.enabled and bool(trace_id)

    def span(
        self,
        name: str,
        *,
        trace_id: str,
        start_ms: int,
        end_ms: int,
        key: str = "",
        parent: str = "",
        attributes: Attributes | None = None,
        links: Sequence[str] = (),
        events: Sequence[Event] = (),
        error: str = "",
    ) -> None:
        own = span_id(trace_id, name, key)
        given = attributes or {}
        self.spans.append(
            Span(name, trace_id, start_ms, end_ms, parent, given, links, events, error, own)
        )

    async def close(self, timeout_s: float) -> None:
        """Nothing waits."""

    def named(self, name: str) -> list[Span]:
        """All spans of this name."""
        return [span for span in self.spans if span.name == name]

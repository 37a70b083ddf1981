"""Spans that are built when they end, from instants in the log, with computed ids.

Messages carry no trace context, and a restart loses none: every service computes the same trace id
from gang id and attempt (`shared.contracts.identity.gang_trace_id`), and a span's id from trace,
name and key. Without an endpoint the exporter is not imported.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from shared.contracts.identity import root_span_id

Attributes: TypeAlias = Mapping[str, str | int | bool | float]

#: Name of the root span of a trace: one attempt of one gang. The planner sends it when the attempt
#: ends; the other spans of the trace name its id (`gang_span`) as their parent before that.
GANG: Final = "gang"


def gang_span(trace_id: str) -> str:
    """Id of a trace's root span."""
    return root_span_id(trace_id)


def sampled(trace_id: str, ratio: float) -> bool:
    """Whether a trace is among the share `ratio` (0 to 1) that is exported at all.

    Every service decides the same from the id alone: by its last 64 bits, like OpenTelemetry's
    TraceIdRatioBased.
    """
    return int(trace_id[16:], 16) < round(ratio * (1 << 64))


def jaeger_trace_url(address: str, trace_id: str) -> str:
    """The URL of a trace in Jaeger's user interface, which is at `address`."""
    return f"{address.rstrip('/')}/trace/{trace_id}"


class Event(NamedTuple):
    """An event at one instant within a span."""

    #: Low-cardinality: `repair opened`.
    name: str
    #: Instant since the epoch.
    at_ms: int
    attributes: Attributes = MappingProxyType({})


class EndedSpan(NamedTuple):
    """A finished span; the fields are the arguments of `Tracer.span`."""

    name: str
    trace_id: str
    start_ms: int
    end_ms: int
    key: str = ""
    parent: str = ""
    attributes: Attributes | None = None
    links: Sequence[str] = ()
    events: Sequence[Event] = ()
    error: str = ""


class Tracer(Protocol):
    """Takes ended spans; `tracers.tracer_for` makes one. A call never waits and never fails."""

    @property
    def enabled(self) -> bool:
        """Whether spans are exported; if not, a caller can skip building them."""
        ...

    @property
    def lost(self) -> int:
        """Spans that were dropped or could not be sent."""
        ...

    def keeps(self, trace_id: str) -> bool:
        """Whether spans of this trace are exported; if not, a caller can skip building them."""
        ...

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
        """Export one finished span, unless its trace is not sampled.

        Args:
            name: Low-cardinality: `decide`, `bind`.
            trace_id: 32 hexadecimal digits.
            start_ms: Instant since the epoch.
            end_ms: Likewise; raised to `start_ms` if clocks disagree.
            key: What distinguishes spans of one name in one trace.
            parent: Id of the parent span; "" for a root.
            attributes: Plain values.
            links: W3C traceparents of other traces; malformed ones are ignored.
            events: Events during the span. The caller must not change them, or the attributes,
                later.
            error: Why it failed; "" when it did not.
        """
        ...

    async def close(self, timeout_s: float) -> None:
        """Send the waiting spans for at most `timeout_s` seconds, and end."""
        ...

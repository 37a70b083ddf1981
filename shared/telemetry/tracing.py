"""Spans that are built when they end, from instants in the log, with ids that follow from what they
describe.

Nothing is carried in messages and nothing is lost in a restart: every service computes the same
trace id from gang id and attempt (`shared.contracts.identity.gang_trace_id`), and a span's id from
trace, name and key. Without an endpoint the exporter is not even imported.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from shared.contracts.identity import root_span_id

Attributes: TypeAlias = Mapping[str, str | int | bool | float]

#: Name of the root span of a trace: one attempt of one gang. The planner sends it when the attempt
#: ends; `gang_span` is its id, which all other spans of the trace have as their parent long before.
GANG: Final = "gang"


def gang_span(trace_id: str) -> str:
    """Id of a trace's root span."""
    return root_span_id(trace_id)


def sampled(trace_id: str, ratio: float) -> bool:
    """Whether a trace is among the share `ratio` (0 to 1) that is exported at all.

    Every service comes to the same answer, before the first span, from the id alone: by its last 64
    bits, like OpenTelemetry's TraceIdRatioBased.
    """
    return int(trace_id[16:], 16) < round(ratio * (1 << 64))


class Event(NamedTuple):
    """Something that happened at one instant within a span."""

    #: Low-cardinality: `repair opened`.
    name: str
    #: Instant since the epoch.
    at_ms: int
    attributes: Attributes = MappingProxyType({})


class EndedSpan(NamedTuple):
    """A span as a service handed it in: see `Tracer.span`."""

    name: str
    trace_id: str
    start_ms: int
    end_ms: int
    key: str
    parent: str
    attributes: Attributes | None
    links: Sequence[str]
    events: Sequence[Event]
    error: str


class Tracer(Protocol):
    """Takes ended spans; `tracers.tracer_for` makes one. A call never waits and never fails."""

    @property
    def enabled(self) -> bool:
        """Whether spans go anywhere; lets a caller skip the work of describing them."""
        ...

    @property
    def lost(self) -> int:
        """Spans that were dropped or could not be sent."""
        ...

    def keeps(self, trace_id: str) -> bool:
        """Whether spans of this trace go anywhere: asked before one is described."""
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
        """Hand in one finished span; of a trace that is not sampled it is dropped.

        Args:
            name: Low-cardinality: `decide`, `bind`.
            trace_id: 32 hexadecimal digits.
            start_ms: Instant since the epoch.
            end_ms: Likewise; raised to `start_ms` if clocks disagree.
            key: What distinguishes spans of one name in one trace.
            parent: Id of the parent span; "" for a root.
            attributes: Plain values.
            links: W3C traceparents of other traces; malformed ones are ignored.
            events: What happened meanwhile. Like the attributes not to be changed any more.
            error: Why it failed; "" when it did not.
        """
        ...

    async def close(self, timeout_s: float) -> None:
        """Send what waits, as far as that goes within `timeout_s`, and end."""
        ...

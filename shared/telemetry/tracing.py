"""Spans that are built when they end, from instants in the log, with ids that follow from what they describe.

Nothing is carried in messages and nothing is lost in a restart: every service computes the same trace id from gang id
and attempt (`shared.contracts.identity.gang_trace_id`), and a span's id from trace, name and key.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol


def span_id(trace_id: str, name: str, key: str = "") -> str:
    """16 hexadecimal digits; the same arguments give the same id everywhere."""
    raise NotImplementedError


class Tracer(Protocol):
    """Takes finished spans. `shared.telemetry.tracing.tracer_for` makes one; without an endpoint it does nothing."""

    def span(
        self,
        name: str,
        *,
        trace_id: str,
        start_ms: int,
        end_ms: int,
        key: str = "",
        parent: str = "",
        attributes: Mapping[str, str | int | bool | float] | None = None,
        links: Sequence[str] = (),
        error: str = "",
    ) -> None:
        """Hand in one finished span.

        Args:
            name: Low-cardinality: `decide`, `bind`.
            trace_id: 32 hexadecimal digits.
            start_ms: Instant since the epoch.
            end_ms: Likewise; never before `start_ms` (it is raised to it).
            key: What tells spans of one name in one trace apart.
            parent: Id of the parent span; "" for a root.
            attributes: Plain values.
            links: W3C traceparents of other traces; malformed ones are ignored.
            error: Why it failed; "" when it did not.
        """

    async def flush(self) -> None:
        """Send what waits, as far as that goes within 2 s."""


def tracer_for(endpoint: str, *, service: str, instance: str) -> Tracer:
    """A tracer that exports to `endpoint` (OTLP/HTTP), or the one that does nothing when it is ""."""
    raise NotImplementedError

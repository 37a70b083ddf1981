"""Addresses of gangs' traces in Jaeger's user interface."""

import msgspec

from shared.telemetry.tracing import jaeger_trace_url, sampled


class TraceLinks(msgspec.Struct, frozen=True, kw_only=True):
    """Where traces are shown."""

    #: Address of the user interface; None: traces have no addresses.
    jaeger_url: str | None = None
    #: Share of traces that is exported, from 0 to 1.
    ratio: float = 1.0

    def url_of(self, trace_id: str) -> str:
        """The address of a trace; "": there is none, or the trace is not exported."""
        if self.jaeger_url is None or not trace_id or not sampled(trace_id, self.ratio):
            return ""
        return jaeger_trace_url(self.jaeger_url, trace_id)

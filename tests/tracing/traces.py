"""What a sink has received, as traces: by id, with the service that sent each span."""

from typing import Any, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.telemetry.tracing import gang_span
from tests.support.otlp_sink import OtlpSink, attributes_of

ERROR = 2


class Told(NamedTuple):
    """One span."""

    service: str
    span: Span

    @property
    def values(self) -> dict[str, Any]:
        return attributes_of(self.span)

    @property
    def start_ms(self) -> int:
        return int(self.span.start_time_unix_nano) // 1_000_000

    @property
    def end_ms(self) -> int:
        return int(self.span.end_time_unix_nano) // 1_000_000

    @property
    def failed(self) -> bool:
        return self.span.status.code == ERROR


class Trace:
    """All spans of one trace, in order of arrival."""

    def __init__(self, trace_id: str, spans: list[Told]) -> None:
        self.trace_id = trace_id
        self.spans = spans

    @property
    def services(self) -> set[str]:
        return {told.service for told in self.spans}

    def named(self, name: str) -> list[Told]:
        return [told for told in self.spans if told.span.name == name]

    @property
    def root(self) -> Told:
        """The one root; an AssertionError while there is none, or more than one."""
        roots = self.named("gang")
        assert len(roots) == 1, [told.span.name for told in self.spans]
        return roots[0]

    def check(self) -> None:
        """Every span is below the one root, and time does not run backwards."""
        root = self.root
        assert root.span.parent_span_id == b""
        assert root.span.span_id.hex() == gang_span(self.trace_id)
        for told in self.spans:
            assert told.start_ms <= told.end_ms, told
            if told is not root:
                assert told.span.parent_span_id == root.span.span_id, told
        ids = [told.span.span_id for told in self.spans]
        assert len(ids) == len(set(ids)), "a span was told twice"


def traces_of(sink: OtlpSink) -> dict[str, Trace]:
    """Everything received so far."""
    traces: dict[str, Trace] = {}
    for service, span in sink.spans:
        trace_id = span.trace_id.hex()
        traces.setdefault(trace_id, Trace(trace_id, [])).spans.append(Told(service, span))
    return traces

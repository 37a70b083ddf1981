"""What we write by hand is what OpenTelemetry's own classes read, whatever is in it."""

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from shared.contracts.identity import span_id
from shared.telemetry.otlp_wire import Handed, request
from shared.telemetry.tracing import Event
from tests.support.otlp_sink import attributes_of

INT64 = st.integers(-(2**63), 2**63 - 1)
MS = st.integers(0, 2**43)
TEXT = st.text(max_size=200)
ATTRIBUTES = st.dictionaries(
    TEXT, TEXT | INT64 | st.booleans() | st.floats(allow_nan=False), max_size=4
)
HEX16 = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
HEX32 = st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}")
EVENTS = st.builds(Event, TEXT, MS, ATTRIBUTES)
SPANS = st.builds(
    Handed,
    name=TEXT,
    trace_id=HEX32,
    start_ms=MS,
    end_ms=MS,
    key=TEXT,
    parent=st.just("") | HEX16,
    attributes=st.none() | ATTRIBUTES,
    links=st.lists(
        st.builds("00-{}-{}-01".format, HEX32, HEX16) | st.sampled_from(["", "x", "00-a-b-01"]),
        max_size=3,
    ).map(tuple),
    events=st.lists(EVENTS, max_size=3).map(tuple),
    error=TEXT,
)


@given(st.lists(SPANS, max_size=4), st.dictionaries(TEXT, TEXT, max_size=3))
def test_every_span_is_read_back_as_it_was_handed_in(
    spans: list[Handed], resource: dict[str, str]
) -> None:
    message = ExportTraceServiceRequest.FromString(request(spans, resource))
    (told,) = message.resource_spans
    assert {one.key: one.value.string_value for one in told.resource.attributes} == resource
    (scope,) = told.scope_spans
    assert scope.scope.name == "tutti"
    assert len(scope.spans) == len(spans)
    for handed, span in zip(spans, scope.spans, strict=True):
        own = span_id(handed.trace_id, handed.name, handed.key)
        ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
        assert ids == (handed.trace_id, own, handed.parent)
        assert (span.name, span.kind, span.flags) == (handed.name, 1, 1)
        assert span.start_time_unix_nano == handed.start_ms * 10**6
        assert span.end_time_unix_nano == max(handed.start_ms, handed.end_ms) * 10**6
        assert attributes_of(span) == (handed.attributes or {})
        links = [f"00-{one.trace_id.hex()}-{one.span_id.hex()}-01" for one in span.links]
        assert links == [link for link in handed.links if len(link) > 10]
        assert [(one.name, one.time_unix_nano // 10**6) for one in span.events] == [
            (event.name, event.at_ms) for event in handed.events
        ]
        for event, read in zip(handed.events, span.events, strict=True):
            assert attributes_of(read) == event.attributes
        assert (span.status.code, span.status.message) == (2 if handed.error else 0, handed.error)


def test_a_text_that_utf8_cannot_say_is_sent_all_the_same() -> None:
    span = Handed("x", "1" * 32, 1, 2, "", "", {"gang": "\ud800"}, (), (), "")
    message = ExportTraceServiceRequest.FromString(request([span], {}))
    (read,) = message.resource_spans[0].scope_spans[0].spans
    assert attributes_of(read) == {"gang": "?"}

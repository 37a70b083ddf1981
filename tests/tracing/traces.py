"""Traces as an endpoint has them, OTLP sink or Jaeger, in one form; and what holds of every one."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from opentelemetry.proto.trace.v1.trace_pb2 import Span

from shared.telemetry.tracing import gang_span
from tests.support.otlp_sink import OtlpSink, attributes_of

#: What the trace of a Job's gang consists of, with all five services at work.
JOBS_SPANS = frozenset(
    {
        "gang",
        "admit",
        "make group",
        "make pods",
        "observe",
        "queue",
        "decide",
        "bind",
        "report",
    }
)
_ERROR = 2
_NO_PARENT = ""


class Moment(NamedTuple):
    """An event of a span."""

    name: str
    at_ms: int
    values: dict[str, Any]


class ReadSpan(NamedTuple):
    """One span. Ids are hexadecimal, links are (trace, span)."""

    service: str
    name: str
    trace_id: str
    span_id: str
    parent: str
    start_ms: int
    end_ms: int
    values: dict[str, Any]
    error: str
    links: tuple[tuple[str, str], ...]
    events: tuple[Moment, ...]

    @property
    def failed(self) -> bool:
        return bool(self.error)


class Trace:
    """All spans of one trace, in order of arrival; what was exported twice, as a planner that takes
    over does, is there once, as in Jaeger's view.
    """

    def __init__(self, trace_id: str, spans: list[ReadSpan]) -> None:
        self.trace_id = trace_id
        self.spans = spans

    @property
    def services(self) -> set[str]:
        return {span.service for span in self.spans}

    @property
    def names(self) -> list[str]:
        """Every name once, in order."""
        return sorted({span.name for span in self.spans})

    def named(self, name: str) -> list[ReadSpan]:
        return [span for span in self.spans if span.name == name]

    @property
    def root(self) -> ReadSpan:
        """The one root; an AssertionError while there is none, or more than one."""
        roots = self.named("gang")
        assert len(roots) == 1, [span.name for span in self.spans]
        return roots[0]

    def check(self) -> None:
        """Every span is below the one root, and time does not run backwards."""
        root = self.root
        assert root.parent == _NO_PARENT
        assert root.span_id == gang_span(self.trace_id)
        for span in self.spans:
            assert span.start_ms <= span.end_ms, span
            if span is not root:
                assert span.parent == root.span_id, span
        ids = [span.span_id for span in self.spans]
        assert len(ids) == len(set(ids)), "a span was reported twice, with different content"

    @property
    def says_it_runs(self) -> bool:
        """Whether both the planner and the status controller reported the gang as running."""
        phases = [span.values["phase"] for span in self.named("report")]
        return "gang" in self.names and "Running" in phases

    @property
    def is_whole(self) -> bool:
        """Whether all that a Job's gang's trace consists of has come."""
        return set(self.names) >= JOBS_SPANS and self.says_it_runs

    def check_jobs_gang(self, job: str, pods: int) -> None:
        """It is the whole life of a Volcano Job's gang, from the Job's admission to the last pod
        bound, each part below the one root and in the order in which it was done.
        """
        self.check()
        one = {name: self.named(name) for name in self.names}
        assert set(self.names) == JOBS_SPANS
        assert not any(span.failed for span in self.spans), self.spans
        kinds = {span.values["kind"]: span for span in one["admit"]}
        assert sorted(kinds) == ["Job", "PodGroup"]
        assert kinds["Job"].values["object"] == job
        assert sum(span.values["pods"] for span in one["make pods"]) == pods
        (group,), (queue,), (decide,), (bind,) = (
            one[name] for name in ("make group", "queue", "decide", "bind")
        )
        assert bind.values["bound"] == pods
        # What was made is made again only after a failure.
        assert len(self.named("make group")) == 1
        order = [
            kinds["Job"].start_ms,
            group.start_ms,
            kinds["PodGroup"].start_ms,
            group.end_ms,
            one["make pods"][0].start_ms,
            decide.start_ms,
            bind.start_ms,
            bind.end_ms,
            self.root.end_ms,
        ]
        assert order == sorted(order), order
        assert queue.start_ms == self.root.start_ms <= one["make pods"][0].start_ms
        assert queue.end_ms == decide.start_ms


def check_retry(first: Trace, second: Trace) -> None:
    """A gang of three of which one binding was refused, so that it was released and placed
    again."""
    first.check()
    second.check()
    (bind,) = first.named("bind")
    assert bind.failed
    assert "configured to misbehave" in bind.error
    assert bind.values["bound"] == 2
    assert first.root.failed
    assert first.root.error == "1 of 3 members not bound: refused"
    (release,) = first.named("release")
    assert release.failed
    assert release.values["victims"] == 2
    (remove,) = first.named("remove")
    assert not remove.failed
    assert not any(span.failed for span in second.spans)
    assert second.root.links == ((first.trace_id, gang_span(first.trace_id)),)
    assert second.root.start_ms == first.root.end_ms
    assert [event.name for event in second.root.events] == ["backoff begun", "backoff ended"]
    assert second.root.events[0].values["reason"] == "BindingRefused"
    assert second.root.values["result"] == "Started"
    (bound,) = second.named("bind")
    assert bound.values["bound"] == 3


def traces_of(sink: OtlpSink) -> dict[str, Trace]:
    """Everything that a sink has received so far."""
    return _by_id(_of_otlp(service, span) for service, span in sink.spans)


def trace_of_jaeger(found: dict[str, Any]) -> Trace:
    """Return a trace of Jaeger's `/api/traces/{id}`."""
    services = {key: one["serviceName"] for key, one in found["processes"].items()}
    (trace,) = _by_id(
        _of_jaeger(services[span["processID"]], span) for span in found["spans"]
    ).values()
    return trace


def _by_id(spans: Iterable[ReadSpan]) -> dict[str, Trace]:
    traces: dict[str, Trace] = {}
    for span in spans:
        trace = traces.setdefault(span.trace_id, Trace(span.trace_id, []))
        if span not in trace.spans:
            trace.spans.append(span)
    return traces


def _of_otlp(service: str, span: Span) -> ReadSpan:
    failed = span.status.code == _ERROR
    return ReadSpan(
        service=service,
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        start_ms=int(span.start_time_unix_nano) // 1_000_000,
        end_ms=int(span.end_time_unix_nano) // 1_000_000,
        values=attributes_of(span),
        error=span.status.message if failed else "",
        links=tuple((link.trace_id.hex(), link.span_id.hex()) for link in span.links),
        events=tuple(
            Moment(event.name, int(event.time_unix_nano) // 1_000_000, attributes_of(event))
            for event in span.events
        ),
    )


def _of_jaeger(service: str, span: dict[str, Any]) -> ReadSpan:
    values = _plain(span["tags"])
    refers: dict[str, list[tuple[str, str]]] = {"CHILD_OF": [], "FOLLOWS_FROM": []}
    for one in span["references"]:
        refers[one["refType"]].append((one["traceID"], one["spanID"]))
    events = []
    for log in span["logs"] or ():
        fields = _plain(log["fields"])
        events.append(Moment(fields.pop("event"), log["timestamp"] // 1000, fields))
    return ReadSpan(
        service=service,
        name=span["operationName"],
        trace_id=span["traceID"],
        span_id=span["spanID"],
        parent=next((own for _, own in refers["CHILD_OF"]), _NO_PARENT),
        start_ms=span["startTime"] // 1000,
        end_ms=(span["startTime"] + span["duration"]) // 1000,
        values=values,
        error=str(values.get("otel.status_description", "")) if values.get("error") else "",
        links=tuple(refers["FOLLOWS_FROM"]),
        events=tuple(events),
    )


def _plain(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    return {pair["key"]: pair["value"] for pair in pairs}

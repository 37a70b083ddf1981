"""A watcher's metrics, and a span per gang object that appears."""

from collections.abc import Iterable
from typing import Final

from services.watcher.core.changes import RECORDS, kind_of
from services.watcher.state import WatcherState
from shared.contracts.cluster import ObjectChanges, PodGroupChanges
from shared.contracts.identity import gang_trace_id
from shared.kube.resources import Resource
from shared.model.objects import PodGroup
from shared.telemetry.metrics import Metrics
from shared.telemetry.tracing import Tracer, gang_span

_FLUSH_BUCKETS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)


class Reporting:
    """Counts objects read from the API server and records appended to CLUSTER."""

    def __init__(self, metrics: Metrics, tracer: Tracer) -> None:
        self._tracer = tracer
        #: UIDs of groups with a span; kept only for traces.
        self._exported: set[str] = set()
        #: Groups in the flush that is in flight.
        self._new: list[PodGroup] = []
        self._packed_ms = 0
        #: The epoch that this watcher writes under; 0, as in the metric: it is a standby.
        self.epoch = 0
        self._listed = metrics.counters(
            "listed_objects_total", "Objects in lists, by resource", "resource"
        )
        self._events = metrics.counters(
            "watch_events_total", "Events of watches, by resource", "resource"
        )
        self._sent = metrics.counters(
            "changes_sent_total", "Objects changed or removed, sent to CLUSTER, by kind", "kind"
        )
        self._appends = metrics.counter("appends_total", "Messages appended to CLUSTER")
        self._bytes = metrics.counter("append_bytes_total", "Bytes appended to CLUSTER")
        self._flush = metrics.histogram(
            "flush_seconds", "From taking changes to their last acknowledgement", _FLUSH_BUCKETS_S
        )
        self._epoch = metrics.gauge("epoch", "The epoch we write under; 0: a standby")
        self._objects = metrics.gauges("objects", "Objects in the cluster state, by kind", "kind")
        self._relists = 0
        metrics.totals(
            "relists_total",
            "Lists that a gap in a watch made necessary",
            (),
            lambda: {(): self._relists},
        )
        self._unreadable = metrics.gauge("unreadable", "Objects that did not fit their type")
        self._too_large = metrics.gauges(
            "too_large_objects", "Objects that are too large to be judged, by kind", "kind"
        )
        self.snapshots = metrics.counter("snapshots_total", "Snapshots begun by readers")

    def listed(self, resource: Resource, objects: int) -> None:
        self._listed(resource.title).inc(objects)

    def received(self, resource: Resource, events: int) -> None:
        if events:
            self._events(resource.title).inc(events)

    def packed(self, record: ObjectChanges) -> None:
        """Count the changes of a record that is about to be sent."""
        self._sent(kind_of(record)).inc(len(record.changed) + len(record.removed))
        if self._tracer.enabled and isinstance(record, PodGroupChanges):
            self._packed_ms = record.at_ms
            self._new += [group for group in record.changed if group.uid not in self._exported]
            self._exported.difference_update(gone.uid for gone in record.removed)

    def flushed(self, messages: list[tuple[str, bytes]], took_s: float) -> None:
        """Count the messages of a flush, all of which are stored."""
        self._appends.inc(len(messages))
        self._bytes.inc(sum(len(payload) for _, payload in messages))
        self._flush.observe(took_s)
        if self._new:
            self._export(self._new, self._packed_ms + round(took_s * 1000))
            self._new = []

    def opened(self, epoch: int, groups: Iterable[PodGroup], now_ms: int) -> None:
        """Record that this watcher is the writer, and its snapshot has these groups.

        Groups without a status were created while there was no watcher.
        """
        if self._tracer.enabled:
            listed = list(groups)
            self._exported = {group.uid for group in listed if group.phase}
            self._export([group for group in listed if not group.phase], now_ms)
        self.epoch = epoch
        self._epoch.set(epoch)

    def observe(self, state: WatcherState, relists: int) -> None:
        """Set the gauges; called each second."""
        for kind in RECORDS:
            self._objects(kind).set(state.cluster_state.count(kind))
            self._too_large(kind).set(len(state.too_large.get(kind, ())))
        self._relists = relists
        self._unreadable.set(state.unreadable)

    def _export(self, groups: list[PodGroup], end_ms: int) -> None:
        """Export a span per group, from its creation until planners could read it."""
        for group in groups:
            self._exported.add(group.uid)
            trace_id = gang_trace_id(group.trace_root or group.uid, 1)
            if not self._tracer.keeps(trace_id):
                continue
            self._tracer.span(
                "observe",
                trace_id=trace_id,
                # The API server's instants are whole seconds.
                start_ms=group.created_ms or end_ms,
                end_ms=end_ms,
                parent=gang_span(trace_id),
                attributes={
                    "gang": f"{group.namespace}/{group.name}",
                    "dialect": group.dialect,
                    "min_member": group.min_member,
                },
            )

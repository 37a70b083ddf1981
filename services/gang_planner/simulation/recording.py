"""Reads a recording of a planner: whether this core reproduces its decisions, and its gangs with
the times for which they ran.

A gang has the pods of the instant at which it had most. It runs from its first binding until no pod
of it is left, or to the recording's end, and what it asks for is what these pods ask for.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from services.gang_planner.recorder import Frame, NoSegment, read_segment
from services.gang_planner.replay.reproduction import Inputs, reproduce
from shared.contracts import codec
from shared.contracts.cluster import (
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    PriorityClassChanges,
    QueueChanges,
)
from shared.contracts.simulation import RecordedGang, RecordingReport, SegmentReport
from shared.model.gang_keys import UNNAMED, GangKey, gang_title, key_of, key_of_group
from shared.model.objects import Node, Pod, PodGroup, PriorityClass, Queue, Shape

_T = TypeVar("_T", Node, Queue, PriorityClass)

_SHOWN_MAX: Final = 20
_QUEUE: Final = "default"
_ENDED: Final = frozenset({"Succeeded", "Failed"})


def read_recording(paths: Sequence[str]) -> RecordingReport:
    """Reproduce each segment, and gather the gangs of all of them; oldest first.

    Raises:
        NoSegment: A file is no segment of a recording.
        OSError: A file cannot be read.
    """
    reports: list[SegmentReport] = []
    gathered = _Gathered()
    for path in map(Path, paths):
        frames = read_segment(path)
        if not any(frame.kind == "snapshot" for frame in frames):
            raise NoSegment(f"{path.name}: no segment of a recording: it has no snapshot")
        report = reproduce(frames)
        reports.append(
            SegmentReport(
                name=path.name,
                equal=report.equal,
                differing=len(report.differences),
                cut_off=report.cut_off,
                differs_from_ms=report.differs_from_ms,
                differences=tuple(report.differences[:_SHOWN_MAX]),
            )
        )
        gathered.read(frames)
    return gathered.report(reports)


class _Gang:
    def __init__(self, created_ms: int) -> None:
        self.created_ms = created_ms
        self.group: PodGroup | None = None
        #: Pods that have not ended, and those of when there were most.
        self.alive: dict[str, Pod] = {}
        self.most: tuple[Pod, ...] = ()
        self.begun_ms: int | None = None
        self.ended_ms: int | None = None


class _Gathered:
    """What the objects of a recording were, as of its end."""

    def __init__(self) -> None:
        self._from_ms: int | None = None
        self._now_ms = 0
        self._gangs: dict[GangKey, _Gang] = {}
        self._key_of: dict[str, GangKey] = {}
        self._nodes: dict[str, Node] = {}
        self._queues: dict[str, Queue] = {}
        self._classes: dict[str, PriorityClass] = {}
        #: Bound pods of other schedulers.
        self._others: dict[str, Pod] = {}
        self._configuration = ""

    def read(self, frames: Iterable[Frame]) -> None:
        inputs = Inputs(frames)
        self._configuration = inputs.policy
        here: set[str] = set()
        for page in inputs.pages:
            self._set_time(page.synced.at_ms)
            for record in page.records:
                self._apply(record)
                if isinstance(record, PodChanges):
                    here |= {pod.uid for pod in record.changed}
        # A segment begins with all objects: pods that it lacks have ended since the last one.
        for uid in self._key_of.keys() - here:
            self._end(uid)
        for frame in inputs.cluster:
            record = codec.decode_cluster(frame.payload)
            at_ms = getattr(record, "at_ms", 0)
            if at_ms > self._now_ms:
                self._set_time(at_ms)
            self._apply(record)

    def _set_time(self, at_ms: int) -> None:
        self._now_ms = max(self._now_ms, at_ms)
        self._from_ms = self._now_ms if self._from_ms is None else self._from_ms

    def _apply(self, record: object) -> None:
        match record:
            case NodeChanges():
                _update(self._nodes, record.changed, record.removed)
            case QueueChanges():
                _update(self._queues, record.changed, record.removed)
            case PriorityClassChanges():
                _update(self._classes, record.changed, record.removed)
            case PodGroupChanges():
                for group in record.changed:
                    self._gang(key_of_group(group), group.created_ms).group = group
            case PodChanges():
                for pod in record.changed:
                    self._see(pod)
                for gone in record.removed:
                    self._end(gone.uid)
                    self._others.pop(gone.uid, None)
            case _:
                pass

    def _gang(self, key: GangKey, created_ms: int) -> _Gang:
        return self._gangs.setdefault(key, _Gang(created_ms or self._now_ms))

    def _see(self, pod: Pod) -> None:
        key = key_of(pod)
        if key is None or not pod.ours:
            if pod.node and pod.phase not in _ENDED:
                self._others[pod.uid] = pod
            else:
                self._others.pop(pod.uid, None)
            return
        gang = self._gang(key, pod.created_ms)
        if pod.phase in _ENDED:
            self._end(pod.uid)
            return
        self._key_of[pod.uid] = key
        gang.alive[pod.uid] = pod
        gang.ended_ms = None
        if len(gang.alive) > len(gang.most):
            gang.most = tuple(gang.alive.values())
        if pod.node and gang.begun_ms is None:
            gang.begun_ms = self._now_ms

    def _end(self, uid: str) -> None:
        key = self._key_of.pop(uid, None)
        if key is not None:
            gang = self._gangs[key]
            del gang.alive[uid]
            if not gang.alive:
                gang.ended_ms = self._now_ms

    def report(self, segments: Iterable[SegmentReport]) -> RecordingReport:
        begin_ms = self._from_ms or 0
        gangs = [
            self._recorded(key, gang, begin_ms)
            for key, gang in sorted(self._gangs.items(), key=lambda each: each[1].created_ms)
            if gang.most
        ]
        used: dict[str, Counter[str]] = {}
        for pod in self._others.values():
            requests = msgspec.msgpack.decode(pod.shape, type=Shape).requests
            used.setdefault(pod.node, Counter()).update(dict(requests))
        return RecordingReport(
            segments=tuple(segments),
            configuration=self._configuration,
            lasts_ms=self._now_ms - begin_ms,
            nodes=tuple(_without(node, used) for node in self._nodes.values()),
            queues=tuple(self._queues.values()),
            priority_classes=tuple(self._classes.values()),
            gangs=tuple(gangs),
            other_pods=len(self._others),
        )

    def _recorded(self, key: GangKey, gang: _Gang, begin_ms: int) -> RecordedGang:
        group, first = gang.group, gang.most[0]
        limits = [pod.run_limit_s for pod in gang.most]
        run_ms = 0
        if gang.begun_ms is not None:
            run_ms = (self._now_ms if gang.ended_ms is None else gang.ended_ms) - gang.begun_ms
        return RecordedGang(
            name=f"{first.namespace}/{gang_title(key[2]) if key[0] not in UNNAMED else first.name}",
            namespace=first.namespace,
            queue=(group.queue if group is not None else "") or first.queue or _QUEUE,
            priority=max(pod.priority for pod in gang.most),
            limit_s=min(filter(None, (*limits, group.run_limit_s if group else 0)), default=0),
            arrival_ms=max(gang.created_ms - begin_ms, 0),
            run_ms=run_ms,
            unfinished=gang.ended_ms is None,
            members=tuple(
                (count, shape) for shape, count in Counter(pod.shape for pod in gang.most).items()
            ),
        )


def _update(known: dict[str, _T], changed: Iterable[_T], removed: Iterable[Gone]) -> None:
    known.update((each.uid, each) for each in changed)
    for gone in removed:
        known.pop(gone.uid, None)


def _without(node: Node, used: dict[str, Counter[str]]) -> Node:
    """A node less what pods of other schedulers use of it."""
    taken = used.get(node.name, Counter())
    left = tuple((name, max(amount - taken[name], 0)) for name, amount in node.allocatable)
    return msgspec.structs.replace(node, allocatable=left)

"""The core of the status controller: the writes that a gang's newest verdict requires.

In: the newest verdict of a gang, the memory of its written state, the instant. Out: a plan with the
writes that are due, most urgent first, and the instant of the next plan. The controller plans again
after each write, so a plan depends only on its arguments and omits what is written.

When a write is due:
* a group that leaves Pending before its pods exist: at once (operators wait for it),
* a lasting phase (Running, Unknown, Completed), or a change of a written one: at once,
* a transient phase (Pending, Inqueue): after `settle_ms`, so that a gang that is bound a moment
  later costs one write of its group and one Event,
* Starting: after `starting_ms`, since its bindings are in flight and writes would slow them down;
  after `settle_ms` when the bindings are known to hang,
* conditions of a gang that is released, partly bound or degraded, or for which capacity is held: at
  once, with their Events,
* changes of numbers and wording only: at most every `refresh_ms`,
* Events and PodScheduled=False of a waiting gang: after `waiting_ms`; again at once for another
  reason, and at most every `repeat_ms` for another wording,
* PodScheduled=False with the reason Unschedulable: after `scaling_ms`, before the writes of other
  gangs, because autoscalers act on it; and another reason instead of it: at once,
* a `Scheduled` Event per pod: once, as far as the rate allows,
* the end of annotations for autoscalers on pods that have ended: at once, after all other writes.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias, TypeVar

import msgspec

from services.controller.core.events import (
    MESSAGE_BYTES_MAX,
    EventIntent,
    group_event,
    group_topic,
    rfc3339,
)
from services.controller.core.statuses.annotation import annotation_of
from services.controller.core.statuses.announcements import RAN, announcements, is_pressing
from services.controller.state import MarkReason, Report, WrittenGang
from shared.contracts import annotations
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.pod_reasons import UNSCHEDULABLE
from shared.contracts.verdicts import PodRef, Verdict, Why
from shared.dialects.protocol import StatusPatch
from shared.kube.resources import Resource
from shared.model.bounded_text import shortened

_Reason = TypeVar("_Reason")

#: Event reasons that a gang's next phase outdates; then they count as not written again.
_OVER_WHEN_PLACED: Final = ("Unschedulable", PendingReason.BINDING_REFUSED.value)
_OVER_WHEN_NOT: Final = ("Scheduled", PendingReason.NOT_STARTING.value)
#: The most pods marked by one intent: a gang of thousands must not delay other gangs.
_MARKS_MAX: Final = 16
#: The same for marks on which autoscalers act: a newer verdict waits for no more of them.
_SCALING_MARKS_MAX: Final = 128

#: Urgencies of writes, the lowest first. SETTLE is a gang without further writes. SCALE is for
#: marks on which autoscalers act.
SETTLE: Final = -1
ADMIT: Final = 0
SCALE: Final = 1
GROUP: Final = 2
EVENT: Final = 3
MARK: Final = 4
CHECK: Final = 5


class WriteIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """Delays before a write is due; see the module."""

    #: An earlier process may have written gangs that were first seen before this instant.
    started_ms: int
    settle_ms: int = 1_000
    starting_ms: int = 30_000
    refresh_ms: int = 2_000
    waiting_ms: int = 2_000
    scaling_ms: int = 250
    repeat_ms: int = 60_000


class CompareGroup(msgspec.Struct, frozen=True):
    """Read the stored group, to compare its status and annotation."""

    resource: Resource
    namespace: str
    name: str
    uid: str


class PatchGroup(msgspec.Struct, frozen=True):
    """Write the group's status and annotation, in one patch where the resource allows it."""

    patches: tuple[StatusPatch, ...]
    #: Contents of the memory after the write.
    annotation: str
    meaning: tuple[object, ...]


class PodMark(msgspec.Struct, frozen=True, kw_only=True):
    """PodScheduled=False of a waiting pod: `kubectl describe pod` and autoscalers read it."""

    pod: PodRef
    #: The mark is written again at once when this changes.
    reason: MarkReason
    #: The gang's sentence.
    message: str
    body: dict[str, Any]


class MarkPods(msgspec.Struct, frozen=True, kw_only=True):
    """Set PodScheduled=False on waiting pods of a gang, in any order."""

    namespace: str
    marks: tuple[PodMark, ...]
    #: Whether autoscalers act on these marks, or stop acting because of them.
    scaling: bool


class ReportPlaced(msgspec.Struct, frozen=True):
    """Write `Scheduled` Events of these pods as far as the rate allows."""

    pods: tuple[PodRef, ...]
    placed: frozenset[str]


class ReportEvicted(msgspec.Struct, frozen=True):
    """Write `Evict` Events of these pods as far as the rate allows."""

    pods: tuple[PodRef, ...]
    evicted: frozenset[str]


class FreeNodes(msgspec.Struct, frozen=True):
    """Remove the annotations that ask autoscalers to keep the nodes of these pods."""

    namespace: str
    pods: tuple[PodRef, ...]


Intent: TypeAlias = (
    CompareGroup | PatchGroup | EventIntent | MarkPods | ReportPlaced | ReportEvicted | FreeNodes
)


class Plan(msgspec.Struct, frozen=True):
    """The writes that are due, in order, and when to plan again; None: no further write."""

    now: tuple[Intent, ...]
    next_ms: int | None
    urgency: int


class _Timed(msgspec.Struct, frozen=True):
    due_ms: int
    urgency: int
    intent: Intent


class Situation(msgspec.Struct, kw_only=True):
    """A verdict and the state of its processing."""

    verdict: Verdict
    #: The dialect's patch of the group; None: there is no object to write to.
    patch: StatusPatch | None = None
    #: The annotation's text, if an earlier plan has built it.
    annotation: str = ""
    #: The instant since which this gang has had unwritten verdicts.
    since_ms: int
    #: Whether the group was read or written since this verdict arrived.
    compared: bool = False


def plan(situation: Situation, memory: WrittenGang, now_ms: int, intervals: WriteIntervals) -> Plan:
    """Plan the next writes; see the module."""
    timed = sorted(
        _timed(situation, memory, now_ms, intervals),
        key=lambda write: (write.urgency, write.due_ms),
    )
    due = tuple(write for write in timed if write.due_ms <= now_ms)
    later = [write.due_ms for write in timed if write.due_ms > now_ms]
    first = due[0] if due else (timed[0] if timed else None)
    return Plan(
        tuple(write.intent for write in due),
        min(later) if later else None,
        first.urgency if first else SETTLE,
    )


def meaning_of(verdict: Verdict) -> tuple[object, ...]:
    """The parts of a verdict that readers act on: all but numbers, wording and instants."""
    return (
        verdict.phase,
        verdict.min_member,
        verdict.members_minimum,
        verdict.members_queue,
        tuple(
            (condition.type, condition.status, condition.reason) for condition in verdict.conditions
        ),
        verdict.why.reason if verdict.why is not None else "",
    )


def remember_stored(memory: WrittenGang, stored: str, verdict: Verdict, now_ms: int) -> None:
    """Take over the group's stored annotation, "" when it has none."""
    memory.annotation = stored
    memory.group_at_ms = now_ms
    try:
        written = msgspec.json.decode(stored or "null", type=Verdict | None)
    except msgspec.MsgspecError:
        written = None  # a user's, or of a later version: ours replaces it
    memory.meaning = meaning_of(written) if written is not None else None
    if written is None:
        return
    # The process that wrote the annotation has written these as well.
    if written.phase in RAN and verdict.phase in RAN:
        memory.placed = frozenset(pod.uid for pod in verdict.placed)
    for announcement in announcements(written):
        if not announcement.patient and (
            announcement.reason != "Scheduled" or verdict.phase in RAN
        ):
            topic = group_topic(verdict, announcement.reason)
            message = shortened(announcement.message, MESSAGE_BYTES_MAX)
            memory.events[topic] = Report(announcement.why, message, now_ms)


def forget_outdated(memory: WrittenGang, verdict: Verdict) -> None:
    """Forget writes that a newer verdict outdates. Call it once for each verdict."""
    for reason in _OVER_WHEN_PLACED if verdict.phase in RAN else _OVER_WHEN_NOT:
        memory.events.pop(group_topic(verdict, reason), None)
    if memory.marked:
        waiting = {pod.uid for pod in verdict.waiting}
        memory.marked = {uid: mark for uid, mark in memory.marked.items() if uid in waiting}


def _timed(
    situation: Situation, memory: WrittenGang, now_ms: int, intervals: WriteIntervals
) -> Iterator[_Timed]:
    verdict, patch = situation.verdict, situation.patch
    if verdict.phase == "Gone":
        return
    if patch is not None and not memory.group_missing:
        group = _group(situation, patch, memory, intervals)
        if group is not None:
            yield group
            if isinstance(group.intent, CompareGroup) and memory.annotation is None:
                return  # the stored annotation shows which Events are written
        yield from _group_events(situation, patch.resource, memory, now_ms, intervals)
    yield from _marks(situation, memory, now_ms, intervals)
    if verdict.phase in RAN:
        fresh = [pod for pod in verdict.placed if pod.node and pod.uid not in memory.placed]
        if fresh:
            placed = frozenset(pod.uid for pod in verdict.placed)
            yield _Timed(0, CHECK, ReportPlaced(tuple(fresh), placed))
    gone = tuple(pod for pod in verdict.evicted if pod.uid not in memory.evicted)
    if gone:
        evicted = frozenset(pod.uid for pod in verdict.evicted)
        yield _Timed(0, CHECK, ReportEvicted(gone, evicted))
    over = [pod for pod in verdict.ended if pod.uid not in memory.ended]
    if over:
        yield _Timed(0, CHECK, FreeNodes(verdict.namespace, tuple(over[:_MARKS_MAX])))


def _group(
    situation: Situation, patch: StatusPatch, memory: WrittenGang, intervals: WriteIntervals
) -> _Timed | None:
    verdict = situation.verdict
    wanted = situation.annotation or annotation_of(verdict)
    unread = memory.annotation is None and verdict.first_seen_ms < intervals.started_ms
    if wanted == memory.annotation or unread:
        if situation.compared:
            return None
        compare = CompareGroup(patch.resource, patch.namespace, patch.name, verdict.uid)
        urgency = GROUP if unread else CHECK
        return _Timed(_settled_ms(situation, memory, intervals) if unread else 0, urgency, compare)
    urgency = ADMIT if verdict.phase == "Inqueue" else GROUP
    due_ms = _settled_ms(situation, memory, intervals)
    return _Timed(due_ms, urgency, _patch_group(verdict, patch, wanted))


def _settled_ms(situation: Situation, memory: WrittenGang, intervals: WriteIntervals) -> int:
    """When the verdict is due on its group."""
    verdict = situation.verdict
    shown = memory.meaning is not None
    if shown and memory.meaning == meaning_of(verdict):
        return memory.group_at_ms + intervals.refresh_ms
    if is_pressing(verdict):
        return 0
    if verdict.phase == "Starting":
        # A reason means that it hangs; without one its bindings are in flight.
        return situation.since_ms + (
            intervals.starting_ms if verdict.why is None else intervals.settle_ms
        )
    transient = not shown and (
        verdict.phase == "Pending" or (verdict.phase == "Inqueue" and verdict.members > 0)
    )
    return situation.since_ms + intervals.settle_ms if transient else 0


def _patch_group(verdict: Verdict, patch: StatusPatch, wanted: str) -> PatchGroup:
    written = {annotations.VERDICT: wanted}
    if verdict.trace_id:
        written[annotations.TRACE_ID] = verdict.trace_id
    if verdict.domain:
        written[annotations.ALLOCATED_HYPERNODE] = verdict.domain
    metadata: dict[str, Any] = {"uid": verdict.uid, "annotations": written}
    if patch.carries_metadata:
        whole = msgspec.structs.replace(patch, body={**patch.body, "metadata": metadata})
        return PatchGroup((whole,), wanted, meaning_of(verdict))
    marked = msgspec.structs.replace(
        patch,
        subresource="",
        body={"metadata": metadata},
        bodies={},
        patch_type="merge",
        keeps_conditions=False,
    )
    # The annotation last: its presence shows that the status is written.
    return PatchGroup((patch, marked), wanted, meaning_of(verdict))


def without_annotations(patch: StatusPatch) -> StatusPatch | None:
    """The patch without annotations; None unless it has both a status and annotations."""
    metadata = patch.body.get("metadata", {})
    if "annotations" not in metadata or "status" not in patch.body:
        return None
    bare = {key: value for key, value in metadata.items() if key != "annotations"}
    return msgspec.structs.replace(patch, body={**patch.body, "metadata": bare})


def _group_events(
    situation: Situation,
    resource: Resource,
    memory: WrittenGang,
    now_ms: int,
    intervals: WriteIntervals,
) -> Iterator[_Timed]:
    verdict = situation.verdict
    for announcement in announcements(verdict):
        event = group_event(verdict, resource, announcement, now_ms=now_ms, why=announcement.why)
        written = memory.events.get(event.topic)
        if announcement.once and written is not None and written.message == event.message:
            continue
        due_ms = _repeat_ms(written, announcement.why, event.message, intervals)
        if due_ms is not None:
            waited_ms = _waited_ms(situation, intervals.waiting_ms) if announcement.patient else 0
            yield _Timed(max(due_ms, waited_ms), EVENT, event)


def _marks(
    situation: Situation, memory: WrittenGang, now_ms: int, intervals: WriteIntervals
) -> Iterator[_Timed]:
    """PodScheduled=False on waiting members: the first few that are due. Marks on which autoscalers
    act are an intent of their own.
    """
    verdict = situation.verdict
    why = verdict.why
    if why is None or why.reason == PendingReason.NOT_STARTING:
        return  # the kubelet reports on pods that have a node
    at_ms = why.since_ms or situation.since_ms
    scaling, other = _Marks(_SCALING_MARKS_MAX), _Marks(_MARKS_MAX)
    for index, pod in enumerate(verdict.waiting):
        word = pod_word(verdict, why, index)
        written = memory.marked.get(pod.uid)
        reason = MarkReason(why.reason, pod.node, word)
        due_ms = _repeat_ms(written, reason, why.sentence, intervals)
        if due_ms is None:
            continue
        was_acted_on = written is not None and written.reason.condition == UNSCHEDULABLE
        acted_on = word == UNSCHEDULABLE
        if acted_on != was_acted_on:
            delay_ms = intervals.scaling_ms if acted_on else 0
            due_ms = _waited_ms(situation, delay_ms)
            kind = scaling
        else:
            due_ms = max(due_ms, _waited_ms(situation, intervals.waiting_ms))
            kind = other
        kind.add(due_ms, now_ms, pod, word)
    for kind, urgency in ((scaling, SCALE), (other, MARK)):
        if kind.due_ms is not None:
            marks = tuple(pod_mark(pod, why, word, at_ms=at_ms) for pod, word in kind.pods)
            intent = MarkPods(namespace=verdict.namespace, marks=marks, scaling=kind is scaling)
            yield _Timed(kind.due_ms, urgency, intent)


class _Marks:
    """The pods of one intent: the first ones that are due, or if none is, the next instant."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.pods: list[tuple[PodRef, str]] = []
        self.due_ms: int | None = None

    def add(self, due_ms: int, now_ms: int, pod: PodRef, word: str) -> None:
        if due_ms <= now_ms and len(self.pods) < self._most:
            self.pods.append((pod, word))
        self.due_ms = due_ms if self.due_ms is None else min(self.due_ms, due_ms)


def pod_word(verdict: Verdict, why: Why, index: int) -> str:
    """The reason of the condition of one of the verdict's waiting members."""
    return UNSCHEDULABLE if index < verdict.unschedulable else why.pod_reason or why.reason


def _waited_ms(situation: Situation, delay_ms: int) -> int:
    """When the gang has waited for `delay_ms`. The verdict's instant may be of a clock that is
    ahead; then the instant of its arrival counts.
    """
    why = situation.verdict.why
    since_ms = situation.since_ms if why is None else min(why.since_ms, situation.since_ms)
    return since_ms + delay_ms


def _repeat_ms(
    written: Report[_Reason] | None, reason: _Reason, message: str, intervals: WriteIntervals
) -> int | None:
    """When to write it: at once (0) for another reason, later for another wording only, None when
    it is written.
    """
    if written is None or written.reason != reason:
        return 0
    return None if written.message == message else written.at_ms + intervals.repeat_ms


def pod_mark(pod: PodRef, why: Why, word: str, *, at_ms: int) -> PodMark:
    """A strategic merge patch, which keeps the pod's other conditions.

    The condition's reason is `word`; its message is the pending reason of the whole gang. The pod
    is nominated for the node where pods are evicted for it, and for none otherwise: a nomination of
    an earlier preemption, which an earlier process may have written, is removed.
    """
    condition = {
        "status": "False",
        "reason": word,
        "message": shortened(why.sentence, MESSAGE_BYTES_MAX),
        "lastTransitionTime": rfc3339(at_ms),
    }
    return PodMark(
        pod=pod,
        reason=MarkReason(why.reason, pod.node, word),
        message=why.sentence,
        body=_status(pod, condition, nominatedNodeName=pod.node or None),
    )


def free_node(pod: PodRef) -> dict[str, Any]:
    """The patch that removes the annotations for autoscalers from a pod that has ended."""
    keys = (annotations.DO_NOT_DISRUPT, annotations.SAFE_TO_EVICT)
    return {"metadata": {"uid": pod.uid, "annotations": dict.fromkeys(keys)}}


def unmark(mark: PodMark) -> dict[str, Any]:
    """The patch that reverts a mark on a pod that was bound while the mark was written."""
    return _status(mark.pod, {"status": "True", "reason": "", "message": ""})


def _status(pod: PodRef, values: dict[str, str], **fields: str | None) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "lastProbeTime": None, **values}
    return {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition], **fields}}

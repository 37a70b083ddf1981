"""What one verdict asks to be written, given what is written already: the status controller's core.

In: the newest verdict of a gang, its memory, the instant. Out: a plan: what to write now, most
urgent first, and when to ask again. Planning again after every write is how the controller works
through a gang, so a plan depends on nothing but its arguments, and what has been written is not in
it again.

When things are written:
* a group that leaves Pending before its pods exist: at once (operators wait for it),
* a phase that lasts (Running, Unknown, Completed), or a change of one already shown: at once,
* a phase that usually passes (Pending, Inqueue): when it has lasted `settle_ms`, so that a gang
  that is bound a moment later costs one write of its group and one event,
* Starting: when it has lasted `starting_ms`; its bindings are in flight, and writes would only slow
  them down; when they are known to hang, after `settle_ms`,
* what is being released, bound in part, degraded, or held room for: at once, with its event,
* changes of numbers and wording only: at most every `refresh_ms`,
* events and PodScheduled=False of a gang that waits: when it has waited `waiting_ms`; again at once
  for
  another reason, for other words at most every `repeat_ms`,
* a `Scheduled` event per pod: offered once, written or dropped by the rate.
"""

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import msgspec

from services.controller.core.annotation import annotation_of
from services.controller.core.announcements import RAN, announcements, pressing
from services.controller.core.events import MESSAGE_CHARS_MAX, EventIntent, group_event, group_topic
from services.controller.core.waiting import MarkWaiting, mark_waiting
from services.controller.state import WrittenGang
from shared.contracts import annotations
from shared.contracts.verdicts import PodRef, Verdict
from shared.dialects.protocol import StatusPatch
from shared.kube.resources import Resource

#: What was reported of a gang that waited, and of one that was placed: later it is new again.
_OVER_WHEN_PLACED: Final = ("Unschedulable", "BindingRefused")
_OVER_WHEN_NOT: Final = ("Scheduled", "NotStarting")
#: Pods marked in one plan: a gang of thousands must not keep other gangs waiting.
_MARKS_MAX: Final = 16

#: Urgencies: lower goes first among all gangs. Of what has nothing left to write no write waits.
SETTLE: Final = -1
ADMIT: Final = 0
GROUP: Final = 1
EVENT: Final = 2
MARK: Final = 3
CHECK: Final = 4


class WriteIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """How patient the controller is."""

    #: Gangs first seen before this instant may have been written by an earlier process.
    started_ms: int
    settle_ms: int = 1_000
    starting_ms: int = 30_000
    refresh_ms: int = 2_000
    waiting_ms: int = 2_000
    repeat_ms: int = 60_000


class CompareGroup(msgspec.Struct, frozen=True):
    """Read the group: what is stored on it?"""

    resource: Resource
    namespace: str
    name: str
    uid: str


class PatchGroup(msgspec.Struct, frozen=True):
    """Write status and annotation of the group: one patch where the resource allows, else two."""

    patches: tuple[StatusPatch, ...]
    #: What memory holds once it is written.
    annotation: str
    meaning: tuple[object, ...]


class ReportPlaced(msgspec.Struct, frozen=True):
    """Write `Scheduled` of these pods as far as the rate allows."""

    pods: tuple[PodRef, ...]
    placed: frozenset[str]


class ReportEvicted(msgspec.Struct, frozen=True):
    """Write `Evict` of these pods as far as the rate allows."""

    pods: tuple[PodRef, ...]
    evicted: frozenset[str]


Intent: TypeAlias = (
    CompareGroup | PatchGroup | EventIntent | MarkWaiting | ReportPlaced | ReportEvicted
)


class Plan(msgspec.Struct, frozen=True):
    """What to write now, in this order, and when to plan again; `next_ms` None: nothing is left."""

    now: tuple[Intent, ...]
    next_ms: int | None
    urgency: int


class _Timed(msgspec.Struct, frozen=True):
    due_ms: int
    urgency: int
    intent: Intent


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict and how it came."""

    verdict: Verdict
    #: What its dialect makes of it; None: there is no object to write to.
    patch: StatusPatch | None
    #: The annotation's text, where an earlier plan has built it already.
    annotation: str = ""
    #: Since when there has been something unwritten of this gang.
    since_ms: int
    #: The group was read or written since this verdict came.
    compared: bool = False


def plan(situation: Situation, memory: WrittenGang, now_ms: int, intervals: WriteIntervals) -> Plan:
    """Plan the next writes. See the module."""
    timed = sorted(_timed(situation, memory, now_ms, intervals), key=_order)
    due = tuple(one for one in timed if one.due_ms <= now_ms)
    later = [one.due_ms for one in timed if one.due_ms > now_ms]
    first = due[0] if due else (timed[0] if timed else None)
    return Plan(
        tuple(one.intent for one in due),
        min(later) if later else None,
        first.urgency if first else SETTLE,
    )


def meaning_of(verdict: Verdict) -> tuple[object, ...]:
    """What readers act on: everything but numbers, wording and instants."""
    return (
        verdict.phase,
        verdict.min_member,
        tuple((one.type, one.status, one.reason) for one in verdict.conditions),
        verdict.why.reason if verdict.why is not None else "",
    )


def remember_stored(memory: WrittenGang, stored: str, verdict: Verdict, now_ms: int) -> None:
    """Take over what was read from the group: `stored` is its annotation, "" when it has none."""
    memory.annotation = stored
    memory.group_at_ms = now_ms
    try:
        written = msgspec.json.decode(stored or "null", type=Verdict | None)
    except msgspec.MsgspecError:
        written = None  # a user's, or a later version's: ours replaces it
    memory.meaning = meaning_of(written) if written is not None else None
    if written is None:
        return
    # The writer of that wrote these as well.
    if written.phase in RAN and verdict.phase in RAN:
        memory.placed = frozenset(pod.uid for pod in verdict.placed)
    for one in announcements(written):
        if not one.patient and (one.reason != "Scheduled" or verdict.phase in RAN):
            topic = group_topic(verdict, one.reason)
            memory.events[topic] = (one.why, one.message[:MESSAGE_CHARS_MAX], now_ms)


def notice(memory: WrittenGang, verdict: Verdict) -> None:
    """Let go of what a newer verdict makes meaningless: call it once for each."""
    for reason in _OVER_WHEN_PLACED if verdict.phase in RAN else _OVER_WHEN_NOT:
        memory.events.pop(group_topic(verdict, reason), None)
    if memory.marked:
        waiting = {pod.uid for pod in verdict.waiting}
        memory.marked = {uid: mark for uid, mark in memory.marked.items() if uid in waiting}


def _order(one: _Timed) -> tuple[int, int]:
    return (one.urgency, one.due_ms)


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
                return  # what was reported already depends on what is stored
        yield from _group_events(situation, patch.resource, memory, now_ms, intervals)
    yield from _marks(situation, memory, intervals)
    if verdict.phase in RAN:
        fresh = [pod for pod in verdict.placed if pod.node and pod.uid not in memory.placed]
        if fresh:
            placed = frozenset(pod.uid for pod in verdict.placed)
            yield _Timed(0, CHECK, ReportPlaced(tuple(fresh), placed))
    gone = tuple(pod for pod in verdict.evicted if pod.uid not in memory.evicted)
    if gone:
        evicted = frozenset(pod.uid for pod in verdict.evicted)
        yield _Timed(0, CHECK, ReportEvicted(gone, evicted))


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
    """When the verdict is written on its group."""
    verdict = situation.verdict
    shown = memory.meaning is not None
    if shown and memory.meaning == meaning_of(verdict):
        return memory.group_at_ms + intervals.refresh_ms
    if pressing(verdict):
        return 0
    if verdict.phase == "Starting":
        # With a reason it hangs; without one its bindings are in flight.
        return situation.since_ms + (
            intervals.starting_ms if verdict.why is None else intervals.settle_ms
        )
    passing = not shown and (
        verdict.phase == "Pending" or (verdict.phase == "Inqueue" and verdict.members > 0)
    )
    return situation.since_ms + intervals.settle_ms if passing else 0


def _patch_group(verdict: Verdict, patch: StatusPatch, wanted: str) -> PatchGroup:
    notes = {annotations.VERDICT: wanted}
    if verdict.trace_id:
        notes[annotations.TRACE_ID] = verdict.trace_id
    if verdict.domain:
        notes[annotations.ALLOCATED_HYPERNODE] = verdict.domain
    metadata: dict[str, Any] = {"uid": verdict.uid, "annotations": notes}
    if patch.carries_metadata:
        whole = msgspec.structs.replace(patch, body={**patch.body, "metadata": metadata})
        return PatchGroup((whole,), wanted, meaning_of(verdict))
    marked = msgspec.structs.replace(patch, subresource="", body={"metadata": metadata})
    # The annotation last: where it stands, the status before it is written too.
    return PatchGroup((patch, marked), wanted, meaning_of(verdict))


def without_annotations(patch: StatusPatch) -> StatusPatch | None:
    """The patch's status alone; None when it writes no annotations beside a status."""
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
    for one in announcements(verdict):
        event = group_event(
            verdict, resource, one.type, one.reason, one.message, now_ms=now_ms, why=one.why
        )
        told = memory.events.get(event.topic)
        if one.once and told is not None and told[1] == event.message:
            continue
        due_ms = _repeat_ms(told, one.why, event.message, intervals)
        if due_ms is not None:
            waited_ms = _waited_ms(situation, intervals) if one.patient else 0
            yield _Timed(max(due_ms, waited_ms), EVENT, event)


def _marks(
    situation: Situation, memory: WrittenGang, intervals: WriteIntervals
) -> Iterator[_Timed]:
    """PodScheduled=False of the members that wait, the first few that are due."""
    verdict = situation.verdict
    why = verdict.why
    if why is None or why.reason == "NotStarting":
        return  # of what has a node the kubelet speaks
    waited_ms = _waited_ms(situation, intervals)
    marks = 0
    for pod in verdict.waiting:
        due_ms = _repeat_ms(memory.marked.get(pod.uid), why.reason, why.sentence, intervals)
        if due_ms is None:
            continue
        mark = mark_waiting(verdict.namespace, pod, why, at_ms=why.since_ms or situation.since_ms)
        yield _Timed(max(due_ms, waited_ms), MARK, mark)
        marks += 1
        if marks == _MARKS_MAX:
            return


def _waited_ms(situation: Situation, intervals: WriteIntervals) -> int:
    """When the gang has waited long enough to be reported. A clock that runs ahead delays
    nothing.
    """
    why = situation.verdict.why
    since_ms = situation.since_ms if why is None else min(why.since_ms, situation.since_ms)
    return since_ms + intervals.waiting_ms


def _repeat_ms(
    told: tuple[str, str, int] | None, reason: str, words: str, intervals: WriteIntervals
) -> int | None:
    """When to report it: 0 for something new, later for other words only, None for nothing new."""
    if told is None or told[0] != reason:
        return 0
    return None if told[1] == words else told[2] + intervals.repeat_ms

"""The order in which waiting pods get their `FailedScheduling` Events.

The first few pods of each gang come before the remaining pods of all gangs, so that each gang has
an Event soon after it began to wait. The remaining pods follow in rounds, one pod per gang. A pod
gets another Event when its gang's reason has changed, not when only numbers in the sentence have.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

import msgspec

from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import PodRef, Verdict, Why

#: Pods of each gang that come first.
FIRST_PODS: Final = 3
#: A gang that is placed within this time gets no such Event.
DELAY_MS: Final = 2_000
#: Gangs remembered; the one with the oldest verdict is forgotten first.
_GANGS_MAX: Final = 20_000


class WaitingPod(NamedTuple):
    """One pod, and its gang's verdict."""

    verdict: Verdict
    pod: PodRef


class _Gang(msgspec.Struct, eq=False):
    verdict: Verdict
    due_ms: int
    reason: str = ""
    #: UIDs of the pods that have an Event with this reason.
    reported: set[str] = set()
    left: deque[PodRef] = msgspec.field(default_factory=deque[PodRef])


class WaitingPods:
    """The waiting pods without an Event with the present reason, in order."""

    def __init__(self) -> None:
        self._gangs: OrderedDict[str, _Gang] = OrderedDict()
        #: Ids of gangs with fewer than FIRST_PODS reported pods, and of gangs with further pods.
        self._first: OrderedDict[str, None] = OrderedDict()
        self._rest: OrderedDict[str, None] = OrderedDict()

    def note(self, verdict: Verdict, now_ms: int) -> None:
        """Update a gang by its newest verdict."""
        why = pending_reason(verdict)
        if why is None or not verdict.waiting:
            self._forget(verdict.gang_id)
            return
        gang = self._gangs.get(verdict.gang_id)
        if gang is None:
            since_ms = min(why.since_ms or now_ms, now_ms)
            gang = self._gangs[verdict.gang_id] = _Gang(verdict, since_ms + DELAY_MS)
            if len(self._gangs) > _GANGS_MAX:
                self._forget(next(iter(self._gangs)))
        self._gangs.move_to_end(verdict.gang_id)
        waiting = {pod.uid for pod in verdict.waiting}
        gang.reported = gang.reported & waiting if gang.reason == why.reason else set()
        gang.reason, gang.verdict = why.reason, verdict
        gang.left = deque(pod for pod in verdict.waiting if pod.uid not in gang.reported)
        self._queue(verdict.gang_id, gang)

    def next(self, now_ms: int) -> WaitingPod | None:
        """The next pod that is due; None when none is. It stays the next one until `reported`."""
        for queue in (self._first, self._rest):
            for gang_id in queue:
                gang = self._gangs[gang_id]
                if gang.due_ms <= now_ms:
                    return WaitingPod(gang.verdict, gang.left[0])
                break
        return None

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until one is due; None when none waits."""
        dues = [
            self._gangs[next(iter(queue))].due_ms for queue in (self._first, self._rest) if queue
        ]
        return max(0, min(dues) - now_ms) if dues else None

    def reported(self, gang_id: str, uid: str) -> None:
        """Remove a pod that has its Event, or needs none."""
        gang = self._gangs.get(gang_id)
        if gang is None:
            return
        gang.reported.add(uid)
        if gang.left and gang.left[0].uid == uid:
            gang.left.popleft()
        self._queue(gang_id, gang)

    def _queue(self, gang_id: str, gang: _Gang) -> None:
        first = bool(gang.left) and len(gang.reported) < FIRST_PODS
        if not first:
            self._first.pop(gang_id, None)
        self._rest.pop(gang_id, None)
        if gang.left:
            (self._first if first else self._rest)[gang_id] = None

    def _forget(self, gang_id: str) -> None:
        for known in (self._gangs, self._first, self._rest):
            known.pop(gang_id, None)


def pending_reason(verdict: Verdict) -> Why | None:
    """Why the verdict's pods wait to be scheduled; None when they do not."""
    why = verdict.why
    if verdict.phase == "Gone" or why is None or why.reason == PendingReason.NOT_STARTING:
        return None
    return why

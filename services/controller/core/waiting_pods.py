"""Which waiting pod gets its `FailedScheduling` Event next.

A gang's first few pods come before all other gangs' rest, so that every gang has an Event soon
after it began to wait; the rest of all gangs follows one gang after the other, a pod each. A pod is
written again when the reason of its gang has changed, not when the numbers in its sentence have.
"""

from collections import OrderedDict, deque
from typing import Final, NamedTuple

from shared.contracts.verdicts import PodRef, Verdict, Why

#: Pods of a gang that come first.
FEW: Final = 3
#: A gang that is placed within this time gets no such Event.
PATIENCE_MS: Final = 2_000
#: Gangs remembered; the one that was reported longest ago is forgotten first.
_GANGS_MAX: Final = 20_000


class WaitingPod(NamedTuple):
    """One pod and the verdict that says why it waits."""

    verdict: Verdict
    pod: PodRef
    why: Why


class _Gang:
    __slots__ = ("due_ms", "left", "reason", "told", "verdict")

    def __init__(self, verdict: Verdict, due_ms: int) -> None:
        self.verdict = verdict
        self.due_ms = due_ms
        self.reason = ""
        #: UIDs of the pods that have an Event with this reason.
        self.told: set[str] = set()
        self.left: deque[PodRef] = deque()


class WaitingPods:
    """Pods that wait and have no Event with the reason, in the order of their turns."""

    def __init__(self) -> None:
        """Nothing waits."""
        self._gangs: OrderedDict[str, _Gang] = OrderedDict()
        #: Ids of gangs with fewer than FEW pods reported, and of those with more left.
        self._first: OrderedDict[str, None] = OrderedDict()
        self._rest: OrderedDict[str, None] = OrderedDict()

    def note(self, verdict: Verdict, now_ms: int) -> None:
        """Take a gang's newest verdict."""
        why = waits_for(verdict)
        if why is None or not verdict.waiting:
            self._forget(verdict.gang_id)
            return
        gang = self._gangs.get(verdict.gang_id)
        if gang is None:
            since_ms = min(why.since_ms or now_ms, now_ms)
            gang = self._gangs[verdict.gang_id] = _Gang(verdict, since_ms + PATIENCE_MS)
            if len(self._gangs) > _GANGS_MAX:
                self._forget(next(iter(self._gangs)))
        self._gangs.move_to_end(verdict.gang_id)
        waiting = {pod.uid for pod in verdict.waiting}
        gang.told = gang.told & waiting if gang.reason == why.reason else set()
        gang.reason, gang.verdict = why.reason, verdict
        gang.left = deque(pod for pod in verdict.waiting if pod.uid not in gang.told)
        self._queue(verdict.gang_id, gang)

    def next(self, now_ms: int) -> WaitingPod | None:
        """The pod whose turn it is; None when none is due. It stays so until `told`."""
        for queue in (self._first, self._rest):
            for gang_id in queue:
                gang = self._gangs[gang_id]
                why = waits_for(gang.verdict)
                if gang.due_ms <= now_ms and why is not None:
                    return WaitingPod(gang.verdict, gang.left[0], why)
                break
        return None

    def wait_ms(self, now_ms: int) -> int | None:
        """Milliseconds until one is due; None when none waits."""
        dues = [self._gangs[next(iter(one))].due_ms for one in (self._first, self._rest) if one]
        return max(0, min(dues) - now_ms) if dues else None

    def told(self, gang_id: str, uid: str) -> None:
        """The pod has its Event, or needs none."""
        gang = self._gangs.get(gang_id)
        if gang is None:
            return
        gang.told.add(uid)
        if gang.left and gang.left[0].uid == uid:
            gang.left.popleft()
        self._queue(gang_id, gang)

    def _queue(self, gang_id: str, gang: _Gang) -> None:
        self._first.pop(gang_id, None) if len(gang.told) >= FEW or not gang.left else None
        self._rest.pop(gang_id, None)
        if gang.left:
            (self._first if len(gang.told) < FEW else self._rest)[gang_id] = None

    def _forget(self, gang_id: str) -> None:
        for known in (self._gangs, self._first, self._rest):
            known.pop(gang_id, None)


def waits_for(verdict: Verdict) -> Why | None:
    """Why the verdict's pods wait for Tutti; None where they do not."""
    why = verdict.why
    if verdict.phase == "Gone" or why is None or why.reason == "NotStarting":
        return None
    return why

"""The newest decisions, bounded, as objects; and what a user may see of each."""

from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

import msgspec

from services.api.core.tables import Column, age, columns
from shared.contracts.cluster import PodChanges
from shared.contracts.decisions import Act, GangDecision
from shared.contracts.visibility import (
    API_VERSION,
    DecidedPod,
    Decision,
    DecisionStatus,
    ObjectMeta,
)
from shared.model.gang_keys import gang_title

#: Decisions that are kept; a busy cluster makes some thousands an hour.
DECISIONS_MAX: Final = 10_000
#: Pods in all of them, about 50 MiB, and in one.
PODS_MAX: Final = 200_000
_PODS_MAX: Final = 1_000
#: Phases in which a pod has ended.
_ENDS: Final = frozenset({"Succeeded", "Failed"})

DECISION_COLUMNS: tuple[Column, ...] = columns(
    ("Name", "string", "Sequence of the decision in the log, 12 digits.", 0),
    ("Action", "string", "Bind or Evict.", 0),
    ("Gang", "string", "The gang that it was made for.", 0),
    ("Pods", "integer", "Pods that it binds or evicts.", 0),
    ("Attempt", "integer", "Attempt of the gang.", 0),
    ("Reason", "string", "Why.", 0),
    ("Age", "string", "Time since it was made.", 0),
    ("Message", "string", "Why, in a sentence.", 1),
)


class _Kept(msgspec.Struct, eq=False, kw_only=True):
    """A decision, and ends of its pods that it does not have yet: when and how, by UID."""

    decision: Decision
    ends: dict[str, tuple[datetime, str]] = {}


class DecisionHistory:
    """The newest `DECISIONS_MAX` decisions, with `PODS_MAX` pods in all, in the order of the
    log.
    """

    def __init__(self, decisions_max: int = DECISIONS_MAX) -> None:
        #: Sequence of the newest one.
        self.seq = 0
        self._decisions_max = decisions_max
        self._kept: deque[_Kept] = deque()
        self._pods = 0
        #: The decision that bound each pod that has not ended, by UID.
        self._bound: dict[str, _Kept] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, seq: int, decision: Act, owner: str = "") -> None:
        """The next decision of the log; `owner`: the object that its gang's user created."""
        self.seq = seq
        made = _Kept(decision=build_decision(seq, decision, owner))
        self._kept.append(made)
        status = made.decision.status
        self._pods += len(status.pods)
        if status.action == "Bind":
            self._bound.update((pod.uid, made) for pod in status.pods)
        while len(self._kept) > self._decisions_max or self._pods > PODS_MAX:
            self._forget(self._kept.popleft())

    def take_changes(self, record: PodChanges) -> None:
        """The next changes of pods: those that end are marked in their decisions."""
        for pod in record.changed:
            if pod.phase in _ENDS:
                self._note_end(pod.uid, record.at_ms, pod.phase)
        for gone in record.removed:
            self._note_end(gone.uid, record.at_ms, "Deleted")

    def oldest_first(self) -> Iterator[Decision]:
        """All that are kept."""
        for one in self._kept:
            if one.ends:
                one.decision = _with_ends(one.decision, one.ends)
                one.ends = {}
            yield one.decision

    def _note_end(self, uid: str, at_ms: int, end: str) -> None:
        # The first end counts: a pod that has succeeded is deleted later.
        bound_by = self._bound.pop(uid, None)
        if bound_by is not None:
            bound_by.ends[uid] = datetime.fromtimestamp(at_ms / 1000, UTC), end

    def _forget(self, one: _Kept) -> None:
        pods = one.decision.status.pods
        self._pods -= len(pods)
        for pod in pods:
            if self._bound.get(pod.uid) is one:
                del self._bound[pod.uid]


def _with_ends(decision: Decision, ends: Mapping[str, tuple[datetime, str]]) -> Decision:
    def ended(pod: DecidedPod) -> DecidedPod:
        found = ends.get(pod.uid)
        if found is None:
            return pod
        at, end = found
        return msgspec.structs.replace(pod, ended=at, end=end)

    pods = tuple(map(ended, decision.status.pods))
    return msgspec.structs.replace(
        decision, status=msgspec.structs.replace(decision.status, pods=pods)
    )


def build_decision(seq: int, decision: Act, owner: str = "") -> Decision:
    """The object of a decision, with all that it contains; `owner` as in `Gang`."""
    if isinstance(decision, GangDecision):
        bound = decision.bindings
        pods = tuple(
            DecidedPod(namespace=one.namespace, name=one.name, uid=one.uid, node=one.node)
            for one in bound[:_PODS_MAX]
        )
        action, count, reason, domain = "Bind", len(bound), "", decision.domain
    else:
        pods = tuple(
            DecidedPod(namespace=one.namespace, name=one.name, uid=one.uid)
            for one in decision.victims[:_PODS_MAX]
        )
        action, count, reason, domain = "Evict", len(decision.victims), decision.reason, ""
    at = datetime.fromtimestamp(decision.cycle.now_ms / 1000, UTC)
    return Decision(
        api_version=API_VERSION,
        kind="Decision",
        metadata=ObjectMeta(
            name=f"{seq:012d}",
            namespace=decision.gang.partition("/")[0],
            resource_version=str(seq),
            creation_timestamp=at.replace(microsecond=0),
        ),
        status=DecisionStatus(
            action="Bind" if action == "Bind" else "Evict",
            gang=decision.gang,
            gang_id=decision.gang_id,
            title=gang_title(decision.gang.partition("/")[2], owner),
            time=at,
            attempt=decision.attempt,
            reason=reason,
            message=decision.why,
            count=count,
            pods=pods,
            domain=domain,
            trace_id=decision.trace_id,
        ),
    )


def visible_part(decision: Decision, visible: frozenset[str]) -> Decision:
    """A decision for users that see these namespaces: pods of other namespaces are only counted."""
    pods = decision.status.pods
    seen = tuple(one for one in pods if one.namespace in visible)
    if len(seen) == len(pods):
        return decision
    return msgspec.structs.replace(
        decision, status=msgspec.structs.replace(decision.status, pods=seen)
    )


def decision_cells(decision: Decision, now_ms: int) -> tuple[str | int, ...]:
    """The cells of a decision's row."""
    status = decision.status
    return (
        decision.metadata.name,
        status.action,
        status.title,
        status.count,
        status.attempt,
        status.reason,
        age(status.time, now_ms),
        status.message,
    )

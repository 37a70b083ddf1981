"""The newest decisions, bounded, as objects; and what a user may see of each."""

from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from services.api.core.tables import Column, age, columns
from shared.contracts.decisions import Act, GangDecision
from shared.contracts.visibility import (
    API_VERSION,
    DecidedPod,
    Decision,
    DecisionStatus,
    ObjectMeta,
)

#: Decisions that are kept; a busy cluster makes some thousands an hour.
DECISIONS_MAX: Final = 10_000
#: Pods in all of them, about 50 MiB, and in one.
PODS_MAX: Final = 200_000
_PODS_MAX: Final = 1_000

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


class DecisionHistory:
    """The newest `DECISIONS_MAX` decisions, with `PODS_MAX` pods in all, in the order of the
    log.
    """

    def __init__(self, decisions_max: int = DECISIONS_MAX) -> None:
        #: Sequence of the newest one.
        self.seq = 0
        self._decisions_max = decisions_max
        self._kept: deque[Decision] = deque()
        self._pods = 0

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, seq: int, decision: Act) -> None:
        """The next decision of the log."""
        self.seq = seq
        made = build_decision(seq, decision)
        self._kept.append(made)
        self._pods += len(made.status.pods)
        while len(self._kept) > self._decisions_max or self._pods > PODS_MAX:
            self._pods -= len(self._kept.popleft().status.pods)

    def oldest_first(self) -> Iterator[Decision]:
        """All that are kept."""
        return iter(self._kept)


def build_decision(seq: int, decision: Act) -> Decision:
    """The object of a decision, with all that it contains."""
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
        status.gang.partition("/")[2],
        status.count,
        status.attempt,
        status.reason,
        age(status.time, now_ms),
        status.message,
    )

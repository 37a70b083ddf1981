"""Plays CLUSTER, OUTCOMES and the log to a planner: bindings take no time, and none fails."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from services.gang_planner.core.planner import Planner
from shared.contracts.cluster import (
    ClusterRecord,
    Gone,
    NodeChanges,
    PodChanges,
    PodGroupChanges,
    ResourceClaimChanges,
    Synced,
)
from shared.contracts.decisions import Act, EvictionDecision, GangDecision, Note
from shared.contracts.outcomes import Outcome
from shared.model.devices import ResourceClaim
from shared.model.objects import Node, Pod, PodGroup

#: Cycles at one instant.
_AT_ONCE_MAX: Final = 1_000
#: As the service does, but not as rarely: each cycle reads what gone gangs have left behind.
_RECORDS_PER_CHECKPOINT: Final = 256


class Stage:
    """One planner, and what changes around it."""

    def __init__(
        self, planner: Planner, epoch: int, carry_out: Callable[[Act | Note], None], version: int
    ) -> None:
        """Go on from what the planner has read.

        Args:
            planner: The planner.
            epoch: That of the records in CLUSTER.
            carry_out: Called with each record of the planner, once it is in the log.
            version: A resourceVersion above those of all objects that the planner has read.
        """
        self._planner = planner
        self._epoch = epoch
        self._carry_out = carry_out
        self._cluster_seq = planner.view.cluster_seq
        self._checkpoint_seq = planner.view.decisions_seq
        self._outcome_seq = planner.view.outcomes_seq
        #: The sequence of the newest record of the log, which begins with an epoch.
        self.decision_seq = max(planner.view.decisions_seq, 1)
        self.cycles = 0
        self._changed: list[Pod] = []
        self._removed: list[Gone] = []
        self._nodes: list[Node] = []
        self._claims: list[ResourceClaim] = []
        self._claims_removed: list[Gone] = []
        self._groups: list[PodGroup] = []
        self._groups_removed: list[Gone] = []
        self._version = version

    def put(self, *pods: Pod) -> None:
        """The pods are created, or are now like this."""
        self._version += 1
        self._changed += (
            msgspec.structs.replace(pod, resource_version=self._version) for pod in pods
        )

    def remove(self, *uids: str, succeeded: bool = False) -> None:
        """The pods are gone."""
        self._version += 1
        self._removed += (
            Gone(uid=uid, resource_version=self._version, succeeded=succeeded) for uid in uids
        )

    def put_group(self, group: PodGroup) -> None:
        """The group is created."""
        self._version += 1
        self._groups.append(msgspec.structs.replace(group, resource_version=self._version))

    def put_claim(self, claim: ResourceClaim) -> None:
        """The claim is now like this."""
        self._version += 1
        self._claims.append(msgspec.structs.replace(claim, resource_version=self._version))

    def remove_claim(self, uid: str) -> None:
        """The claim is gone."""
        self._version += 1
        self._claims_removed.append(Gone(uid=uid, resource_version=self._version))

    def put_node(self, node: Node) -> None:
        """The node has come."""
        self._version += 1
        self._nodes.append(msgspec.structs.replace(node, resource_version=self._version))

    def remove_group(self, uid: str) -> None:
        """The group is gone."""
        self._version += 1
        self._groups_removed.append(Gone(uid=uid, resource_version=self._version))

    def run_pod(self, pod: Pod, node: str, now_ms: int) -> None:
        """The pod is bound to a node, and runs."""
        self.put(
            msgspec.structs.replace(
                pod,
                node=node,
                phase="Running",
                scheduled_ms=now_ms,
                started_ms=now_ms,
                decision_seq=self.decision_seq,
            )
        )

    def answer(self, decision: Act, seq: int) -> None:
        """A binder has carried out the decision with this sequence."""
        self._outcome_seq += 1
        outcome = Outcome(
            gang_id=decision.gang_id,
            decision_seq=seq,
            epoch=decision.epoch,
            binder="simulation",
            delivered=1,
            bound=len(decision.bindings) if isinstance(decision, GangDecision) else 0,
            evicted=len(decision.victims) if isinstance(decision, EvictionDecision) else 0,
        )
        self._planner.apply_outcome(self._outcome_seq, outcome)

    def decide(self, now_ms: int) -> tuple[bool, int | None]:
        """Run cycles until nothing is left to do at this instant: whether there were decisions, and
        the time of the next cycle.
        """
        decided = False
        for _ in range(_AT_ONCE_MAX):
            for change in self._changes(now_ms):
                self._cluster_seq += 1
                self._planner.apply_cluster(self._cluster_seq, change)
            step = self._planner.step(now_ms)
            self.cycles += 1
            for record in (*step.decisions, *step.notes):
                self.decision_seq += 1
                self._planner.decided(self.decision_seq, record)
                self._carry_out(record)
            if self.decision_seq - self._checkpoint_seq >= _RECORDS_PER_CHECKPOINT:
                self._checkpoint_seq = self.decision_seq
                self._planner.checkpoint(self._outcome_seq)
            decided = decided or bool(step.decisions)
            wakeup_ms = step.next_wakeup_ms
            due = wakeup_ms is not None and wakeup_ms <= now_ms
            if not (due or self._changed or self._removed or self._groups_removed):
                return decided, wakeup_ms
        return decided, now_ms + 1

    def _changes(self, now_ms: int) -> Iterator[ClusterRecord]:
        """What has changed, as the watcher writes it: first nodes, last claims and a heartbeat."""
        stamp: dict[str, Any] = {"epoch": self._epoch, "at_ms": now_ms}
        if self._nodes:
            nodes, self._nodes = tuple(self._nodes), []
            yield NodeChanges(**stamp, changed=nodes)
        if self._groups or self._groups_removed:
            groups, gone = tuple(self._groups), tuple(self._groups_removed)
            self._groups, self._groups_removed = [], []
            yield PodGroupChanges(**stamp, changed=groups, removed=gone)
        if self._changed or self._removed:
            pods, gone = tuple(self._changed), tuple(self._removed)
            self._changed, self._removed = [], []
            yield PodChanges(**stamp, changed=pods, removed=gone)
        if self._claims or self._claims_removed:
            claims, gone = tuple(self._claims), tuple(self._claims_removed)
            self._claims, self._claims_removed = [], []
            yield ResourceClaimChanges(**stamp, changed=claims, removed=gone)
        yield Synced(**stamp, watcher="simulation")

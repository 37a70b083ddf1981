"""Rows of the report: which pods form a gang, and its progress.

A gang is identified as the planner does it: by the group that its pods name, else by their
controller, else by the pod itself. Its minimum is the group's, else what its members declare, else
one, by the planner's own rule (`shared.model.minimums`). Late roles count: the report has the
instant at which all declared roles are bound.
"""

from collections import deque
from collections.abc import Iterable

import msgspec

from services.observer.core.cluster_state import ClusterState
from services.observer.core.recount import Recount
from shared.contracts.decisions import EvictionDecision, GangDecision
from shared.contracts.observing import TEXT_BYTES_MAX, GangObserved, Observation
from shared.model.bounded_text import shortened
from shared.model.gang_keys import GangKey, key_of, key_of_group, scope_of
from shared.model.minimums import MemberDeclarations, binding_role_minima
from shared.model.objects import Pod, PodGroup


class _Gang(msgspec.Struct, eq=False):
    """One gang that has pods."""

    row: GangObserved
    members: dict[str, Pod] = {}
    declarations: MemberDeclarations = msgspec.field(default_factory=MemberDeclarations)
    #: Minimum of the PodDisruptionBudget that declared it and is gone; 0: there was none.
    budget_minimum: int = 0

    def put(self, pod: Pod) -> None:
        before = self.members.get(pod.uid)
        self.members[pod.uid] = pod
        if before is None:
            self.declarations.add(pod)
        else:
            self.declarations.replace(before, pod)

    def drop(self, uid: str) -> None:
        pod = self.members.pop(uid, None)
        if pod is not None:
            self.declarations.remove(pod)

    def needs(self, group: PodGroup | None) -> int:
        if group is not None:
            return max(group.min_member, 1)
        if self.declarations.declared.group is not None:
            return max(self.declarations.declared.group.min_member, 1)
        return self.budget_minimum or self.declarations.declared.minimum or 1


class Gangs:
    """All rows. It is called after the cluster state has applied a record, with the record's
    instant.
    """

    def __init__(self, cluster_state: ClusterState, *, gone_max: int) -> None:
        self._cluster_state = cluster_state
        self._gone_max = gone_max
        self._gangs: dict[GangKey, _Gang] = {}
        self._groups: dict[GangKey, PodGroup] = {}
        self._group_keys: dict[str, GangKey] = {}
        #: The gang of each pod that is in one.
        self._keys: dict[str, GangKey] = {}
        self._gone: deque[GangObserved] = deque()
        self._left_out = 0
        #: Rows of an earlier process for gangs that had pods, by scope and name.
        self._earlier: dict[tuple[str, str], GangObserved] = {}

    def recall(self, earlier: Observation) -> None:
        """Continue with an earlier process's report, before the first snapshot. Instants stay;
        decisions are counted from zero, since the log is read again.
        """
        for row in earlier.gangs:
            if row.ended_ms:
                self._gone.append(row)
            else:
                row_again = msgspec.structs.replace(row, proved=0, overtaken=0, failed=0)
                self._earlier[row.scope, row.gang] = row_again
        self._left_out = earlier.left_out

    def forget_earlier(self, at_ms: int) -> None:
        """After the first snapshot: gangs of the earlier report that it lacks are gone."""
        for row in self._earlier.values():
            self._end(row, at_ms)
        self._earlier = {}

    def groups_changed(self, uids: Iterable[str], at_ms: int) -> None:
        """Reassess gangs whose group appeared, changed or is gone."""
        for uid in uids:
            before = self._group_keys.pop(uid, None)
            if before is not None:
                known = self._groups.pop(before, None)
                gang = self._gangs.get(before)
                if gang is not None and known is not None and known.by_owner:
                    gang.budget_minimum = known.min_member
            group = self._cluster_state.groups.get(uid)
            if group is not None:
                key = self._group_keys[uid] = key_of_group(group)
                self._groups[key] = group
            for key_of_gang in dict.fromkeys((before, self._group_keys.get(uid))):
                gang = None if key_of_gang is None else self._gangs.get(key_of_gang)
                if gang is not None and key_of_gang is not None:
                    self._assess(key_of_gang, gang, at_ms, first_snapshot=False)

    def pods_changed(self, uids: Iterable[str], at_ms: int, *, first_snapshot: bool) -> None:
        """Reassess gangs with pods that appeared, changed or are gone. Bound pods of the
        `first_snapshot` were bound at an unknown instant before.
        """
        touched: dict[GangKey, None] = {}
        for uid in uids:
            pod = self._cluster_state.pods.get(uid)
            key = None if pod is None or not pod.ours else key_of(pod)
            before = self._keys.get(uid)
            if before is not None and before != key:
                self._gangs[before].drop(uid)
                del self._keys[uid]
                touched[before] = None
            if pod is not None and key is not None:
                gang = self._gangs.get(key)
                if gang is None:
                    gang = self._gangs[key] = _Gang(self._row_of(key, pod, at_ms))
                gang.put(pod)
                self._keys[uid] = key
                touched[key] = None
        for key in touched:
            self._assess(key, self._gangs[key], at_ms, first_snapshot=first_snapshot)

    def decided(self, decision: GangDecision, recount: Recount) -> None:
        """Count a decision to bind a gang."""
        gang = self._of(binding.uid for binding in decision.bindings)
        if gang is None:
            return
        row = gang.row
        # A decision on a gang that the other scheduler has bound already is a repair, or an extra.
        first = not row.decided_ms and not row.whole_ms and not row.before
        count = {recount.proof: getattr(row, recount.proof) + 1}
        gang.row = msgspec.structs.replace(
            row,
            decided_ms=decision.cycle.now_ms if first else row.decided_ms,
            failure=shortened(recount.reason, TEXT_BYTES_MAX)
            if recount.proof == "failed"
            else row.failure,
            **count,
        )

    def evicts(self, decision: EvictionDecision) -> None:
        """Record a decision to evict pods for a gang, or to release its bound pods."""
        if decision.via == "delete":
            gang = self._of(victim.uid for victim in decision.victims)
            if gang is not None:
                words = f"{decision.reason}: {decision.why}" if decision.why else decision.reason
                release = shortened(words, TEXT_BYTES_MAX)
                gang.row = msgspec.structs.replace(gang.row, release=release)
            return
        gang = self._of(binding.uid for binding in decision.bindings)
        if gang is not None:
            most = max(gang.row.evicts, len(decision.victims))
            gang.row = msgspec.structs.replace(gang.row, evicts=most)

    def build_report(self, since_ms: int, at_ms: int) -> Observation:
        """The report, with the gangs that have pods first, oldest first."""
        rows = [gang.row for gang in self._gangs.values()]
        here = sorted(rows, key=lambda row: (row.seen_ms, row.gang))
        return Observation(
            since_ms=since_ms, at_ms=at_ms, gangs=(*here, *self._gone), left_out=self._left_out
        )

    def counts(self) -> tuple[int, int]:
        """How many gangs have pods, and how many of these are bound in part."""
        partial = sum(1 for gang in self._gangs.values() if gang.row.partial_since_ms)
        return len(self._gangs), partial

    def _row_of(self, key: GangKey, pod: Pod, at_ms: int) -> GangObserved:
        group = self._groups.get(key)
        owner = pod.owner.name if pod.owner is not None else pod.name
        own = f"{pod.namespace}/{pod.group_name or owner}"
        name = own if group is None else f"{group.namespace}/{group.name}"
        scope = scope_of(key)
        new = GangObserved(gang=name, scope=scope, scheduler_name=pod.scheduler_name, seen_ms=at_ms)
        return self._earlier.pop((scope, name), new)

    def _of(self, uids: Iterable[str]) -> _Gang | None:
        for uid in uids:
            key = self._keys.get(uid)
            if key is not None:
                return self._gangs[key]
        return None

    def _assess(self, key: GangKey, gang: _Gang, at_ms: int, *, first_snapshot: bool) -> None:
        if not gang.members:
            del self._gangs[key]
            self._end(gang.row, at_ms)
            return
        group = self._groups.get(key)
        row, members = gang.row, gang.members.values()
        needs = gang.needs(group)
        able = [pod for pod in members if pod.phase != "Failed" and not pod.deleting]
        bound = [pod for pod in able if pod.node]
        name = f"{group.namespace}/{group.name}" if group is not None else row.gang
        # Pods that an earlier process saw unbound were bound since, at an unknown instant.
        known = row.seen_ms < at_ms or not first_snapshot
        before = row.before or (not known and bool(bound))
        there = [pod for pod in able if pod.node or not pod.gates]
        complete = row.complete_ms or (at_ms if _enough(group, there, needs) else 0)
        whole = row.whole_ms or (at_ms if _enough(group, bound, needs) and not before else 0)
        first = row.first_bound_ms or (at_ms if bound and not before else 0)
        partial = bool(bound) and not _enough(group, bound, needs) and not row.whole_ms
        since = (row.partial_since_ms or at_ms) if partial else 0
        ended = 0 if partial or not row.partial_since_ms else max(at_ms - row.partial_since_ms, 0)
        gang.row = msgspec.structs.replace(
            row,
            gang=name,
            needs=needs,
            members=len(members),
            bound=len(bound),
            before=before,
            complete_ms=complete,
            first_bound_ms=first,
            whole_ms=whole,
            partial_ms=row.partial_ms + ended,
            partial_since_ms=since,
        )

    def _end(self, row: GangObserved, at_ms: int) -> None:
        left_ms = max(at_ms - row.partial_since_ms, 0) if row.partial_since_ms else 0
        self._gone.append(
            msgspec.structs.replace(
                row,
                members=0,
                bound=0,
                ended_ms=at_ms,
                partial_ms=row.partial_ms + left_ms,
                partial_since_ms=0,
            )
        )
        while len(self._gone) > self._gone_max:
            self._gone.popleft()
            self._left_out += 1


def _enough(group: PodGroup | None, pods: list[Pod], needs: int) -> bool:
    """Whether these are a quorum."""
    if len(pods) < needs:
        return False
    minima = binding_role_minima(needs, group.min_task_member) if group is not None else ()
    return all(sum(1 for pod in pods if pod.role == role) >= least for role, least in minima)

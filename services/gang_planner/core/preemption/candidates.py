"""All pods that may be evicted in one run of an action, judged once for all preemptors.

A decision changes the candidates only in the gangs of its victims: they are judged again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.eviction_rules import Preemptor, VictimRules
from services.gang_planner.core.preemption.units import (
    SparePart,
    Unit,
    VictimSource,
    in_order,
    kind_of,
    units_of,
)
from services.gang_planner.core.state.claim_ledger import Key
from services.gang_planner.core.state.gang_settings import cooldown_ms, minimum_run_ms
from services.gang_planner.core.state.gangs import Gang, Member
from services.gang_planner.core.state.member_states import (
    ASSUMED,
    LEAVING,
    PLACED,
    RUNNING,
    task_priority,
)
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.pod_shapes import ShapeTable
from services.gang_planner.core.state.sub_gangs import part_of, sub_gangs, surplus_of_sets
from services.gang_planner.core.state.tables import ClusterView

#: Cost of judging a gang, in node columns.
_JUDGING: Final = 20
#: A pod that is being deleted for longer does not count as about to leave: a finalizer or a grace
#: period of its user would otherwise keep pods from being evicted for the gangs of other users.
LEAVES_WITHIN_MS: Final = 120_000
_BOUND: Final = frozenset({PLACED, RUNNING})


class VictimCandidates:
    """Units by queue, in the order of eviction."""

    def __init__(self, work: CycleContext, rules: VictimRules) -> None:
        self._work = work
        self._rules = rules
        self._by_priority = "priority" in rules.entitles
        self._by_queue: dict[str, list[Unit]] = {}
        self._young: dict[str, list[tuple[Gang, int]]] = {}
        self._bound: dict[str, list[Gang]] = {}
        for gang in work.state.gangs.gangs.values():
            if gang.bound:
                self._bound.setdefault(gang.queue.name, []).append(gang)
        #: UIDs of the PodDisruptionBudgets that select pods of a namespace with these labels.
        self.budgets: dict[tuple[str, bytes], tuple[str, ...]] = {}
        #: Pods that are leaving, including the victims of this run.
        self.leaving: list[Member] = leaving(work.state, work.now_ms)
        deleted = [member for member in self.leaving if member.state == LEAVING]
        #: When the first of these no longer counts as leaving; None: there is none.
        self._leaving_until_ms = min(
            (_due_ms(work.state.view, member) for member in deleted), default=None
        )

    def of(self, preemptor: Preemptor) -> list[Unit]:
        """Units that may be evicted for a gang, in the order of eviction."""
        if preemptor.kind == "preempt":
            queue = self._queue(preemptor.gang.queue.name)
            if self._by_priority:
                priority = preemptor.gang.priority
                units = [unit for unit in queue if unit.gang.priority < priority]
            else:
                units = [unit for unit in queue if unit.gang is not preemptor.gang]
        else:
            units = [unit for name in self._others(preemptor) for unit in self._queue(name)]
            units.sort(key=in_order)
        spared = preemptor.gang.history.spared
        if spared:
            units = [unit for unit in units if not _is_spared(unit, spared, preemptor.now_ms)]
        return units

    def within(self, gang: Gang) -> list[Unit]:
        """Members of a gang that may be evicted for more important members of it."""
        source, _ = self._source(gang)
        if source is None or (gang.group is not None and gang.group.sub_groups):
            return []
        single = [unit for unit in units_of(source, whole=False) if unit.part is None]
        return sorted(single, key=in_order)

    def eligible_ms(self, preemptor: Preemptor) -> int:
        """When more pods become candidates, or a pod no longer counts as leaving; 0: never."""
        spared = preemptor.gang.history.spared.values()
        instants = [at_ms for at_ms in spared if at_ms > preemptor.now_ms]
        reclaims = preemptor.kind == "reclaim"
        for name in self._others(preemptor) if reclaims else (preemptor.gang.queue.name,):
            self._queue(name)
            for gang, at_ms in self._young[name]:
                if reclaims or self._may_preempt(preemptor, gang):
                    instants.append(at_ms)
        if self._leaving_until_ms is not None:
            instants.append(self._leaving_until_ms)
        return min(instants, default=0)

    def evicted(self, victims: Iterable[Member]) -> None:
        """Account for victims of a decision."""
        gangs: dict[Gang, None] = {}
        for member in victims:
            self.leaving.append(member)
            if member.gang is not None:
                gangs[member.gang] = None
        for name in sorted({gang.queue.name for gang in gangs}):
            left = [unit for unit in self._queue(name) if unit.gang not in gangs]
            young = [entry for entry in self._young[name] if entry[0] not in gangs]
            same = [gang for gang in gangs if gang.queue.name == name]
            self._judge(name, same, left, young)

    def _may_preempt(self, preemptor: Preemptor, gang: Gang) -> bool:
        if self._by_priority:
            return gang.priority < preemptor.gang.priority
        return gang is not preemptor.gang

    def _queue(self, name: str) -> list[Unit]:
        units = self._by_queue.get(name)
        if units is None:
            units = self._judge(name, self._bound.get(name, []), [], [])
        return units

    def _judge(
        self, name: str, gangs: list[Gang], units: list[Unit], young: list[tuple[Gang, int]]
    ) -> list[Unit]:
        """Judge gangs of a queue; `units` and `young` are those of gangs judged before, in their
        order.
        """
        judged = len(units)
        for gang in gangs:
            source, eligible_ms = self._source(gang)
            if source is not None:
                units += units_of(source, whole=not self._rules.keeps_quorum)
            if eligible_ms:
                young.append((gang, eligible_ms))
        if len(units) > judged:
            units.sort(key=in_order)
        self._work.session.work_left -= _JUDGING * len(gangs)
        self._by_queue[name], self._young[name] = units, young
        return units

    def _others(self, preemptor: Preemptor) -> list[str]:
        """Queues that a gang may reclaim from."""
        entries = self._work.state.queues.entries
        return [
            name
            for name in sorted(self._bound)
            if name != preemptor.gang.queue.name and entries[name].reclaimable
        ]

    def _source(self, gang: Gang) -> tuple[VictimSource | None, int]:
        """Which members of a gang may be evicted, and the first instant at which the age of another
        one no longer protects it (0: none is protected).
        """
        if _is_left_alone(gang):
            return None, 0
        lasts_ms = minimum_run_ms(gang, self._work.state.defaults)
        members: list[Member] = []
        going: Counter[str] = Counter()
        protected = eligible_ms = 0
        victims = self._work.state.preemptions.victims
        pods_in_flight = _in_flight(gang)
        for member in gang.members.values():
            if member.state not in _BOUND:
                continue
            if member.pod.uid in victims:
                going[kind_of(gang, member)] += 1
                continue
            young_ms = self._young_ms(member, lasts_ms)
            if young_ms:
                eligible_ms = min(eligible_ms, young_ms) if eligible_ms else young_ms
            if member.pod.uid not in pods_in_flight and not young_ms and self._allows(member):
                members.append(member)
            else:
                protected += 1
        if not members:
            return None, eligible_ms
        if len(members) > 1:
            members.sort(key=_first_to_go)
        # A chosen victim's eviction may still be refused, and the pod would stay.
        settled = not (going or gang.counts[ASSUMED])
        parts = _spare_parts(gang, members) if settled else ()
        kinds = _kind_surplus(gang, going)
        surplus = 0 if parts else _surplus(gang, members, going, kinds)
        source = VictimSource(
            gang,
            tuple(members),
            surplus,
            kinds,
            settled and not protected,
            parts,
        )
        return source, eligible_ms

    def _allows(self, member: Member) -> bool:
        pod = member.pod
        return pod.ours and pod.preemptable != "false" and self._rules.allow(member)

    def _young_ms(self, member: Member, lasts_ms: int) -> int:
        """Until when a pod is protected by its age; 0: it is not."""
        if self._rules.keeps_cooldown:
            lasts_ms = max(lasts_ms, cooldown_ms(member.pod, self._work.state.defaults))
        if not lasts_ms:
            return 0
        until_ms = (member.pod.started_ms or self._work.now_ms) + lasts_ms
        return until_ms if until_ms > self._work.now_ms else 0


def _surplus(
    gang: Gang, members: Sequence[Member], going: Counter[str], kinds: Mapping[str, int]
) -> int:
    """How many of these members may be evicted one by one, without those that are `going`."""
    group = gang.group
    if not gang.size_known or (group is not None and group.disrupted_whole):
        return 0
    # An assumed member may still fail; the gang needs its other members then. A succeeded
    # member whose pod is gone spares none either: a planner that took over cannot know its
    # successor.
    surplus = gang.placed() - gang.run.succeeded - going.total() - gang.min_member
    spare = len(members)
    if group is not None and group.sub_groups:
        # A PodGroup in a tree of groups is evicted whole. Minima of roles beside those of sub-gangs
        # are not counted together.
        if group.min_groups is not None or gang.role_minima:
            return 0
        counts = Counter(kind_of(gang, member) for member in members)
        spare = sum(min(count, kinds.get(kind, count)) for kind, count in counts.items())
    return max(0, min(surplus, spare))


def _kind_surplus(gang: Gang, going: Counter[str]) -> dict[str, int]:
    """How many members each kind with a minimum has above it, without those that are `going`."""
    run = gang.run
    if gang.group is not None and gang.group.sub_groups:
        counts = (
            (part.name, part.placed - run.by_part.get(part.name, 0), part.policy.size)
            for part in sub_gangs(gang)
        )
    else:
        counts = (
            (role, gang.placed(role) - run.by_role.get(role, 0), least)
            for role, least in gang.role_minima
        )
    return {kind: max(0, placed - going[kind] - least) for kind, placed, least in counts}


def _spare_parts(gang: Gang, members: Sequence[Member]) -> tuple[SparePart, ...]:
    """The sub-gangs of a tree that may be evicted each by itself: complete ones of sets with more
    than they need, if each of their members may be evicted and no set that they are in is
    disrupted only as a whole.
    """
    group = gang.group
    if group is None or not group.sets:
        return ()
    surplus = surplus_of_sets(gang, group)
    if not surplus:
        return ()
    allowed: dict[str, list[Member]] = {}
    for member in members:
        allowed.setdefault(part_of(gang, member.pod), []).append(member)
    return tuple(
        SparePart(tuple(allowed[part.name]), part.policy.set_name, surplus[part.policy.set_name])
        for part in sub_gangs(gang)
        if surplus.get(part.policy.set_name, 0)
        and part.policy.size <= part.placed == len(allowed.get(part.name, ()))
    )


def _is_spared(unit: Unit, spared: dict[str, int], now_ms: int) -> bool:
    return any(spared.get(member.pod.uid, 0) > now_ms for member in unit.members)


def _is_left_alone(gang: Gang) -> bool:
    if not gang.bound or not gang.history.started or gang.history.releasing:
        return True
    group = gang.group
    if group is None or group.preemptable == "true":
        return False
    protected = group.protected_from is not None and gang.priority >= group.protected_from
    return protected or group.preemptable == "false"


def _in_flight(gang: Gang) -> frozenset[str]:
    """Pods of decisions with a member that is not seen bound yet: binders may still carry these
    out, and a pod is in one such decision at a time.
    """
    if not gang.counts[ASSUMED]:
        return frozenset()
    reservations = (
        member.reservation for member in gang.members.values() if member.state == ASSUMED
    )
    acts = {reservation.act for reservation in reservations if reservation is not None}
    # A decision of this cycle is not in the log yet.
    logged = (act.act for act in acts if act is not None and act.seq)
    return frozenset(binding.uid for act in logged for binding in act.bindings)


def claims_of(shapes: ShapeTable, need: Need) -> frozenset[Key] | None:
    """The ResourceClaims of a gang's waiting members; None: they have none."""
    if not need.attached:
        return None
    keys_of_shapes = (shapes.entries[shape_id].device_keys for _, shape_id, _ in need.wanted)
    return frozenset(key for keys in keys_of_shapes for key in keys) or None


def leaving(state: State, now_ms: int) -> list[Member]:
    """Pods that are about to leave their nodes: their evictions are in flight, or they are being
    deleted, and may still be gone in time.
    """
    members = [
        member
        for gang in state.gangs.gangs.values()
        if gang.counts[LEAVING]
        for member in gang.members.values()
        if member.state == LEAVING
        and member.slot is not None
        and now_ms < _due_ms(state.view, member)
    ]
    for uid in state.preemptions.victims:
        member = state.members.get(uid)
        if member is not None and member.slot is not None and member.state != LEAVING:
            members.append(member)
    return members


def _due_ms(view: ClusterView, member: Member) -> int:
    """When a pod that is being deleted no longer counts as about to leave its node."""
    return view.local_ms(member.leaving_ms) + LEAVES_WITHIN_MS


def _first_to_go(member: Member) -> tuple[int, int, int, int, str]:
    """The least important first; of equals the youngest, which loses the least work."""
    pod = member.pod
    return task_priority(pod), -pod.started_ms, pod.restarts, -pod.index, pod.name

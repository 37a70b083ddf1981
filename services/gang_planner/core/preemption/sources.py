"""Gangs whose pods may be evicted: which members, and how many before the gang loses its quorum."""

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.framework.eviction_rules import VictimRules
from services.gang_planner.core.state.gang_settings import minimum_run_ms
from services.gang_planner.core.state.gangs import Member
from services.gang_planner.core.state.member_states import ASSUMED, LEAVING, PLACED, RUNNING

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang
    from services.gang_planner.core.state.planner_state import State

_BOUND = frozenset({PLACED, RUNNING})


class VictimSource(NamedTuple):
    """A gang with members that may be evicted."""

    gang: "Gang"
    #: These members, in the order of eviction.
    members: tuple[Member, ...]
    #: How many of them above its quorum, in all and by role.
    surplus: int
    role_surplus: tuple[tuple[str, int], ...]
    #: All its bound members may be evicted.
    whole: bool


class VictimSources:
    """Judges gangs one by one, for one action of one cycle; all preemptors share the results."""

    def __init__(self, state: "State", rules: VictimRules, now_ms: int) -> None:
        self._state = state
        self._rules = rules
        self._now_ms = now_ms

    def of(self, gang: "Gang") -> tuple[VictimSource | None, int]:
        """Which members of a gang may be evicted, and the first instant at which the age of another
        one no longer protects it (0: none is protected).
        """
        group = gang.group
        if _is_left_alone(gang):
            return None, 0
        lasts_ms = minimum_run_ms(gang)
        members: list[Member] = []
        going: Counter[str] = Counter()
        protected = eligible_ms = 0
        victims = self._state.preemptions.victims
        pods_in_flight = _in_flight(gang)
        for member in gang.members.values():
            if member.state not in _BOUND:
                continue
            if member.pod.uid in victims:
                going[member.pod.role] += 1
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
        structured = group is not None and bool(group.sub_groups)
        # An assumed member may still fail; the gang needs its other members then.
        surplus = gang.placed() - going.total() - gang.min_member
        if structured or not gang.size_known:
            surplus = 0
        found = VictimSource(
            gang,
            tuple(members),
            max(min(surplus, len(members)), 0),
            tuple(
                (role, gang.placed(role) - going[role] - least) for role, least in gang.role_minima
            ),
            # A chosen victim's eviction may still be refused, and the pod would stay.
            not (protected or going or gang.counts[ASSUMED]),
        )
        return found, eligible_ms

    def _allows(self, member: Member) -> bool:
        pod = member.pod
        return pod.ours and pod.preemptable != "false" and self._rules.allow(member)

    def _young_ms(self, member: Member, lasts_ms: int) -> int:
        """Until when a pod is protected by its age; 0: it is not."""
        if self._rules.keeps_cooldown:
            lasts_ms = max(lasts_ms, member.pod.cooldown_ms)
        if not lasts_ms:
            return 0
        until_ms = (member.pod.started_ms or self._now_ms) + lasts_ms
        return until_ms if until_ms > self._now_ms else 0


def _is_left_alone(gang: "Gang") -> bool:
    if not gang.bound or not gang.history.started or gang.history.releasing:
        return True
    return gang.group is not None and gang.group.preemptable == "false"


def _in_flight(gang: "Gang") -> frozenset[str]:
    """Pods of decisions with a member that is not seen bound yet: binders may still carry these
    out, and a pod is in one such decision at a time.
    """
    if not gang.counts[ASSUMED]:
        return frozenset()
    reservations = (one.reservation for one in gang.members.values() if one.state == ASSUMED)
    acts = {reservation.act for reservation in reservations if reservation is not None}
    # A decision of this cycle is not in the log yet.
    logged = (one.act for one in acts if one is not None and one.seq)
    return frozenset(binding.uid for act in logged for binding in act.bindings)


def leaving(state: "State") -> list[Member]:
    """Pods that are about to leave their nodes: they are being deleted, or their evictions are in
    flight.
    """
    found = [
        member
        for gang in state.gangs.gangs.values()
        if gang.counts[LEAVING]
        for member in gang.members.values()
        if member.state == LEAVING and member.slot is not None
    ]
    for uid in state.preemptions.victims:
        member = state.members.get(uid)
        if member is not None and member.slot is not None and member.state != LEAVING:
            found.append(member)
    return found


def _first_to_go(member: Member) -> tuple[int, int, int, int, str]:
    """The least important first; of equals the youngest, which loses the least work."""
    pod = member.pod
    priority = pod.priority if pod.task_priority is None else pod.task_priority
    return priority, -pod.started_ms, pod.restarts, -pod.index, pod.name

"""Where victims may come from: gangs, with the members of each that may go, and how many of them
without the gang losing its quorum.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from services.gang_planner.core.members import ASSUMED, LEAVING, PLACED, RUNNING, Member
from services.gang_planner.core.preempting.rules import Asks, VictimRules
from services.gang_planner.core.settings import minimum_run_ms

if TYPE_CHECKING:
    from services.gang_planner.core.gangs import Gang
    from services.gang_planner.state import State

_BOUND = frozenset({PLACED, RUNNING})


class Source(NamedTuple):
    """A gang of which something may be evicted."""

    gang: "Gang"
    #: Members that may be, those that go first first.
    members: tuple[Member, ...]
    #: How many of them above its quorum, in all and by role.
    surplus: int
    role_surplus: tuple[tuple[str, int], ...]
    #: All that is bound of it may go.
    whole: bool


class Sources:
    """What a gang may ask for; `eligible_ms`: when somebody else may be asked for."""

    def __init__(self, state: "State", asks: Asks, rules: VictimRules) -> None:
        self._state = state
        self._asks = asks
        self._rules = rules
        #: The first instant at which a pod that is protected by its age no longer is; 0: none is.
        self.eligible_ms = 0
        self.found = list(self._look())

    def _look(self) -> Iterator[Source]:
        asks = self._asks
        for gang in self._state.gangs.gangs.values():
            if not gang.bound or gang is asks.gang or not gang.history.started:
                continue
            if asks.kind == "preempt":
                if gang.queue is not asks.gang.queue or gang.priority >= asks.gang.priority:
                    continue
            elif gang.queue is asks.gang.queue or not gang.queue.reclaimable:
                continue
            source = self._of(gang)
            if source is not None:
                yield source

    def _of(self, gang: "Gang") -> Source | None:
        group = gang.group
        if gang.history.releasing or (group is not None and group.preemptable == "false"):
            return None
        lasts_ms = minimum_run_ms(gang)
        members: list[Member] = []
        going = protected = 0
        victims = self._state.preemptions.victims
        under_way = _under_way(self._state, gang)
        for member in gang.members.values():
            if member.state not in _BOUND:
                continue
            if member.pod.uid in victims:
                going += 1
            elif member.pod.uid not in under_way and self._allows(member, lasts_ms):
                members.append(member)
            else:
                protected += 1
        if not members:
            return None
        members.sort(key=_first_to_go)
        structured = group is not None and bool(group.sub_groups)
        # Who is only assumed may still come to nothing: its gang could not do without the others.
        surplus = gang.placed() - going - gang.min_member
        if structured or not gang.size_known:
            surplus = 0
        return Source(
            gang,
            tuple(members),
            max(min(surplus, len(members)), 0),
            tuple((role, gang.placed(role) - least) for role, least in gang.role_minima),
            # Who is decided to go may be refused yet, and would be left alone.
            not (protected or going or gang.counts[ASSUMED]),
        )

    def _allows(self, member: Member, lasts_ms: int) -> bool:
        pod, asks = member.pod, self._asks
        if not pod.ours or pod.preemptable == "false":
            return False
        if asks.gang.history.spared.get(pod.uid, 0) > asks.now_ms:
            self._wait_for(asks.gang.history.spared[pod.uid])
            return False
        young_until_ms = (pod.started_ms or asks.now_ms) + max(lasts_ms, self._cooldown_ms(member))
        if young_until_ms > asks.now_ms:
            self._wait_for(young_until_ms)
            return False
        return self._rules.allow(asks, member)

    def _cooldown_ms(self, member: Member) -> int:
        return member.pod.cooldown_ms if self._rules.keeps_cooldown else 0

    def _wait_for(self, at_ms: int) -> None:
        if not self.eligible_ms or at_ms < self.eligible_ms:
            self.eligible_ms = at_ms


def _under_way(state: "State", gang: "Gang") -> frozenset[str]:
    """Pods that a decision names of which a member is not seen bound yet: it may still be carried
    out, and a pod is in one such decision at a time.
    """
    if not gang.counts[ASSUMED]:
        return frozenset()
    rooms = (one.room for one in gang.members.values() if one.state == ASSUMED)
    acts = (state.open.get(seq) for seq in sorted({room.seq for room in rooms if room is not None}))
    return frozenset(binding.uid for one in acts if one is not None for binding in one.act.bindings)


def leaving(state: "State") -> list[Member]:
    """Pods that are on their nodes and will not be for long: they are being deleted, or evictions
    of ours are under way.
    """
    found = [
        member
        for gang in state.gangs.gangs.values()
        if gang.counts[LEAVING]
        for member in gang.members.values()
        if member.state == LEAVING and member.slot >= 0
    ]
    for uid in state.preemptions.victims:
        member = state.members.get(uid)
        if member is not None and member.slot >= 0 and member.state != LEAVING:
            found.append(member)
    return found


def _first_to_go(member: Member) -> tuple[int, int, int, int, str]:
    """The least important first; of equals the youngest, whose work is lost the least."""
    pod = member.pod
    priority = pod.priority if pod.task_priority is None else pod.task_priority
    return priority, -pod.started_ms, pod.restarts, -pod.index, pod.name

"""All pods that may be evicted in one run of an action, judged once for all preemptors.

A decision changes the candidates only in the gangs of its victims: they are judged again.
"""

from typing import TYPE_CHECKING, Final

from services.gang_planner.core.framework.eviction_rules import Preemptor, VictimRules
from services.gang_planner.core.preemption.sources import VictimSources, leaving
from services.gang_planner.core.preemption.units import Unit, in_order, units_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from services.gang_planner.core.cycle_context import CycleContext
    from services.gang_planner.core.state.gangs import Gang, Member

#: Cost of judging a gang, in node columns.
_JUDGING: Final = 20


class VictimCandidates:
    """Units by queue, in the order of eviction."""

    def __init__(self, work: "CycleContext", rules: VictimRules) -> None:
        self._state = work.state
        self._whole = not rules.keeps_quorum
        self._by_priority = "priority" in rules.entitles
        self._sources = VictimSources(work.state, rules, work.now_ms)
        self._by_queue: dict[str, list[Unit]] = {}
        self._young: dict[str, list[tuple[Gang, int]]] = {}
        self._bound: dict[str, list[Gang]] = {}
        for gang in work.state.gangs.gangs.values():
            if gang.bound:
                self._bound.setdefault(gang.queue.name, []).append(gang)
        #: Pods that are leaving, including the victims of this run.
        self.leaving: list[Member] = leaving(work.state)
        self._session = work.session

    def of(self, preemptor: Preemptor) -> list[Unit]:
        """Units that may be evicted for a gang, in the order of eviction."""
        if preemptor.kind == "preempt":
            queue = self._queue(preemptor.gang.queue.name)
            if self._by_priority:
                priority = preemptor.gang.priority
                found = [one for one in queue if one.gang.priority < priority]
            else:
                found = [one for one in queue if one.gang is not preemptor.gang]
        else:
            found = [one for name in self._others(preemptor) for one in self._queue(name)]
            found.sort(key=in_order)
        spared = preemptor.gang.history.spared
        if spared:
            found = [one for one in found if not _is_spared(one, spared, preemptor.now_ms)]
        return found

    def within(self, gang: "Gang") -> list[Unit]:
        """Members of a gang that may be evicted for more important members of it."""
        source, _ = self._sources.of(gang)
        if source is None:
            return []
        return sorted((one for one in units_of(source, whole=False)), key=in_order)

    def eligible_ms(self, preemptor: Preemptor) -> int:
        """When more pods become candidates; 0: no protection ends."""
        spared = preemptor.gang.history.spared.values()
        instants = [at_ms for at_ms in spared if at_ms > preemptor.now_ms]
        reclaims = preemptor.kind == "reclaim"
        for name in self._others(preemptor) if reclaims else (preemptor.gang.queue.name,):
            self._queue(name)
            for gang, at_ms in self._young[name]:
                if reclaims or self._may_preempt(preemptor, gang):
                    instants.append(at_ms)
        return min(instants, default=0)

    def evicted(self, victims: "Iterable[Member]") -> None:
        """Account for victims of a decision."""
        gangs: dict[Gang, None] = {}
        for member in victims:
            self.leaving.append(member)
            if member.gang is not None:
                gangs[member.gang] = None
        for name in sorted({gang.queue.name for gang in gangs}):
            left = [one for one in self._queue(name) if one.gang not in gangs]
            young = [one for one in self._young[name] if one[0] not in gangs]
            same = [gang for gang in gangs if gang.queue.name == name]
            self._judge(name, same, left, young)

    def _may_preempt(self, preemptor: Preemptor, gang: "Gang") -> bool:
        if self._by_priority:
            return gang.priority < preemptor.gang.priority
        return gang is not preemptor.gang

    def _queue(self, name: str) -> list[Unit]:
        found = self._by_queue.get(name)
        if found is None:
            found = self._judge(name, self._bound.get(name, []), [], [])
        return found

    def _judge(
        self, name: str, gangs: "list[Gang]", units: list[Unit], young: "list[tuple[Gang, int]]"
    ) -> list[Unit]:
        """Judge gangs of a queue; `units` and `young` are those of gangs judged before, in their
        order.
        """
        judged = len(units)
        for gang in gangs:
            source, eligible_ms = self._sources.of(gang)
            if source is not None:
                units += units_of(source, whole=self._whole)
            if eligible_ms:
                young.append((gang, eligible_ms))
        if len(units) > judged:
            units.sort(key=in_order)
        self._session.work_left -= _JUDGING * len(gangs)
        self._by_queue[name], self._young[name] = units, young
        return units

    def _others(self, preemptor: Preemptor) -> list[str]:
        """Queues that a gang may reclaim from."""
        entries = self._state.queues.entries
        return [
            name
            for name in sorted(self._bound)
            if name != preemptor.gang.queue.name and entries[name].reclaimable
        ]


def _is_spared(unit: Unit, spared: dict[str, int], now_ms: int) -> bool:
    return any(spared.get(member.pod.uid, 0) > now_ms for member in unit.members)

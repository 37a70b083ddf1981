"""Whether the waiting gangs of a queue could be placed on the present nodes at all."""

from collections.abc import Sequence
from typing import Final

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queueing.need import need_of
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.needs import Need
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.verdicts.new_nodes import Forecast

#: Maximum number of needs that are tried for one ledger. Queues with further ones may wait for
#: capacity.
_NEEDS_MAX: Final = 100


class ImpossibleGangs:
    """Answers for one state of the nodes and queues, which must not change in its lifetime."""

    def __init__(self, state: State, session: Session) -> None:
        self._state = state
        self._forecast = Forecast(state, session)
        self._exceeded: dict[Need, str] = {}

    def in_words(self, gangs: Sequence[Gang]) -> str:
        """A message why none of a queue's waiting gangs could be placed even if all nodes and
        queues were empty; "" if one could, or if that is not known.
        """
        found: set[str] = set()
        for gang in gangs:
            need = need_of(self._state, gang)
            if need not in self._exceeded:
                if len(self._exceeded) >= _NEEDS_MAX:
                    return ""
                self._exceeded[need] = self._exceeds(gang, need)
            if not self._exceeded[need]:
                return ""
            found.add(self._exceeded[need])
        words = " or ".join(sorted(found))
        return f"each of its waiting gangs {words}" if words else ""

    def _exceeds(self, gang: Gang, need: Need) -> str:
        """Why it cannot be placed; "": it could, or it lacks pods, or avoids nodes for a while."""
        if need.reserved:
            need = need.without_reserved()
        if need.quorum > need.members or need.avoid:
            return ""
        alone = gang.queue.scratch({}, keep_used=False)
        if alone.exceeded_by(need.amounts(self._state.shapes)):
            return "needs more than its limit"
        if self._state.nodes.count and self._forecast.exceeds_nodes(need, gang.queue):
            return "does not fit on the present nodes, even when they are empty"
        return ""

"""The planner's whole memory: tables, and nothing that acts on them.

Owned by `planner.Planner`; the modules of the core take it as their first argument.
"""

from collections import deque
from typing import TYPE_CHECKING

from typing_extensions import override

from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.preemptions import Preemptions
from services.gang_planner.core.state.tables import Tables

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang
    from services.gang_planner.core.state.open_decisions import OpenAct, OpenEviction, Unresolved
    from shared.contracts.outcomes import Outcome
    from shared.model.gang_keys import GangKey


class State(Tables):
    """All tables."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = HoldTable()
        self.gangs.owes = self.holds.owes
        #: Decisions whose room CLUSTER has not retired yet, by sequence.
        self.open: dict[int, OpenAct] = {}
        #: Decisions of the last cycle to which the log has given no sequence yet, in their order.
        self.unnumbered: deque[OpenAct] = deque()
        #: Decisions to release whose release is not over, by sequence.
        self.evictions: dict[int, OpenEviction] = {}
        #: Evictions decided for gangs, and the room kept for them.
        self.preemptions = Preemptions()
        #: Bindings of logged decisions on pods that the cluster state is too old to have.
        #: By decision and pod.
        self.unresolved: dict[int, dict[str, Unresolved]] = {}
        #: Outcomes that came before their decision, or before the cluster state it is assumed in.
        self.early: dict[int, tuple[int, Outcome]] = {}
        #: What gangs that say nothing get; the configuration's.
        self.defaults = Defaults()
        #: Whether annotations about a gang's roles count; the configuration's.
        self.reads_tasks = False
        #: Gangs with an open repair, as of their last assessment.
        self.repairs: dict[GangKey, Gang] = {}
        #: How many pods might be in flight in the newest cycle that was read from the log.
        self.in_flight_max = 0
        #: Newest planner epoch seen in DECISIONS.
        self.epoch = 0

    @override
    def relabel_lost(self) -> None:
        if self.holds.open_count:
            self.holds.relabel(self)

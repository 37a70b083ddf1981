"""The planner's complete state: tables, without the logic that acts on them.

`planner.Planner` owns it. Functions of the core take the tables that they read, those that need
three or more the whole state.
"""

from collections import deque
from typing import TYPE_CHECKING

from typing_extensions import override

from services.gang_planner.core.state.gang_settings import Defaults
from services.gang_planner.core.state.holds import HoldTable
from services.gang_planner.core.state.past_runs import PastRuns
from services.gang_planner.core.state.past_use import PastUse
from services.gang_planner.core.state.preemptions import Preemptions
from services.gang_planner.core.state.tables import Tables

if TYPE_CHECKING:
    from services.gang_planner.core.state.gangs import Gang
    from services.gang_planner.core.state.reservations import OpenAct, OpenEviction, Unresolved
    from shared.contracts.outcomes import Outcome
    from shared.model.gang_keys import GangKey


class State(Tables):
    """All tables."""

    def __init__(self) -> None:
        self.holds = HoldTable()
        super().__init__(self.holds.owes)
        #: Decisions with reservations that CLUSTER has not retired, by sequence.
        self.open: dict[int, OpenAct] = {}
        #: Decisions of the last cycle that have no sequence in the log yet, in order.
        self.unnumbered: deque[OpenAct] = deque()
        #: Eviction decisions of releases that have not ended, by sequence.
        self.evictions: dict[int, OpenEviction] = {}
        #: Evictions decided for preemptors, and the preemptors' reservations.
        self.preemptions = Preemptions()
        #: Bindings of logged decisions for pods that may be newer than the cluster state, by the
        #: decision's sequence and pod UID.
        self.unresolved: dict[int, dict[str, Unresolved]] = {}
        #: Outcomes read before their decision, or before the cluster state of its reservations.
        self.early: dict[int, tuple[int, Outcome]] = {}
        #: The past use of queues and users.
        self.past_use = PastUse()
        #: The configuration's defaults for gangs.
        self.defaults = Defaults()
        #: Whether the configuration reads annotations about a gang's roles.
        self.reads_tasks = False
        #: Gangs with an open repair, and those released for one, as of their last assessment.
        self.repairs: dict[GangKey, Gang] = {}
        #: Gangs with an open note of a reservation, as of their last assessment; and the versions
        #: of all that their last plans depend on.
        self.reserved: dict[GangKey, Gang] = {}
        self.reserved_mark: tuple[object, ...] = ()
        #: The instant of the newest cycle with a record in the log.
        self.recorded_ms = 0
        #: Whether gangs may get reservations.
        self.foresees = False
        #: For estimates of starts; no decision depends on it.
        self.past_runs = PastRuns()
        #: Gangs whose ProvisioningRequest is open; some of them may have been placed, or be gone.
        self.requesting: dict[GangKey, Gang] = {}
        #: The in-flight limit of the newest cycle read from the log, in pods; 0: no limit.
        self.in_flight_max = 0
        #: Newest planner epoch seen in DECISIONS.
        self.epoch = 0
        #: The planner took over, and has not searched for members lost unseen yet.
        self.losses_unsearched = False

    @override
    def relabel_lost(self) -> None:
        if self.holds.by_uid:
            self.holds.relabel(self)

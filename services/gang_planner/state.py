"""The planner's whole memory: tables, and nothing that acts on them.

Owned by `core.planner.Planner`; the modules of `core` take it as their first argument. Nothing here
leaves the planner: what goes out are frozen messages.
"""

from collections import deque
from typing import TYPE_CHECKING

from services.gang_planner.core.configuring.settings import Defaults
from services.gang_planner.core.pairwise.labelling import LabelIndex
from services.gang_planner.core.preempting.table import Preemptions
from services.gang_planner.core.queueing.backlog import Backlog
from services.gang_planner.core.recovery.debts import DebtTable
from services.gang_planner.core.tables.columns import ResourceIndex
from services.gang_planner.core.tables.gang_table import GangTable
from services.gang_planner.core.tables.ground import Ground
from services.gang_planner.core.tables.nodes import NodeTable
from services.gang_planner.core.tables.queues import QueueTable
from services.gang_planner.core.tables.room import RoomTable
from services.gang_planner.core.tables.shapes import ShapeTable
from services.gang_planner.core.tables.surroundings import Surroundings

if TYPE_CHECKING:
    from services.gang_planner.core.decisions.open_acts import OpenAct, OpenEviction, Unresolved
    from services.gang_planner.core.tables.gangs import Gang
    from services.gang_planner.core.tables.members import Member
    from shared.contracts.cluster import Synced
    from shared.contracts.outcomes import Outcome
    from shared.model.gang_keys import GangKey


class View:
    """How much of CLUSTER the picture stands for."""

    def __init__(self) -> None:
        #: Epoch of the picture; 0 before the first snapshot.
        self.epoch = 0
        #: Newest epoch that any record named; the picture is stale while it is older.
        self.newest_epoch = 0
        self.cluster_seq = 0
        self.outcomes_seq = 0
        #: Outcomes up to here have led to whatever they lead to: a cycle that had read them is in
        #: the log.
        self.consumed_seq = 0
        self.decisions_seq = 0
        self.synced: Synced | None = None
        #: When that record had arrived, on the planner's clock, as of the newest cycle.
        self.synced_ms = 0

    def arrived(self, synced_ms: int | None) -> None:
        """Note when `synced` arrived; None: at the instant that it names."""
        if synced_ms is None:
            synced_ms = self.synced.at_ms if self.synced is not None else 0
        self.synced_ms = synced_ms

    def local_ms(self, watcher_ms: int) -> int:
        """An instant of the watcher's clock on the planner's clock: the newest `synced` shows how
        far one is ahead of the other.
        """
        ahead_ms = self.synced.at_ms - self.synced_ms if self.synced is not None else 0
        return watcher_ms - ahead_ms


class State:
    """All tables."""

    def __init__(self) -> None:
        self.resources = ResourceIndex()
        self.shapes = ShapeTable(self.resources)
        self.surroundings = Surroundings()
        self.nodes = NodeTable(self.resources, self.surroundings.hypernodes)
        self.ground = Ground(self.nodes, self.surroundings)
        self.rooms = RoomTable(self.ground)
        self.debts = DebtTable()
        self.queues = QueueTable(self.resources)
        self.labels = LabelIndex(self.surroundings.namespaces)
        self.ground.pairs.attracting = self.shapes.terms.attracting
        self.gangs = GangTable(self.queues, self.shapes)
        self.gangs.owes = self.debts.owes
        self.backlog = Backlog()
        self.gangs.leave_backlog = self.backlog.take
        self.members: dict[str, Member] = {}
        #: Members accounted on a node, by slot.
        self.residents: dict[int, dict[str, Member]] = {}
        #: Decisions whose room CLUSTER has not retired yet, by sequence.
        self.open: dict[int, OpenAct] = {}
        #: Decisions of the last cycle to which the log has given no sequence yet, in their order.
        self.unnumbered: deque[OpenAct] = deque()
        #: Decisions to release whose release is not over, by sequence.
        self.evictions: dict[int, OpenEviction] = {}
        #: Evictions decided for gangs, and the room kept for them.
        self.preemptions = Preemptions()
        #: Bindings of logged decisions on pods that this picture is too old to know.
        #: By decision and pod.
        self.unresolved: dict[int, dict[str, Unresolved]] = {}
        #: Outcomes that came before their decision, or before the picture it is assumed in.
        self.early: dict[int, tuple[int, Outcome]] = {}
        self.view = View()
        #: What gangs that say nothing get; the configuration's.
        self.defaults = Defaults()
        #: Whether annotations about a gang's roles count; the configuration's.
        self.reads_tasks = False
        #: Gangs with an open repair, as of their last assessment.
        self.repairs: dict[GangKey, Gang] = {}
        #: How many pods might be under way in the newest cycle that was read from the log.
        self.under_way_max = 0
        #: Newest planner epoch seen in DECISIONS.
        self.epoch = 0

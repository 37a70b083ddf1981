"""The interface of the core: it applies records, and `step` returns decisions, notes and verdicts.

The planner is deterministic: the same records, times and configuration in the same order give the
same bytes. It reads no clock; the caller passes the time to `step`.

Contract with the caller (`services.gang_planner`):
* It applies records in the order of their logs, each once (older ones are ignored).
* After `step`, it appends every returned decision and note, in that order (decisions first), and
  calls `decided` for each with its sequence number, before the next `step`. If an append fails
  permanently, the process must end: the assumptions of `step` cannot be undone.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from services.gang_planner.core.configuration.configuration import Configuration
from services.gang_planner.core.constraints.masks import Masks
from services.gang_planner.core.cycle import CycleRunner, Step
from services.gang_planner.core.ingest import cluster, decision_log
from services.gang_planner.core.lifecycle import provisioning, unseen_losses
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.queries import fragmentation, ledger, queue_figures
from services.gang_planner.core.queries import would_fit as questions
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.state.member_states import WAITING
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.tables import ClusterView
from services.gang_planner.core.verdicts.book import Book
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.decisions import (
    Act,
    Checkpoint,
    DecisionRecord,
    EvictionDecision,
    GangDecision,
    Note,
    PastRunsOfUser,
)
from shared.contracts.outcomes import Outcome
from shared.contracts.questions import (
    FitAnswer,
    FitRequest,
    FragmentationAnswer,
    LedgerAnswer,
    RequestRefused,
)
from shared.contracts.verdicts import Verdict
from shared.model.invariants import InvariantViolation

#: A row of all grids with a resource takes as much memory as so many shapes, with 5,000 nodes.
_SHAPES_PER_RESOURCE: Final = 20


class Planner:
    """The planner's state machine."""

    def __init__(self, configuration: Configuration, book: Book | None = None) -> None:
        self._state = State()
        self._book = book or Book()
        self._undecided: deque[Act | Note] = deque()
        self._leading = False
        self._cycle = CycleRunner(self._state, self._book)
        self.configure(configuration)

    # ----------------------------------------------------------------- records

    def apply_cluster(self, seq: int, record: ClusterRecord) -> None:
        """Apply a record of CLUSTER."""
        cluster.apply_record(self._state, seq, record)
        self._forget_if_standby()

    def load_snapshot(self, pages: Sequence[SnapshotPage]) -> None:
        """Replace the cluster state. Reservations and decisions in flight stay until the new state
        retires them.
        """
        cluster.load_snapshot(self._state, pages)
        self._forget_if_standby()

    def apply_decision(self, seq: int, record: DecisionRecord) -> None:
        """Apply a record of DECISIONS that another planner wrote: at the start, or as a standby."""
        if isinstance(record, Checkpoint) and not record.page:
            self._state.past_runs.load(record.past_runs)
        decision_log.apply_record(self._state, seq, record)

    def apply_outcome(self, seq: int, outcome: Outcome) -> None:
        """Apply a record of OUTCOMES."""
        view = self._state.view
        if seq > view.outcomes_seq:
            view.outcomes_seq = seq
            in_flight.apply_outcome(self._state, seq, outcome)

    def apply_verdict(self, verdict: Verdict) -> None:
        """Import a verdict of an earlier planner, so that it is not published again."""
        self._book.recall(verdict)
        if verdict.phase != "Gone" and verdict.first_seen_ms:
            # A waiting gang has no decision in the log that has its first-seen time.
            self._state.gangs.history(verdict.gang_id).first_seen_ms = verdict.first_seen_ms
        provisioning.recall(self._state.gangs, verdict)

    def apply_refusal(self, report: RequestRefused) -> None:
        """Show a refused ProvisioningRequest in its gang's verdict. No decision depends on it."""
        provisioning.refused(self._state.gangs, report)

    def last_verdict(self, gang_id: str) -> Verdict | None:
        """The last published verdict of a gang; None: the gang is gone, or there was none."""
        return self._book.published.get(gang_id)

    def gang_name(self, gang_id: str) -> str:
        """The "namespace/name" of a gang that exists, or whose decision is remembered; "" for any
        other.
        """
        gangs = self._state.gangs
        gang = gangs.by_id.get(gang_id)
        if gang is not None:
            return gang.full_name
        logged = gangs.remembered.get(gang_id)
        return (logged.full_name if logged is not None else None) or ""

    def restore(self, pages: Sequence[Checkpoint]) -> None:
        """Restore the state from a checkpoint, instead of the log before it."""
        decision_log.restore(self._state, pages)

    def checkpoint(self, outcomes_seq: int) -> list[Checkpoint]:
        """All open decisions, notes and histories, in pages for DECISIONS or for a recording."""
        return decision_log.checkpoint(self._state, outcomes_seq, self._cycle.now_ms)

    # ------------------------------------------------------------ configuration

    def configure(self, configuration: Configuration) -> None:
        """Use another configuration from the next cycle on; every gang is assessed again."""
        state = self._state
        self._configuration = configuration
        state.defaults = configuration.defaults
        state.foresees = configuration.reserve_rules.per_root > 0
        policies = configuration.policies(state)
        self._policies = policies
        state.reads_tasks = policies.reads_tasks
        state.past_use.rules = policies.use_rules
        if policies.use_rules is None:
            for gang in state.gangs.gangs.values():
                gang.account = None
        self._masks = Masks(state.nodes, policies.node_filters)
        self._session = Session(state.node_capacity, state.shapes, self._masks, policies)
        self._cycle.configure(configuration, self._session)
        state.queues.arrange(hierarchical=policies.hierarchical)
        for bucket in state.backlog.buckets.values():
            # The gang may fit under the new rules.
            bucket.shortfall = None
        state.node_capacity.freed += 1
        state.gangs.touch_all()

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._configuration

    @property
    def interned(self) -> int:
        """Number of the shapes, terms and resource names that this planner has ever read, weighed
        by their memory. They stay when the objects go that had them.
        """
        shapes = self._state.shapes
        rows = _SHAPES_PER_RESOURCE * len(self._state.resources.names)
        return len(shapes.entries) + shapes.terms.version + rows

    @property
    def view(self) -> ClusterView:
        """The epoch and log positions of the cluster state."""
        return self._state.view

    def lead(self, epoch: int) -> None:
        """Make this planner the writer, with the given epoch."""
        self._state.epoch = epoch
        self._leading = True
        self._book.reconcile(self._state)
        for gang_id, verdict in self._book.published.items():
            gang = self._state.gangs.by_id.get(gang_id)
            if gang is not None and verdict.last_run is not None:
                cluster.recall_run(gang, verdict.last_run)
        # Here, and not only in the first cycle, which a replay knows only if it wrote a record.
        self._state.losses_unsearched = True
        unseen_losses.search(self._state)

    @property
    def has_waiting(self) -> bool:
        """Whether a member of a gang that has not started could be placed."""
        gangs = self._state.gangs.gangs.values()
        return any(gang.counts[WAITING] and not gang.history.started for gang in gangs)

    @property
    def past_runs(self) -> tuple[PastRunsOfUser, ...]:
        """The newest runs with a limit that have ended."""
        return self._state.past_runs.listed()

    def become_forecast(self) -> State:
        """Let this planner, which the caller has copied for that, decide without publishing any
        verdict; returns its state, for the same caller.
        """
        self._book = Book(publishes=False)
        self._cycle.publish_in(self._book)
        self.lead(max(self._state.epoch, self._state.view.decisions_seq) + 1)
        return self._state

    @property
    def open_decisions(self) -> int:
        """The number of decisions that still have reservations."""
        return len(self._state.open)

    @property
    def pods_in_flight(self) -> int:
        """The number of decided pods for which binders have not answered."""
        return self._state.reservations.pods_in_flight

    @property
    def in_flight_max(self) -> int:
        """The in-flight limit of another planner's newest known cycle, in pods; 0: no limit, or
        unknown.
        """
        return self._state.in_flight_max

    @property
    def answered(self) -> int:
        """The number of pods bound or answered so far, counted since this process started."""
        return self._state.reservations.answered

    @property
    def open_holds(self) -> int:
        """The number of lost members with a hold, with or without a reservation."""
        return sum(not hold.reserving for hold in self._state.holds.by_uid.values())

    @property
    def open_reservations(self) -> int:
        """The number of waiting gangs for which capacity is kept, or will be."""
        return len(self._state.reserved)

    def gangs_by_phase(self) -> Mapping[str, int]:
        """The number of gangs managed by Tutti, by phase, as of the last cycle. Gangs under repair
        or release count as Repairing or Releasing.
        """
        return self._state.gangs.phases

    # -------------------------------------------------------------------- cycle

    def step(self, now_ms: int, in_flight_max: int = 0, synced_ms: int | None = None) -> Step:
        """Run one cycle.

        Args:
            now_ms: The current time, in milliseconds.
            in_flight_max: The limit of decided pods without an answer; 0: no limit. It delays only
                ordinary placement, not replacements, repairs or preemptors with victims.
            synced_ms: When the newest `cluster.synced` arrived here, on the clock of `now_ms`.
                None: use the watcher's time in that record.

        Returns:
            The decisions, notes and verdicts of the cycle, and the time of the next one.

        Raises:
            InvariantViolation: The records of the last cycle have not all been `decided`, or the
                state contradicts itself.
        """
        if self._undecided:
            raise InvariantViolation("step", f"{len(self._undecided)} records are not in the log")
        step = self._cycle.run(now_ms, in_flight_max, synced_ms)
        self._undecided.extend(step.decisions)
        self._undecided.extend(step.notes)
        return step

    def decided(self, seq: int, record: Act | Note) -> None:
        """Note that a record of the last cycle is in the log with sequence number `seq`.

        Raises:
            InvariantViolation: It is not the next one.
        """
        if not self._undecided or self._undecided[0] is not record:
            raise InvariantViolation(f"record {seq}", "is not the next one of the last cycle")
        self._undecided.popleft()
        self._state.view.decisions_seq = seq
        if isinstance(record, GangDecision | EvictionDecision):
            in_flight.number(self._state, seq, record)
        decision_log.note_record(self._state.gangs, seq, record)

    def would_fit(self, question: FitRequest) -> FitAnswer:
        """Answer whether a gang would fit now, and whether it would fit on empty nodes."""
        actions = self._configuration.actions
        asker = questions.Asker(self._state, self._policies, actions, self._cycle.now_ms)
        return asker.would_fit(question)

    def ledger(self, after: str = "") -> LedgerAnswer:
        """The held, deserved and queued amounts of a page of queues, those whose names are greater
        than `after`. Only standby planners are asked.
        """
        self._state.extended_resources.count_devices()
        self._state.holds.attach_known(self._state.gangs.by_id)
        return ledger.ledger(self._state, self._session, after)

    def fragmentation(self) -> FragmentationAnswer:
        """How many more pods of common shapes fit. Only standby planners are asked."""
        self._state.extended_resources.count_devices()
        return fragmentation.fragmentation(self._state.gangs, self._session)

    def on_action(self, begins: Callable[[str], None]) -> None:
        """Call `begins` with an action's name when it begins, and with "" after the last one."""
        self._cycle.on_action = begins

    def queue_figures(self) -> list[queue_figures.QueueFigures]:
        """The held and deserved amounts of all queues as of the last cycle; changes no state."""
        return queue_figures.figures(self._state)

    # ----------------------------------------------------------------- internal

    def _forget_if_standby(self) -> None:
        """Clear the retired gangs of a standby: it publishes no verdicts, and the list must not
        grow.
        """
        if not self._leading:
            self._state.gangs.retired.clear()

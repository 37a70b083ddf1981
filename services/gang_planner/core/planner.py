"""The door of the core: records go in, `step` gives decisions, notes and verdicts.

The planner is a function of what it was given, in order: the same records, instants and
configuration give the same bytes. It never looks at a clock; `step` is told the instant.

Contract with its caller (`services.gang_planner`):
* records are applied in the order of their logs, each once (older ones are ignored);
* after `step`, every decision and note in it is appended, in that order (decisions first), and
  `decided` is called for each with the sequence it got, before the next `step`. If an append fails
  for good the process must end: what `step` assumed cannot be undone.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core import picture
from services.gang_planner.core.actions import allocate, backfill, enqueue, preempt, reclaim
from services.gang_planner.core.configuring.configuration import Configuration
from services.gang_planner.core.cycle import CycleWork
from services.gang_planner.core.decisions import inflight, memory, reissuing
from services.gang_planner.core.invariants import InvariantViolation
from services.gang_planner.core.invariants import validate as check_invariants
from services.gang_planner.core.placement import launchers
from services.gang_planner.core.placement.feasibility import Masks
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.preempting import following
from services.gang_planner.core.questions import fitting as questions
from services.gang_planner.core.questions import ledger
from services.gang_planner.core.queueing import queue_figures
from services.gang_planner.core.recovery import (
    completing,
    deadlines,
    holding,
    releasing,
    repairing,
    restoring,
    retrying,
)
from services.gang_planner.core.tables.gangs import Failure, Gang
from services.gang_planner.core.telling import assessing
from services.gang_planner.core.telling.explaining import Explainer
from services.gang_planner.core.telling.verdicts import Book
from services.gang_planner.state import State
from shared.contracts.asking import FitAnswer, FitRequest, LedgerAnswer
from shared.contracts.cluster import ClusterRecord, SnapshotPage
from shared.contracts.decisions import (
    Act,
    Checkpoint,
    Cycle,
    DecisionRecord,
    EvictionDecision,
    GangDecision,
    Note,
)
from shared.contracts.outcomes import Outcome
from shared.contracts.verdicts import Verdict

#: A picture that stays older than the decisions in the log is waited for this long: the longest a
#: POST can be under way.
_UNRESOLVED_MS: Final = 120_000
#: Setting the clock back by less than this is slewing: everybody simply waits that much longer.
_CLOCK_STEP_MS: Final = 1_000
#: Rounds of assessing and acting in one cycle: what a round places may let the next place extras.
_ROUNDS_MAX: Final = 3
_ACTS: Final = (GangDecision, EvictionDecision)


class Step(NamedTuple):
    """What one cycle decided and what is to be told."""

    decisions: list[Act]
    notes: list[Note]
    verdicts: list[Verdict]
    #: When to step again although nothing arrived; None: only when something arrives.
    next_wakeup_ms: int | None


class Planner:
    """The planner's state machine."""

    def __init__(self, configuration: Configuration) -> None:
        self._state = State()
        self._book = Book()
        self._timers = retrying.Timers()
        self._undecided: deque[Act | Note] = deque()
        self._leading = False
        self._unresolved_since_ms: int | None = None
        self._now_ms = 0
        self._begins: Callable[[str], None] = lambda _action: None
        self.configure(configuration)

    # ----------------------------------------------------------------- records

    def apply_cluster(self, seq: int, record: ClusterRecord) -> None:
        """Apply a record of CLUSTER."""
        picture.apply_record(self._state, seq, record)
        self._forget_if_standby()

    def load_snapshot(self, pages: Sequence[SnapshotPage]) -> None:
        """Replace the picture; room and decisions in flight stay until the new picture retires
        them.
        """
        picture.load_snapshot(self._state, pages)
        self._forget_if_standby()

    def apply_decision(self, seq: int, record: DecisionRecord) -> None:
        """Apply a record of DECISIONS that this planner did not just make: at the start, or as a
        standby.
        """
        memory.apply_record(self._state, seq, record)

    def apply_outcome(self, seq: int, outcome: Outcome) -> None:
        """Apply a record of OUTCOMES."""
        view = self._state.view
        if seq > view.outcomes_seq:
            view.outcomes_seq = seq
            inflight.apply_outcome(self._state, seq, outcome)

    def apply_verdict(self, verdict: Verdict) -> None:
        """Take over a verdict that an earlier planner published, so that it is not told again."""
        self._book.recall(verdict)
        if verdict.phase != "Gone" and verdict.first_seen_ms:
            # A gang that waits has no decision yet that remembers since when.
            self._state.gangs.history(verdict.gang_id).first_seen_ms = verdict.first_seen_ms

    def last_verdict(self, gang_id: str) -> Verdict | None:
        """What was said last of a gang; None when it is gone, or nothing was."""
        return self._book.published.get(gang_id)

    def restore(self, pages: Sequence[Checkpoint]) -> None:
        """Begin with a checkpoint instead of the log before it."""
        memory.restore(self._state, pages)

    def checkpoint(self, outcomes_seq: int) -> list[Checkpoint]:
        """Everything that is open now, in pages, to be appended to DECISIONS or kept beside a
        recording.
        """
        return memory.checkpoint(self._state, outcomes_seq, self._now_ms)

    # ------------------------------------------------------------ configuration

    def configure(self, configuration: Configuration) -> None:
        """Use another configuration from the next cycle on; everything is looked at again."""
        state = self._state
        self._configuration = configuration
        state.defaults = configuration.defaults
        policies = configuration.policies().bind(state)
        self._policies = policies
        state.reads_tasks = policies.reads_tasks
        self._masks = Masks(state.nodes, policies.node_filters)
        self._session = Session(state.ground, state.shapes, self._masks, policies)
        state.queues.arrange(hierarchical=policies.hierarchical)
        for bucket in state.backlog.buckets.values():
            # Other rules may find room where these found none.
            bucket.short_by = 0
        state.ground.freed += 1
        state.gangs.touch_all()

    @property
    def configuration(self) -> Configuration:
        """The configuration in force."""
        return self._configuration

    @property
    def cluster_epoch(self) -> int:
        """Epoch of the watcher whose picture this is."""
        return self._state.view.epoch

    @property
    def view_is_newest(self) -> bool:
        """Whether the cluster state is of the newest watcher epoch that any record named."""
        view = self._state.view
        return view.synced is not None and view.epoch == view.newest_epoch

    def lead(self, epoch: int) -> None:
        """This planner is the writer from now on."""
        self._state.epoch = epoch
        self._leading = True
        self._book.reconcile(self._state)

    @property
    def open_decisions(self) -> int:
        """Decisions whose room CLUSTER has not retired yet."""
        return len(self._state.open)

    @property
    def under_way(self) -> int:
        """Pods that are decided, and that binders have not answered for."""
        return self._state.rooms.under_way

    @property
    def under_way_max(self) -> int:
        """How many pods might be under way in the newest cycle of another planner that is known; 0:
        any number, or nobody knows.
        """
        return self._state.under_way_max

    @property
    def answered(self) -> int:
        """Pods of this process's memory so far that were under way and are bound or answered."""
        return self._state.rooms.answered

    @property
    def open_holds(self) -> int:
        """Lost members for which room is held, or sought."""
        return sum(not debt.reserving for debt in self._state.debts.by_uid.values())

    def gangs_by_phase(self) -> Mapping[str, int]:
        """Gangs that are somebody's business, by phase, as of the last cycle; those that are being
        repaired or released count as Repairing and Releasing.
        """
        return self._state.gangs.phases

    # -------------------------------------------------------------------- cycle

    def step(self, now_ms: int, under_way_max: int = 0, synced_ms: int | None = None) -> Step:
        """Run one cycle.

        Args:
            now_ms: The instant.
            under_way_max: How many pods may be decided and not answered; 0: any number. Only fresh
                gangs wait for that: what is owed, repaired or evicted for goes on.
            synced_ms: When the newest `cluster.synced` arrived here, on the clock of `now_ms`.
                None: at the instant that the watcher wrote into it.

        Raises:
            InvariantViolation: The records of the last cycle have not all been `decided`, or the
                state contradicts itself.
        """
        if self._undecided:
            raise InvariantViolation("step", f"{len(self._undecided)} records are not in the log")
        state = self._state
        self._watch_clock(now_ms)
        self._timers.due(state, now_ms)
        state.view.arrived(synced_ms)
        late_ms = inflight.date_late_rooms(state, now_ms)
        fresh = picture.fresh(state, now_ms)
        forgotten_ms = inflight.end_forgotten(state, now_ms, fresh=fresh)
        overlooked_ms = inflight.overlook_unanswered(state, now_ms)
        resolved = self._resolved(now_ms)
        decisive = resolved and fresh
        cycle = Cycle(
            cluster_seq=state.view.cluster_seq,
            outcomes_seq=state.view.outcomes_seq,
            now_ms=now_ms,
            configuration=self._configuration.digest,
            under_way_max=under_way_max,
            synced_ms=synced_ms,
        )
        work = CycleWork(state, self._session, cycle, self._timers)
        self._session.begin(state.rooms.under_way, under_way_max)
        state.queues.limit(state.nodes.changes.position, lambda: self._session.totals)
        if state.preemptions.logged:
            state.preemptions.sync(state)
        if resolved and state.gangs.remembered:
            memory.forget_gone(work)
        if resolved:
            reissuing.reissue(work)
        changed = self._rounds(work, decisive=decisive, resolved=resolved)
        work.notes.extend(state.debts.notes(state.epoch, cycle))
        if decisive:
            state.backlog.throttled = work.throttled
        explainer = Explainer(state, self._session)
        verdicts = self._book.write(state, explainer, changed, now_ms, stale=not decisive)
        wakeups = [late_ms, self._timers.next_ms, self._book.next_ms(state, now_ms)]
        wakeups += [holding.next_ms(state), forgotten_ms]
        for (_, kind), gang in work.fresh.items():
            if kind == "release":
                # It is acted on when it is in the log.
                state.gangs.touch(gang)
        if state.gangs.changed:
            wakeups.append(now_ms)
        state.view.consumed_seq = state.view.outcomes_seq
        work.put_in_order()
        self._undecided.extend(work.decisions)
        self._undecided.extend(work.notes)
        if decisive and state.backlog.fresh:
            # Somebody has not had an attempt: the budget is spent, or binders have enough to do.
            wakeups.append(overlooked_ms if work.throttled else now_ms)
        return Step(
            work.decisions,
            work.notes,
            verdicts,
            min((one for one in wakeups if one is not None), default=None),
        )

    def decided(self, seq: int, record: Act | Note) -> None:
        """A record of the last cycle is in the log as `seq`.

        Raises:
            InvariantViolation: It is not the next one.
        """
        if not self._undecided or self._undecided[0] is not record:
            raise InvariantViolation(f"record {seq}", "is not the next one of the last cycle")
        self._undecided.popleft()
        self._state.view.decisions_seq = seq
        if isinstance(record, _ACTS):
            inflight.number(self._state, seq, record)
        memory.told(self._state, seq, record)

    def validate(self) -> None:
        """Check all invariants.

        Raises:
            InvariantViolation: One does not hold.
        """
        check_invariants(self._state, self._now_ms)

    def would_fit(self, question: FitRequest) -> FitAnswer:
        """Whether a gang would fit now, and on these nodes if they were empty."""
        actions = self._configuration.actions
        asker = questions.Asker(self._state, self._policies, actions, self._now_ms)
        return asker.would_fit(question)

    def ledger(self) -> LedgerAnswer:
        """What queues hold, deserve and wait for; asked of planners that decide nothing."""
        return ledger.ledger(self._state, self._session)

    def on_action(self, begins: Callable[[str], None]) -> None:
        """Say whenever an action begins, and "" when the last one has ended: for who measures."""
        self._begins = begins

    def queue_figures(self) -> list[queue_figures.QueueFigures]:
        """What queues hold and deserve as of the last cycle; changes nothing."""
        return queue_figures.figures(self._state)

    # ----------------------------------------------------------------- internal

    def _watch_clock(self, now_ms: int) -> None:
        """A clock set back must not make anybody wait until it has caught up."""
        if now_ms < self._now_ms - _CLOCK_STEP_MS:
            self._timers.forget()
            self._book.forget_pace(now_ms)
            self._state.gangs.touch_all()
        self._now_ms = now_ms

    def _rounds(self, work: CycleWork, *, decisive: bool, resolved: bool) -> dict[str, Gang]:
        """Assess what changed and act, until nothing more changes; returns the gangs looked at, by
        id.
        """
        state = work.state
        looked_at: dict[str, Gang] = {}
        for _ in range(_ROUNDS_MAX):
            self._assess(work, looked_at)
            if resolved and state.debts.pending:
                self._open_holds(work)
            if state.debts.open_count:
                holding.review(work)
            if decisive and state.preemptions.logged:
                following.follow(work)
            if resolved and state.repairs:
                # What is bound in part is made whole even while the picture is stale.
                repairing.place_first(work)
            if not decisive or self._session.exhausted:
                break
            decided = len(work.decisions)
            admitted = len(state.gangs.unadmitted)
            if state.debts.open_count:
                restoring.run(work)
            completing.run(work)
            self._act(work)
            if decided == len(work.decisions) and admitted == len(state.gangs.unadmitted):
                break
        if decisive and len(state.repairs) > 1:
            repairing.unblock(work)
        self._assess(work, looked_at)
        return looked_at

    def _assess(self, work: CycleWork, looked_at: dict[str, Gang]) -> None:
        state = work.state
        changed = list(state.gangs.changed.values())
        state.gangs.changed.clear()
        now_ms = work.now_ms
        for gang in changed:
            looked_at[gang.gang_id] = gang
            launchers.watch(work, gang)
            history = gang.history
            failures = gang.unread or history.bad or history.failed_pods
            if failures or history.notes or history.started or gang.bound:
                self._carry_on(work, gang)
            if self._assess_gang(gang, now_ms):
                work.started(gang)
                deadlines.started(work, gang)
            if gang.vacant:
                state.gangs.drop_if_empty(gang)
        for gang in state.gangs.retold.values():
            looked_at[gang.gang_id] = gang
        state.gangs.retold.clear()

    def _carry_on(self, work: CycleWork, gang: Gang) -> None:
        """Take what is open of a gang further: pauses, repair, release, deadlines. Nothing is of
        one that has done nothing but wait.
        """
        history = gang.history
        if history.known_as not in {"", gang.gang_id}:
            work.rename(gang)
        retrying.close_pause(work, gang)
        if history.bad or history.failed_pods:
            retrying.date_failures(work, gang)
        failures = self._failures(gang) if gang.unread else ()
        if failures:
            repairing.take_failures(work, gang, failures)
        releasing.advance(work, gang)
        if gang.bound or history.notes:
            repairing.watch(work, gang, failures)
            deadlines.watch(work, gang)

    @staticmethod
    def _open_holds(work: CycleWork) -> None:
        """Whoever lost a member is looked at again: held for or not, it may be degraded."""
        gangs = work.state.gangs
        found = [gangs.gangs.get(loss.key) for loss in work.state.debts.pending.values()]
        holding.open_pending(work)
        for gang in found:
            if gang is not None:
                gangs.touch(gang)

    def _failures(self, gang: Gang) -> Sequence[Failure]:
        """Take what outcomes said of the gang's members. What an earlier planner acted on is in the
        log.
        """
        failures, gang.unread = gang.unread, []
        consumed_seq = self._state.view.consumed_seq
        return [one for one in failures if one.outcome_seq > consumed_seq]

    def _assess_gang(self, gang: Gang, now_ms: int) -> bool:
        actions = self._configuration.actions
        return assessing.assess(self._state, self._policies, actions, gang, now_ms)

    def _act(self, work: CycleWork) -> None:
        if "enqueue" not in self._configuration.actions:
            work.admit_all = True
            enqueue.run(work)
        for action in self._configuration.in_turn:
            self._begins(action)
            match action:
                case "enqueue":
                    enqueue.run(work)
                    # A group without a minimum is admitted with its pods there: it may be placed in
                    # this cycle.
                    self._assess_admitted(work)
                case "allocate":
                    allocate.run(work)
                case "backfill":
                    backfill.run(work)
                case "preempt" | "gangpreempt":
                    preempt.run(work, gangs=action == "gangpreempt")
                case "reclaim" | "gangreclaim":
                    reclaim.run(work, gangs=action == "gangreclaim")
                case _:
                    raise InvariantViolation(f"action {action}", "was accepted and does not exist")
        self._begins("")

    def _assess_admitted(self, work: CycleWork) -> None:
        for gang in list(work.state.gangs.changed.values()):
            if gang.refused == "NotAdmitted" and gang.admitted:
                self._assess_gang(gang, work.now_ms)

    def _resolved(self, now_ms: int) -> bool:
        """Whether every binding in the log has been matched with the picture; one that never is
        ends after a while.
        """
        state = self._state
        if not state.unresolved:
            self._unresolved_since_ms = None
            return True
        if self._unresolved_since_ms is None:
            self._unresolved_since_ms = now_ms
        if now_ms - self._unresolved_since_ms < _UNRESOLVED_MS:
            return False
        inflight.give_up_unresolved(state)
        return True

    def _forget_if_standby(self) -> None:
        """Who writes no verdicts has none to take back; the list must not grow meanwhile."""
        if not self._leading:
            self._state.gangs.retired.clear()

"""One cycle: turns the records read so far into decisions, notes and verdicts.

`CycleRunner.run` lists the phases of a cycle in order. A cycle places gangs only if the cluster
state is fresh and has every binding of the log. Before that, it assesses gangs, checks deadlines,
and repairs partly bound gangs.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from services.gang_planner.core.actions import allocate, enqueue
from services.gang_planner.core.actions.reserve import Reserve
from services.gang_planner.core.allocation import replacements
from services.gang_planner.core.configuration.configuration import Configuration
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.foresight.reservations import Reservations
from services.gang_planner.core.ingest import decision_log
from services.gang_planner.core.lifecycle import (
    announced_losses,
    assessment,
    backoff,
    deadlines,
    hold_rules,
    release,
    repair,
    unseen_losses,
    use_accounting,
)
from services.gang_planner.core.lifecycle.run_limits import RunLimit
from services.gang_planner.core.placement.session import ACTION_WORK, Session
from services.gang_planner.core.preemption import requests, tracking
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gang_states import GangState
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.past_use import AccountKey
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.timers import Timers
from services.gang_planner.core.transitions import follow_run
from services.gang_planner.core.verdicts.book import Book
from services.gang_planner.core.verdicts.pending_reason import Explainer
from shared.contracts.decisions import Act, Cycle, Note
from shared.contracts.pending_reasons import PendingReason
from shared.contracts.verdicts import Verdict
from shared.model.invariants import InvariantViolation

#: How long cycles wait for cluster state that has all decisions in the log: the longest time that a
#: POST can be in flight.
_UNRESOLVED_MS: Final = 120_000
#: An attribute of an enum class is slow in Python 3.11, and every changed gang needs this one.
_COMPLETED: Final = GangState.COMPLETED
#: A clock that goes back by less than this is slewed: every deadline is that much later.
_CLOCK_STEP_MS: Final = 1_000
#: Maximum rounds of assessments and actions in one cycle.
_ROUNDS_MAX: Final = 3


class Step(NamedTuple):
    """What one cycle decided, and the verdicts to publish."""

    decisions: list[Act]
    notes: list[Note]
    verdicts: list[Verdict]
    #: When to run the next cycle if no record arrives; None: only when a record arrives.
    next_wakeup_ms: int | None


class CycleRunner:
    """Runs the cycles of one planner."""

    def __init__(self, state: State, book: Book) -> None:
        self._state = state
        self._book = book
        #: When gangs are assessed again; kept across cycles.
        self._timers = Timers()
        #: Times at which the next cycle must run; it runs at the earliest.
        self._wakeups: list[int] = []
        #: When the next unanswered decision is no longer counted as in flight.
        self._overlooked_ms: int | None = None
        self._unresolved_since_ms: int | None = None
        #: The instant of the newest cycle.
        self.now_ms = 0
        #: Called with an action's name when it begins, and with "" after the last one.
        self.on_action: Callable[[str], None] = lambda _action: None

    def publish_in(self, book: Book) -> None:
        """Give verdicts to this book from the next cycle on."""
        self._book = book

    def configure(self, configuration: Configuration, session: Session) -> None:
        """Use these from the next cycle on."""
        self._configuration = configuration
        self._actions = configuration.in_turn
        self._reservations = Reservations(self._state, session, configuration.reserve_rules)
        self._session = session

    def run(self, now_ms: int, in_flight_max: int, synced_ms: int | None) -> Step:
        """Run one cycle; the arguments are those of `Planner.step`."""
        state = self._state
        # 1. Ingest. Records were applied when they arrived; now the cycle's time is known.
        self._set_clock(now_ms, synced_ms)
        # 2. Expire. Gangs whose timers have expired are marked for assessment, and decisions
        #    without an answer for too long end. Then node and queue amounts are up to date.
        fresh = self._expire()
        resolved = self._is_resolved()
        decisive = resolved and fresh
        work = self._begin(in_flight_max, synced_ms)
        if resolved:
            self._repeat(work)
        assessed: dict[str, Gang] = {}
        use = state.past_use
        counts_use = resolved and (use.rules is not None or use.accounts)
        for number in range(_ROUNDS_MAX):
            # 3. Assess the gangs that changed: their state, and whether they are in the backlog.
            self._assess(work, assessed)
            if counts_use:
                waiting = self._waiting_users()
                use_accounting.open_accounts(use, state.queues, waiting, now_ms)
            # 4. Repair partly bound gangs, and review holds. This also runs on stale cluster state,
            #    which may delay a gang but must not leave one partly bound.
            self._repair(work, resolved=resolved, decisive=decisive)
            if not decisive or (number and self._session.exhausted):
                break
            progress = self._progress(work)
            # 5. Place replacements of lost members. From here on the cluster state is fresh and
            #    complete, and every gang in the backlog may be placed.
            self._session.work_left = max(self._session.work_left, ACTION_WORK)
            self._place_replacements(work)
            # 6. Act: run the configured actions in order, on the remaining free capacity.
            self._act(work)
            # What this round placed may let another gang place its extra members.
            if self._progress(work) == progress:
                break
        if decisive and len(state.repairs) > 1:
            repair.unblock(work)
        self._assess(work, assessed)
        if counts_use:
            work.notes += self._use_notes(work.cycle)
        # 7. Verdicts. No decisions are made after this.
        return self._conclude(work, assessed, decisive=decisive)

    # ------------------------------------------------------------------ phases

    def _set_clock(self, now_ms: int, synced_ms: int | None) -> None:
        """Set the cycle's time. If the clock was set back, reset timers that would be too late."""
        if now_ms < self.now_ms - _CLOCK_STEP_MS:
            self._timers.forget()
            self._book.forget_pace(now_ms)
            self._state.gangs.touch_all()
        self.now_ms = now_ms
        self._wakeups.clear()
        self._state.view.arrived(synced_ms)

    def _expire(self) -> bool:
        """End decisions without an answer for too long; return whether cluster state is fresh."""
        state, now_ms = self._state, self.now_ms
        state.extended_resources.count_devices()
        self._timers.due(state.gangs, now_ms)
        self._wake(in_flight.date_late_reservations(state, now_ms))
        fresh = state.view.is_fresh(now_ms)
        self._wake(in_flight.end_forgotten(state, now_ms, fresh=fresh))
        self._overlooked_ms = in_flight.overlook_unanswered(state, now_ms)
        return fresh

    def _is_resolved(self) -> bool:
        """Whether every binding in the log was matched with the cluster state. After
        `_UNRESOLVED_MS` the planner stops waiting for the missing ones.
        """
        state, now_ms = self._state, self.now_ms
        if not state.unresolved:
            self._unresolved_since_ms = None
            return True
        if self._unresolved_since_ms is None:
            self._unresolved_since_ms = now_ms
        if now_ms - self._unresolved_since_ms < _UNRESOLVED_MS:
            return False
        in_flight.give_up_unresolved(state)
        return True

    def _begin(self, in_flight_max: int, synced_ms: int | None) -> CycleContext:
        """Create the context of this cycle, with full budgets, and update open preemptions."""
        state = self._state
        cycle = Cycle(
            cluster_seq=state.view.cluster_seq,
            outcomes_seq=state.view.outcomes_seq,
            now_ms=self.now_ms,
            configuration=self._configuration.digest,
            in_flight_max=in_flight_max,
            synced_ms=synced_ms,
        )
        work = CycleContext(
            state, self._session, cycle, self.now_ms, self._timers, self._reservations
        )
        self._session.begin(state.reservations.pods_in_flight, in_flight_max)
        state.queues.limit(state.nodes.changes.position, lambda: self._session.totals)
        if state.preemptions.logged:
            self._wake(state.preemptions.sync(state, self.now_ms))
        return work

    def _repeat(self, work: CycleContext) -> None:
        """Reissue records that the log will soon drop, and close the notes of gangs now gone."""
        if self._state.gangs.remembered:
            decision_log.forget_gone(work)
        if self._state.open or self._state.evictions:
            work.decisions += in_flight.reissued(self._state, work.cycle)

    def _assess(self, work: CycleContext, assessed: dict[str, Gang]) -> None:
        """Advance and assess every gang that changed, and add it to `assessed` by its id."""
        state, gangs = work.state, work.state.gangs
        changed = list(gangs.changed.values())
        gangs.changed.clear()
        actions = self._configuration.actions
        for gang in changed:
            assessed[gang.gang_id] = gang
            history = gang.history
            if history.state is _COMPLETED:
                follow_run(gang)
            assessment.update_late_roles(work.timers, gang, work.now_ms)
            if history.known_as is not None and history.is_logged_as_other(gang.gang_id):
                work.rename(gang)
            failures = gang.unread or history.bad or history.failed_pods
            if failures or history.notes.any_open or history.started or gang.bound:
                self._advance(work, gang)
            assessment.assess(work, actions, gang)
            if history.started or history.notes.run is not None:
                RunLimit(work, gang).watch()
            if history.notes.reservation is not None or gang.key in state.reserved:
                Reserve(work).follow(gang)
            if work.reservations.profile.spans:
                work.reservations.profile.follow(gang)
            if gang.vacant:
                gangs.drop_if_empty(gang)
        for gang in gangs.to_republish.values():
            assessed[gang.gang_id] = gang
        gangs.to_republish.clear()

    def _advance(self, work: CycleContext, gang: Gang) -> None:
        """Advance a gang's backoff, repair, release and deadlines."""
        history = gang.history
        backoff.close_pause(work, gang)
        if history.bad or history.failed_pods:
            backoff.date_failures(work.timers, gang, work.now_ms)
        failures = self._take_failures(gang) if gang.unread else ()
        if failures:
            repair.take_failures(work, gang, failures)
        release.advance(work, gang)
        if gang.bound or history.notes.any_open:
            repair.watch(work, gang, failures)
            deadlines.watch(work, gang)

    def _take_failures(self, gang: Gang) -> Sequence[Failure]:
        """Take the gang's failures since the last cycle that no earlier planner has handled."""
        failures, gang.unread = gang.unread, []
        consumed_seq = self._state.view.consumed_seq
        return [failure for failure in failures if failure.outcome_seq > consumed_seq]

    def _repair(self, work: CycleContext, *, resolved: bool, decisive: bool) -> None:
        state = work.state
        if state.losses_unsearched:
            unseen_losses.search(state)
        if resolved and state.holds.pending:
            self._open_holds(work)
        if resolved and (state.nodes.leaving or state.nodes.unready):
            announced_losses.announce(work)
        if state.holds.by_uid:
            hold_rules.review(work)
        if decisive and state.preemptions.logged:
            tracking.follow(work)
        if resolved and state.repairs:
            repair.place_first(work)

    @staticmethod
    def _open_holds(work: CycleContext) -> None:
        """Open holds for lost members. Their gangs are assessed again: they may be degraded."""
        gangs = work.state.gangs
        gangs_with_losses = [
            gangs.gangs.get(loss.key) for loss in work.state.holds.pending.values()
        ]
        hold_rules.open_pending(work)
        for gang in gangs_with_losses:
            if gang is not None:
                gangs.touch(gang)

    @staticmethod
    def _place_replacements(work: CycleContext) -> None:
        if work.state.holds.by_uid:
            replacements.run(work)
        if work.state.backlog.lacking:
            replacements.place_missing(work)

    def _act(self, work: CycleContext) -> None:
        if "enqueue" not in self._configuration.actions:
            work.admit_all = True
            self._enqueue(work)
        if work.state.reserved:
            Reserve(work).review()
        for action in self._actions:
            self.on_action(action)
            self._session.work_left = max(self._session.work_left, ACTION_WORK)
            match action:
                case "enqueue":
                    self._enqueue(work)
                    # The pods of a group without a minimum may exist before its admission: it may
                    # be placed in this cycle.
                    self._assess_admitted(work)
                case "allocate":
                    allocate.run(work)
                case "backfill":
                    allocate.run(work, best_effort=True)
                case "reserve":
                    # Reservations are reviewed before all other actions, and made when a gang is
                    # refused.
                    pass
                case "preempt" | "gangpreempt":
                    requests.run(work, "preempt", whole=action == "gangpreempt")
                case "reclaim" | "gangreclaim":
                    requests.run(work, "reclaim", whole=action == "gangreclaim")
                case _:
                    raise InvariantViolation(f"action {action}", "was accepted and does not exist")
        Reserve(work).close_unusable()
        work.reservations.end()
        self.on_action("")

    @staticmethod
    def _enqueue(work: CycleContext) -> None:
        if work.state.gangs.admission_queue.buckets:
            enqueue.run(work)

    def _assess_admitted(self, work: CycleContext) -> None:
        for gang in list(work.state.gangs.changed.values()):
            if gang.pending_reason is PendingReason.NOT_ADMITTED and gang.admitted:
                assessment.assess(work, self._configuration.actions, gang)

    @staticmethod
    def _progress(work: CycleContext) -> tuple[int, int]:
        return len(work.decisions), len(work.state.gangs.unadmitted)

    def _waiting_users(self) -> set[AccountKey]:
        gangs = self._state.gangs
        return use_accounting.waiting_users(self._state.backlog, gangs.admission_queue)

    def _use_notes(self, cycle: Cycle) -> list[Note]:
        """Records of what has changed of the past use of queues and users."""
        state, waiting = self._state, self._waiting_users()
        records = use_accounting.records(state.past_use, state.queues, state.nodes, waiting)
        stamp: dict[str, Any] = {"epoch": state.epoch, "at_ms": self.now_ms, "cycle": cycle}
        return [msgspec.structs.replace(record, **stamp) for record in records]

    def _conclude(self, work: CycleContext, assessed: dict[str, Gang], *, decisive: bool) -> Step:
        """Collect the notes of holds, the verdicts, and the time of the next cycle."""
        state = self._state
        work.notes.extend(state.holds.notes(state.epoch, work.cycle))
        if decisive:
            state.backlog.throttled = work.throttled
        explainer = Explainer(state, self._session)
        verdicts = self._book.write(state, explainer, assessed, self.now_ms, stale=not decisive)
        self._wake(self._book.next_ms(state.node_capacity.freed, self.now_ms))
        wakeup_ms = self._next_wakeup_ms(work, decisive=decisive)
        if work.decisions or work.notes:
            state.recorded_ms = self.now_ms
        state.view.consumed_seq = state.view.outcomes_seq
        work.put_in_order()
        return Step(work.decisions, work.notes, verdicts, wakeup_ms)

    def _wake(self, at_ms: int | None) -> None:
        """Run a cycle at this time at the latest; None adds nothing."""
        if at_ms is not None:
            self._wakeups.append(at_ms)

    def _next_wakeup_ms(self, work: CycleContext, *, decisive: bool) -> int | None:
        """The time of the next cycle; None: it runs only when a record arrives.

        A gang whose release was opened in this cycle is marked as changed.
        """
        state, now_ms = work.state, work.now_ms
        self._wake(self._timers.next_ms)
        self._wake(state.holds.next_ms)
        for (_, kind), gang in work.fresh.items():
            if kind == "release":
                # Its members are deleted once the release is in the log.
                state.gangs.touch(gang)
        if state.gangs.changed:
            self._wake(now_ms)
        if decisive and state.backlog.fresh:
            # A gang had no attempt: the budget is spent, or the in-flight limit is reached.
            self._wake(self._overlooked_ms if work.throttled else now_ms)
        return min(self._wakeups, default=None)

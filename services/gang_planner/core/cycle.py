"""One cycle: what was read becomes decisions, notes and verdicts. `CycleRunner.run` is its phases.

A cycle decides only on a view of the cluster that is fresh and shows every binding in the log.
Until then gangs are assessed, deadlines pass, and what is bound in part is made whole: a stale view
may delay a gang, and must not leave one half started.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from services.gang_planner.core.actions import allocate, backfill, enqueue, preempt, reclaim
from services.gang_planner.core.allocation import replacements
from services.gang_planner.core.configuration.configuration import Configuration
from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.framework.policy_set import PolicySet
from services.gang_planner.core.ingest import cluster, decision_log
from services.gang_planner.core.lifecycle import (
    assessment,
    backoff,
    completion,
    deadlines,
    holds,
    late_roles,
    reissue,
    release,
    repair,
)
from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.preemption import tracking
from services.gang_planner.core.state import in_flight
from services.gang_planner.core.state.gang_history import Failure
from services.gang_planner.core.state.gangs import Gang
from services.gang_planner.core.state.planner_state import State
from services.gang_planner.core.state.timers import Timers
from services.gang_planner.core.verdicts.book import Book
from services.gang_planner.core.verdicts.pending_reason import Explainer
from shared.contracts.decisions import Act, Cycle, Note
from shared.contracts.verdicts import Verdict
from shared.model.invariants import InvariantViolation

#: A view that stays older than the decisions in the log is waited for this long: the longest a
#: POST can be in flight.
_UNRESOLVED_MS: Final = 120_000
#: Setting the clock back by less than this is slewing: every deadline simply comes that much later.
_CLOCK_STEP_MS: Final = 1_000
#: Rounds of assessing and acting in one cycle: what a round places may let the next place extras.
_ROUNDS_MAX: Final = 3


class Step(NamedTuple):
    """What one cycle decided, and the verdicts to publish."""

    decisions: list[Act]
    notes: list[Note]
    verdicts: list[Verdict]
    #: When to step again although nothing arrived; None: only when something arrives.
    next_wakeup_ms: int | None


class _Expired(NamedTuple):
    """What deadlines of decisions in flight say at the beginning of a cycle."""

    #: Whether the view is fresh enough to decide by.
    fresh: bool
    #: When the next deadline of each kind passes; None: there is none.
    late_ms: int | None
    forgotten_ms: int | None
    overlooked_ms: int | None


class CycleRunner:
    """Runs the cycles of one planner."""

    def __init__(self, state: State, book: Book) -> None:
        self._state = state
        self._book = book
        self._timers = Timers()
        self._unresolved_since_ms: int | None = None
        #: The instant of the newest cycle.
        self.now_ms = 0
        #: Called with an action's name when it begins, and with "" after the last one.
        self.on_action: Callable[[str], None] = lambda _action: None

    def configure(
        self, configuration: Configuration, policies: PolicySet, session: Session
    ) -> None:
        """Use these from the next cycle on."""
        self._configuration = configuration
        self._policies = policies
        self._session = session

    def run(self, now_ms: int, in_flight_max: int, synced_ms: int | None) -> Step:
        """Run one cycle; the arguments are those of `Planner.step`."""
        state = self._state
        # Time passes: gangs whose instant has come are assessed, decisions in flight expire.
        self._watch_clock(now_ms)
        self._timers.due(state, now_ms)
        expired = self._expire(now_ms, synced_ms)
        resolved = self._resolved(now_ms)
        decisive = resolved and expired.fresh
        # From here on the amounts that nodes and queues have are those of this cycle.
        work = self._begin(now_ms, in_flight_max, synced_ms)
        # What the log is about to lose is repeated. It depends on bindings that the view shows.
        if resolved:
            self._repeat(work)
        # Assess, repair, place replacements, act: until nothing more changes.
        assessed = self._rounds(work, decisive=decisive, resolved=resolved)
        # Holds that this cycle opened, moved or ended go into the log with its decisions.
        work.notes.extend(state.holds.notes(state.epoch, work.cycle))
        if decisive:
            state.backlog.throttled = work.throttled
        # Verdicts: nothing is decided after this.
        explainer = Explainer(state, self._session)
        verdicts = self._book.write(state, explainer, assessed, now_ms, stale=not decisive)
        wakeup_ms = self._next_wakeup_ms(work, expired, decisive=decisive)
        state.view.consumed_seq = state.view.outcomes_seq
        work.put_in_order()
        return Step(work.decisions, work.notes, verdicts, wakeup_ms)

    # ------------------------------------------------------------------ phases

    def _watch_clock(self, now_ms: int) -> None:
        """A clock set back must not make a gang wait until it has caught up."""
        if now_ms < self.now_ms - _CLOCK_STEP_MS:
            self._timers.forget()
            self._book.forget_pace(now_ms)
            self._state.gangs.touch_all()
        self.now_ms = now_ms

    def _expire(self, now_ms: int, synced_ms: int | None) -> _Expired:
        """End what waited too long for an answer."""
        state = self._state
        state.view.arrived(synced_ms)
        late_ms = in_flight.date_late_reservations(state, now_ms)
        fresh = cluster.fresh(state, now_ms)
        forgotten_ms = in_flight.end_forgotten(state, now_ms, fresh=fresh)
        overlooked_ms = in_flight.overlook_unanswered(state, now_ms)
        return _Expired(fresh, late_ms, forgotten_ms, overlooked_ms)

    def _resolved(self, now_ms: int) -> bool:
        """Whether every binding in the log has been matched with the view; one that never is
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
        in_flight.give_up_unresolved(state)
        return True

    def _begin(self, now_ms: int, in_flight_max: int, synced_ms: int | None) -> CycleContext:
        """The context of this cycle, with full budgets; rows of preemptions follow the view."""
        state = self._state
        cycle = Cycle(
            cluster_seq=state.view.cluster_seq,
            outcomes_seq=state.view.outcomes_seq,
            now_ms=now_ms,
            configuration=self._configuration.digest,
            in_flight_max=in_flight_max,
            synced_ms=synced_ms,
        )
        work = CycleContext(state, self._session, cycle, self._timers)
        self._session.begin(state.reservations.pods_in_flight, in_flight_max)
        state.queues.limit(state.nodes.changes.position, lambda: self._session.totals)
        if state.preemptions.logged:
            state.preemptions.sync(state)
        return work

    def _repeat(self, work: CycleContext) -> None:
        """Repeat records that the log will lose; forget what it remembers of vanished gangs."""
        if self._state.gangs.remembered:
            decision_log.forget_gone(work)
        reissue.reissue(work)

    def _rounds(self, work: CycleContext, *, decisive: bool, resolved: bool) -> dict[str, Gang]:
        """Assess what changed and act, until nothing more changes; returns the gangs assessed, by
        id.
        """
        state = work.state
        assessed: dict[str, Gang] = {}
        for _ in range(_ROUNDS_MAX):
            self._assess(work, assessed)
            if resolved and state.holds.pending:
                self._open_holds(work)
            if state.holds.open_count:
                holds.review(work)
            if decisive and state.preemptions.logged:
                tracking.follow(work)
            if resolved and state.repairs:
                # A gang bound in part is made whole even while the view is stale.
                repair.place_first(work)
            if not decisive or self._session.exhausted:
                break
            decided = len(work.decisions)
            admitted = len(state.gangs.unadmitted)
            if state.holds.open_count:
                replacements.run(work)
            completion.run(work)
            self._act(work)
            if decided == len(work.decisions) and admitted == len(state.gangs.unadmitted):
                break
        if decisive and len(state.repairs) > 1:
            repair.unblock(work)
        self._assess(work, assessed)
        return assessed

    def _assess(self, work: CycleContext, assessed: dict[str, Gang]) -> None:
        state = work.state
        changed = list(state.gangs.changed.values())
        state.gangs.changed.clear()
        now_ms = work.now_ms
        for gang in changed:
            assessed[gang.gang_id] = gang
            late_roles.watch(work, gang)
            history = gang.history
            failures = gang.unread or history.bad or history.failed_pods
            if failures or history.notes or history.started or gang.bound:
                self._advance(work, gang)
            if self._assess_gang(gang, now_ms):
                work.started(gang)
                deadlines.started(work, gang)
            if gang.vacant:
                state.gangs.drop_if_empty(gang)
        for gang in state.gangs.to_republish.values():
            assessed[gang.gang_id] = gang
        state.gangs.to_republish.clear()

    def _advance(self, work: CycleContext, gang: Gang) -> None:
        """Advance a gang's open work: backoff, repair, release, deadlines. A gang that has only
        waited has none.
        """
        history = gang.history
        if history.known_as not in {"", gang.gang_id}:
            work.rename(gang)
        backoff.close_pause(work, gang)
        if history.bad or history.failed_pods:
            backoff.date_failures(work, gang)
        failures = self._failures(gang) if gang.unread else ()
        if failures:
            repair.take_failures(work, gang, failures)
        release.advance(work, gang)
        if gang.bound or history.notes:
            repair.watch(work, gang, failures)
            deadlines.watch(work, gang)

    @staticmethod
    def _open_holds(work: CycleContext) -> None:
        """Open holds for lost members. Their gangs are assessed again: they may be degraded."""
        gangs = work.state.gangs
        found = [gangs.gangs.get(loss.key) for loss in work.state.holds.pending.values()]
        holds.open_pending(work)
        for gang in found:
            if gang is not None:
                gangs.touch(gang)

    def _failures(self, gang: Gang) -> Sequence[Failure]:
        """Take the failures that outcomes reported of the gang's members since the last cycle. What
        an earlier planner acted on is in the log.
        """
        failures, gang.unread = gang.unread, []
        consumed_seq = self._state.view.consumed_seq
        return [one for one in failures if one.outcome_seq > consumed_seq]

    def _assess_gang(self, gang: Gang, now_ms: int) -> bool:
        actions = self._configuration.actions
        return assessment.assess(self._state, self._policies, actions, gang, now_ms)

    def _act(self, work: CycleContext) -> None:
        if "enqueue" not in self._configuration.actions:
            work.admit_all = True
            enqueue.run(work)
        for action in self._configuration.in_turn:
            self.on_action(action)
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
        self.on_action("")

    def _assess_admitted(self, work: CycleContext) -> None:
        for gang in list(work.state.gangs.changed.values()):
            if gang.refused == "NotAdmitted" and gang.admitted:
                self._assess_gang(gang, work.now_ms)

    def _next_wakeup_ms(
        self, work: CycleContext, expired: _Expired, *, decisive: bool
    ) -> int | None:
        """When to run the next cycle although nothing arrives."""
        state, now_ms = self._state, work.now_ms
        wakeups = [expired.late_ms, self._timers.next_ms, self._book.next_ms(state, now_ms)]
        wakeups += [holds.next_ms(state), expired.forgotten_ms]
        for (_, kind), gang in work.fresh.items():
            if kind == "release":
                # It is acted on when it is in the log.
                state.gangs.touch(gang)
        if state.gangs.changed:
            wakeups.append(now_ms)
        if decisive and state.backlog.fresh:
            # A gang has had no attempt: the budget is spent, or binders have enough to do.
            wakeups.append(expired.overlooked_ms if work.throttled else now_ms)
        return min((one for one in wakeups if one is not None), default=None)

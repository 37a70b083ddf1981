"""When the planner runs its next cycle if no record arrives."""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import holds
from services.gang_planner.core.state.timers import Timers


class Wakeups:
    """Collects the times at which a cycle must run; the next cycle runs at the earliest."""

    def __init__(self) -> None:
        #: When gangs are assessed again; kept across cycles.
        self.timers = Timers()
        #: When the next unanswered decision is no longer counted as in flight.
        self.overlooked_ms: int | None = None
        self._instants: list[int] = []

    def begin(self) -> None:
        """Discard the times of the previous cycle."""
        self._instants.clear()

    def add(self, at_ms: int | None) -> None:
        """Add a time at which a cycle must run; None adds nothing."""
        if at_ms is not None:
            self._instants.append(at_ms)

    def next_ms(self, work: CycleContext, *, decisive: bool) -> int | None:
        """The time of the next cycle; None: it runs only when a record arrives.

        A gang whose release was opened in this cycle is marked as changed.
        """
        state, now_ms = work.state, work.now_ms
        self.add(self.timers.next_ms)
        self.add(holds.next_ms(state))
        for (_, kind), gang in work.fresh.items():
            if kind == "release":
                # Its members are deleted once the release is in the log.
                state.gangs.touch(gang)
        if state.gangs.changed:
            self.add(now_ms)
        if decisive and state.backlog.fresh:
            # A gang had no attempt: the budget is spent, or the in-flight limit is reached.
            self.add(self.overlooked_ms if work.throttled else now_ms)
        return min(self._instants, default=None)

"""When the planner runs its next cycle although no record arrives."""

from services.gang_planner.core.cycle_context import CycleContext
from services.gang_planner.core.lifecycle import holds
from services.gang_planner.core.state.timers import Timers


class Wakeups:
    """Instants that cycles collect; the earliest is that of the next cycle."""

    def __init__(self) -> None:
        #: Instants at which gangs are assessed again; they last beyond a cycle.
        self.timers = Timers()
        #: When the next unanswered decision is no longer counted as in flight.
        self.overlooked_ms: int | None = None
        self._instants: list[int] = []

    def begin(self) -> None:
        """Forget the instants of the previous cycle."""
        self._instants.clear()

    def add(self, at_ms: int | None) -> None:
        """Wake up at this instant; None: there is nothing to wake up for."""
        if at_ms is not None:
            self._instants.append(at_ms)

    def next_ms(self, work: CycleContext, *, decisive: bool) -> int | None:
        """The instant of the next cycle; None: only a record calls for one."""
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
            # A gang had no attempt: the budget is spent, or binders have enough to do.
            self.add(self.overlooked_ms if work.throttled else now_ms)
        return min(self._instants, default=None)

"""One cycle's inputs and what it has decided so far."""

from services.gang_planner.core.session import Session
from services.gang_planner.state import State
from shared.contracts.decisions import Cycle, GangDecision, Note


class CycleWork:
    """Given to the actions; they add decisions and notes, in the order in which they are to be
    appended.
    """

    def __init__(
        self, state: State, session: Session, cycle: Cycle, *, always_preflight: bool
    ) -> None:
        self.state = state
        self.session = session
        self.cycle = cycle
        self.always_preflight = always_preflight
        self.decisions: list[GangDecision] = []
        self.notes: list[Note] = []
        #: The enqueue action is not configured: allocate admits by itself.
        self.admit_all = False

    @property
    def now_ms(self) -> int:
        """The instant of this cycle."""
        return self.cycle.now_ms

"""Places gangs of best-effort pods, which request no resource but a node's pod slot.

In a gang with other members, best-effort members are placed together with these by `allocate`.
"""

from services.gang_planner.core.actions.allocate import place_line
from services.gang_planner.core.cycle_context import CycleContext


def run(work: CycleContext) -> None:
    """Place gangs whose waiting members are all best-effort."""
    place_line(work, best_effort=True)

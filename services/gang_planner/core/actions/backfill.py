"""Places best-effort pods, which ask for nothing but their place in a node's count of pods.

Best-effort members of a gang that also has others are part of that gang's placement, so that it is
whole.
"""

from services.gang_planner.core.actions.allocate import place_line
from services.gang_planner.core.cycle_context import CycleContext


def run(work: CycleContext) -> None:
    """Place gangs whose waiting members are all best-effort."""
    place_line(work, best_effort=True)

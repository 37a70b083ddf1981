"""What tests see of a planner beyond its interface: its tables, its policies and its time.

They are private to the rest of the product, and this is the only place where tests read them.
"""

from services.gang_planner.core.placement.session import Session
from services.gang_planner.core.planner import Planner
from services.gang_planner.core.state.planner_state import State


def state_of(planner: Planner) -> State:
    return planner._state


def session_of(planner: Planner) -> Session:
    return planner._session


def last_cycle_ms(planner: Planner) -> int:
    """When its last cycle began."""
    return planner._cycle.now_ms
